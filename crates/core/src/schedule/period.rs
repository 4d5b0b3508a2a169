//! The period between two polls of a resource, and when the next poll is.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::reason::PeriodReason;

const HOUR_S: u32 = 3_600;

/// The slowest a healthy resource is polled: with 24 h instead, quiet feeds were
/// seen 1.5 times as late and loud ones no sooner.
pub const LONGEST_S: u32 = 6 * HOUR_S;

/// The jitter of a period that follows from what was seen, and its bound (rule P44).
pub(super) const JITTER: f64 = 0.1;
pub(super) const LONGEST_JITTER_S: f64 = 1_800.0;
/// The jitter of one that follows from failures (rule P29).
pub(super) const FAILURE_JITTER: f64 = 0.2;

/// Seconds between two polls of the same resource.
///
/// Never below the floor of the resource's `ResourceKind`. The floors are the ones
/// Superfeedr's status schema gives for `period`: 60 s for feeds, 300 s for
/// arbitrary content (seed 003).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Period {
    pub(super) secs: u32,
    /// The part of it that was promised to somebody: jitter does not undercut it.
    pub(super) least_s: u32,
    pub(super) jitter_s: f64,
    pub(super) reason: PeriodReason,
}

impl Period {
    /// In seconds.
    pub fn as_secs(self) -> u32 {
        self.secs
    }

    /// Why.
    pub fn reason(self) -> PeriodReason {
        self.reason
    }

    /// Whether all of it was promised to somebody.
    pub fn is_promised(self) -> bool {
        self.least_s >= self.secs
    }

    /// The next fetch after one at `now`. `jitter` is random in 0 to 1: it spreads polls
    /// that were begun together (rule P44).
    pub fn next(self, now: DateTime<Utc>, jitter: f64) -> DateTime<Utc> {
        let secs = f64::from(self.secs);
        self.between(now, (secs - self.jitter_s, secs + self.jitter_s), jitter)
    }

    /// The second fetch after a first one at `now`: anywhere from the floor to the end
    /// of the period, so that what was subscribed to together does not stay in step
    /// (rule P44, "initial phase").
    pub fn next_after_first(self, now: DateTime<Utc>, jitter: f64) -> DateTime<Utc> {
        let secs = f64::from(self.secs);
        if self.is_promised() {
            return self.next(now, jitter);
        }
        self.between(now, (0.0, secs), jitter)
    }

    fn between(self, now: DateTime<Utc>, (from, to): (f64, f64), jitter: f64) -> DateTime<Utc> {
        let from = from.max(f64::from(self.least_s));
        now + Duration::from_secs_f64(from + (to - from).max(0.0) * jitter.clamp(0.0, 1.0))
    }

    /// How much the next fetch is spread to either side, in seconds.
    pub(in super::super) fn jitter_s(self) -> f64 {
        self.jitter_s
    }
}
