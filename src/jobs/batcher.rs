//! Items of many callers that are processed together, because a transaction costs the same for one as for
//! a hundred.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::sleep;

/// How batches grow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchLimits {
    /// How long the first item of a batch waits for others.
    pub(crate) gather: Duration,
    /// The most items of a batch.
    pub(crate) most: usize,
    /// The most batches that are processed at the same time. While so many are, the next one grows.
    pub(crate) concurrent: usize,
}

type Waiting<T, R> = (T, oneshot::Sender<R>);

/// Collects items of type `T`, each of which has a result of type `R`.
#[derive(Debug)]
pub(crate) struct Batcher<T, R> {
    waiting: mpsc::Sender<Waiting<T, R>>,
}

impl<T: Send + 'static, R: Send + 'static> Batcher<T, R> {
    /// Starts processing, until the batcher is dropped. `process` returns the results of a batch in the order
    /// of its items. Must be called within a runtime.
    pub(crate) fn start<P, F>(limits: BatchLimits, process: P) -> Batcher<T, R>
    where
        P: Fn(Vec<T>) -> F + Send + 'static,
        F: Future<Output = Vec<R>> + Send + 'static,
    {
        let (waiting, received) = mpsc::channel(limits.most);
        tokio::spawn(process_batches(limits, process, received));
        Batcher { waiting }
    }

    /// Hands in an item. Waits while too many others do.
    pub(crate) async fn submit(&self, item: T) -> PendingResult<R> {
        let (done, result) = oneshot::channel();
        // A batcher that has stopped drops `done`, by which the caller notices it.
        let _ = self.waiting.send((item, done)).await;
        PendingResult(result)
    }
}

/// The result of an item that was handed in.
#[derive(Debug)]
pub(crate) struct PendingResult<R>(oneshot::Receiver<R>);

impl<R> PendingResult<R> {
    /// Returns the result once the batch is processed; `None` if the batcher has stopped.
    pub(crate) async fn result(self) -> Option<R> {
        self.0.await.ok()
    }
}

async fn process_batches<T, R, P, F>(
    limits: BatchLimits,
    process: P,
    mut received: mpsc::Receiver<Waiting<T, R>>,
) where
    T: Send + 'static,
    R: Send + 'static,
    P: Fn(Vec<T>) -> F + Send + 'static,
    F: Future<Output = Vec<R>> + Send + 'static,
{
    let slots = Arc::new(Semaphore::new(limits.concurrent));
    while let Some(first) = received.recv().await {
        let mut batch = Vec::with_capacity(limits.most);
        batch.push(first);
        gather(&mut batch, limits.most, &mut received, sleep(limits.gather)).await;
        let mut slot = pin!(Arc::clone(&slots).acquire_owned());
        let slot = match gather(&mut batch, limits.most, &mut received, slot.as_mut()).await {
            Some(slot) => slot,
            None => slot.await,
        };
        let (items, waiting): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
        let processed = process(items);
        tokio::spawn(async move {
            for (result, done) in processed.await.into_iter().zip(waiting) {
                // The caller may have stopped waiting.
                let _ = done.send(result);
            }
            drop(slot);
        });
    }
}

/// Adds items to a batch until `end` is ready, and returns its output, or until no more can be added.
async fn gather<T, O>(
    batch: &mut Vec<T>,
    most: usize,
    received: &mut mpsc::Receiver<T>,
    end: impl Future<Output = O>,
) -> Option<O> {
    let mut end = pin!(end);
    while batch.len() < most {
        let missing = most - batch.len();
        tokio::select! {
            output = &mut end => return Some(output),
            count = received.recv_many(batch, missing) => if count == 0 { break },
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn items_that_wait_are_processed_together_and_each_gets_its_own_result() {
        let limits = BatchLimits { gather: Duration::ZERO, most: 3, concurrent: 1 };
        let batcher = Batcher::start(limits, |items: Vec<u32>| async move {
            let count = items.len();
            items.into_iter().map(|item| (item, count)).collect()
        });
        let mut pending = Vec::new();
        for item in 0..7 {
            pending.push(batcher.submit(item).await);
        }
        for (item, pending) in pending.into_iter().enumerate() {
            let (of_item, count) = pending.result().await.unwrap();
            assert_eq!(of_item as usize, item);
            assert!(count <= 3, "{count}");
        }
    }

    #[tokio::test]
    async fn a_batch_that_panics_leaves_its_callers_without_a_result() {
        let limits = BatchLimits { gather: Duration::ZERO, most: 1, concurrent: 1 };
        let batcher = Batcher::start(limits, |items: Vec<u32>| async move {
            assert!(items != [1], "one");
            items
        });
        let failing = batcher.submit(1).await;
        assert_eq!(failing.result().await, None);
        assert_eq!(batcher.submit(2).await.result().await, Some(2));
    }
}
