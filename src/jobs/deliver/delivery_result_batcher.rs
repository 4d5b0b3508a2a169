//! Records the results of deliveries, many in one transaction.
//!
//! A commit costs the same for one delivery as for a hundred. A caller waits until its result is
//! stored, so that a worker that has finished leaves nothing behind.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::sleep;

use crate::jobs::runner;
use feedgate_core::ports::{DeliveryResult, Store, StoreError};

/// How long the first result of a batch waits for others. The host is free meanwhile, but the next delivery
/// to the same subscription waits. A transaction costs as much as the results of a hundred deliveries.
const GATHER: Duration = Duration::from_millis(10);
/// The most results in one transaction.
const BATCH: usize = 500;
/// The most batches that are stored at the same time. While so many are, the next one grows.
const CONCURRENT_BATCHES: usize = 2;

type Stored = Result<(), Arc<StoreError>>;
type PendingResult = (DeliveryResult, oneshot::Sender<Stored>);

/// Collects results and records them.
#[derive(Debug)]
pub(super) struct DeliveryResultBatcher {
    pending: mpsc::Sender<PendingResult>,
}

impl DeliveryResultBatcher {
    /// Starts recording, until the batcher is dropped.
    pub(super) fn start(store: Arc<dyn Store>) -> DeliveryResultBatcher {
        let (pending, received) = mpsc::channel(BATCH);
        tokio::spawn(record_batches(store, received));
        DeliveryResultBatcher { pending }
    }

    /// Hands in the result of one delivery. Waits while too many results are pending.
    pub(super) async fn submit(&self, result: DeliveryResult) -> PendingRecord {
        let (done, stored) = oneshot::channel();
        // A batcher that has stopped drops `done`, by which the caller notices it.
        let _ = self.pending.send((result, done)).await;
        PendingRecord(stored)
    }
}

/// A result that is being stored.
#[derive(Debug)]
pub(super) struct PendingRecord(oneshot::Receiver<Stored>);

impl PendingRecord {
    /// Returns when the result is stored.
    pub(super) async fn stored(self) -> Stored {
        self.0.await.unwrap_or_else(|_| Err(Arc::new(StoreError::Closed)))
    }
}

async fn record_batches(store: Arc<dyn Store>, mut pending: mpsc::Receiver<PendingResult>) {
    let slots = Arc::new(Semaphore::new(CONCURRENT_BATCHES));
    while let Some(first) = pending.recv().await {
        let mut batch = Vec::with_capacity(BATCH);
        batch.push(first);
        gather(&mut batch, &mut pending, sleep(GATHER)).await;
        let mut slot = pin!(Arc::clone(&slots).acquire_owned());
        let slot = match gather(&mut batch, &mut pending, slot.as_mut()).await {
            Some(slot) => slot,
            None => slot.await,
        };
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            record_batch(&*store, batch).await;
            drop(slot);
        });
    }
}

/// Adds results to a batch until `end` is ready, and returns its output, or until no more can be
/// added.
async fn gather<T>(
    batch: &mut Vec<PendingResult>,
    pending: &mut mpsc::Receiver<PendingResult>,
    end: impl Future<Output = T>,
) -> Option<T> {
    let mut end = pin!(end);
    while batch.len() < BATCH {
        let missing = BATCH - batch.len();
        tokio::select! {
            output = &mut end => return Some(output),
            received = pending.recv_many(batch, missing) => if received == 0 { break },
        }
    }
    None
}

/// Records a batch in one transaction. If that fails, each result is recorded by itself: a result
/// that cannot be stored must not cause the others to be delivered again.
async fn record_batch(store: &dyn Store, batch: Vec<PendingResult>) {
    let results: Vec<DeliveryResult> = batch.iter().map(|(result, _)| result.clone()).collect();
    let stored = store.settle(&results, runner::now()).await.map_err(Arc::new);
    let is_retried = stored.is_err() && batch.len() > 1;
    for (result, done) in batch {
        let stored = if is_retried {
            store.settle(&[result], runner::now()).await.map_err(Arc::new)
        } else {
            stored.clone()
        };
        // The receiver is gone if the attempt was aborted at shutdown.
        done.send(stored).unwrap_or_default();
    }
}
