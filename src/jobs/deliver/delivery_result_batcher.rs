//! Keeps how deliveries ended, many in one transaction.
//!
//! A commit costs the same for one delivery as for a hundred. Whoever settles waits
//! until theirs is kept, so that a worker that has finished has finished.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::jobs::runner;
use feedgate_core::ports::{DeliveryResult, Store, StoreError};

/// How long the first of a batch waits for others. Shorter than a commit.
const GATHER: Duration = Duration::from_millis(3);
/// The most that one transaction keeps.
const MOST: usize = 500;

type Kept = Result<(), Arc<StoreError>>;
type Ended = (DeliveryResult, oneshot::Sender<Kept>);

/// Takes what ended and keeps it.
#[derive(Debug)]
pub(super) struct DeliveryResultBatcher {
    ended: mpsc::Sender<Ended>,
}

impl DeliveryResultBatcher {
    /// Begins to keep what is handed in, until this is dropped.
    pub(super) fn start(store: Arc<dyn Store>) -> DeliveryResultBatcher {
        let (ended, taken) = mpsc::channel(MOST);
        tokio::spawn(keep(store, taken));
        DeliveryResultBatcher { ended }
    }

    /// Keeps how one delivery ended; returns when that is done.
    pub(super) async fn settle(&self, settled: DeliveryResult) -> Kept {
        let closed = || Arc::new(StoreError::Closed);
        let (told, kept) = oneshot::channel();
        self.ended.send((settled, told)).await.map_err(|_| closed())?;
        kept.await.unwrap_or_else(|_| Err(closed()))
    }
}

async fn keep(store: Arc<dyn Store>, mut ended: mpsc::Receiver<Ended>) {
    while let Some(first) = ended.recv().await {
        let mut batch = vec![first];
        let until = Instant::now() + GATHER;
        while batch.len() < MOST {
            match timeout_at(until, ended.recv()).await {
                Ok(Some(next)) => batch.push(next),
                Ok(None) | Err(_) => break,
            }
        }
        let (settled, told): (Vec<DeliveryResult>, Vec<oneshot::Sender<Kept>>) =
            batch.into_iter().unzip();
        let kept = store.settle(&settled, runner::now()).await.map_err(Arc::new);
        for told in told {
            // Nobody waits any more if the attempt was given up at shutdown.
            told.send(kept.clone()).unwrap_or_default();
        }
    }
}
