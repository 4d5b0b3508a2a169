//! The one thread that writes.
//!
//! Operations that wait together are committed together: an fsync costs the same for one as for two
//! hundred. Each has a savepoint of its own, so that a failed operation does not fail the others,
//! and no caller gets its result before the commit.
//!
//! While a savepoint is open, SQLite keeps a copy of each page that a statement changes, and walks
//! over all copies when the statement ends, so that the time of an operation grows with the square
//! of its statements. A large operation therefore has a transaction of its own, without a savepoint:
//! one that its caller declares as large, and one that has run [`SHARED_STATEMENTS`] statements in a
//! shared transaction, where it is undone and repeated alone. After a large operation the others have as
//! much time as it took, if they need it: each waits for at most one, and together the large ones
//! never take more than half of the thread from them.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use rusqlite::Connection;
use tokio::runtime::{self, Runtime};
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
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
/// The most large operations that may wait. Their callers hold documents, so there are few.
const LARGE_QUEUE: usize = 64;
/// The most statements of an operation that shares a transaction: their savepoint costs some
/// milliseconds, and that of ten times as many a hundred times as much.
pub(super) const SHARED_STATEMENTS: u32 = 1_000;

/// How an operation shares the writer with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteSize {
    /// It is committed together with others.
    Small,
    /// It has a transaction of its own.
    Large,
}

