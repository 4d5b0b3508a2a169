//! What this node did in each of the last minutes, for the charts of the console: a fixed number of
//! minutes with a fixed number of counters each, however much happens.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The number of minutes that are kept, the current one included.
pub const MINUTES: usize = 30;
/// The upper bounds of delays are powers of two, from a millisecond to twelve days.
const BUCKETS: usize = 31;

/// What happened in one minute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MinuteCounts {
    /// Notifications that callbacks accepted.
    pub delivered: u64,
    /// Attempts to deliver that failed.
    pub failed: u64,
    /// Fetches by their outcome, a stable word.
    pub fetches: BTreeMap<&'static str, u64>,
    /// The number of delays up to 2^n milliseconds, without those of the buckets before.
    delays: [u64; BUCKETS],
}

impl MinuteCounts {
    /// Adds the counts of another minute.
    pub fn add(&mut self, other: &MinuteCounts) {
        self.delivered += other.delivered;
        self.failed += other.failed;
        for (outcome, count) in &other.fetches {
            *self.fetches.entry(outcome).or_default() += count;
        }
        for (total, count) in self.delays.iter_mut().zip(other.delays) {
            *total += count;
        }
    }

    /// Returns the delay that this share of the notifications did not exceed, rounded up to a power of
    /// two in milliseconds; `None` if there were none. `percent` is 1 to 100.
    pub fn delay(&self, percent: u64) -> Option<Duration> {
        let total: u64 = self.delays.iter().sum();
        let wanted = (total * percent).div_ceil(100);
        let mut counted = 0;
        let found = self.delays.iter().position(|count| {
            counted += count;
            counted >= wanted
        });
        found.filter(|_| total > 0).map(|bucket| Duration::from_millis(1 << bucket))
    }
}

/// The counts of the last minutes. The first minute begins when this is created.
#[derive(Debug)]
pub struct RecentMinutes {
    started: Instant,
    counted: Mutex<Counted>,
}

/// The counts, and the number of the minute that the last ones belong to.
#[derive(Debug)]
struct Counted {
    minute: u64,
    minutes: VecDeque<MinuteCounts>,
}

impl Default for RecentMinutes {
    fn default() -> RecentMinutes {
        let minutes = vec![MinuteCounts::default(); MINUTES].into();
        let counted = Mutex::new(Counted { minute: 0, minutes });
        RecentMinutes { started: Instant::now(), counted }
    }
}

impl RecentMinutes {
    /// An attempt to deliver ended.
    pub fn delivered(&self, is_ok: bool) {
        self.count(|minute| match is_ok {
            true => minute.delivered += 1,
            false => minute.failed += 1,
        });
    }

    /// A callback acknowledged a record that had waited this long.
    pub fn waited(&self, delay: Duration) {
        let millis = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX).max(1);
        let bucket = (u64::BITS - (millis - 1).leading_zeros()) as usize;
        self.count(|minute| minute.delays[bucket.min(BUCKETS - 1)] += 1);
    }

    /// A fetch ended with this outcome.
    pub fn fetched(&self, outcome: &'static str) {
        self.count(|minute| *minute.fetches.entry(outcome).or_default() += 1);
    }

    /// Returns the counts of the last minutes, the current one last.
    pub fn snapshot(&self) -> Vec<MinuteCounts> {
        let mut minutes = Vec::new();
        self.with_current(|counted| minutes.extend(counted.iter().cloned()));
        minutes
    }

    fn count(&self, change: impl FnOnce(&mut MinuteCounts)) {
        self.with_current(|minutes| {
            if let Some(minute) = minutes.back_mut() {
                change(minute);
            }
        });
    }

    /// Drops the minutes that are over, and passes the rest on.
    fn with_current(&self, read: impl FnOnce(&mut VecDeque<MinuteCounts>)) {
        let now = self.started.elapsed().as_secs() / 60;
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let over = now.saturating_sub(counted.minute).min(MINUTES as u64);
        for _ in 0..over {
            counted.minutes.pop_front();
            counted.minutes.push_back(MinuteCounts::default());
        }
        counted.minute = counted.minute.max(now);
        read(&mut counted.minutes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_minute_is_counted_by_itself_and_old_ones_are_dropped() {
        let recent = RecentMinutes::default();
        recent.delivered(true);
        tokio::time::advance(Duration::from_secs(60)).await;
        recent.delivered(false);
        recent.fetched("ok_new");
        let minutes = recent.snapshot();
        assert_eq!(minutes.len(), MINUTES);
        assert_eq!((minutes[MINUTES - 2].delivered, minutes[MINUTES - 2].failed), (1, 0));
        assert_eq!((minutes[MINUTES - 1].delivered, minutes[MINUTES - 1].failed), (0, 1));
        assert_eq!(minutes[MINUTES - 1].fetches["ok_new"], 1);
        tokio::time::advance(Duration::from_secs(365 * 86_400)).await;
        assert_eq!(recent.snapshot(), vec![MinuteCounts::default(); MINUTES]);
    }

    #[tokio::test(start_paused = true)]
    async fn delays_are_told_by_the_power_of_two_above_them() {
        let recent = RecentMinutes::default();
        assert_eq!(recent.snapshot()[MINUTES - 1].delay(50), None);
        for millis in [0, 3, 4, 5, 1_000] {
            recent.waited(Duration::from_millis(millis));
        }
        recent.waited(Duration::MAX);
        let mut total = MinuteCounts::default();
        recent.snapshot().iter().for_each(|minute| total.add(minute));
        let millis = |percent| total.delay(percent).unwrap().as_millis();
        assert_eq!((millis(1), millis(50), millis(80)), (1, 4, 1_024));
        assert_eq!(millis(100), 1 << 30);
    }
}
