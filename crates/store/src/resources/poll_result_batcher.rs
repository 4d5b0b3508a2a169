//! Records polls together that found nothing: polls that end within a few milliseconds of each
//! other share one transaction. No caller gets its result before the commit.
//!
//! A transaction that fails is repeated poll by poll, so that a poll that cannot be stored does not
//! fail the others.

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
/// How long polls are gathered, from the first one on. The delay affects no subscriber, because
/// these polls found nothing, and a commit costs the same for one as for a hundred.
const GATHER: Duration = Duration::from_millis(5);
/// The most polls that may wait; later callers wait for a place.
const QUEUE: usize = 1_024;

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

    /// Accepts no more polls, and returns when all accepted ones are recorded.
    pub(crate) async fn stop(&self) {
        drop(lock(&self.queue).take());
        let task = lock(&self.task).take();
        if let Some(task) = task
            && let Err(err) = task.await
        {
            tracing::error!(error = %err, "the task that stores poll results had panicked");
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
        // A caller that waits for a reply keeps the database open.
        let Some(db) = db.upgrade() else { return };
        let taken = std::mem::take(&mut taken);
        // A panic is a bug, but no reason to stop recording other polls.
        if let Err(err) = tokio::spawn(record_together(db, taken)).await {
            tracing::error!(error = %err, "storing poll results panicked");
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
        // The caller may have stopped waiting; what was written stays.
        let _ = reply.send(result);
    }
}

async fn record(db: &Db, ended: Vec<PollResult>) -> Result<Vec<RecordOutcome>, StoreError> {
    db.write(move |tx| Box::pin(poll_result::record(tx, ended))).await
}
