//! How many records were appended on each of the last days.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// The number of days that are kept.
pub const DAYS: usize = 30;
const DAY_S: i64 = 86_400;

/// The number of records on each of the last days, in UTC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DailyCounts {
    /// The day of the last number, counted from 1970-01-01.
    day: i64,
    /// One number for each day up to that one, at most [`DAYS`].
    counts: Vec<u32>,
}

impl DailyCounts {
    /// Adds records that were appended at `now`. What is older than [`DAYS`] is dropped.
    pub fn add(&mut self, many: usize, now: DateTime<Utc>) {
        if many == 0 {
            return;
        }
        self.counts = self.until(now).map_or_else(Vec::new, |counts| counts.to_vec());
        let today = now.timestamp().div_euclid(DAY_S);
        self.day = self.day.max(today);
        let many = u32::try_from(many).unwrap_or(u32::MAX);
        match self.counts.last_mut() {
            Some(last) => *last = last.saturating_add(many),
            None => self.counts.push(many),
        }
        let first = self.counts.iter().position(|count| *count > 0).unwrap_or(self.counts.len());
        self.counts.drain(..first);
    }

    /// Returns the numbers of the last [`DAYS`] days, that of the day of `now` last.
    pub fn last_days(&self, now: DateTime<Utc>) -> [u32; DAYS] {
        self.until(now).unwrap_or([0; DAYS])
    }

    /// Returns the numbers up to the day of `now`, or up to the last one if that is later; `None` if there
    /// are none.
    fn until(&self, now: DateTime<Utc>) -> Option<[u32; DAYS]> {
        let today = now.timestamp().div_euclid(DAY_S);
        let passed = usize::try_from((today - self.day).max(0)).unwrap_or(DAYS);
        let mut days = [0; DAYS];
        let ends = DAYS.checked_sub(passed).filter(|ends| *ends > 0 && !self.counts.is_empty())?;
        for (n, count) in self.counts.iter().rev().take(ends).enumerate() {
            days[ends - 1 - n] = *count;
        }
        Some(days)
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn each_day_has_its_number_and_old_days_are_dropped() {
        let day = |day: i64| DateTime::UNIX_EPOCH + TimeDelta::days(20_000 + day);
        let mut counts = DailyCounts::default();
        assert_eq!(counts.last_days(day(0)), [0; DAYS]);
        for (at, many) in [(0, 2), (0, 1), (3, 5)] {
            counts.add(many, day(at));
        }
        assert_eq!(counts.last_days(day(3))[DAYS - 4..], [3, 0, 0, 5]);
        assert_eq!(counts.last_days(day(5))[DAYS - 6..], [3, 0, 0, 5, 0, 0]);
        assert_eq!(counts.last_days(day(32))[0], 5);
        assert_eq!(counts.last_days(day(400)), [0; DAYS]);
        counts.add(1, day(2)); // the clock was set back
        assert_eq!(counts.last_days(day(3))[DAYS - 1], 6);
        (4..400).for_each(|at| counts.add(1, day(at)));
        assert_eq!(counts.last_days(day(399)), [1; DAYS]);
        assert!(serde_json::to_string(&counts).unwrap().len() < 100);
        counts.add(usize::MAX, day(9_000));
        assert_eq!(counts.counts, [u32::MAX]);
    }
}
