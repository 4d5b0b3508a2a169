//! A subscriber's standing wish to be told, and how far it has been told.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};

use feedgate_protocol::Protocol;

use super::account::AccountId;
use super::record::{Audience, Seq};
use super::resource_id::ResourceId;
use super::status::Status;
use super::topic::{Callback, Topic};

/// What a WebSub subscriber is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// The new entries as an Atom document with a status element.
    Atom,
    /// The same as JSON.
    Json,
    /// The topic as it is: same bytes, same content type (WebSub
    /// `#content-distribution`). The cursor then runs over body versions.
    Raw,
    /// What fits: Atom for a feed, and "the exact content of the resource" (seed 003)
    /// for anything else, whichever it is when there is something to send. It is what
    /// those get who did not say what they want (row S-7).
    Fitting,
}

impl Format {
    /// The word kept in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Format::Atom => "atom",
            Format::Json => "json",
            Format::Raw => "raw",
            Format::Fitting => "fitting",
        }
    }

    /// The word that a subscriber is told: who did not say what they want is sent Atom,
    /// as far as there is a feed.
    pub fn told(self) -> &'static str {
        if self == Format::Fitting { Format::Atom.as_str() } else { self.as_str() }
    }

    /// Reads the word in any case.
    pub fn from_word(word: &str) -> Option<Format> {
        let all = [Format::Atom, Format::Json, Format::Raw, Format::Fitting];
        all.into_iter().find(|format| format.as_str().eq_ignore_ascii_case(word))
    }
}

/// Which updates of entries a subscriber is sent (rule N7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Updates {
    /// None.
    Never,
    /// Those of which the publisher says that they are updates, and new: as Superfeedr.
    #[default]
    Fresh,
    /// All.
    Always,
}

impl Updates {
    /// The word kept in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Updates::Never => "never",
            Updates::Fresh => "fresh",
            Updates::Always => "always",
        }
    }

    /// Reads the word kept in the store.
    pub fn from_word(word: &str) -> Option<Updates> {
        let all = [Updates::Never, Updates::Fresh, Updates::Always];
        all.into_iter().find(|updates| updates.as_str() == word)
    }

    /// The least reach of the records that are sent.
    pub fn least(self) -> Audience {
        match self {
            Updates::Never => Audience::Everybody,
            Updates::Fresh => Audience::Fresh,
            Updates::Always => Audience::Askers,
        }
    }
}

/// Which changes of a resource's status a subscriber is told of although there are no
/// entries to tell (rule P33).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Statuses {
    /// Those that last: failing for hours, gone, moved, well again.
    #[default]
    Transitions,
    /// Each, at once.
    Always,
    /// None.
    Never,
}

impl Statuses {
    /// The word kept in the store and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Statuses::Transitions => "transitions",
            Statuses::Always => "always",
            Statuses::Never => "never",
        }
    }

    /// Reads the word in any case.
    pub fn from_word(word: &str) -> Option<Statuses> {
        let all = [Statuses::Transitions, Statuses::Always, Statuses::Never];
        all.into_iter().find(|statuses| statuses.as_str().eq_ignore_ascii_case(word))
    }

    /// The version of `status` that is news to such a subscriber; 0 if none ever is.
    pub fn version(self, status: &Status) -> i64 {
        match self {
            Statuses::Transitions => status.announced.version,
            Statuses::Always => status.version,
            Statuses::Never => 0,
        }
    }
}

/// The key a subscriber gave us for `X-Hub-Signature`.
///
/// Fewer than 200 bytes (WebSub `#subscriber-sends-subscription-request`). Debug
/// shows that there is one, never what it is.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The length from which a secret is refused, in bytes.
    pub const TOO_LONG_BYTES: usize = 200;

    /// Accepts `key` if it is short enough and can be stored.
    pub fn new(key: String) -> Result<Secret, BadSecret> {
        if key.len() >= Self::TOO_LONG_BYTES {
            return Err(BadSecret::TooLong);
        }
        if key.contains('\0') {
            return Err(BadSecret::ContainsNul);
        }
        Ok(Secret(key))
    }

    /// The key itself, for signing and for its owner's list.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Why a text cannot be a [`Secret`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSecret {
    /// It has [`Secret::TOO_LONG_BYTES`] or more.
    #[error("a secret must be shorter than {} bytes", Secret::TOO_LONG_BYTES)]
    TooLong,
    /// U+0000 somewhere in the text.
    #[error("a secret must not contain the character U+0000")]
    ContainsNul,
}

/// How long a subscription lasts before it must be renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease(Duration);

