//! The threads that read, each with a connection of its own.
//!
//! They are not those of the runtime's pool: under load the pool starts a thread for each operation
//! that comes while none is idle, up to 512, and each keeps some of the memory that it has allocated.
//! The pool also looks up names, which takes as long as a resolver likes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::drive;
use crate::engine::operation::{AnyResult, Operation};
use crate::engine::tx::{Conn, Tx, lock};
use feedgate_core::store::StoreError;

/// The most operations that may wait; later callers wait for a place.
const QUEUE: usize = 1_024;

/// A waiting operation, and where its result is sent.
struct Job {
    op: Operation,
    reply: oneshot::Sender<AnyResult>,
}

impl Job {
    fn run(self, conn: &Mutex<Connection>) {
        if self.reply.is_closed() {
            return; // the caller has stopped waiting
        }
        let tx = Tx::new(Conn::Sqlite(conn));
        // A panic is a bug, but no reason to stop the operations of other callers.
        let ran = catch_unwind(AssertUnwindSafe(|| drive(self.op.run(&tx))));
        let panicked = |_| Err(StoreError::Database("an operation panicked".into()));
        let _ = self.reply.send(ran.unwrap_or_else(panicked));
    }
}

/// The threads, and the sender of their queue.
pub(super) struct SqliteReaders {
    jobs: Mutex<Option<mpsc::Sender<Job>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl SqliteReaders {
    /// Starts a thread for each connection.
    pub(super) fn start(conns: Vec<Connection>) -> Result<SqliteReaders, StoreError> {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let queue = Arc::new(Mutex::new(queue));
        let threads = conns.into_iter().map(|conn| {
            let queue = Arc::clone(&queue);
            let thread = std::thread::Builder::new().name("sqlite-reader".to_owned());
            thread.spawn(move || work(&Mutex::new(conn), &queue))
        });
        let threads = threads.collect::<Result<_, _>>();
        let threads = threads.map_err(|err| StoreError::Database(Box::new(err)))?;
        Ok(SqliteReaders { jobs: Mutex::new(Some(jobs)), threads: Mutex::new(threads) })
    }

    /// Runs `op`, which only reads, on one of the threads.
    pub(super) async fn run(&self, op: Operation) -> AnyResult {
        let (reply, result) = oneshot::channel();
        let jobs = lock(&self.jobs).clone().ok_or(StoreError::Closed)?;
        jobs.send(Job { op, reply }).await.map_err(|_| StoreError::Closed)?;
        drop(jobs);
        result.await.map_err(|_| StoreError::Closed)?
    }

    /// Accepts no more operations, and returns when all accepted ones have ended and the connections
    /// are closed.
    pub(super) async fn stop(&self) {
        drop(lock(&self.jobs).take());
        let threads = std::mem::take(&mut *lock(&self.threads));
        let _ = tokio::task::spawn_blocking(move || join(threads)).await;
    }
}

/// Closes the connections of a database that was not closed, so that the writer, which is dropped
/// next, has the last one.
impl Drop for SqliteReaders {
    fn drop(&mut self) {
        drop(lock(&self.jobs).take());
        join(std::mem::take(&mut *lock(&self.threads)));
    }
}

fn join(threads: Vec<JoinHandle<()>>) {
    for thread in threads {
        if thread.join().is_err() {
            tracing::error!("a thread that reads the database had panicked");
        }
    }
}

/// Runs operations until the queue is closed and empty. One of the idle threads waits for the next
/// operation, and the others for their turn to wait.
fn work(conn: &Mutex<Connection>, queue: &Mutex<mpsc::Receiver<Job>>) {
    loop {
        let next = lock(queue).blocking_recv();
        let Some(job) = next else { return };
        job.run(conn);
    }
}
