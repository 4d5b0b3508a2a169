//! The one thread that writes.
//!
//! Operations that wait together are committed together: an fsync costs the same for one as for two
//! hundred. Each has a savepoint of its own, so that a failed operation does not fail the others,
//! and no caller gets its result before the commit.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use rusqlite::Connection;
use tokio::runtime::{self, Runtime};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::drive;
use super::wal::{self, CheckpointTimer};
use crate::engine::error::is_damage;
use crate::engine::tx::{Conn, Tx, Wake, lock};
use feedgate_core::ports::{StoreError, WakeSignals};

/// The most operations committed at once.
const MOST: usize = 200;
/// How long operations are gathered: operations that wait already are included, and later ones are
/// not waited for.
const LONGEST: Duration = Duration::from_millis(5);
/// The most operations that may wait; later callers wait for a place.
const QUEUE: usize = 1_024;

/// The thread, and the sender of its queue.
pub(super) struct SqliteWriter {
    jobs: Mutex<Option<mpsc::Sender<Box<dyn Job>>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl SqliteWriter {
    /// Starts the thread, which owns `conn` from now on.
    pub(super) fn start(
        conn: Connection,
        wake_signals: WakeSignals,
    ) -> Result<SqliteWriter, StoreError> {
        let (jobs, queue) = mpsc::channel(QUEUE);
        // The thread has timers of its own, because the runtime of the callers may end before it.
        let timers = runtime::Builder::new_current_thread().enable_time().build();
        let timers = timers.map_err(|err| StoreError::Database(Box::new(err)))?;
        let thread = std::thread::Builder::new().name("sqlite-writer".to_owned());
        let thread = thread.spawn(move || {
            work(&timers, Mutex::new(conn), queue, &wake_signals);
        });
        let thread = thread.map_err(|err| StoreError::Database(Box::new(err)))?;
        Ok(SqliteWriter { jobs: Mutex::new(Some(jobs)), thread: Mutex::new(Some(thread)) })
    }

    /// Runs `op` on the thread and returns once its changes are on disk.
    pub(super) async fn run<T, F>(&self, op: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t Tx<'t>) -> BoxFuture<'t, Result<T, StoreError>> + Send + 'static,
    {
        let (reply, send_reply) = oneshot::channel();
        let job = Pending { op: Some(op), result: None, woken: Vec::new(), reply };
        let jobs = lock(&self.jobs).clone().ok_or(StoreError::Closed)?;
        jobs.send(Box::new(job)).await.map_err(|_| StoreError::Closed)?;
        drop(jobs);
        send_reply.await.map_err(|_| StoreError::Closed)?
    }

    /// Accepts no more operations, and returns when all accepted ones are written.
    pub(super) async fn stop(&self) {
        drop(lock(&self.jobs).take());
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread {
            let ended = tokio::task::spawn_blocking(move || thread.join().is_ok()).await;
            if !ended.unwrap_or(false) {
                tracing::error!("the database writer thread had panicked");
            }
        }
    }
}

/// A waiting operation.
trait Job: Send {
    /// Runs the operation. Returns `false` if it failed and must be rolled back.
    fn run(&mut self, conn: &Mutex<Connection>) -> bool;

    /// Sends the result to the caller. `failure` is why the transaction was lost, if it was.
    fn send_reply(self: Box<Self>, failure: Option<&LostWrite>, wake_signals: &WakeSignals);
}

struct Pending<T, F> {
    op: Option<F>,
    result: Option<Result<T, StoreError>>,
    woken: Vec<Wake>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Job for Pending<T, F>
where
    T: Send,
    F: for<'t> FnOnce(&'t Tx<'t>) -> BoxFuture<'t, Result<T, StoreError>> + Send,
{
    fn run(&mut self, conn: &Mutex<Connection>) -> bool {
        let Some(op) = self.op.take() else { return false };
        let tx = Tx::new(Conn::Sqlite(conn));
        // A panic is a bug, but no reason to stop the operations of other callers.
        let ran = catch_unwind(AssertUnwindSafe(|| drive(op(&tx))));
        let result = ran.unwrap_or_else(|_| Err(write_failed("an operation panicked")));
        self.woken = tx.woken().collect();
        let fine = result.is_ok();
        self.result = Some(result);
        fine
    }

    fn send_reply(self: Box<Self>, failure: Option<&LostWrite>, wake_signals: &WakeSignals) {
        let result = match (self.result, failure) {
            (Some(Ok(_)) | None, Some(failure)) => Err(failure.to_error()),
            (Some(result), _) => result,
            (None, None) => Err(write_failed("an operation was not run")),
        };
        if result.is_ok() {
            self.woken.iter().for_each(|whom| whom.notify(wake_signals));
        }
        // The caller may have stopped waiting; what was written stays.
        let _ = self.reply.send(result);
    }
}

/// Why a transaction was lost, which is told to each operation in it.
struct LostWrite {
    reason: String,
    is_damage: bool,
}

impl LostWrite {
    fn new(err: rusqlite::Error) -> LostWrite {
        LostWrite { reason: err.to_string(), is_damage: is_damage(&err) }
    }

    fn to_error(&self) -> StoreError {
        match self.is_damage {
            true => StoreError::Damaged { reason: self.reason.clone() },
            false => write_failed(&self.reason),
        }
    }
}

fn write_failed(failure: &str) -> StoreError {
    StoreError::Database(failure.into())
}

fn work(
    timers: &Runtime,
    conn: Mutex<Connection>,
    mut queue: mpsc::Receiver<Box<dyn Job>>,
    wake_signals: &WakeSignals,
) {
    let mut timer = CheckpointTimer::default();
    loop {
        let next = match timer.patience() {
            None => Ok(queue.blocking_recv()),
            Some(patience) => timers.block_on(async { timeout(patience, queue.recv()).await }),
        };
        let first = match next {
            Ok(Some(first)) => first,
            Ok(None) => break,
            Err(_) => {
                timer.note_checkpoint(checkpoint(&conn), Instant::now());
                continue;
            }
        };
        let mut taken = Vec::new();
        let outcome = commit_together(&conn, first, &mut queue, &mut taken);
        let failure = outcome.err().map(LostWrite::new);
        for job in taken {
            job.send_reply(failure.as_ref(), wake_signals);
        }
        timer.note_changes(lock(&conn).total_changes(), Instant::now());
        if timer.is_due() {
            timer.note_checkpoint(checkpoint(&conn), Instant::now());
        }
    }
    let conn = conn.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    wal::leave(&conn);
    if let Err((_, err)) = conn.close() {
        tracing::error!(error = %err, "the database was not closed cleanly");
    }
}

/// Copies the WAL into the database. Returns whether all of it was copied.
fn checkpoint(conn: &Mutex<Connection>) -> bool {
    wal::checkpoint(&lock(conn)).unwrap_or_else(|err| {
        tracing::warn!(error = %err, "the write-ahead log was not copied into the database");
        false
    })
}

/// Runs `first`, and the operations behind it, in one transaction. All operations that ended up in
/// `taken` share the outcome.
fn commit_together(
    conn: &Mutex<Connection>,
    first: Box<dyn Job>,
    queue: &mut mpsc::Receiver<Box<dyn Job>>,
    taken: &mut Vec<Box<dyn Job>>,
) -> rusqlite::Result<()> {
    let execute = |sql| lock(conn).prepare_cached(sql)?.execute([]).map(drop);
    let begun = Instant::now();
    taken.push(first);
    execute("begin immediate")?;
    let result = loop {
        let is_first = taken.len() == 1;
        let Some(job) = taken.last_mut() else { break Ok(()) };
        let ran = if is_first {
            run_first(job.as_mut(), conn, execute)
        } else {
            run_one(job.as_mut(), conn, execute)
        };
        if let Err(err) = ran {
            break Err(err);
        }
        if taken.len() >= MOST || begun.elapsed() >= LONGEST {
            break Ok(());
        }
        match queue.try_recv() {
            Ok(next) => taken.push(next),
            Err(_) => break Ok(()),
        }
    };
    let result = result.and_then(|()| execute("commit"));
    if result.is_err() && !lock(conn).is_autocommit() {
        execute("rollback")?;
    }
    result
}

/// Runs the first operation of a transaction, which needs no savepoint: a failure leaves nothing
/// else to roll back. An error means that the whole transaction is lost.
fn run_first(
    job: &mut dyn Job,
    conn: &Mutex<Connection>,
    execute: impl Fn(&'static str) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let fine = job.run(conn);
    let has_ended = lock(conn).is_autocommit();
    match (fine, has_ended) {
        (true, false) => Ok(()),
        // No operation may end the transaction: the rollback fails too, as it must.
        (true, true) => execute("rollback"),
        (false, false) => execute("rollback").and_then(|()| execute("begin immediate")),
        // A full disk ends the transaction by itself.
        (false, true) => execute("begin immediate"),
    }
}

/// Runs another operation. An error means that the whole transaction is lost.
fn run_one(
    job: &mut dyn Job,
    conn: &Mutex<Connection>,
    execute: impl Fn(&'static str) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    execute("savepoint operation")?;
    if !job.run(conn) {
        // A full disk ends the transaction by itself; then the rollback fails too, as it must.
        execute("rollback to operation")?;
    }
    execute("release operation")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer() -> SqliteWriter {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch("create table kept (n bigint primary key)").unwrap();
        SqliteWriter::start(conn, WakeSignals::default()).unwrap()
    }

    /// Inserts `n`, then runs the failure that `folly` names.
    async fn insert_then(tx: &Tx<'_>, n: i64, folly: &str) -> Result<i64, StoreError> {
        tx.execute("insert into kept (n) values ($1)", &[n.into()]).await?;
        match folly {
            "panic" => panic!("a bug"),
            "refuse" => Err(write_failed("refused")),
            "rollback" => tx.script("rollback").await.map(|()| n),
            _ => Ok(n),
        }
    }

    async fn kept(writer: &SqliteWriter) -> Vec<i64> {
        let all = writer.run(|tx| Box::pin(tx.query("select n from kept order by n", &[]))).await;
        all.unwrap().into_iter().map(|mut row| row.int().unwrap()).collect()
    }

    #[tokio::test]
    async fn an_operation_that_fails_takes_no_other_with_it() {
        let writer = writer();
        let follies = ["", "panic", "", "refuse", ""];
        let running = follies.into_iter().zip(0..).map(|(folly, n)| {
            // Operations that are queued together share a transaction.
            writer.run(move |tx| Box::pin(insert_then(tx, n, folly)))
        });
        let results = futures_util::future::join_all(running).await;
        for (folly, result) in follies.iter().zip(&results) {
            assert_eq!(result.is_ok(), folly.is_empty(), "{folly}: {result:?}");
        }
        assert_eq!(kept(&writer).await, [0, 2, 4]);
        let again = writer.run(|tx| Box::pin(insert_then(tx, 4, ""))).await;
        assert!(again.is_err(), "a statement that fails is undone too");
        assert_eq!(kept(&writer).await, [0, 2, 4]);
    }

    #[tokio::test]
    async fn nobody_is_told_ok_whose_transaction_is_lost() {
        let writer = writer();
        let running = ["", "rollback", ""]
            .into_iter()
            .zip(0..)
            .map(|(folly, n)| writer.run(move |tx| Box::pin(insert_then(tx, n, folly))));
        let results = futures_util::future::join_all(running).await;
        let told: Vec<_> = results.into_iter().filter_map(Result::ok).collect();
        assert_eq!(kept(&writer).await, told);
    }

    #[tokio::test]
    async fn what_was_begun_is_finished_before_it_stops() {
        let writer = writer();
        let (kept, ()) =
            tokio::join!(writer.run(|tx| Box::pin(insert_then(tx, 1, ""))), writer.stop());
        assert_eq!(kept.unwrap(), 1);
        let late = writer.run(|tx| Box::pin(insert_then(tx, 2, ""))).await;
        assert!(matches!(late, Err(StoreError::Closed)));
    }
}
