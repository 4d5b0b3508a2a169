//! The polling state of a resource, which is stored between polls.

use chrono::{DateTime, TimeDelta, Utc};
use feedgate_feed::documents::DiscoveredFeed;
use feedgate_feed::model::KnownBy;
use serde::{Deserialize, Serialize};

use super::moves::RedirectSighting;
use super::polling_hints::PollingHints;

/// The validators of a conditional request: opaque bytes (rule P1), which are valid for the URL
/// that sent them (rule P4).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Validators {
    /// The URL that sent the validators; they are sent to no other URL.
    pub url: String,
    /// `ETag` as received, quotes and `W/` included.
    pub etag: Option<Vec<u8>>,
    /// `Last-Modified` as received.
    pub last_modified: Option<Vec<u8>>,
}

impl Validators {
    /// Returns whether there are no validators.
    pub fn is_empty(&self) -> bool {
        self.etag.is_none() && self.last_modified.is_none()
    }
}

/// The polling state of a resource, as stored between polls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Polling {
    /// The validators of the last usable response.
    pub validators: Validators,
    /// The SHA-256 of the last body, in hex (rule P11).
    pub body_hash: String,
    /// The semantic digest of the last body of a resource that is not a feed (rule N12), which is
    /// the same for bodies with only insignificant differences: SHA-256 in hex, empty for a feed.
    pub gate: String,
    /// The feeds linked by the last page (rule P52).
    pub offers: Vec<DiscoveredFeed>,
    /// Where the publisher validates subscriptions, from the `Link` header with the relation
    /// `validate` of the last usable response (row P-5); empty if it does not.
    pub validator: String,
    /// The format of the last feed; empty if the resource is not a feed, or was read by a version
    /// that did not store the format.
    pub format: String,
    /// The number of consecutive polls that failed.
    pub failures: u32,
    /// When the first of them failed.
    pub failing_since: Option<DateTime<Utc>>,
    /// Entries per hour: a moving average with a half-life of seven days.
    pub entries_per_hour: f64,
    /// Whether the average is an assumption: no date of an entry was known at the first poll, and nothing
    /// new has been found since.
    pub is_rate_assumed: bool,
    /// When the average was last updated.
    pub rate_at: Option<DateTime<Utc>>,
    /// The publisher's polling hints in the last usable response.
    pub hints: PollingHints,
    /// The number of consecutive responses of 410.
    pub gone: u32,
    /// The number of consecutive responses of 429 (rule P26).
    pub slow_downs: u32,
    /// When the last new entry was found, or published according to its date.
    pub last_new: Option<DateTime<Utc>>,
    /// The number of entries in the last document.
    pub window: u32,
    /// Whether all entries of the last document were new although some were known before, so that
    /// others may have been missed.
    pub overrun: bool,
    /// Whether the last response was the complete, unchanged document (rule P54).
    pub resent: bool,
    /// The length of the body in bytes.
    pub body_bytes: u32,
    /// The permanent redirect seen recently (rule P20).
    pub moved: Option<RedirectSighting>,
    /// When a complete document was last received.
    pub whole_at: Option<DateTime<Utc>>,
    /// The number of polls since a complete document was last received.
    pub since_whole: u32,
    /// When an unconditional request was last sent to check a response of "not modified" (rule P9).
    pub doubted_at: Option<DateTime<Utc>>,
    /// Whether the next request is unconditional, because the server responded with "not modified" to
    /// a poll that a ping or a request caused.
    pub is_recheck_due: bool,
    /// When such a check last found a change that the server had denied.
    pub denied_change_at: Option<DateTime<Utc>>,
    /// The property that identifies entries (rule N2).
    pub known_by: KnownBy,
    /// When the identification of entries last changed.
    pub known_by_since: Option<DateTime<Utc>>,
    /// The number of entries without dates that came under another id, although link and text were
    /// known, since an entry last kept its id. Many of them mean that the publisher makes new ids for
    /// the same entries (rule N3).
    pub id_changes: u32,
    /// When the last poll ended, if it was the first one of a resource that had subscribers by
    /// then: what it found may contain a change that they have not been notified of. The next poll
    /// clears it.
    pub baseline_at: Option<DateTime<Utc>>,
    /// Until when the resource is not fetched, whatever reports a change of it: its server requested
    /// that. The store keeps it apart from the other fields.
    #[serde(skip)]
    pub left_alone_until: Option<DateTime<Utc>>,
    /// The time that the last poll planned for the next one, whatever has made that sooner or later since.
    /// It is read with the resource and not changed by its polls.
    #[serde(skip)]
    pub planned_at: Option<DateTime<Utc>>,
}

