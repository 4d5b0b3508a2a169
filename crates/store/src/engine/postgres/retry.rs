//! Temporary failures of a transaction: how to recognize them, and how long to wait before the next
//! attempt.
//!
//! PostgreSQL ends one of the transactions that wait for each other, and one of those whose changes
//! cannot be put in an order. Such a transaction has changed nothing, so it is repeated from its
//! first statement. The same applies if only the rejection of a later statement was seen, and to a
//! transaction whose connection was lost or refused, which happens while a server restarts, be it
//! this one or, on Citus, the one that holds the schema. A connection that is lost while the
//! transaction commits is another matter: the commit may have reached the server. A transaction during which
//! the clock of this node was set is rolled back, and repeated with the times of the new one.

use std::error::Error;
use std::io;
use std::time::Duration;

use tokio::time::sleep;
use tokio_postgres::error::SqlState;

use feedgate_core::store::StoreError;

/// The most attempts at a transaction that conflicts with others. Each deadlock lets one of its
/// transactions through, so even five that collide are all done by then.
const CONFLICT_ATTEMPTS: u32 = 5;
/// The most attempts at a transaction of which only the rejection of a later statement was seen.
const UNKNOWN_ATTEMPTS: u32 = 3;
/// The most attempts at a transaction that loses its connection. Their waits add up to about 4 s,
/// enough for a restart, and there are more of them than connections in a pool of the default size,
/// each of which may have been cut off.
const CONNECTION_ATTEMPTS: u32 = 12;
/// The longest wait after the first failure; the wait doubles with each failure. The server has
/// waited for a second before it reports a deadlock, so a longer wait here would gain nothing.
const FIRST_WAIT: Duration = Duration::from_millis(20);
/// The longest wait of all, so that a server that is back is used soon.
const LONGEST_WAIT: Duration = Duration::from_millis(640);

/// The class of SQLSTATE for failures of a connection.
const CONNECTION_EXCEPTIONS: &str = "08";

/// A transaction that failed.
pub(super) struct FailedTransaction {
    /// The reason.
    err: StoreError,
    /// Whether its commit had been sent, so that its changes may have been stored.
    is_commit_sent: bool,
    /// Whether it was rolled back because the clock was set meanwhile.
    is_of_another_time: bool,
}

impl From<StoreError> for FailedTransaction {
    fn from(err: StoreError) -> FailedTransaction {
        FailedTransaction { err, is_commit_sent: false, is_of_another_time: false }
    }
}

impl FailedTransaction {
    /// Returns the failure of a transaction whose commit had been sent.
    pub(super) fn at_commit(err: StoreError) -> FailedTransaction {
        FailedTransaction { err, is_commit_sent: true, is_of_another_time: false }
    }

    /// Returns the failure of a transaction that is rolled back because the clock was set meanwhile.
    pub(super) fn of_another_time() -> FailedTransaction {
        let err = StoreError::Database("the clock was set during the transaction".into());
        FailedTransaction { err, is_commit_sent: false, is_of_another_time: true }
    }

    /// Returns when the transaction may be repeated after its attempt number `attempt`, counted
    /// from 1. If the failure is final, returns its reason at once.
    pub(super) async fn wait_for_retry(self, attempt: u32) -> Result<(), StoreError> {
        let Some(wait) = self.wait_before_retry(attempt) else { return Err(self.err) };
        tracing::debug!(attempt, error = %self.err, "a transaction failed; it will be retried");
        sleep(wait).await;
        Ok(())
    }

    /// Returns how long to wait before the transaction is repeated after its attempt number
    /// `attempt`, counted from 1. `None` if the failure is final.
    fn wait_before_retry(&self, attempt: u32) -> Option<Duration> {
        if attempt >= self.most_attempts() {
            return None;
        }
        let longest = FIRST_WAIT * 2_u32.pow(attempt.saturating_sub(1));
        // Waiting between half and all of it lets transactions that collided start at different
        // times.
        Some(longest.min(LONGEST_WAIT).mul_f64(0.5 + jitter() / 2.0))
    }

    fn most_attempts(&self) -> u32 {
        if self.is_of_another_time {
            return CONFLICT_ATTEMPTS;
        }
        let StoreError::Database(err) = &self.err else { return 1 };
        let Some(err) = err.downcast_ref::<tokio_postgres::Error>() else { return 1 };
        if is_conflict(err) {
            CONFLICT_ATTEMPTS
        } else if is_of_later_statement(err) {
            UNKNOWN_ATTEMPTS
        } else if is_lost_connection(err) && !self.is_commit_sent {
            CONNECTION_ATTEMPTS
        } else {
            1
        }
    }
}

/// Returns whether the transaction failed only because of another one at the same time.
fn is_conflict(err: &tokio_postgres::Error) -> bool {
    err.code().is_some_and(|code| {
        *code == SqlState::T_R_DEADLOCK_DETECTED || *code == SqlState::T_R_SERIALIZATION_FAILURE
    })
}

/// Returns whether the cause is unknown: when statements are sent together, PostgreSQL rejects those after
/// the failed one, and that error may be seen first.
fn is_of_later_statement(err: &tokio_postgres::Error) -> bool {
    err.code() == Some(&SqlState::IN_FAILED_SQL_TRANSACTION)
}

/// Returns whether a connection, to the server or from it to another, was lost or refused.
fn is_lost_connection(err: &tokio_postgres::Error) -> bool {
    let Some(code) = err.code() else {
        return err.is_closed() || err.source().is_some_and(|source| source.is::<io::Error>());
    };
    let restarts =
        [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN, SqlState::CANNOT_CONNECT_NOW];
    code.code().starts_with(CONNECTION_EXCEPTIONS) || restarts.contains(code)
}

/// Returns a random number from 0 to 1.
fn jitter() -> f64 {
    // Without randomness the waits are equal, and the server's own timing sets them apart.
    f64::from(getrandom::u32().unwrap_or(u32::MAX / 2)) / f64::from(u32::MAX)
}
