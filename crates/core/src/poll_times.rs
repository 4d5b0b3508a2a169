//! The values that change with every poll of a resource. The store keeps them apart from the other
//! values, which most polls leave unchanged.

use chrono::serde::ts_microseconds_option as micros;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::polling::Polling;
use super::status::Status;

/// The fields of [`Status`] and [`Polling`] that change with every poll.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PollTimes {
    /// [`Status::last_fetch`].
    #[serde(with = "micros")]
    pub last_fetch: Option<DateTime<Utc>>,
    /// [`Status::next_fetch`].
    #[serde(with = "micros")]
    pub next_fetch: Option<DateTime<Utc>>,
    /// [`Status::period_s`].
    pub period_s: u32,
    /// [`Status::period_reason`].
    pub period_reason: String,
    /// [`Polling::entries_per_hour`].
    pub entries_per_hour: f64,
    /// [`Polling::rate_at`].
    #[serde(with = "micros")]
    pub rate_at: Option<DateTime<Utc>>,
    /// [`Polling::since_whole`].
    pub since_whole: u32,
}

impl PollTimes {
    /// Extracts the values.
    pub fn from_stored(status: &Status, polling: &Polling) -> PollTimes {
        PollTimes {
            last_fetch: status.last_fetch,
            next_fetch: status.next_fetch,
            period_s: status.period_s,
            period_reason: status.period_reason.clone(),
            entries_per_hour: polling.entries_per_hour,
            rate_at: polling.rate_at,
            since_whole: polling.since_whole,
        }
    }

    /// Overwrites the values in `status` and `polling`.
    pub fn set(self, status: &mut Status, polling: &mut Polling) {
        status.last_fetch = self.last_fetch;
        status.next_fetch = self.next_fetch;
        status.period_s = self.period_s;
        status.period_reason = self.period_reason;
        polling.entries_per_hour = self.entries_per_hour;
        polling.rate_at = self.rate_at;
        polling.since_whole = self.since_whole;
    }
}

/// Returns whether `after` differs from `before` only in its [`PollTimes`]. `after` is unchanged on
/// return.
pub fn is_all_that_differs(
    before: (&Status, &Polling),
    (status, polling): (&mut Status, &mut Polling),
) -> bool {
    let pace = PollTimes::from_stored(status, polling);
    PollTimes::from_stored(before.0, before.1).set(status, polling);
    let is_same = before == (&*status, &*polling);
    pace.set(status, polling);
    is_same
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poll_that_finds_nothing_differs_in_its_pace_only() {
        let at = |s: i64| DateTime::from_timestamp_micros(s * 1_000_001);
        let known = (Status::default(), Polling::default());
        let later = |title: &str, failures| {
            let (last_fetch, next_fetch) = (at(1), at(2));
            let period_reason = "it is so".to_owned();
            let title = title.to_owned();
            let status = Status {
                last_fetch,
                next_fetch,
                period_s: 9,
                period_reason,
                title,
                ..Status::default()
            };
            let (rate_at, entries_per_hour, since_whole) = (at(3), 0.1, 7);
            let polling =
                Polling { rate_at, entries_per_hour, since_whole, failures, ..Polling::default() };
            (status, polling)
        };
        for (title, failures, want) in [("", 0, true), ("a", 0, false), ("", 1, false)] {
            let (mut status, mut polling) = later(title, failures);
            let is_all = is_all_that_differs((&known.0, &known.1), (&mut status, &mut polling));
            assert_eq!(is_all, want, "{title:?}, {failures}");
            assert_eq!((status, polling), later(title, failures));
        }
        let (status, polling) = later("", 0);
        let kept = serde_json::to_string(&PollTimes::from_stored(&status, &polling)).unwrap();
        let (mut again, mut remembered) = known;
        serde_json::from_str::<PollTimes>(&kept).unwrap().set(&mut again, &mut remembered);
        assert_eq!((again, remembered), (status, polling));
    }
}
