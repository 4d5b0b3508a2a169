//! Whether a claimed delivery may still be sent.
//!
//! A delivery may wait for its host long after it was claimed. Meanwhile its subscription may have been
//! paused, renewed with another secret or ended, or its claim may have expired, as after a suspend of the
//! machine. So whatever has waited is read again right before it is sent, and given back if it has
//! changed.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use tracing::warn;

use crate::jobs::runner;
use feedgate_core::ports::{HeldDelivery, Store, StoreError};
use feedgate_core::subscription::DueSubscription;
use feedgate_store::{BatchLimits, Batcher};

/// How old what is known of a subscription may be when a notification is sent. A pause takes effect within
/// a second of its answer.
const FRESH_FOR: TimeDelta = TimeDelta::milliseconds(500);
const LIMITS: BatchLimits =
    BatchLimits { gather: Duration::from_millis(1), most: 500, concurrent: 2 };

/// Reads again what has waited.
#[derive(Debug)]
pub(super) struct ClaimChecks {
    batcher: Batcher<HeldDelivery, Result<bool, Arc<StoreError>>>,
}

impl ClaimChecks {
    /// Starts the task that reads, until this is dropped.
    pub(super) fn start(store: Arc<dyn Store>) -> ClaimChecks {
        let check = move |batch| check_batch(Arc::clone(&store), batch);
        ClaimChecks { batcher: Batcher::start(LIMITS, check) }
    }

    /// Returns whether a delivery may be sent. If not, its claim is released.
    pub(super) async fn may_send(&self, due: &DueSubscription) -> Result<bool, Arc<StoreError>> {
        let age = runner::now() - due.claimed_at;
        if age >= TimeDelta::zero() && age < FRESH_FOR {
            return Ok(true);
        }
        let checked = self.batcher.submit(HeldDelivery::from(due)).await;
        checked.result().await.unwrap_or_else(|| Err(Arc::new(StoreError::Closed)))
    }
}

async fn check_batch(
    store: Arc<dyn Store>,
    batch: Vec<HeldDelivery>,
) -> Vec<Result<bool, Arc<StoreError>>> {
    let current = match store.still_current(&batch, runner::now()).await {
        Ok(current) => current.into_iter().collect::<HashSet<_>>(),
        Err(err) => {
            let err = Arc::new(err);
            return batch.iter().map(|_| Err(Arc::clone(&err))).collect();
        }
    };
    let outdated = batch.iter().filter(|held| !current.contains(&held.id));
    let outdated: Vec<_> = outdated.map(|held| (held.id, held.claim)).collect();
    if !outdated.is_empty()
        && let Err(err) = store.release_subscription_claims(&outdated, runner::now()).await
    {
        let error = &err as &dyn std::error::Error;
        warn!(error, "claims of deliveries were not released; they will expire");
    }
    batch.iter().map(|held| Ok(current.contains(&held.id))).collect()
}
