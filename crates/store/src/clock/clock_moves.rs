//! By how much the clock of this node was set between the moment at which a time was read and the transaction
//! that stores it. A time from before the clock was set back, stored after due times have moved, would be due
//! hours late.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::TimeDelta;

/// By how much the clock of this node was set in all, in microseconds. Clones count together.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClockMoves(Arc<AtomicI64>);

/// The clock by which a time was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClockStamp(i64);

impl ClockMoves {
    /// Notes that the clock was set by `by`.
    pub(crate) fn note(&self, by: TimeDelta) {
        self.0.fetch_add(by.num_microseconds().unwrap_or_default(), Ordering::AcqRel);
    }

    /// Returns the clock of now.
    pub(crate) fn stamp(&self) -> ClockStamp {
        ClockStamp(self.0.load(Ordering::Acquire))
    }

    /// Returns by how much the clock was set since.
    pub(crate) fn since(&self, stamp: ClockStamp) -> TimeDelta {
        TimeDelta::microseconds(self.stamp().0.wrapping_sub(stamp.0))
    }
}
