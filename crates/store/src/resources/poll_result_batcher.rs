//! Polls that found nothing are recorded together: those that end within a few milliseconds
//! of each other are one transaction. None is answered before the commit.
//!
//! A transaction that fails is made again poll by poll, so that one that cannot be kept
//! takes no other with it.

use std::sync::{Arc, Mutex, Weak};

use futures_util::future::join_all;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Duration, sleep};

use crate::Db;
use crate::engine::tx::lock;
use crate::resources::poll_result::{self, PollResult, RecordOutcome};
use feedgate_core::ports::StoreError;

/// The most polls in one transaction.
const MOST: usize = 256;
/// How long polls are gathered from the first on. Nobody is told sooner because of a poll that
/// found nothing, and a commit costs the same for one as for a hundred.
const GATHER: Duration = Duration::from_millis(5);
/// Polls that may wait; who comes later waits to be let in.
const QUEUE: usize = 1_024;

/// The way to the task that records.
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

    /// Waits until this poll is recorded.
    pub(crate) async fn record(&self, ending: PollResult) -> RecordOutcome {
        let (reply, answer) = oneshot::channel();
        let queue = lock(&self.queue).clone().ok_or(StoreError::Closed)?;
        queue.send(Waiting { ending, reply }).await.map_err(|_| StoreError::Closed)?;
        drop(queue);
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Takes nothing more, and returns when all that was taken is recorded.
    pub(crate) async fn stop(&self) {
        drop(lock(&self.queue).take());
        let task = lock(&self.task).take();
        if let Some(task) = task
            && let Err(err) = task.await
        {
            tracing::error!(error = %err, "the task that records polls had died");
        }
    }
}

async fn work(db: Weak<Db>, mut queue: mpsc::Receiver<Waiting>) {
    let mut taken = Vec::new();
    while queue.recv_many(&mut taken, MOST).await > 0 {
        sleep(GATHER).await;
        while taken.len() < MOST
            && let Ok(waiting) = queue.try_recv()
        {
            taken.push(waiting);
        }
        // Whoever waits for an answer holds the database.
        let Some(db) = db.upgrade() else { return };
        let taken = std::mem::take(&mut taken);
        // A panic is a bug, but no reason to stop recording what others bring.
        if let Err(err) = tokio::spawn(record_together(db, taken)).await {
            tracing::error!(error = %err, "polls were not recorded");
        }
    }
}

async fn record_together(db: Arc<Db>, taken: Vec<Waiting>) {
    let (ended, replies): (Vec<_>, Vec<_>) =
        taken.into_iter().map(|waiting| (waiting.ending, waiting.reply)).unzip();
    let results = match record(&db, ended.clone()).await {
        Ok(results) => results,
        Err(err) if ended.len() == 1 => vec![Err(err)],
        Err(_) => {
            let alone = ended.into_iter().map(|ending| record(&db, vec![ending]));
            let alone = join_all(alone).await.into_iter();
            alone.map(|results| results?.pop().unwrap_or(Err(StoreError::Closed))).collect()
        }
    };
    for (reply, result) in replies.into_iter().zip(results) {
        // Whoever asked may have stopped waiting; what was written stays.
        let _ = reply.send(result);
    }
}

async fn record(db: &Db, ended: Vec<PollResult>) -> Result<Vec<RecordOutcome>, StoreError> {
    db.write(move |tx| Box::pin(poll_result::record(tx, ended))).await
}
