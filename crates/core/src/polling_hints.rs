//! Polling hints of a publisher: how long to wait between polls, and when not to poll.
//!
//! Hints come from response headers and from the document, and are stored with the resource,
//! because a response of "not modified" repeats none of them. They are a floor below the period
//! that follows from what was seen, never a reason to poll sooner (rule P13). Headers are read in
//! `fetch`, documents in `parse`.

use std::time::Duration;

use chrono::{DateTime, Datelike, TimeDelta, Timelike, Utc};
use serde::{Deserialize, Serialize};

use super::schedule::{Period, PeriodReason};
use feedgate_feed::model::Hints;

/// The maximum hint of a document that is followed, in seconds: a day (rule P13).
const LONGEST_S: u32 = 24 * 3_600;
/// The minimum period for which `sy:updateBase` is followed (rule P17). For shorter periods, the
/// minute of a poll makes no relevant difference.
const SHORTEST_ANCHORED_S: u32 = 3_600;

/// The hints in the last usable response of a publisher.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PollingHints {
    /// The freshness lifetime from the headers, in seconds (rule P12).
    pub headers_s: u32,
    /// `ttl`, in seconds.
    pub ttl_s: u32,
    /// `sy:updatePeriod` divided by `sy:updateFrequency`, in seconds.
    pub syndication_s: u32,
    /// `sy:updateBase`.
    pub syndication_base: Option<DateTime<Utc>>,
    /// Hours of the day, GMT, in which the publisher does not want to be polled.
    pub skip_hours: Vec<u8>,
    /// Days of the week, Monday is 0, on which the publisher does not want to be polled.
    pub skip_days: Vec<u8>,
}

/// A minimum of the period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HintFloor {
    /// The minimum in seconds; 0 for none.
    pub secs: u32,
    /// The source of the hint.
    pub reason: PeriodReason,
}

impl PollingHints {
    /// Collects the hints of the headers and the document of one response.
    pub fn from_document(headers_s: u32, hints: &Hints) -> PollingHints {
        let capped = |secs: u32| secs.min(LONGEST_S);
        PollingHints {
            headers_s: capped(headers_s),
            ttl_s: capped(hints.ttl_min.unwrap_or(0).saturating_mul(60)),
            syndication_s: capped(hints.update_period_s.unwrap_or(0)),
            syndication_base: hints.update_base.map(|base| base.to_utc()),
            skip_hours: hints.skip_hours.clone(),
            skip_days: hints.skip_days.clone(),
        }
    }

    /// Updates the hints after the same document was received with new headers.
    pub fn same_again(&mut self, headers_s: u32) {
        self.headers_s = headers_s.min(LONGEST_S);
    }

    /// Updates the hints after "not modified", which may shorten the freshness lifetime but not
    /// extend it, because some servers send wrong headers with 304 (rule P15).
    pub fn not_modified(&mut self, headers_s: Option<u32>) {
        self.headers_s = self.headers_s.min(headers_s.unwrap_or(u32::MAX));
    }

    /// Returns the minimums, the longest of which applies, for a resource with `per_hour` new
    /// entries (rule P12). Of equal minimums the first is reported, because headers are closest to
    /// the transport.
    ///
    /// `sy:updatePeriod` is often a default of the software, so it applies only while the feed
    /// keeps to it. `ttl` always applies, because seed 002 requires it (rule P14).
    pub fn floors(&self, per_hour: f64) -> [HintFloor; 3] {
        let keeps_to_it = per_hour * f64::from(self.syndication_s) <= 3_600.0;
        let syndication_s = if keeps_to_it { self.syndication_s } else { 0 };
        [
            HintFloor { secs: self.headers_s, reason: PeriodReason::Headers },
            HintFloor { secs: self.ttl_s, reason: PeriodReason::Ttl },
            HintFloor { secs: syndication_s, reason: PeriodReason::Syndication },
        ]
    }

