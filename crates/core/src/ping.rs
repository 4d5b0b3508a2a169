//! Pings: inbound requests which report that a resource changed.

use chrono::{DateTime, TimeDelta, Utc};

/// The source of a ping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PingSource {
    /// `rssCloud.ping` or POST `/ping`.
    RssCloud,
    /// `weblogUpdates.ping` or `weblogUpdates.extendedPing`.
    Weblogs,
    /// WebSub or Superfeedr `hub.mode=publish`.
    Publish,
    /// A hub or cloud that a resource advertises.
    Upstream,
    /// An account that requests a fetch in the console. It is no news for others.
    Console,
}

impl PingSource {
    /// The word in the store and in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            PingSource::RssCloud => "rsscloud",
            PingSource::Weblogs => "weblogs",
            PingSource::Publish => "publish",
            PingSource::Upstream => "upstream",
            PingSource::Console => "console",
        }
    }
}

/// A ping as it was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ping {
    /// The time of the request.
    pub at: DateTime<Utc>,
    /// The source of the ping.
    pub source: PingSource,
    /// The name of the weblog; empty if the protocol has none.
    pub name: String,
    /// The address that is reported as changed.
    pub url: String,
    /// The address of the feed, if the sender named it separately (`extendedPing`).
    pub feed_url: Option<String>,
}

/// A line of changes.xml: a ping, or a change found by a poll, with what was known at that time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeblogChange {
    /// The time of the change.
    pub at: DateTime<Utc>,
    /// The name of the weblog, or the title of the feed.
    pub name: String,
    /// The address of the weblog.
    pub url: String,
    /// The address of the feed, if it is known and differs.
    pub feed_url: Option<String>,
}

/// The unit of `when` in changes.xml.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    /// "The when attribute in the number of minutes since the ping was received."
    /// (seed 002)
    Minutes,
    /// Seconds, as in the first version of the format, which deployed readers expect.
    Seconds,
}

impl TimeUnit {
    /// The word in settings, in queries and in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            TimeUnit::Minutes => "minutes",
            TimeUnit::Seconds => "seconds",
        }
    }

    /// Parses the word.
    pub fn from_word(word: &str) -> Option<TimeUnit> {
        [TimeUnit::Minutes, TimeUnit::Seconds].into_iter().find(|unit| unit.as_str() == word)
    }
}

/// The beginning of the hour that contains `at`.
pub fn start_of_hour(at: DateTime<Utc>) -> DateTime<Utc> {
    let into = at.timestamp_micros().rem_euclid(HOUR.num_seconds() * 1_000_000);
    at - TimeDelta::microseconds(into)
}

/// The time span of an hourly document.
pub const HOUR: TimeDelta = TimeDelta::hours(1);
