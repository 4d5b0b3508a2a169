//! Inbound signals that a resource changed.

use chrono::{DateTime, TimeDelta, Utc};

/// Which door a ping came in by.
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
}

impl PingSource {
    /// The word kept in the store and used in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            PingSource::RssCloud => "rsscloud",
            PingSource::Weblogs => "weblogs",
            PingSource::Publish => "publish",
            PingSource::Upstream => "upstream",
        }
    }
}

/// One ping as it was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ping {
    /// When.
    pub at: DateTime<Utc>,
    /// By which door.
    pub source: PingSource,
    /// What the sender calls the weblog; empty where the protocol has no name.
    pub name: String,
    /// The address that is said to have changed.
    pub url: String,
    /// The feed's address, where the sender named it apart (`extendedPing`).
    pub feed_url: Option<String>,
}

/// A line of changes.xml: a ping, or a change that was seen without one, as it was when it
/// was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeblogChange {
    /// When.
    pub at: DateTime<Utc>,
    /// The weblog's name, or the feed's title.
    pub name: String,
    /// Its address.
    pub url: String,
    /// The feed's address, where known apart from it.
    pub feed_url: Option<String>,
}

/// The unit of `when` in changes.xml.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    /// "The when attribute in the number of minutes since the ping was received."
    /// (seed 002)
    Minutes,
    /// As the first description of the format had it, and deployed readers expect.
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

    /// The unit that `word` means.
    pub fn from_word(word: &str) -> Option<TimeUnit> {
        [TimeUnit::Minutes, TimeUnit::Seconds].into_iter().find(|unit| unit.as_str() == word)
    }
}

/// The hour of the clock that `at` lies in, by its beginning.
pub fn start_of_hour(at: DateTime<Utc>) -> DateTime<Utc> {
    let into = at.timestamp_micros().rem_euclid(HOUR.num_seconds() * 1_000_000);
    at - TimeDelta::microseconds(into)
}

/// How long an hourly document covers.
pub const HOUR: TimeDelta = TimeDelta::hours(1);
