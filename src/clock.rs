//! The clock of the gateway: the time by which everything is due, recorded and leased.
//!
//! It is set by the clock of the database (`jobs/clock_sync.rs`), so that all nodes have the same time, and runs
//! on by the time that passes, including the time during which the machine is suspended. A clock of this machine
//! that is set meanwhile has no effect on it. Before it is set for the first time, it starts from the clock of
//! this machine. It is that of the process: all that a process does is due by one clock.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use rustix::time::{ClockId, clock_gettime};

/// What the clock shows, in microseconds.
struct Clock {
    /// The time at the start of the machine, since 1970.
    at_boot: i64,
    /// The last time that was read. The clock stands still until it is past it.
    last: i64,
}

/// Returns the current time, truncated to the microseconds that a store keeps. It never decreases, except when
/// the clock of the database was set back.
///
/// The clock is read only here: once where a job or a request begins, and passed on from there.
pub fn now() -> DateTime<Utc> {
    let mut clock = clock();
    clock.last = clock.last.max(clock.at_boot + micros_since_boot());
    DateTime::from_timestamp_micros(clock.last).unwrap_or_default()
}

/// Sets the clock, also back.
pub(crate) fn set(now: DateTime<Utc>) {
    let mut clock = clock();
    clock.at_boot = now.timestamp_micros() - micros_since_boot();
    clock.last = now.timestamp_micros();
}

/// Moves the clock forward, or lets it stand still for as long as it is ahead.
pub(crate) fn correct(by: TimeDelta) {
    clock().at_boot += by.num_microseconds().unwrap_or(0);
}

/// Notes that the clock was compared with that of the database at `since_boot`, and was right.
pub(crate) fn note_comparison(since_boot: Duration) {
    let compared_at = i64::try_from(since_boot.as_micros()).unwrap_or(NEVER);
    COMPARED_AT.fetch_max(compared_at, Ordering::Relaxed);
}

/// Returns whether the clock was right a moment ago. It may not be after this machine was suspended, or cut off
/// from the database: what cannot be undone waits until it was compared.
pub(crate) fn is_current() -> bool {
    was_compared_within(CURRENT_FOR)
}

/// Returns whether the last comparison is at most this old.
pub(crate) fn was_compared_within(time: Duration) -> bool {
    let compared_at = COMPARED_AT.load(Ordering::Relaxed);
    let age = micros_since_boot() - compared_at;
    compared_at == NEVER || u128::from(age.unsigned_abs()) < time.as_micros()
}

/// When the clock was last compared, in microseconds since the start of the machine.
static COMPARED_AT: AtomicI64 = AtomicI64::new(NEVER);
const NEVER: i64 = 0;
/// How long a comparison holds: some intervals between two of them.
const CURRENT_FOR: Duration = Duration::from_secs(3);

/// Returns the time by the clock of this machine, which an operator may set at any time.
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub(crate) fn machine_time() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(6)
}

/// Returns the time since the machine was started, including the time during which it was suspended.
pub(crate) fn since_boot() -> Duration {
    Duration::from_micros(micros_since_boot().unsigned_abs())
}

/// A clock that differs by more was set.
pub(crate) const TOLERANCE: TimeDelta = TimeDelta::seconds(3);

/// Measures the time that passes, including the time during which the machine is suspended. Setting a clock
/// has no effect on it.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    /// The time since the machine was started.
    started: Duration,
    /// What the clock showed then.
    started_at: DateTime<Utc>,
}

impl Stopwatch {
    /// Starts to measure.
    pub fn start() -> Stopwatch {
        Stopwatch { started: since_boot(), started_at: now() }
    }

    /// Returns the time since the start.
    pub fn elapsed(&self) -> Duration {
        since_boot().saturating_sub(self.started)
    }

    /// Returns by how much the clock was set since the start; zero if it was not. A time that was read before
    /// is so much earlier or later by the clock of now.
    pub fn clock_set_by(&self) -> TimeDelta {
        let passed = TimeDelta::from_std(self.elapsed()).unwrap_or_default();
        let by = now() - self.started_at - passed;
        if by.abs() > TOLERANCE { by } else { TimeDelta::zero() }
    }

    /// Starts again. Returns by how much the clock was set since the start.
    pub(crate) fn restart(&mut self) -> TimeDelta {
        let by = self.clock_set_by();
        *self = Stopwatch::start();
        by
    }
}

fn clock() -> MutexGuard<'static, Clock> {
    static CLOCK: OnceLock<Mutex<Clock>> = OnceLock::new();
    let clock = CLOCK.get_or_init(|| {
        let now = machine_time().timestamp_micros();
        Mutex::new(Clock { at_boot: now - micros_since_boot(), last: now })
    });
    clock.lock().unwrap_or_else(PoisonError::into_inner)
}

fn micros_since_boot() -> i64 {
    let passed = clock_gettime(ClockId::Boottime);
    passed.tv_sec * 1_000_000 + passed.tv_nsec / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e03_the_clock_starts_from_the_clock_of_the_machine_and_never_decreases_by_a_correction() {
        let (before, watch) = (now(), Stopwatch::start());
        assert!((machine_time() - before).abs() < TimeDelta::seconds(60));
        while watch.elapsed() < Duration::from_millis(2) {
            std::hint::spin_loop();
        }
        let later = now();
        assert!(later - before >= TimeDelta::milliseconds(2));
        correct(TimeDelta::seconds(-2));
        assert!(now() >= later);
        correct(TimeDelta::seconds(2));
        assert!(now() > later);
    }
}
