//! When a resource is fetched next, and why.
//!
//! The period between polls follows how often the resource was seen to change:
//! `T = k / sqrt(rate)`, which at a given number of polls gives the least delay per
//! entry (`docs/polling.md` has the figures). What a publisher asks for can
//! lengthen it; it cannot shorten it (rule P13).

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::asked::Floor;
use super::poll::Polling;
use super::resource::Kind;

/// Seconds between two polls of the same resource.
///
/// Never below the floor of the resource's [`Kind`]. The floors are the ones
/// Superfeedr's status schema gives for `period`: 60 s for feeds, 300 s for
/// arbitrary content (seed 003).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Period {
    secs: u32,
    reason: &'static str,
}

/// What decides a period.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Signals {
    /// New records per hour, averaged.
    pub per_hour: f64,
    /// Consecutive failed polls.
    pub failures: u32,
    /// For how many seconds it has been failing; the greatest number for what is gone.
    pub failing_s: u32,
    /// Seconds for which the server asked to be left alone, with a 429 or 503.
    pub retry_after_s: u32,
    /// The operator's floor, in seconds.
    pub floor_s: u32,
    /// The floor that the publisher asked for.
    pub asked: Floor,
}

impl Period {
    /// `k` of the square-root rule in hours·√(entries/h): 24 polls a day on an average
    /// feed (measured by simulation; see `docs/polling.md`).
    const K: f64 = 0.19;
    /// The slowest a healthy resource is polled: with 24 h instead, quiet feeds were
    /// seen 1.5 times as late and loud ones no sooner.
    pub const LONGEST_S: u32 = 6 * 3_600;
    /// What a publisher's hint or Retry-After may ask for at most (rules P13, P25).
    const LONGEST_ASKED_S: u32 = 24 * 3_600;
    /// A resource that fails may be back tomorrow …
    const LONGEST_FAILING_S: u32 = 24 * 3_600;
    /// … for a month; then it is asked once a week, but never given up (rules P29, P30).
    const DEAD_FROM_S: u32 = 30 * 24 * 3_600;
    const LONGEST_DEAD_S: u32 = 7 * 24 * 3_600;

    /// The least seconds between polls of a resource of this kind.
    pub fn floor_s(kind: Kind) -> u32 {
        match kind {
            Kind::Feed | Kind::Unknown => 60,
            Kind::Other => 300,
        }
    }

    /// The period that follows from what was seen.
    pub fn after(kind: Kind, seen: &Signals) -> Period {
        // Once in a month is as slow as a rate is believed to be.
        let per_hour = seen.per_hour.max(1.0 / 720.0);
        let adaptive = (Self::K / per_hour.sqrt() * 3_600.0).min(f64::from(Self::LONGEST_S));
        let mut period = Period { secs: adaptive as u32, reason: "how often it changes" };

        period.lengthen(Self::floor_s(kind), "the floor for this kind of resource");
        period.lengthen(seen.floor_s, "the operator's shortest period");
        period.lengthen(seen.asked.secs.min(Self::LONGEST_ASKED_S), seen.asked.reason);
        if seen.failures > 0 {
            let doubled = period.secs.saturating_mul(1 << seen.failures.min(16));
            let is_dead = seen.failing_s >= Self::DEAD_FROM_S;
            let most = if is_dead { Self::LONGEST_DEAD_S } else { Self::LONGEST_FAILING_S };
            let reason = if seen.failures == 1 { "it failed" } else { "it keeps failing" };
            period.lengthen(doubled.min(most), reason);
        }
        let retry_after = seen.retry_after_s.min(Self::LONGEST_ASKED_S);
        period.lengthen(retry_after, "the server asked to be left alone");
        period
    }

    fn lengthen(&mut self, secs: u32, reason: &'static str) {
        if secs > self.secs {
            *self = Period { secs, reason };
        }
    }

    /// In seconds.
    pub fn as_secs(self) -> u32 {
        self.secs
    }

    /// Why, in plain words.
    pub fn reason(self) -> &'static str {
        self.reason
    }

    /// The next fetch after one at `now`. `dice` is random in 0 to 1: it spreads polls
    /// that were begun together by ten percent, thirty minutes at most (rule P44).
    pub fn next(self, now: DateTime<Utc>, dice: f64) -> DateTime<Utc> {
        let secs = f64::from(self.secs);
        let jitter = (secs * 0.1).min(1_800.0) * (dice.clamp(0.0, 1.0) * 2.0 - 1.0);
        // A floor is a promise to the publisher, so jitter never undercuts it.
        let floor = f64::from(self.secs.min(60));
        now + Duration::from_secs_f64((secs + jitter).max(floor))
    }
}

/// Half of what was seen a week ago still counts.
const HALF_LIFE_HOURS: f64 = 7.0 * 24.0;
/// One fetch adds at most this many entries to the rate, so that a bulk import does
/// not speed a feed up for a week.
const MOST_PER_FETCH: f64 = 10.0;

/// The rate at which something is polled that was never yet reached, so that a
/// subscription does not wait for hours because its publisher had a bad minute.
pub const UNREACHED_PER_HOUR: f64 = 1.0;

/// What a feed is thought to publish while nothing is known of it: an entry a day.
const UNKNOWN_PER_HOUR: f64 = 1.0 / 24.0;