    /// Returns the time of the next fetch after `now`: at the end of `period`, spread by `jitter`
    /// (see [`Period::next`]), and outside the skipped hours and days.
    pub fn next(&self, period: Period, now: DateTime<Utc>, jitter: f64) -> DateTime<Utc> {
        let at = self.anchored(period, now, jitter).unwrap_or_else(|| period.next(now, jitter));
        self.allowed_from(at)
    }

    /// Returns the next fetch for a period decided by `sy:updatePeriod`: the first `base + n *
    /// period` that is at least half a period away, plus a short delay for the publisher to write
    /// the update (rule P17).
    fn anchored(&self, period: Period, now: DateTime<Utc>, jitter: f64) -> Option<DateTime<Utc>> {
        let secs = i64::from(period.as_secs());
        if period.reason() != PeriodReason::Syndication || period.as_secs() < SHORTEST_ANCHORED_S {
            return None;
        }
        let base = self.syndication_base?;
        let earliest = now + TimeDelta::seconds(secs / 2);
        let over = (earliest - base).num_seconds().rem_euclid(secs);
        let anchor = earliest + TimeDelta::seconds((secs - over) % secs);
        let late = period.jitter_s() * jitter.clamp(0.0, 1.0);
        Some(anchor + Duration::from_secs_f64(late))
    }

