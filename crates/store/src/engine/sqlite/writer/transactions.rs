//! The transactions of the writer: of operations that are committed together, and of one alone.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;

use crate::engine::sqlite::writer::Queued;
use crate::engine::sqlite::writer::jobs::{Pending, Ran};
use crate::engine::tx::lock;

/// The most operations committed at once.
const MOST: usize = 200;
/// How long operations are gathered: operations that wait already are included, and later ones are
/// not waited for.
pub(super) const LONGEST: Duration = Duration::from_millis(5);
/// The most statements of an operation that shares a transaction: their savepoint costs some
/// milliseconds, and that of ten times as many a hundred times as much.
pub(super) const SHARED_STATEMENTS: u32 = 1_000;

/// Runs `first`, and the operations behind it, in one transaction. All operations that ended up in
/// the first list share the outcome; large ones end up in the second and have not run.
pub(super) fn commit_together(
    conn: &Mutex<Connection>,
    first: Pending,
    queue: &mut mpsc::Receiver<Queued>,
    (taken, large): (&mut Vec<Pending>, &mut VecDeque<Queued>),
) -> rusqlite::Result<()> {
    let begun = Instant::now();
    taken.push(first);
    execute(conn, "begin immediate")?;
    let mut result = match taken.last_mut() {
        Some(first) => run_first(first, conn),
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
        let ran = run_one(&mut job, conn);
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
pub(super) fn commit_alone(
    conn: &Mutex<Connection>,
    taken: &mut [Pending],
) -> rusqlite::Result<()> {
    execute(conn, "begin immediate")?;
    let ran = taken.iter_mut().try_for_each(|job| run_first(job, conn));
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
fn run_first(job: &mut Pending, conn: &Mutex<Connection>) -> rusqlite::Result<()> {
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
fn run_one(job: &mut Pending, conn: &Mutex<Connection>) -> rusqlite::Result<Ran> {
    execute(conn, "savepoint operation")?;
    let ran = job.run(conn, Some(SHARED_STATEMENTS));
    if ran != Ran::Done {
        // A full disk ends the transaction by itself; then the rollback fails too, as it must.
        execute(conn, "rollback to operation")?;
    }
    execute(conn, "release operation")?;
    Ok(ran)
}