/// The rate after the first good fetch, from the dates of the entries found: what the
/// moving average would be if they had been seen as they came. Dates in the future
/// are not believed; without any, an entry a day is assumed.
pub fn first_rate(dates: impl Iterator<Item = DateTime<Utc>>, now: DateTime<Utc>) -> f64 {
    let weight = std::f64::consts::LN_2 / HALF_LIFE_HOURS;
    let hours = dates.map(|date| (now - date).num_seconds() as f64 / 3_600.0);
    let weights: Vec<f64> = hours
        .filter(|hours| *hours >= 0.0)
        .map(|hours| weight * 0.5_f64.powf(hours / HALF_LIFE_HOURS))
        .collect();
    if weights.is_empty() { UNKNOWN_PER_HOUR } else { weights.iter().sum() }
}

/// The moving average of entries per hour after a good fetch that found `new` ones.
///
/// The first fetch says nothing about a rate: what it finds may be years old; see
/// [`first_rate`].
pub fn rate_after(before: &Polling, new: usize, now: DateTime<Utc>) -> f64 {
    let Some(rate_at) = before.rate_at else { return before.entries_per_hour };
    let hours = (now - rate_at).num_milliseconds().max(0) as f64 / 3_600_000.0;
    let kept = 0.5_f64.powf(hours / HALF_LIFE_HOURS);
    let weight = std::f64::consts::LN_2 / HALF_LIFE_HOURS;
    before.entries_per_hour * kept + (new as f64).min(MOST_PER_FETCH) * weight
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn period_follows_what_was_seen() {
        let busy = Signals { per_hour: 100.0 / 24.0, ..Signals::default() };
        let asked = |secs| Signals { asked: Floor { secs, reason: "asked" }, ..busy };
        let frantic = Signals { per_hour: 1e6, ..Signals::default() };
        #[rustfmt::skip]
        let cases = [
            ("a silent feed is polled some times a day", Kind::Feed,  Signals::default(),                                   18_353),
            ("a busy feed is polled often",              Kind::Feed,  busy,                                       335),
            ("but not below a feed's floor",             Kind::Feed,  frantic,                                     60),
            ("nor below the floor of the rest",          Kind::Other, frantic,                                    300),
            ("nor below the operator's",                 Kind::Feed,  Signals { floor_s: 900, ..busy },           900),
            ("a publisher's wish lengthens",             Kind::Feed,  asked(3_600),        3_600),
            ("but does not shorten",                     Kind::Feed,  asked(5),              335),
            ("nor can it ask for more than a day",       Kind::Feed,  asked(999_999),     86_400),
            ("each failure doubles",                     Kind::Feed,  Signals { failures: 2, ..busy },          1_340),
            ("p29 up to a day",                          Kind::Feed,  Signals { failures: 40, failing_s: 2_591_999, ..busy }, 86_400),
            ("p30 after a month up to a week",           Kind::Feed,  Signals { failures: 40, failing_s: 2_592_000, ..busy }, 604_800),
            ("Retry-After holds us off",                 Kind::Feed,  Signals { retry_after_s: 7_200, ..busy }, 7_200),
            ("for a day at most",                        Kind::Feed,  Signals { retry_after_s: 99_999, ..busy }, 86_400),
        ];

        for (why, kind, seen, want) in cases {
            assert_eq!(Period::after(kind, &seen).as_secs(), want, "{why}: {seen:?}");
        }
    }

    #[test]
    fn jitter_stays_within_a_tenth_and_above_the_floor() {
        let now = DateTime::UNIX_EPOCH;
        let hour = Period { secs: 3_600, reason: "" };
        assert_eq!((hour.next(now, 0.0) - now).num_seconds(), 3_240);
        assert_eq!((hour.next(now, 1.0) - now).num_seconds(), 3_960);
        let minute = Period { secs: 60, reason: "" };
        assert_eq!((minute.next(now, 0.0) - now).num_seconds(), 60);
    }

    #[test]
    fn the_first_rate_is_read_from_the_dates() {
        let now = DateTime::UNIX_EPOCH + Duration::from_secs(400 * 86_400);
        let hours_ago = |hours: u64| now - Duration::from_secs(hours * 3_600);
        let steady = first_rate((0..4_000).map(|n| hours_ago(n / 2)), now);
        assert!((steady - 2.0).abs() < 0.02, "two an hour for months: {steady}");
        let old = first_rate((0..50).map(|n| hours_ago(5_000 + n)), now);
        assert!(old < 1e-6, "nothing for half a year: {old}");
        let future = [now + Duration::from_secs(60)].into_iter();
        assert_eq!(first_rate(future, now), UNKNOWN_PER_HOUR);
        assert_eq!(first_rate(std::iter::empty(), now), UNKNOWN_PER_HOUR);
    }

    #[test]
    fn a_steady_feed_settles_at_its_rate() {
        let mut polling = Polling { rate_at: Some(DateTime::UNIX_EPOCH), ..Polling::default() };
        for hour in 1..5_000_i64 {
            let now = DateTime::UNIX_EPOCH + Duration::from_secs(hour as u64 * 3_600);
            polling.entries_per_hour = rate_after(&polling, 2, now);
            polling.rate_at = Some(now);
        }
        assert!((polling.entries_per_hour - 2.0).abs() < 0.02, "{}", polling.entries_per_hour);
    }
}