/// The time of consecutive "not modified" responses after which the next request is unconditional.
const STUCK_FOR: TimeDelta = TimeDelta::days(8);
/// The number of polls with consecutive "not modified" responses after which the next request is
/// unconditional (rule P9).
const STUCK_TIMES: u32 = 8;
/// The minimum interval of unconditional requests that check "not modified": "Never more than one
/// such unconditional GET per feed per day" (rule P9).
const DOUBT_EVERY: TimeDelta = TimeDelta::hours(24);

/// How long after a denied change a "not modified" is checked at once: a server that did so once has a
/// cache that does it again.
const DENIES_FOR: TimeDelta = TimeDelta::days(30);
/// The time from a response of "not modified" to the request that checks it, if the server has not
/// denied a change before. By then, most caches that were behind a ping have the change.
const RECHECK_AFTER: TimeDelta = TimeDelta::seconds(10);

/// A poll so much before its planned time is still the planned one (rule P48).
const PUNCTUAL: TimeDelta = TimeDelta::seconds(1);
/// The longest time for which a resource is left alone (rule P25). A time beyond was set by a wrong clock.
const LONGEST_LEFT_ALONE: TimeDelta = TimeDelta::hours(25);

impl Polling {
    /// Returns until when the resource must not be fetched, if that is not over at `now`.
    pub fn left_alone_after(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.left_alone_until.filter(|until| *until > now && *until <= now + LONGEST_LEFT_ALONE)
    }

    /// Returns whether a poll at `now` is made before the planned one, because of a ping, a subscription
    /// or a request.
    pub fn is_ahead_of_plan(&self, now: DateTime<Utc>) -> bool {
        self.planned_at.is_some_and(|planned| now + PUNCTUAL < planned)
    }

    /// Returns whether "not modified" may be checked again.
    pub fn may_doubt(&self, now: DateTime<Utc>) -> bool {
        self.doubted_at.is_none_or(|at| now >= at + DOUBT_EVERY)
    }

    /// Returns whether a "not modified" after a ping is checked within the same poll: only if the server
    /// has denied a change before.
    pub fn denies_changes(&self, now: DateTime<Utc>) -> bool {
        self.denied_change_at.is_some_and(|at| now < at + DENIES_FOR)
    }

    /// Plans the unconditional request that checks a "not modified" after a ping. Returns when it is due;
    /// `None` if there was one lately.
    pub fn plan_recheck(&mut self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.is_recheck_due = self.may_doubt(now);
        self.is_recheck_due.then(|| now + RECHECK_AFTER)
    }

    /// Returns whether the server has responded with "not modified" for so long that it is checked.
    pub fn is_stuck(&self, now: DateTime<Utc>) -> bool {
        self.since_whole >= STUCK_TIMES
            && self.whole_at.is_some_and(|at| now >= at + STUCK_FOR)
            && self.may_doubt(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p09_a_server_that_says_not_modified_for_eight_days_is_doubted_once_a_day() {
        let days = |days: i64| DateTime::UNIX_EPOCH + TimeDelta::days(days);
        let stuck = |whole: i64, since_whole, doubted: Option<i64>| Polling {
            whole_at: Some(days(whole)),
            since_whole,
            doubted_at: doubted.map(days),
            ..Polling::default()
        };
        #[rustfmt::skip]
        let cases = [
            ("eight days, eight polls",   stuck(12, 8, None),     true),
            ("seven days",                stuck(13, 99, None),    false),
            ("seven polls",               stuck(0, 7, None),      false),
            ("it was doubted today",      stuck(0, 99, Some(20)), false),
            ("it was doubted yesterday",  stuck(0, 99, Some(19)), true),
            ("nothing ever came",         Polling::default(),     false),
        ];
        for (why, polling, want) in cases {
            assert_eq!(polling.is_stuck(days(20)), want, "{why}");
        }
    }
}
