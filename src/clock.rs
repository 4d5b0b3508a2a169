//! The clock of the gateway: the time by which everything is due, recorded and leased.
//!
//! It is set by the clock of the database ([`set`]) and runs on by the time that passes, including the time
//! during which the machine is suspended. A clock of this machine that is set meanwhile has no effect on it.
//! Until it is set for the first time, it starts from the clock of this machine.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chrono::{DateTime, SubsecRound, Utc};
use rustix::time::{ClockId, clock_gettime};

/// Returns the current time, truncated to the microseconds that a store keeps.
///
/// The clock is read only here: once where a job or a request begins, and passed on from there.
pub fn now() -> DateTime<Utc> {
    let micros = offset().load(Ordering::Relaxed) + micros_since_boot();
    DateTime::from_timestamp_micros(micros).unwrap_or_default()
}

/// Returns the time by the clock of this machine, which an operator may set at any time.
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub(crate) fn machine_time() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(6)
}

/// Measures the time that passes, including the time during which the machine is suspended. Setting a clock
/// has no effect on it.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    /// Microseconds since the machine was started.
    started: i64,
}

impl Stopwatch {
    /// Starts to measure.
    pub fn start() -> Stopwatch {
        Stopwatch { started: micros_since_boot() }
    }

    /// Returns the time since the start.
    pub fn elapsed(&self) -> Duration {
        Duration::from_micros((micros_since_boot() - self.started).unsigned_abs())
    }
}

/// The time of the clock at the start of the machine, in microseconds since 1970. It is not of a run of the
/// program but of the process: everything in a process is due by the same clock.
fn offset() -> &'static AtomicI64 {
    static OFFSET: OnceLock<AtomicI64> = OnceLock::new();
    OFFSET.get_or_init(|| AtomicI64::new(machine_time().timestamp_micros() - micros_since_boot()))
}

/// Returns the microseconds since the machine was started, including those during which it was suspended.
fn micros_since_boot() -> i64 {
    let passed = clock_gettime(ClockId::Boottime);
    passed.tv_sec * 1_000_000 + passed.tv_nsec / 1_000
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn e03_the_clock_starts_from_the_clock_of_the_machine_and_advances() {
        let (before, watch) = (now(), Stopwatch::start());
        assert!((machine_time() - before).abs() < TimeDelta::seconds(60));
        while watch.elapsed() < Duration::from_millis(2) {
            std::hint::spin_loop();
        }
        assert!(now() - before >= TimeDelta::milliseconds(2));
    }
}
