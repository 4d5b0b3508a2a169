//! Completes the fan-out of appends to resources with very many subscriptions.
//!
//! An append marks the first subscriptions due in its transaction; this job marks the rest, in
//! chunks of one transaction each, so that no transaction is long and deliveries start with the
//! first chunk. Fan-outs take turns.

use std::sync::Arc;
use std::time::Duration;

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

    async fn perform(&self, resource: ResourceId) -> Result<(), StoreError> {
        let advanced = self.store.continue_fan_out(resource, runner::now()).await;
        if advanced.is_err() {
            tokio::time::sleep(RETRY_AFTER).await;
        }
        advanced.map(drop)
    }

    fn number(resource: &ResourceId) -> Option<i64> {
        Some(resource.0)
    }
}
