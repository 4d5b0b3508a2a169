//! Records the results of deliveries, many in one transaction.
//!
//! A caller waits until its result is stored, so that a worker that has finished leaves nothing behind.

use std::sync::Arc;
use std::time::Duration;

use super::claims::release_failed;
use crate::clock::Stopwatch;
use crate::jobs::runner;
use feedgate_core::store::{DeliveryOutcome, DeliveryResult, StoreError};
use feedgate_store::{BatchLimits, Batcher, PendingResult, Store};

const LIMITS: BatchLimits = BatchLimits {
    // The host is free meanwhile, but the next delivery to the same subscription waits. A transaction costs as
    // much as the results of a hundred deliveries.
    gather: Duration::from_millis(10),
    most: 500,
    concurrent: 2,
};

type Stored = Result<(), Arc<StoreError>>;

/// Collects results and records them.
#[derive(Debug)]
pub(super) struct DeliveryResultBatcher {
    batcher: Batcher<(DeliveryResult, Stopwatch), Stored>,
}

impl DeliveryResultBatcher {
    /// Starts recording, until the batcher is dropped.
    pub(super) fn start(store: Arc<Store>) -> DeliveryResultBatcher {
        let record = move |batch| record_batch(Arc::clone(&store), batch);
        DeliveryResultBatcher { batcher: Batcher::start(LIMITS, record) }
    }

    /// Hands in the result of one delivery. Waits while too many results are pending.
    pub(super) async fn submit(&self, result: DeliveryResult) -> PendingRecord {
        PendingRecord(self.batcher.submit((result, Stopwatch::start())).await)
    }
}

/// A result that is being stored.
#[derive(Debug)]
pub(super) struct PendingRecord(PendingResult<Stored>);

impl PendingRecord {
    /// Returns when the result is stored.
    pub(super) async fn stored(self) -> Stored {
        self.0.result().await.unwrap_or_else(|| Err(Arc::new(StoreError::Closed)))
    }
}

/// Records a batch in one transaction. If that fails, each result is recorded by itself: a result
/// that cannot be stored must not cause the others to be delivered again.
async fn record_batch(store: Arc<Store>, batch: Vec<(DeliveryResult, Stopwatch)>) -> Vec<Stored> {
    let batch: Vec<_> = batch.into_iter().map(by_clock_of_now).collect();
    let stored = store.record_deliveries(&batch, runner::now()).await.map_err(Arc::new);
    if stored.is_ok() {
        return vec![stored; batch.len()];
    }
    let mut each = vec![stored];
    if batch.len() > 1 {
        each.clear();
        for result in &batch {
            let alone = std::slice::from_ref(result);
            each.push(store.record_deliveries(alone, runner::now()).await.map_err(Arc::new));
        }
    }
    let failed = batch.iter().zip(&each).filter(|(_, stored)| stored.is_err());
    let failed: Vec<_> = failed.map(|(result, _)| (result.id, result.claim)).collect();
    if !failed.is_empty() {
        release_failed(&store, &failed).await;
    }
    each
}

/// Returns a result whose retry is put off by as much as the clock was set since it came.
fn by_clock_of_now((mut result, since): (DeliveryResult, Stopwatch)) -> DeliveryResult {
    if let DeliveryOutcome::Failed { retry_at: Some(at) } = &mut result.outcome {
        *at += since.clock_set_by();
    }
    result
}
