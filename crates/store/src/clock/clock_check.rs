//! Whether this node knows the time by which everything is due: a node that could not read the clock of the
//! database for a moment may not know that it was set and that all due times have moved, and would store and claim
//! by the time before.
//!
//! So due times move only after [`MOVE_NOTICE`], and a node that has not read the clock for that long stores nothing
//! until it has.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use feedgate_core::store::StoreError;

/// Returns whether the clock of this node was compared with that of the database within this time.
pub type ClockCheck = fn(Duration) -> bool;

/// How long due times stay where they are after it was recorded that the clock was set.
pub const MOVE_NOTICE: Duration = Duration::from_millis(2_500);
/// How old the last comparison may be when a transaction begins.
const TO_BEGIN: Duration = Duration::from_millis(1_700);
/// How old it may be when the transaction is committed.
const TO_COMMIT: Duration = Duration::from_millis(2_300);
/// How long a transaction waits for the next comparison.
const WAIT: Duration = Duration::from_secs(10);
/// The time between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// Waits until a transaction may begin.
pub(crate) async fn wait_to_begin(check: ClockCheck) -> Result<(), StoreError> {
    let began = Instant::now();
    while !check(TO_BEGIN) {
        if began.elapsed() > WAIT {
            let reason = "nothing is stored until the clock of the database can be read";
            return Err(StoreError::Database(reason.into()));
        }
        sleep(PAUSE).await;
    }
    Ok(())
}

/// Returns whether a transaction may be committed.
pub(crate) fn may_commit(check: ClockCheck) -> bool {
    check(TO_COMMIT)
}
