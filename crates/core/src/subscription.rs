//! A subscription, and what it is sent.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};

use feedgate_protocol::Protocol;

use super::account::AccountId;
use super::callback_headers::CallbackHeaders;
use super::claim::ClaimToken;
use super::query::EntryFilter;
use super::record::{Audience, Seq};
use super::registrant::{RegistrantNetwork, Requester};
use super::resource_id::ResourceId;
use super::signing::{Signing, SigningRequest};
use super::status::Status;
use super::topic::{Callback, Topic};

/// The format of WebSub notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// The new entries as an Atom document with a status element.
    Atom,
    /// The new entries as JSON, with the status.
    Json,
    /// The unchanged content of the topic, with its content type (WebSub `#content-distribution`).
    /// The cursor then counts body versions.
    Raw,
    /// Atom for a feed, and "the exact content of the resource" (seed 003) for anything else, as
    /// determined at each delivery. The default for subscribers that request no format (row S-7).
    Fitting,
}

impl Format {
    /// The word in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Format::Atom => "atom",
            Format::Json => "json",
            Format::Raw => "raw",
            Format::Fitting => "fitting",
        }
    }

    /// The word that is shown to a subscriber: the default format is shown as Atom.
    pub fn told(self) -> &'static str {
        if self == Format::Fitting { Format::Atom.as_str() } else { self.as_str() }
    }

    /// Parses the word, ignoring case.
    pub fn from_word(word: &str) -> Option<Format> {
        let all = [Format::Atom, Format::Json, Format::Raw, Format::Fitting];
        all.into_iter().find(|format| format.as_str().eq_ignore_ascii_case(word))
    }
}

/// The updates of entries that a subscriber receives (N7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Updates {
    /// No updates.
    Never,
    /// Updates that the publisher declares as new, as Superfeedr sends them.
    #[default]
    Fresh,
    /// All updates.
    Always,
}

impl Updates {
    /// The word in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Updates::Never => "never",
            Updates::Fresh => "fresh",
            Updates::Always => "always",
        }
    }

    /// Parses the word in the store.
    pub fn from_word(word: &str) -> Option<Updates> {
        let all = [Updates::Never, Updates::Fresh, Updates::Always];
        all.into_iter().find(|updates| updates.as_str() == word)
    }

    /// The minimum audience of the records that are sent.
    pub fn least(self) -> Audience {
        match self {
            Updates::Never => Audience::Everybody,
            Updates::Fresh => Audience::Fresh,
            Updates::Always => Audience::Askers,
        }
    }
}

/// The status changes that are sent even if there are no entries to send (P33).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Statuses {
    /// Lasting changes: failing for hours, gone, moved, recovered.
    #[default]
    Transitions,
    /// Every change, immediately.
    Always,
    /// No changes.
    Never,
}

impl Statuses {
    /// The word in the store and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Statuses::Transitions => "transitions",
            Statuses::Always => "always",
            Statuses::Never => "never",
        }
    }

    /// Parses the word, ignoring case.
    pub fn from_word(word: &str) -> Option<Statuses> {
        let all = [Statuses::Transitions, Statuses::Always, Statuses::Never];
        all.into_iter().find(|statuses| statuses.as_str().eq_ignore_ascii_case(word))
    }

    /// The version of `status` that such a subscriber must receive; 0 for none.
    pub fn version(self, status: &Status) -> i64 {
        self.version_of(status.version, status.announced.version)
    }

    /// The one that such a subscriber must receive of two versions, which count all transitions of a
    /// status and those that were announced; 0 for none.
    pub fn version_of(self, all: i64, announced: i64) -> i64 {
        match self {
            Statuses::Transitions => announced,
            Statuses::Always => all,
            Statuses::Never => 0,
        }
    }
}

/// The time until a subscription must be renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease(Duration);

