//! Records the results of deliveries, many in one transaction.
//!
//! A commit costs the same for one delivery as for a hundred. A caller waits until its result is
//! stored, so that a worker that has finished leaves nothing behind.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::jobs::runner;
use feedgate_core::ports::{DeliveryResult, Store, StoreError};

/// How long the first result of a batch waits for others; shorter than a commit.
const GATHER: Duration = Duration::from_millis(3);
/// The most results in one transaction.
const BATCH: usize = 500;

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

    /// Records the result of one delivery; returns when it is stored.
    pub(super) async fn record(&self, results: DeliveryResult) -> Stored {
        let closed = || Arc::new(StoreError::Closed);
        let (done, stored) = oneshot::channel();
        self.pending.send((results, done)).await.map_err(|_| closed())?;
        stored.await.unwrap_or_else(|_| Err(closed()))
    }
}

async fn record_batches(store: Arc<dyn Store>, mut pending: mpsc::Receiver<PendingResult>) {
    while let Some(first) = pending.recv().await {
        let mut batch = vec![first];
        let until = Instant::now() + GATHER;
        while batch.len() < BATCH {
            match timeout_at(until, pending.recv()).await {
                Ok(Some(next)) => batch.push(next),
                Ok(None) | Err(_) => break,
            }
        }
        let (results, done): (Vec<DeliveryResult>, Vec<oneshot::Sender<Stored>>) =
            batch.into_iter().unzip();
        let stored = store.settle(&results, runner::now()).await.map_err(Arc::new);
        for done in done {
            // The receiver is gone if the attempt was aborted at shutdown.
            done.send(stored.clone()).unwrap_or_default();
        }
    }
}
