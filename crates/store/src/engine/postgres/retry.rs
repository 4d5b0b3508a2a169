//! Temporary failures of a transaction: how to recognize them, and how long to wait before the next
//! attempt.
//!
//! PostgreSQL ends one of the transactions that wait for each other, and one of those whose changes
//! cannot be put in an order. Such a transaction has changed nothing, so it is repeated from its
//! first statement. A lost connection is not in that class: the commit may have reached the server.

use std::time::Duration;

use tokio_postgres::error::SqlState;

use feedgate_core::ports::StoreError;

/// The most attempts at a transaction. Each deadlock lets one of its transactions through, so even
/// five that collide are all done by then.
const ATTEMPTS: u32 = 5;
/// The longest wait after the first failure; the wait doubles with each failure. The server has
/// waited for a second before it reports a deadlock, so a longer wait here would gain nothing.
const FIRST_WAIT: Duration = Duration::from_millis(20);

/// Returns how long to wait before a transaction is repeated after its attempt number `attempt`,
/// counted from 1, failed with `err`. `None` if the failure is final.
pub(super) fn wait_before_retry(err: &StoreError, attempt: u32) -> Option<Duration> {
    if attempt >= ATTEMPTS || !is_conflict(err) {
        return None;
    }
    let longest = FIRST_WAIT * 2_u32.pow(attempt.saturating_sub(1));
    // Waiting between half and all of it lets transactions that collided start at different times.
    Some(longest.mul_f64(0.5 + jitter() / 2.0))
}

/// Returns whether the transaction failed only because of another one at the same time.
fn is_conflict(err: &StoreError) -> bool {
    let StoreError::Database(err) = err else { return false };
    let code = err.downcast_ref::<tokio_postgres::Error>().and_then(tokio_postgres::Error::code);
    code.is_some_and(|code| {
        *code == SqlState::T_R_DEADLOCK_DETECTED || *code == SqlState::T_R_SERIALIZATION_FAILURE
    })
}

/// Returns a random number from 0 to 1.
fn jitter() -> f64 {
    // Without randomness the waits are equal, and the server's own timing sets them apart.
    f64::from(getrandom::u32().unwrap_or(u32::MAX / 2)) / f64::from(u32::MAX)
}