impl Lease {
    /// The default and maximum lease of an open WebSub subscription; WebSub §8.2 suggests ten days.
    pub const WEBSUB: Lease = Lease(Duration::from_secs(10 * 86_400));
    /// The minimum lease of a WebSub subscription (that of the deployed rssCloud hub).
    pub const WEBSUB_SHORTEST: Lease = Lease(Duration::from_secs(300));
    /// "You must renew your subscription every 24 hours because they expire after 25
    /// hours." (seed 000, "The aggregator")
    pub const RSSCLOUD: Lease = Lease(Duration::from_secs(25 * 3_600));
    /// The lease of an authenticated subscription: about ten years, the value that clients of
    /// Superfeedr know (315359999 s), because the owner can delete the subscription at any time.
    pub const ACCOUNT: Lease = Lease(Duration::from_secs(315_359_999));

    /// The lease of an open WebSub subscription that requests `requested_s` seconds.
    pub fn websub(requested_s: Option<u64>) -> Lease {
        let requested = requested_s.map_or(Self::WEBSUB.0, Duration::from_secs);
        Lease(requested.clamp(Self::WEBSUB_SHORTEST.0, Self::WEBSUB.0))
    }

    /// The value in seconds, as in `hub.lease_seconds`.
    pub fn as_secs(self) -> u64 {
        self.0.as_secs()
    }

    /// Returns the end of a lease that begins `now`.
    pub fn end(self, now: DateTime<Utc>) -> DateTime<Utc> {
        now + self.0
    }
}

impl From<Duration> for Lease {
    fn from(lasts: Duration) -> Lease {
        Lease(lasts)
    }
}

/// A parsed subscription request: all properties of a subscription except its position in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriptionRequest {
    /// The account; `None` for an open subscription.
    pub account: Option<AccountId>,
    /// The topic.
    pub topic: Topic,
    /// The callback.
    pub callback: Callback,
    /// The protocol of notifications.
    pub protocol: Protocol,
    /// The format, which only WebSub distinguishes.
    pub format: Format,
    /// The updates to send.
    pub updates: Updates,
    /// The status changes to send without entries.
    pub statuses: Statuses,
    /// Whether the texts of entries are sanitized (rule S22). The raw topic never is.
    pub is_sanitized: bool,
    /// Which entries are sent (row Q-5); `None`: all. The raw topic has no entries.
    pub filter: Option<EntryFilter>,
    /// How notifications are signed.
    pub signing: SigningRequest,
    /// The headers that are sent to the callback; `None`: those of the subscription that is renewed.
    pub headers: Option<CallbackHeaders>,
    /// Whether the newest entries are sent once a day as a digest (row S-14).
    pub digest: bool,
    /// The requested lease.
    pub lease: Lease,
    /// The network of the client that requests an open subscription.
    pub registrant: RegistrantNetwork,
    /// The URL of the reading list that is followed, which is the topic itself, or for which the
    /// subscription is made; empty: none. `None`: the topic is followed if it was until now, and what was
    /// made for a list becomes the owner's.
    pub reading_list: Option<String>,
    /// The topics that the callback is subscribed to under the same address: their subscriptions end together
    /// with the change that is requested. They are not stored with a request that waits.
    pub replaces: Vec<Topic>,
}

impl SubscriptionRequest {
    /// Returns who is charged for the requests that this request causes.
    pub fn requester(&self) -> Requester {
        Requester::new(self.account, self.registrant)
    }

    /// Returns the name under which verifications of the callback are limited: of its host and the requester.
    pub fn limited_name(&self) -> String {
        self.requester().name_at(&self.callback.host_name())
    }

    /// Returns the request for an open subscription without any options: the topic is sent as it is, and
    /// expires like that of WebSub.
    pub fn new(topic: Topic, callback: Callback, protocol: Protocol) -> SubscriptionRequest {
        SubscriptionRequest {
            account: None,
            topic,
            callback,
            protocol,
            format: Format::Raw,
            updates: Updates::default(), // the whole topic is sent, whatever changed in it
            statuses: Statuses::Never,   // the topic has no place for a status
            is_sanitized: false,
            filter: None,
            signing: SigningRequest::default(),
            headers: None,
            digest: false,
            lease: Lease::WEBSUB,
            registrant: RegistrantNetwork::UNKNOWN,
            reading_list: None,
            replaces: Vec::new(),
        }
    }

