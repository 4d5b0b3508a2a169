//! Records polls together that found nothing: polls that end within a few milliseconds of each
//! other share one transaction. No caller gets its result before the commit.
//!
//! A transaction that fails is repeated poll by poll, so that a poll that cannot be stored does not
//! fail the others. A poll whose resource is locked by another transaction, such as that of an
//! operator, is left out and waits in a transaction of its own.

use std::sync::{Arc, Mutex, Weak};

use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Duration, sleep, timeout};

use crate::Db;
use crate::engine::tx::lock;
use crate::resources::poll_result::{self, PollResult, RecordOutcome};
use feedgate_core::ports::StoreError;

/// The most polls in one transaction.
const MOST: usize = 256;
/// How long polls are gathered, from the first one on. The delay affects no subscriber, because
/// these polls found nothing, and a commit costs the same for one as for a hundred.
const GATHER: Duration = Duration::from_millis(5);
/// The most polls that may wait; later callers wait for a place.
const QUEUE: usize = 1_024;

/// The most transactions of one poll each at the same time: few enough to leave connections for
/// everything else while rows are locked.
const ALONE: usize = 4;
/// How long stopping waits for what is being recorded. A poll that is not recorded is repeated when
/// its claim ends.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// The sender to the task that records.
pub(crate) struct PollResultBatcher {
    queue: Mutex<Option<mpsc::Sender<Waiting>>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// A poll that waits to be recorded.
struct Waiting {
    ending: PollResult,
    reply: oneshot::Sender<RecordOutcome>,
}

impl PollResultBatcher {
    /// Starts the task, which ends with the database.
    pub(crate) fn start(db: Weak<Db>) -> PollResultBatcher {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let task = tokio::spawn(work(db, waiting));
        PollResultBatcher { queue: Mutex::new(Some(queue)), task: Mutex::new(Some(task)) }
    }

    /// Returns once this poll is recorded.
    pub(crate) async fn record(&self, ending: PollResult) -> RecordOutcome {
        let (reply, answer) = oneshot::channel();
        let queue = lock(&self.queue).clone().ok_or(StoreError::Closed)?;
        queue.send(Waiting { ending, reply }).await.map_err(|_| StoreError::Closed)?;
        drop(queue);
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Accepts no more polls, and returns when all accepted ones are recorded, or after
    /// [`STOP_WITHIN`].
    pub(crate) async fn stop(&self) {
        drop(lock(&self.queue).take());
        let task = lock(&self.task).take();
        let Some(mut task) = task else { return };
        match timeout(STOP_WITHIN, &mut task).await {
            Ok(Ok(())) => {}
            Ok(Err(err)) => {
                tracing::error!(error = %err, "the task that stores poll results had panicked");
            }
            Err(_) => {
                task.abort();
                tracing::warn!(
                    "the last poll results could not be stored, because the database did not \
                     respond in time; the polls will be repeated"
                );
            }
        }
    }
}

async fn work(db: Weak<Db>, mut queue: mpsc::Receiver<Waiting>) {
    let mut taken = Vec::new();
    let (permits, mut alone) = (Arc::new(Semaphore::new(ALONE)), JoinSet::new());
    while queue.recv_many(&mut taken, MOST).await > 0 {
        sleep(GATHER).await;
        while taken.len() < MOST
            && let Ok(waiting) = queue.try_recv()
        {
            taken.push(waiting);
        }
        // A caller that waits for a reply keeps the database open.
        let Some(db) = db.upgrade() else { return };
        let taken = std::mem::take(&mut taken);
        // A panic is a bug, but no reason to stop recording other polls.
        match tokio::spawn(record_together(Arc::clone(&db), taken)).await {
            Ok(left) => {
                let permits = left.are_locked.then_some(&permits);
                for waiting in left.polls {
                    alone.spawn(record_alone(Arc::clone(&db), permits.cloned(), waiting));
                }
            }
            Err(err) => tracing::error!(error = %err, "storing poll results panicked"),
        }
        while alone.try_join_next().is_some() {}
    }
    while alone.join_next().await.is_some() {}
}

/// Polls that have to be recorded alone.
struct Left {
    polls: Vec<Waiting>,
    /// Whether their rows are locked; otherwise the transaction failed.
    are_locked: bool,
}

/// Records polls in one transaction, and replies.
async fn record_together(db: Arc<Db>, taken: Vec<Waiting>) -> Left {
    let endings: Vec<_> = taken.iter().map(|waiting| waiting.ending.clone()).collect();
    let recorded = db.write(move |tx| Box::pin(poll_result::record_together(tx, endings))).await;
    let Ok(outcomes) = recorded else { return Left { polls: taken, are_locked: false } };
    let mut polls = Vec::new();
    for (waiting, outcome) in taken.into_iter().zip(outcomes) {
        match outcome {
            // The caller may have stopped waiting; what was written stays.
            Some(outcome) => drop(waiting.reply.send(outcome)),
            None => polls.push(waiting),
        }
    }
    Left { polls, are_locked: true }
}

async fn record_alone(db: Arc<Db>, permits: Option<Arc<Semaphore>>, waiting: Waiting) {
    let _permit = match &permits {
        // Waiting fails only if the semaphore is closed, which nothing does.
        Some(permits) => permits.acquire().await.ok(),
        None => None,
    };
    let Waiting { ending, reply } = waiting;
    let outcome = db.write(move |tx| Box::pin(poll_result::record_alone(tx, ending))).await;
    let _ = reply.send(outcome);
}