    /// Returns the first time from `at` on that is in no skipped hour and on no skipped day. Hints
    /// that skip every hour or day are ignored (rule P16).
    pub fn allowed_from(&self, at: DateTime<Utc>) -> DateTime<Utc> {
        let is_skipped = |at: &DateTime<Utc>| {
            let day = at.weekday().num_days_from_monday();
            self.skip_hours.iter().any(|hour| u32::from(*hour) % 24 == at.hour())
                || self.skip_days.iter().any(|skipped| u32::from(*skipped) == day)
        };
        // Steps of an hour keep the minute, so that feeds which skip the night are not all polled
        // at its end.
        let mut hours = (0..=7 * 24).map(|hours| at + TimeDelta::hours(hours));
        hours.find(|at| !is_skipped(at)).unwrap_or(at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::polling::Polling;
    use super::super::resource_id::ResourceKind;
    use super::super::schedule::{K_LEAST, PollFinding, ScheduleBounds, ScheduleInput, plan};
    use super::*;

    /// Returns a time on Thursday, 1 January 1970.
    fn at(hour: i64, minute: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::minutes(hour * 60 + minute)
    }

    #[test]
    fn p12_the_longest_wish_is_the_floor() {
        let none = PollingHints::default();
        #[rustfmt::skip]
        let cases = [
            ("nobody asks",                       none.clone(),                                       0.0, 0),
            ("headers",                           PollingHints { headers_s: 600, ..none.clone() },           9.0, 600),
            ("ttl",                               PollingHints { ttl_s: 7_200, ..none.clone() },             0.1, 7_200),
            ("the syndication module",            PollingHints { syndication_s: 7_200, ..none.clone() },     0.1, 7_200),
            ("the longest",                       PollingHints { headers_s: 60, ttl_s: 120, syndication_s: 90, ..none }, 0.1, 120),
        ];
        for (why, hints, per_hour, want) in cases {
            let longest = hints.floors(per_hour).into_iter().map(|floor| floor.secs).max();
            assert_eq!(longest, Some(want), "{why}");
        }
    }

    #[test]
    fn p14_a_default_that_nobody_chose_does_not_hold_off_a_feed_that_is_faster() {
        let none = PollingHints::default();
        let ttl = || PollingHints { ttl_s: 7_200, ..none.clone() };
        let syndication = || PollingHints { syndication_s: 7_200, ..none.clone() };
        #[rustfmt::skip]
        let cases = [
            ("ttl counts while the feed keeps to it",  ttl(),         0.5, 7_200),
            ("ttl counts whatever was seen",           ttl(),         9.0, 7_200),
            ("sy of a feed that keeps to it",          syndication(), 0.5, 7_200),
            ("sy of one that does not",                syndication(), 0.6, 0),
        ];
        for (why, hints, per_hour, want) in cases {
            let longest = hints.floors(per_hour).into_iter().map(|floor| floor.secs).max();
            assert_eq!(longest, Some(want), "{why}");
        }
    }

    #[test]
    fn p13_a_document_is_believed_for_a_day() {
        let week = 7 * 24 * 3_600;
        let hints =
            Hints { ttl_min: Some(u32::MAX), update_period_s: Some(week), ..Hints::default() };
        let hints = PollingHints::from_document(week, &hints);
        assert_eq!((hints.headers_s, hints.ttl_s, hints.syndication_s), (86_400, 86_400, 86_400));
    }

    #[test]
    fn p15_not_modified_shortens_and_never_lengthens() {
        for (before, told, want) in
            [(600, None, 600), (600, Some(60), 60), (600, Some(6_000), 600), (0, Some(60), 0)]
        {
            let mut hints =
                PollingHints { headers_s: before, ttl_s: 7_200, ..PollingHints::default() };
            hints.not_modified(told);
            assert_eq!((hints.headers_s, hints.ttl_s), (want, 7_200), "{before} {told:?}");
        }
    }

    #[test]
    fn p16_skipped_hours_and_days_are_waited_out() {
        type Skipped = &'static [u8];
        const ALL: Skipped =
            &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23];
        #[rustfmt::skip]
        let cases: [(&str, Skipped, Skipped, DateTime<Utc>); 7] = [
            ("nothing is skipped",              &[],        &[],                    at(3, 20)),
            ("not this hour",                   &[5, 6],    &[],                    at(3, 20)),
            ("until the night is over",         &[3, 4, 5], &[],                    at(6, 20)),
            ("not on Thursdays and Fridays",    &[],        &[3, 4],                at(48, 20)),
            ("nor in the hours after them",     &[0, 1, 3], &[3, 4],                at(50, 20)),
            ("all hours skipped is a mistake",  ALL,        &[],                    at(3, 20)),
            ("all days skipped is one too",     &[],        &[0, 1, 2, 3, 4, 5, 6], at(3, 20)),
        ];
        for (why, hours, days, want) in cases {
            let (skip_hours, skip_days) = (hours.to_vec(), days.to_vec());
            let hints = PollingHints { skip_hours, skip_days, ..PollingHints::default() };
            assert_eq!(hints.allowed_from(at(3, 20)), want, "{why}");
        }
        let midnight = PollingHints { skip_hours: vec![24], ..PollingHints::default() };
        assert_eq!(midnight.allowed_from(at(0, 5)), at(1, 5), "24 is 0");
    }

    #[test]
    fn p17_polls_follow_the_base_of_long_syndication_periods() {
        let base = Some(at(-5, 10)); // some day before, ten past
        let hints = |syndication_s, ttl_s| PollingHints {
            syndication_s,
            ttl_s,
            syndication_base: base,
            ..PollingHints::default()
        };
        #[rustfmt::skip]
        let cases = [
            ("at the next anchor",                   hints(7_200, 0),      at(1, 30), at(3, 10)),
            ("not one that is too near",             hints(7_200, 0),      at(0, 30), at(3, 10)),
            ("exactly one period later",             hints(7_200, 0),      at(3, 10), at(5, 10)),
            ("not where something else decides",     hints(7_200, 10_800), at(1, 30), at(4, 30)),
            ("nor for short periods",                hints(1_800, 0),      at(1, 30), at(2, 0)),
        ];
        for (why, hints, now, want) in cases {
            // The rate is high enough to be polled more often, and low enough to keep to the hint.
            let polling =
                Polling { hints, rate_at: Some(now), entries_per_hour: 0.3, ..Polling::default() };
            let held =
                ScheduleInput { kind: ResourceKind::Feed, subscribers: 1, pushed: false, polling };
            let bounds = ScheduleBounds { min_period_s: 60, k: K_LEAST };
            let found = PollFinding::NotModified { hint_s: None };
            let planned = plan(held, &found, &bounds, now, 0.5);
            let (next, period) = (planned.next_fetch, planned.period);
            let late = (next - want).num_seconds();
            assert!((0..=i64::from(period.as_secs()) / 10).contains(&late), "{why}: {next}");
        }
    }
}