    /// Returns how the subscription is signed if it is a new one.
    pub fn new_signing(&self) -> Signing {
        match self.account {
            Some(_) => self.signing.begin(),
            None => self.signing.begin_open(),
        }
    }

    /// Returns the new subscription that the request makes.
    pub fn begin(
        &self,
        id: SubscriptionId,
        cursor: Seq,
        status_told: i64,
        now: DateTime<Utc>,
    ) -> Subscription {
        Subscription {
            id,
            account: self.account,
            topic: self.topic.clone(),
            callback: self.callback.clone(),
            protocol: self.protocol.clone(),
            format: self.format,
            updates: self.updates,
            statuses: self.statuses,
            is_sanitized: self.is_sanitized,
            filter: self.filter.clone(),
            status_told,
            signing: self.new_signing(),
            headers: self.headers.clone().unwrap_or_default(),
            cursor,
            failures: 0,
            failing_since: None,
            lease_until: self.lease.end(now),
            created_at: now,
            registrant: self.registrant,
            reading_list: self.reading_list.clone().unwrap_or_default(),
        }
    }

    /// Returns whose quota the subscription counts towards.
    pub fn owner(&self) -> SubscriptionOwner {
        SubscriptionOwner::new(self.account, &self.callback)
    }
}

/// Whose quota a subscription counts towards (rules S30, S44).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubscriptionOwner {
    /// The account that it belongs to.
    Account(AccountId),
    /// The host of the callback, without the port, because nobody owns an open subscription.
    CallbackHost(String),
}

impl SubscriptionOwner {
    /// Returns the owner of a subscription of `account` with this callback.
    pub fn new(account: Option<AccountId>, callback: &Callback) -> SubscriptionOwner {
        match account.filter(|account| *account != AccountId::NOBODY) {
            Some(account) => SubscriptionOwner::Account(account),
            None => SubscriptionOwner::CallbackHost(callback.host_name()),
        }
    }
}

/// The identity of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SubscriptionId {
    /// The resource.
    pub resource: ResourceId,
    /// The number of the subscription.
    pub number: i64,
}

impl SubscriptionId {
    /// Parses the text of an id: the number of the resource, a hyphen, and that of the subscription.
    pub fn parse(text: &str) -> Option<SubscriptionId> {
        let number = |text: &str| {
            let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            is_plain.then(|| text.parse().ok()).flatten()
        };
        let (resource, subscription) = text.split_once('-')?;
        Some(SubscriptionId {
            resource: ResourceId(number(resource)?),
            number: number(subscription)?,
        })
    }
}

impl fmt::Display for SubscriptionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.resource, self.number)
    }
}

/// A stored subscription, with its delivery state.
#[derive(Clone, Debug, PartialEq)]
pub struct Subscription {
    /// Its number.
    pub id: SubscriptionId,
    /// The account; `None` for an open subscription.
    pub account: Option<AccountId>,
    /// The topic, as the subscriber wrote it.
    pub topic: Topic,
    /// The callback.
    pub callback: Callback,
    /// The protocol of notifications.
    pub protocol: Protocol,
    /// The format to send.
    pub format: Format,
    /// The updates to send.
    pub updates: Updates,
    /// The status changes to send without entries.
    pub statuses: Statuses,
    /// Whether the texts of entries are sanitized (rule S22).
    pub is_sanitized: bool,
    /// Which entries are sent (row Q-5); `None`: all.
    pub filter: Option<EntryFilter>,
    /// The version of the last status that the callback acknowledged ([`Statuses::version`]).
    pub status_told: i64,
    /// How notifications are signed.
    pub signing: Signing,
    /// The headers that are sent to the callback.
    pub headers: CallbackHeaders,
    /// The last number acknowledged: of a record, or of a body version for [`Format::Raw`] and all
    /// rssCloud subscriptions.
    pub cursor: Seq,
    /// The number of consecutive failed attempts.
    pub failures: u32,
    /// When the first of them failed.
    pub failing_since: Option<DateTime<Utc>>,
    /// When the lease ends.
    pub lease_until: DateTime<Utc>,
    /// When the subscription was created.
    pub created_at: DateTime<Utc>,
    /// The network from which it was requested, if it is open.
    pub registrant: RegistrantNetwork,
    /// The URL of the reading list that it follows, or for which it was made; empty: none.
    pub reading_list: String,
}

