//! Operations that wait for the writer: how each is run, and how its caller gets its result.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::engine::error::is_damage;
use crate::engine::operation::{AnyResult, Operation};
use crate::engine::sqlite::drive;
use crate::engine::tx::{Conn, Tx, Wake};
use feedgate_core::store::{StoreError, WakeSignals};

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ran {
    Done,
    /// It failed and must be rolled back.
    Failed,
    /// It has more statements than a shared transaction may have: it must be rolled back, and can
    /// be run again.
    TooLarge,
}

/// A waiting operation.
pub(super) struct Pending {
    op: Option<Operation>,
    result: Option<AnyResult>,
    woken: Vec<Wake>,
    reply: oneshot::Sender<AnyResult>,
}

impl Pending {
    /// Returns an operation whose result is sent to `reply`.
    pub(super) fn new(op: Operation, reply: oneshot::Sender<AnyResult>) -> Pending {
        Pending { op: Some(op), result: None, woken: Vec::new(), reply }
    }

    /// Runs the operation, with at most this many statements.
    pub(super) fn run(&mut self, conn: &Mutex<Connection>, most_statements: Option<u32>) -> Ran {
        let Some(op) = self.op.take() else { return Ran::Failed };
        let repeated = most_statements.map(|_| op.clone());
        let tx = Tx::new(Conn::Sqlite(conn)).with_most_statements(most_statements);
        // A panic is a bug, but no reason to stop the operations of other callers.
        let ran = catch_unwind(AssertUnwindSafe(|| drive(op.run(&tx))));
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

    /// Sends the result to the caller. `failure` is why the transaction was lost, if it was.
    pub(super) fn send_reply(self, failure: Option<&LostWrite>, wake_signals: &WakeSignals) {
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
pub(super) struct LostWrite {
    reason: String,
    is_damage: bool,
}

impl LostWrite {
    pub(super) fn new(err: rusqlite::Error) -> LostWrite {
        LostWrite { reason: err.to_string(), is_damage: is_damage(&err) }
    }

    fn to_error(&self) -> StoreError {
        match self.is_damage {
            true => StoreError::Damaged { reason: self.reason.clone() },
            false => write_failed(&self.reason),
        }
    }
}

pub(super) fn write_failed(failure: &str) -> StoreError {
    StoreError::Database(failure.into())
}
