//! What this node knows of the clock of the database. A node that has not compared its clock for a moment may not
//! know that the clock was set and that all due times move, and would store and claim by the time before.
//!
//! So due times move only [`MOVE_NOTICE`] after it was recorded that the clock was set, and after the end of the
//! transactions that were in progress then. Whoever commits later has either compared its clock since, or looks
//! in its transaction whether the clock was set.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use crate::engine::tx::Tx;
use feedgate_core::store::StoreError;

/// How long due times stay where they are after it was recorded that the clock was set.
pub const MOVE_NOTICE: Duration = Duration::from_millis(2_500);
/// How long a comparison holds, with time left to send what follows.
const HOLDS_FOR: Duration = Duration::from_millis(1_700);

/// What this node knows of the clock of the database.
#[derive(Debug)]
pub struct KnownClock {
    /// Returns whether the clock was compared within this time.
    was_compared_within: fn(Duration) -> bool,
    /// How often the clock had been set when this node last went by it.
    generation: AtomicI64,
}

impl KnownClock {
    /// Creates the knowledge of a node that compares its clock, and notes when.
    pub fn new(was_compared_within: fn(Duration) -> bool) -> KnownClock {
        KnownClock { was_compared_within, generation: AtomicI64::new(0) }
    }

    /// Notes that the node goes by the clock as it was set last, for the time `generation`.
    pub fn note_generation(&self, generation: i64) {
        self.generation.store(generation, Ordering::Release);
    }

    /// Returns the generation that the node goes by, if it may have been replaced by another.
    pub(crate) fn doubted_generation(&self) -> Option<i64> {
        let is_known = (self.was_compared_within)(HOLDS_FOR);
        (!is_known).then(|| self.generation.load(Ordering::Acquire))
    }
}

/// Returns whether the clock was set since the generation that a node went by.
pub(crate) async fn was_set_since(tx: &Tx<'_>, generation: i64) -> Result<bool, StoreError> {
    const GENERATION: &str = "select generation from clocks where id = 1";
    let mut row = tx.first(GENERATION, &[]).await?;
    Ok(row.as_mut().map_or(Ok(generation), |row| row.int())? != generation)
}