impl Subscription {
    /// Returns whether the feeds of its topic, a reading list, are subscribed to.
    pub fn follows_list(&self) -> bool {
        self.reading_list == self.topic.as_str()
    }

    /// Returns the URL of the reading list for which it was made.
    pub fn listed_by(&self) -> Option<&str> {
        let is_listed = !self.reading_list.is_empty() && !self.follows_list();
        is_listed.then_some(self.reading_list.as_str())
    }

    /// Returns the request that would make the same subscription, but for its digest.
    pub fn to_request(&self) -> SubscriptionRequest {
        let (topic, callback) = (self.topic.clone(), self.callback.clone());
        let Signing { secret, method, .. } = self.signing.clone();
        SubscriptionRequest {
            account: self.account,
            format: self.format,
            updates: self.updates,
            statuses: self.statuses,
            is_sanitized: self.is_sanitized,
            filter: self.filter.clone(),
            signing: SigningRequest { secret, method, ..SigningRequest::default() },
            headers: Some(self.headers.clone()),
            lease: if self.account.is_some() { Lease::ACCOUNT } else { Lease::WEBSUB },
            ..SubscriptionRequest::new(topic, callback, self.protocol.clone())
        }
    }
}

/// A subscription claimed for delivery, because its cursor is behind the log.
#[derive(Clone, Debug, PartialEq)]
pub struct DueSubscription {
    /// The subscription as it stood when claimed. Boxed because it is large, and claims are moved between
    /// lists and queues.
    pub subscription: Box<Subscription>,
    /// The claim under which it was handed out.
    pub claim: ClaimToken,
    /// When it was claimed, by the clock of whoever claimed it.
    pub claimed_at: DateTime<Utc>,
    /// The generation of the subscription when it was claimed: whoever pauses, resumes, renews, replays
    /// or retries it begins a new one, and what was claimed before is not sent.
    pub generation: i64,
    /// The number up to which it is owed: the head of the log, or the body version
    /// for [`Format::Raw`].
    pub owed: Seq,
    /// The number of the newest record or body when it was claimed; more than `owed` for a digest.
    pub newest: Seq,
    /// The version of the status to send ([`Statuses::version`]).
    pub status: i64,
    /// The number that was acknowledged before a replay moved the cursor back.
    pub told_before: Seq,
    /// How many replays have been requested, so that the notifications of each have ids of their
    /// own.
    pub replays: i64,
    /// Whether it is owed a digest.
    pub is_digest: bool,
    /// How many notifications the callback has acknowledged.
    pub acknowledged: i64,
    /// How many gateways the news has passed that it is owed (rule S11).
    pub hops: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_websub_lease_is_kept_within_bounds() {
        let cases =
            [(None, 864_000), (Some(5), 300), (Some(3_600), 3_600), (Some(u64::MAX), 864_000)];
        for (requested, want) in cases {
            assert_eq!(Lease::websub(requested).as_secs(), want, "{requested:?}");
        }
    }

    #[test]
    fn a02_an_id_is_read_as_it_is_written() {
        let id = SubscriptionId { resource: ResourceId(12), number: 34 };
        assert_eq!(id.to_string(), "12-34");
        assert_eq!(SubscriptionId::parse("12-34"), Some(id));
        for bad in ["", "12", "-34", "12-", "12-34-5", "+12-34", "12--34", "a-b"] {
            assert_eq!(SubscriptionId::parse(bad), None, "{bad}");
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
