//! The period between two polls of a resource, and when the next poll is.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::reason::PeriodReason;

const HOUR_S: u32 = 3_600;

/// The longest period of a resource without failures. With 24 h instead, entries of quiet feeds
/// were found 1.5 times as late, and those of busy feeds no sooner.
pub const LONGEST_S: u32 = 6 * HOUR_S;

/// The jitter of a period that follows from the rate, as a share and as a maximum (rule P44).
pub(super) const JITTER: f64 = 0.1;
pub(super) const LONGEST_JITTER_S: f64 = 1_800.0;
/// The jitter of a period that follows from failures (rule P29).
pub(super) const FAILURE_JITTER: f64 = 0.2;

/// Seconds between two polls of the same resource.
///
/// The period is never less than the minimum for its `ResourceKind`, as given by Superfeedr's
/// status schema for `period`: 60 s for feeds, 300 s for other content (seed 003).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Period {
    pub(super) secs: u32,
    /// The part of the period that jitter may not undercut.
    pub(super) least_s: u32,
    pub(super) jitter_s: f64,
    pub(super) reason: PeriodReason,
}

impl Period {
    /// Returns the period in seconds.
    pub fn as_secs(self) -> u32 {
        self.secs
    }

    /// Returns the reason for the period.
    pub fn reason(self) -> PeriodReason {
        self.reason
    }

    /// Returns whether jitter may not undercut any part of the period.
    pub fn is_promised(self) -> bool {
        self.least_s >= self.secs
    }

    /// Returns the time of the next fetch after one at `now`. `jitter` is random from 0 to 1, and
    /// spreads polls that started together (rule P44).
    pub fn next(self, now: DateTime<Utc>, jitter: f64) -> DateTime<Utc> {
        let secs = f64::from(self.secs);
        self.between(now, (secs - self.jitter_s, secs + self.jitter_s), jitter)
    }

    /// Returns the time of the second fetch after a first one at `now`: at a random time from the
    /// minimum to the end of the period, so that resources subscribed together do not stay
    /// synchronized (rule P44, "initial phase").
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

    /// Returns the maximum shift of the next fetch in either direction, in seconds.
    pub(in super::super) fn jitter_s(self) -> f64 {
        self.jitter_s
    }
}
