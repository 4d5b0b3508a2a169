//! Completes the fan-out of appends to resources with very many subscriptions.
//!
//! An append marks the first subscriptions due in its transaction; this job marks the rest, in
//! chunks of one transaction each, so that no transaction is long and deliveries start with the
//! first chunk. Fan-outs take turns.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use tracing::error;

use crate::jobs::runner::{self, Job};
use feedgate_core::resource::ResourceId;
use feedgate_core::store::StoreError;
use feedgate_store::Store;

/// The pause after a chunk that failed, so that a store that is down is not asked in a loop.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Marks subscriptions due.
pub struct FanOutJob {
    store: Arc<Store>,
}

impl FanOutJob {
    /// A job for the fan-outs in `store`.
    pub fn new(store: Arc<Store>) -> FanOutJob {
        FanOutJob { store }
    }
}

impl std::fmt::Debug for FanOutJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FanOutJob").finish_non_exhaustive()
    }
}

impl Job for FanOutJob {
    type Item = ResourceId;

    const NAME: &'static str = "fan-out";

    async fn claim(&self, limit: usize) -> Result<Vec<ResourceId>, StoreError> {
        self.store.pending_fan_outs(limit).await
    }

    async fn perform(&self, resource: ResourceId) {
        let Err(err) = self.store.continue_fan_out(resource, runner::now()).await else { return };
        log_failure(resource, &err);
        tokio::time::sleep(RETRY_AFTER).await;
    }
}

fn log_failure(resource: ResourceId, err: &StoreError) {
    let error = err as &dyn Error;
    error!(resource = resource.0, error, "a fan-out was not advanced; it will be retried");
}