/// The thread, and the sender of its queue.
pub(super) struct SqliteWriter {
    jobs: Mutex<Option<mpsc::Sender<Queued>>>,
    /// The places of large operations.
    large_places: Arc<Semaphore>,
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
        Ok(SqliteWriter {
            jobs: Mutex::new(Some(jobs)),
            large_places: Arc::new(Semaphore::new(LARGE_QUEUE)),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Runs `op` on the thread and returns once its changes are on disk.
    pub(super) async fn run<T, F>(&self, size: WriteSize, op: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t Tx<'t>) -> BoxFuture<'t, Result<T, StoreError>>,
        F: Clone + Send + 'static,
    {
        let large_place = match size {
            WriteSize::Small => None,
            // Waiting fails only if the semaphore is closed, which nothing does.
            WriteSize::Large => Some(
                Arc::clone(&self.large_places)
                    .acquire_owned()
                    .await
                    .map_err(|_| StoreError::Closed)?,
            ),
        };
        let (reply, send_reply) = oneshot::channel();
        let job = Box::new(Pending { op: Some(op), result: None, woken: Vec::new(), reply });
        let jobs = lock(&self.jobs).clone().ok_or(StoreError::Closed)?;
        jobs.send(Queued { job, large_place }).await.map_err(|_| StoreError::Closed)?;
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

/// A waiting operation, with its place if it is large.
struct Queued {
    job: Box<dyn Job>,
    large_place: Option<OwnedSemaphorePermit>,
}

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ran {
    Done,
    /// It failed and must be rolled back.
    Failed,
    /// It has more statements than a shared transaction may have: it must be rolled back, and can
    /// be run again.
    TooLarge,
}

/// A waiting operation.
trait Job: Send {
    /// Runs the operation, with at most this many statements.
    fn run(&mut self, conn: &Mutex<Connection>, most_statements: Option<u32>) -> Ran;

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
    F: for<'t> FnOnce(&'t Tx<'t>) -> BoxFuture<'t, Result<T, StoreError>> + Clone + Send,
{
    fn run(&mut self, conn: &Mutex<Connection>, most_statements: Option<u32>) -> Ran {
        let Some(op) = self.op.take() else { return Ran::Failed };
        let repeated = most_statements.map(|_| op.clone());
        let tx = Tx::new(Conn::Sqlite(conn)).with_most_statements(most_statements);
        // A panic is a bug, but no reason to stop the operations of other callers.
        let ran = catch_unwind(AssertUnwindSafe(|| drive(op(&tx))));
        if tx.has_too_many_statements() {
            self.op = repeated;
            return Ran::TooLarge;
        }
        let result = ran.unwrap_or_else(|_| Err(write_failed("an operation panicked")));
        self.woken = tx.woken().collect();
        let ran = if result.is_ok() { Ran::Done } else { Ran::Failed };
        self.result = Some(result);
        ran
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
    mut queue: mpsc::Receiver<Queued>,
    wake_signals: &WakeSignals,
) {
    let mut timer = CheckpointTimer::default();
    let mut large = VecDeque::new();
    // How much time small operations still have before the next large one.
    let mut small_share = Duration::ZERO;
    loop {
        let next = match timer.patience() {
            _ if !large.is_empty() => Ok(queue.try_recv().ok()),
            None => Ok(queue.blocking_recv()),
            Some(patience) => timers.block_on(async { timeout(patience, queue.recv()).await }),
        };
        match next {
            Ok(Some(Queued { job, large_place: None })) => {
                let begun = Instant::now();
                let mut taken = Vec::new();
                let outcome = commit_together(&conn, job, &mut queue, (&mut taken, &mut large));
                reply(taken, outcome, wake_signals);
                small_share = small_share.saturating_sub(begun.elapsed());
                if !small_share.is_zero() && !queue.is_empty() {
                    continue;
                }
            }
            Ok(Some(queued)) => {
                large.push_back(queued);
                // A small operation may wait behind it, and comes first.
                if !queue.is_empty() {
                    continue;
                }
            }
            Ok(None) if large.is_empty() => break,
            Ok(None) => {}
            Err(_) => {
                timer.note_checkpoint(checkpoint(&conn), Instant::now());
                continue;
            }
        }
        if let Some(Queued { job, large_place }) = large.pop_front() {
            let begun = Instant::now();
            let mut taken = vec![job];
            let outcome = commit_alone(&conn, &mut taken);
            small_share = begun.elapsed();
            drop(large_place);
            reply(taken, outcome, wake_signals);
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

/// Sends the results of operations that were committed together.
fn reply(taken: Vec<Box<dyn Job>>, outcome: rusqlite::Result<()>, wake_signals: &WakeSignals) {
    let failure = outcome.err().map(LostWrite::new);
    for job in taken {
        job.send_reply(failure.as_ref(), wake_signals);
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
/// the first list share the outcome; large ones end up in the second and have not run.
fn commit_together(
    conn: &Mutex<Connection>,
    first: Box<dyn Job>,
    queue: &mut mpsc::Receiver<Queued>,
    (taken, large): (&mut Vec<Box<dyn Job>>, &mut VecDeque<Queued>),
) -> rusqlite::Result<()> {
    let begun = Instant::now();
    taken.push(first);
    execute(conn, "begin immediate")?;
    let mut result = match taken.last_mut() {
        Some(first) => run_first(first.as_mut(), conn),
        None => Ok(()),
    };
    while result.is_ok() && taken.len() < MOST && begun.elapsed() < LONGEST {
        let mut job = match queue.try_recv() {
            Ok(Queued { job, large_place: None }) => job,
            Ok(queued) => {
                large.push_back(queued);
                continue;
            }
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
        };
        let ran = run_one(job.as_mut(), conn);
        match ran {
            Ok(Ran::TooLarge) => large.push_back(Queued { job, large_place: None }),
            Ok(_) => taken.push(job),
            Err(err) => {
                taken.push(job);
                result = Err(err);
            }
        }
    }
    commit(conn, result)
}

/// Runs the operation in `taken` in a transaction of its own.
fn commit_alone(conn: &Mutex<Connection>, taken: &mut [Box<dyn Job>]) -> rusqlite::Result<()> {
    execute(conn, "begin immediate")?;
    let ran = taken.iter_mut().try_for_each(|job| run_first(job.as_mut(), conn));
    commit(conn, ran)
}

/// Commits if all operations have run; otherwise undoes them.
fn commit(conn: &Mutex<Connection>, ran: rusqlite::Result<()>) -> rusqlite::Result<()> {
    let result = ran.and_then(|()| execute(conn, "commit"));
    if result.is_err() && !lock(conn).is_autocommit() {
        execute(conn, "rollback")?;
    }
    result
}

fn execute(conn: &Mutex<Connection>, sql: &'static str) -> rusqlite::Result<()> {
    lock(conn).prepare_cached(sql)?.execute([]).map(drop)
}

/// Runs the first operation of a transaction, which needs no savepoint: a failure leaves nothing
/// else to roll back. An error means that the whole transaction is lost.
fn run_first(job: &mut dyn Job, conn: &Mutex<Connection>) -> rusqlite::Result<()> {
    let is_done = job.run(conn, None) == Ran::Done;
    let has_ended = lock(conn).is_autocommit();
    match (is_done, has_ended) {
        (true, false) => Ok(()),
        // No operation may end the transaction: the rollback fails too, as it must.
        (true, true) => execute(conn, "rollback"),
        (false, false) => execute(conn, "rollback").and_then(|()| execute(conn, "begin immediate")),
        // A full disk ends the transaction by itself.
        (false, true) => execute(conn, "begin immediate"),
    }
}

/// Runs another operation. An error means that the whole transaction is lost.
fn run_one(job: &mut dyn Job, conn: &Mutex<Connection>) -> rusqlite::Result<Ran> {
    execute(conn, "savepoint operation")?;
    let ran = job.run(conn, Some(SHARED_STATEMENTS));
    if ran != Ran::Done {
        // A full disk ends the transaction by itself; then the rollback fails too, as it must.
        execute(conn, "rollback to operation")?;
    }
    execute(conn, "release operation")?;
    Ok(ran)
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
        let all = writer
            .run(WriteSize::Small, |tx| Box::pin(tx.query("select n from kept order by n", &[])))
            .await;
        all.unwrap().into_iter().map(|mut row| row.int().unwrap()).collect()
    }

    #[tokio::test]
    async fn an_operation_that_fails_takes_no_other_with_it() {
        let writer = writer();
        let follies = ["", "panic", "", "refuse", ""];
        let running = follies.into_iter().zip(0..).map(|(folly, n)| {
            // Operations that are queued together share a transaction.
            writer.run(WriteSize::Small, move |tx| Box::pin(insert_then(tx, n, folly)))
        });
        let results = futures_util::future::join_all(running).await;
        for (folly, result) in follies.iter().zip(&results) {
            assert_eq!(result.is_ok(), folly.is_empty(), "{folly}: {result:?}");
        }
        assert_eq!(kept(&writer).await, [0, 2, 4]);
        let again = writer.run(WriteSize::Small, |tx| Box::pin(insert_then(tx, 4, ""))).await;
        assert!(again.is_err(), "a statement that fails is undone too");
        assert_eq!(kept(&writer).await, [0, 2, 4]);
    }

    #[tokio::test]
    async fn nobody_is_told_ok_whose_transaction_is_lost() {
        let writer = writer();
        let running = ["", "rollback", ""].into_iter().zip(0..).map(|(folly, n)| {
            writer.run(WriteSize::Small, move |tx| Box::pin(insert_then(tx, n, folly)))
        });
        let results = futures_util::future::join_all(running).await;
        let told: Vec<_> = results.into_iter().filter_map(Result::ok).collect();
        assert_eq!(kept(&writer).await, told);
    }

    /// Runs `count` statements.
    async fn insert_many(tx: &Tx<'_>, from: i64, count: i64) -> Result<(), StoreError> {
        for n in from..from + count {
            tx.execute("insert into kept (n) values ($1)", &[n.into()]).await?;
        }
        Ok(())
    }

    #[tokio::test]
    async fn h01_an_operation_with_many_statements_is_repeated_alone() {
        let writer = writer();
        let many = i64::from(SHARED_STATEMENTS) + 1;
        // The statement fails if the first attempt is not undone.
        let running = [1, many, 1, many].into_iter().zip(0..).map(|(count, n)| {
            writer.run(WriteSize::Small, move |tx| Box::pin(insert_many(tx, n * 10_000, count)))
        });
        let results = futures_util::future::join_all(running).await;
        results.into_iter().for_each(|result| result.unwrap());
        assert_eq!(kept(&writer).await.len() as i64, 2 * many + 2);
    }

    async fn note(
        order: Arc<Mutex<Vec<&'static str>>>,
        name: &'static str,
    ) -> Result<(), StoreError> {
        lock(&order).push(name);
        Ok(())
    }

    async fn occupy_the_thread() -> Result<(), StoreError> {
        std::thread::sleep(Duration::from_millis(50));
        Ok(())
    }

    #[tokio::test]
    async fn h01_small_operations_run_between_large_ones() {
        let writer = writer();
        let order = Arc::new(Mutex::new(Vec::new()));
        let sizes = [WriteSize::Large, WriteSize::Large, WriteSize::Large, WriteSize::Small];
        let names = ["first", "large", "large", "small"];
        let running = sizes.into_iter().zip(names).map(|(size, name)| {
            let order = Arc::clone(&order);
            writer.run(size, move |_| Box::pin(note(order, name)))
        });
        // All are queued before the thread runs the second, or the order tells nothing.
        let hold = writer.run(WriteSize::Large, |_| Box::pin(occupy_the_thread()));
        let (held, results) = tokio::join!(hold, futures_util::future::join_all(running));
        held.unwrap();
        results.into_iter().for_each(|result| result.unwrap());
        assert_eq!(*lock(&order), ["small", "first", "large", "large"]);
    }

    #[tokio::test]
    async fn h01_large_operations_take_half_of_the_thread_from_small_ones() {
        let writer = writer();
        let order = Arc::new(Mutex::new(Vec::new()));
        let op = |size, name, takes| {
            let order = Arc::clone(&order);
            writer.run(size, move |_| {
                Box::pin(async move {
                    std::thread::sleep(takes);
                    note(order, name).await
                })
            })
        };
        // A transaction of small operations ends after one of them, because it takes longer than they
        // are gathered for.
        let (large, small) = (LONGEST * 20, LONGEST * 2);
        let hold = writer.run(WriteSize::Large, |_| Box::pin(occupy_the_thread()));
        let first = op(WriteSize::Large, "first", large);
        let second = op(WriteSize::Large, "second", large);
        let smalls = (0..6).map(|_| op(WriteSize::Small, "small", small));
        let smalls = futures_util::future::join_all(smalls);
        let (held, first, second, smalls) = tokio::join!(hold, first, second, smalls);
        held.unwrap();
        first.unwrap();
        second.unwrap();
        smalls.into_iter().for_each(|result| result.unwrap());
        let order = lock(&order);
        let second = order.iter().position(|name| *name == "second").unwrap();
        assert!(
            second > 3,
            "more than one small operation fits into the time of a large one: {order:?}"
        );
    }

    #[tokio::test]
    async fn what_was_begun_is_finished_before_it_stops() {
        let writer = writer();
        let (kept, ()) = tokio::join!(
            writer.run(WriteSize::Small, |tx| Box::pin(insert_then(tx, 1, ""))),
            writer.stop()
        );
        assert_eq!(kept.unwrap(), 1);
        let late = writer.run(WriteSize::Small, |tx| Box::pin(insert_then(tx, 2, ""))).await;
        assert!(matches!(late, Err(StoreError::Closed)));
    }
}
