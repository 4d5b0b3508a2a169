//! Items of many callers that are processed together, because a transaction costs the same for one as for
//! a hundred.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::sleep;

use crate::engine::tx::lock;

/// How batches grow.
#[derive(Clone, Copy, Debug)]
pub struct BatchLimits {
    /// How long the first item of a batch waits for others.
    pub gather: Duration,
    /// The most items of a batch, and the most that wait for the next one.
    pub most: usize,
    /// The most batches that are processed at the same time. While so many are, the next one grows.
    pub concurrent: usize,
}

type Waiting<T, R> = (T, oneshot::Sender<R>);

/// Collects items of type `T`, each of which has a result of type `R`.
#[derive(Debug)]
pub struct Batcher<T, R> {
    /// `None` after [`Batcher::stop`].
    waiting: Mutex<Option<mpsc::Sender<Waiting<T, R>>>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl<T: Send + 'static, R: Send + 'static> Batcher<T, R> {
    /// Starts processing, until the batcher is dropped. `process` returns the results of a batch in the order
    /// of its items. Must be called within a runtime.
    pub fn start<P, F>(limits: BatchLimits, process: P) -> Batcher<T, R>
    where
        P: Fn(Vec<T>) -> F + Send + 'static,
        F: Future<Output = Vec<R>> + Send + 'static,
    {
        let (waiting, received) = mpsc::channel(limits.most);
        let task = tokio::spawn(process_batches(limits, process, received).boxed());
        Batcher { waiting: Mutex::new(Some(waiting)), task: Mutex::new(Some(task)) }
    }

    /// Hands in an item. Waits while too many others do.
    pub async fn submit(&self, item: T) -> PendingResult<R> {
        let (done, result) = oneshot::channel();
        let waiting = lock(&self.waiting).clone();
        // A batcher that has stopped drops `done`, by which the caller notices it.
        if let Some(waiting) = waiting {
            let _ = waiting.send((item, done)).await;
        }
        PendingResult(result)
    }

    /// Accepts no more items, and returns when all accepted ones are processed. It is an error if the task
    /// that collects items panicked.
    pub async fn stop(&self) -> Result<(), JoinError> {
        drop(lock(&self.waiting).take());
        let task = lock(&self.task).take();
        match task {
            Some(task) => task.await,
            None => Ok(()),
        }
    }
}

/// The result of an item that was handed in.
#[derive(Debug)]
pub struct PendingResult<R>(oneshot::Receiver<R>);

impl<R> PendingResult<R> {
    /// Returns the result once the batch is processed; `None` if the batcher has stopped.
    pub async fn result(self) -> Option<R> {
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
        let passing_on = async move {
            for (result, done) in processed.await.into_iter().zip(waiting) {
                // The caller may have stopped waiting.
                let _ = done.send(result);
            }
            drop(slot);
        };
        tokio::spawn(passing_on.boxed());
    }
    let all = u32::try_from(limits.concurrent).unwrap_or(u32::MAX);
    // Waiting fails only if the semaphore is closed, which nothing does.
    let _ = slots.acquire_many(all).await;
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
            biased; // what waits already belongs to the batch
            count = received.recv_many(batch, missing) => if count == 0 { break },
            output = &mut end => return Some(output),
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
    async fn a_batcher_stops_when_all_that_it_accepted_is_processed() {
        let limits = BatchLimits { gather: Duration::ZERO, most: 1, concurrent: 2 };
        let batcher = Batcher::start(limits, |items: Vec<u32>| async move {
            tokio::task::yield_now().await;
            items
        });
        let accepted = [batcher.submit(1).await, batcher.submit(2).await];
        batcher.stop().await.unwrap();
        for (accepted, expected) in accepted.into_iter().zip(1..) {
            assert_eq!(accepted.0.await.unwrap(), expected);
        }
        assert_eq!(batcher.submit(3).await.result().await, None);
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