impl Lease {
    /// What an open WebSub subscription gets that names no lease, and the most it
    /// can have: WebSub §8.2 suggests ten days.
    pub const WEBSUB: Lease = Lease(Duration::from_secs(10 * 86_400));
    /// The least a WebSub subscriber can ask for (the deployed rssCloud hub's floor).
    pub const WEBSUB_SHORTEST: Lease = Lease(Duration::from_secs(300));
    /// "You must renew your subscription every 24 hours because they expire after 25
    /// hours." (seed 000, "The aggregator")
    pub const RSSCLOUD: Lease = Lease(Duration::from_secs(25 * 3_600));
    /// What an authenticated subscription gets: about ten years, as Superfeedr's
    /// clients have seen (315359999 s), because their owner can end them at any time.
    pub const ACCOUNT: Lease = Lease(Duration::from_secs(315_359_999));

    /// The lease of an open WebSub subscription that requests `requested_s` seconds.
    pub fn websub(requested_s: Option<u64>) -> Lease {
        let requested = requested_s.map_or(Self::WEBSUB.0, Duration::from_secs);
        Lease(requested.clamp(Self::WEBSUB_SHORTEST.0, Self::WEBSUB.0))
    }

    /// In seconds, as `hub.lease_seconds` has it.
    pub fn as_secs(self) -> u64 {
        self.0.as_secs()
    }

    /// When a lease that begins `now` ends.
    pub fn end(self, now: DateTime<Utc>) -> DateTime<Utc> {
        now + self.0
    }
}

impl From<Duration> for Lease {
    fn from(lasts: Duration) -> Lease {
        Lease(lasts)
    }
}

/// A wish as a door understood it: everything a subscription is made of but its
/// place in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriptionRequest {
    /// Whose it is; `None` for an open one.
    pub account: Option<AccountId>,
    /// What is watched.
    pub topic: Topic,
    /// Whom to tell.
    pub callback: Callback,
    /// How to tell.
    pub protocol: Protocol,
    /// What to send; told apart only by WebSub.
    pub format: Format,
    /// Which updates to send.
    pub updates: Updates,
    /// Which changes of the status to tell by themselves.
    pub statuses: Statuses,
    /// For signing.
    pub secret: Option<Secret>,
    /// How long it lasts.
    pub lease: Lease,
}

/// A subscription's number within its resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SubscriptionId {
    /// The resource it watches.
    pub resource: ResourceId,
    /// Its own number.
    pub number: i64,
}

/// Whom to tell of a resource, how, and how far they have been told.
#[derive(Clone, Debug, PartialEq)]
pub struct Subscription {
    /// Its number.
    pub id: SubscriptionId,
    /// Whose it is; `None` for an open one.
    pub account: Option<AccountId>,
    /// The topic, as the subscriber wrote it.
    pub topic: Topic,
    /// Whom to tell.
    pub callback: Callback,
    /// How to tell.
    pub protocol: Protocol,
    /// What to send.
    pub format: Format,
    /// Which updates to send.
    pub updates: Updates,
    /// Which changes of the status to tell by themselves.
    pub statuses: Statuses,
    /// The version of the status it was told last ([`Statuses::version`]).
    pub status_told: i64,
    /// For signing.
    pub secret: Option<Secret>,
    /// The last number acknowledged: of a record, or of a body version for
    /// [`Format::Raw`], as which all of rssCloud's count.
    pub cursor: Seq,
    /// Consecutive failed attempts.
    pub failures: u32,
    /// When the first of them was.
    pub failing_since: Option<DateTime<Utc>>,
    /// When it ends unless renewed.
    pub lease_until: DateTime<Utc>,
    /// When it was first made.
    pub created_at: DateTime<Utc>,
}

/// A subscription handed out for delivery: its cursor lags behind its log.
#[derive(Clone, Debug, PartialEq)]
pub struct DueSubscription {
    /// The subscription as it stood when claimed.
    pub subscription: Subscription,
    /// The number up to which it is owed: the head of the log, or the body version
    /// for [`Format::Raw`].
    pub owed: Seq,
    /// The version of the status that it is owed ([`Statuses::version`]).
    pub status: i64,
    /// The number up to which it had been told before a replay set its cursor back.
    pub told_before: Seq,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_short_and_never_shown() {
        let secret = Secret::new("opensesame".to_owned()).unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(..)");
        assert!(Secret::new("x".repeat(199)).is_ok());
        assert_eq!(Secret::new("x".repeat(200)), Err(BadSecret::TooLong));
        assert_eq!(Secret::new("open\0sesame".to_owned()), Err(BadSecret::ContainsNul));
    }

    #[test]
    fn a_websub_lease_is_kept_within_bounds() {
        let cases =
            [(None, 864_000), (Some(5), 300), (Some(3_600), 3_600), (Some(u64::MAX), 864_000)];
        for (requested, want) in cases {
            assert_eq!(Lease::websub(requested).as_secs(), want, "{requested:?}");
        }
    }

    #[test]
    fn words_survive_the_store() {
        for protocol in [Protocol::WebSub, Protocol::XmlRpc { procedure: "a.b".to_owned() }] {
            let read = Protocol::from_words(protocol.as_str(), protocol.procedure());
            assert_eq!(read, Some(protocol));
        }
        assert_eq!(Format::from_word("JSON"), Some(Format::Json));
    }
}
