//! What the poller remembers of a resource from one poll to the next.

use chrono::{DateTime, TimeDelta, Utc};
use feedgate_feed::documents::DiscoveredFeed;
use feedgate_feed::model::KnownBy;
use serde::{Deserialize, Serialize};

use super::moves::RedirectSighting;
use super::polling_hints::PollingHints;

/// What lets a server answer "not modified": opaque bytes of its own (rule P1),
/// which belong to the URL that sent them (rule P4).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Validators {
    /// The URL that answered; they are sent to no other.
    pub url: String,
    /// `ETag` as received, quotes and `W/` included.
    pub etag: Option<Vec<u8>>,
    /// `Last-Modified` as received.
    pub last_modified: Option<Vec<u8>>,
}

impl Validators {
    /// Whether there is anything to send.
    pub fn is_empty(&self) -> bool {
        self.etag.is_none() && self.last_modified.is_none()
    }
}

/// What the poller remembers of a resource from one poll to the next.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Polling {
    /// From the last usable answer.
    pub validators: Validators,
    /// SHA-256 of the last body, in hex (rule P11).
    pub body_hash: String,
    /// The same for all content that differs in nothing that counts, of what is no feed
    /// (rule N12): SHA-256 in hex, empty for a feed.
    pub gate: String,
    /// The feeds that the last page offered (rule P52).
    pub offers: Vec<DiscoveredFeed>,
    /// The format of the last feed; empty for what is no feed, or was read before
    /// formats were remembered.
    pub format: String,
    /// Consecutive polls that ended in an error.
    pub failures: u32,
    /// When the first of them was.
    pub failing_since: Option<DateTime<Utc>>,
    /// Entries per hour: a moving average with a half-life of seven days.
    pub entries_per_hour: f64,
    /// When that average was last brought up to date.
    pub rate_at: Option<DateTime<Utc>>,
    /// The publisher's polling hints in the last usable response.
    pub hints: PollingHints,
    /// Consecutive answers of 410.
    pub gone: u32,
    /// Consecutive answers of 429 (rule P26).
    pub slow_downs: u32,
    /// When something new last came, or was last published as far as its dates tell.
    pub last_new: Option<DateTime<Utc>>,
    /// Entries in the last document that was read.
    pub window: u32,
    /// Whether all of them were new although some were known before: entries may have
    /// come and gone unseen.
    pub overrun: bool,
    /// Whether the last answer was the same document as before, all of it (rule P54).
    pub resent: bool,
    /// Its length in bytes.
    pub body_bytes: u32,
    /// The permanent redirect that was seen lately (rule P20).
    pub moved: Option<RedirectSighting>,
    /// When a whole document last came.
    pub whole_at: Option<DateTime<Utc>>,
    /// Polls since then.
    pub since_whole: u32,
    /// When a whole document was last asked for although "not modified" had been
    /// answered (rule P9).
    pub doubted_at: Option<DateTime<Utc>>,
    /// What entries are known by (rule N2).
    pub known_by: KnownBy,
    /// When that last changed.
    pub known_by_since: Option<DateTime<Utc>>,
}

/// A server that says "not modified" for so long …
const STUCK_FOR: TimeDelta = TimeDelta::days(8);
/// … in so many polls is asked for the whole document (rule P9).
const STUCK_TIMES: u32 = 8;
/// A whole document is asked for in spite of validators once a day at most (rule P9:
/// "Never more than one such unconditional GET per feed per day").
const DOUBT_EVERY: TimeDelta = TimeDelta::hours(24);

impl Polling {
    /// Whether "not modified" may be doubted again.
    pub fn may_doubt(&self, now: DateTime<Utc>) -> bool {
        self.doubted_at.is_none_or(|at| now >= at + DOUBT_EVERY)
    }

    /// Whether the server has said "not modified" for so long that it is doubted.
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
