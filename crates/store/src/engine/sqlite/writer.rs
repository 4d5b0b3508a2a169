//! The one thread that writes.
//!
//! Operations that wait together are committed together: an fsync costs the same for one as for two
//! hundred. Each has a savepoint of its own, so that a failed operation does not fail the others,
//! and no caller gets its result before the commit.
//!
//! While a savepoint is open, SQLite keeps a copy of each page that a statement changes, and walks
//! over all copies when the statement ends, so that the time of an operation grows with the square
//! of its statements. A large operation therefore has a transaction of its own, without a savepoint:
//! one that its caller declares as large, and one that has run [`transactions::SHARED_STATEMENTS`] statements in a
//! shared transaction, where it is undone and repeated alone. After a large operation the others have as
//! much time as it took, if they need it: each waits for at most one, and together the large ones
//! never take more than half of the thread from them.

mod jobs;
mod transactions;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::runtime::{self, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::timeout;

use super::wal::{self, CheckpointTimer};
use crate::engine::operation::{AnyResult, Operation};
use crate::engine::tx::lock;
use feedgate_core::store::{StoreError, WakeSignals};
use jobs::{LostWrite, Pending};
use transactions::{commit_alone, commit_together};

/// The most operations that may wait; later callers wait for a place.
const QUEUE: usize = 1_024;
/// The most large operations that may wait. Their callers hold documents, so there are few.
const LARGE_QUEUE: usize = 64;
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
    pub(super) async fn run(&self, size: WriteSize, op: Operation) -> AnyResult {
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
        let job = Pending::new(op, reply);
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
    job: Pending,
    large_place: Option<OwnedSemaphorePermit>,
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
fn reply(taken: Vec<Pending>, outcome: rusqlite::Result<()>, wake_signals: &WakeSignals) {
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
#[cfg(test)]
mod tests {
    use super::jobs::write_failed;
    use futures_util::future::BoxFuture;

    use super::transactions::{LONGEST, SHARED_STATEMENTS};
    use super::*;
    use crate::engine::operation;
    use crate::engine::tx::Tx;

    fn writer() -> SqliteWriter {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch("create table kept (n bigint primary key)").unwrap();
        SqliteWriter::start(conn, WakeSignals::default()).unwrap()
    }

    async fn run<T, F>(writer: &SqliteWriter, size: WriteSize, op: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t Tx<'t>) -> BoxFuture<'t, Result<T, StoreError>>,
        F: Clone + Send + 'static,
    {
        operation::run(op, |op| Box::pin(writer.run(size, op))).await
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
        let all = run(writer, WriteSize::Small, |tx| {
            Box::pin(tx.query("select n from kept order by n", &[]))
        })
        .await;
        all.unwrap().into_iter().map(|mut row| row.int().unwrap()).collect()
    }

    #[tokio::test]
    async fn an_operation_that_fails_takes_no_other_with_it() {
        let writer = writer();
        let follies = ["", "panic", "", "refuse", ""];
        let running = follies.into_iter().zip(0..).map(|(folly, n)| {
            // Operations that are queued together share a transaction.
            run(&writer, WriteSize::Small, move |tx| Box::pin(insert_then(tx, n, folly)))
        });
        let results = futures_util::future::join_all(running).await;
        for (folly, result) in follies.iter().zip(&results) {
            assert_eq!(result.is_ok(), folly.is_empty(), "{folly}: {result:?}");
        }
        assert_eq!(kept(&writer).await, [0, 2, 4]);
        let again = run(&writer, WriteSize::Small, |tx| Box::pin(insert_then(tx, 4, ""))).await;
        assert!(again.is_err(), "a statement that fails is undone too");
        assert_eq!(kept(&writer).await, [0, 2, 4]);
    }

    #[tokio::test]
    async fn nobody_is_told_ok_whose_transaction_is_lost() {
        let writer = writer();
        let running = ["", "rollback", ""].into_iter().zip(0..).map(|(folly, n)| {
            run(&writer, WriteSize::Small, move |tx| Box::pin(insert_then(tx, n, folly)))
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
            run(&writer, WriteSize::Small, move |tx| Box::pin(insert_many(tx, n * 10_000, count)))
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
            run(&writer, size, move |_| Box::pin(note(order, name)))
        });
        // All are queued before the thread runs the second, or the order tells nothing.
        let hold = run(&writer, WriteSize::Large, |_| Box::pin(occupy_the_thread()));
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
            run(&writer, size, move |_| {
                Box::pin(async move {
                    std::thread::sleep(takes);
                    note(order, name).await
                })
            })
        };
        // A transaction of small operations ends after one of them, because it takes longer than they
        // are gathered for.
        let (large, small) = (LONGEST * 20, LONGEST * 2);
        let hold = run(&writer, WriteSize::Large, |_| Box::pin(occupy_the_thread()));
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
            run(&writer, WriteSize::Small, |tx| Box::pin(insert_then(tx, 1, ""))),
            writer.stop()
        );
        assert_eq!(kept.unwrap(), 1);
        let late = run(&writer, WriteSize::Small, |tx| Box::pin(insert_then(tx, 2, ""))).await;
        assert!(matches!(late, Err(StoreError::Closed)));
    }
}
