//! The clock of the database, by which everything is due on all nodes.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

/// What is known of the clock of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// The time that it shows.
    pub now: DateTime<Utc>,
    /// Whether other nodes may use the database.
    pub is_shared: bool,
    /// How often it was set.
    pub generation: i64,
    /// By how much it was set in all.
    pub moved_in_all: TimeDelta,
    /// By how much it was set last, if due times are still to be moved.
    pub moving_by: Option<TimeDelta>,
    /// The last time at which a node is known to have worked; `None` if there was none.
    pub mark: Option<ClockMark>,
}

/// A time at which a node worked, by the clock of the database and by that of its machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockMark {
    /// The time by the clock of the database.
    pub seen_at: DateTime<Utc>,
    /// The run of the machine; empty if it is not known.
    pub boot: String,
    /// The time since the start of the machine.
    pub since_boot: Duration,
}

impl ClockReading {
    /// Returns the time by which everything is due: what the clock of the database shows, unless it was set
    /// while no node worked. `boot` and `since_boot` are those of now, and differences up to `tolerance` are
    /// none.
    pub fn time_of_due_times(
        &self,
        (boot, since_boot): (&str, Duration),
        tolerance: TimeDelta,
    ) -> DateTime<Utc> {
        let Some(mark) = &self.mark else { return self.now };
        // Only within one run of the machine, and with its clock, is it known how much time has passed.
        if self.is_shared || mark.boot.is_empty() || mark.boot != boot {
            let is_back = self.now < mark.seen_at - tolerance;
            return if is_back { mark.seen_at } else { self.now };
        }
        let passed = since_boot.saturating_sub(mark.since_boot);
        mark.seen_at + TimeDelta::from_std(passed).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e03_a_clock_that_was_set_while_nothing_ran_is_noticed() {
        let at = |seconds| DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds);
        let mark = |boot: &str| ClockMark {
            seen_at: at(10_000),
            boot: boot.to_owned(),
            since_boot: Duration::from_secs(100),
        };
        let reading = |now, is_shared, mark| ClockReading {
            now,
            is_shared,
            generation: 0,
            moved_in_all: TimeDelta::zero(),
            moving_by: None,
            mark,
        };
        #[rustfmt::skip]
        let cases = [
            ("time has passed",               "run", "run", 10_050, false, 0),
            ("set back, then 50 s passed",    "run", "run",  6_450, false, -3_600),
            ("set forward, then 50 s passed", "run", "run", 31_650, false, 21_600),
            ("the machine was restarted",     "old", "run", 31_650, false, 0),
            ("it lost its clock",             "old", "run",      5, false, -9_995),
            ("the run is not known",          "",    "",    31_650, false, 0),
            ("the clock of a server went on", "run", "run", 31_650, true,  0),
            ("that of a server was set back", "run", "run",  6_400, true,  -3_600),
        ];
        for (why, then, boot, now, is_shared, want) in cases {
            let reading = reading(at(now), is_shared, Some(mark(then)));
            let running = (boot, Duration::from_secs(150));
            let by = reading.now - reading.time_of_due_times(running, TimeDelta::seconds(3));
            assert_eq!(by.num_seconds(), want, "{why}");
        }
        let first = reading(at(5), false, None);
        let running = ("run", Duration::ZERO);
        assert_eq!(first.time_of_due_times(running, TimeDelta::zero()), first.now);
    }
}
