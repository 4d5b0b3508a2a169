//! The events of the event log: one event is one line.
//!
//! Kinds, outcomes and codes are closed lists of words that programs can rely on; the sentence
//! beside them is for people. Code that creates an event need not consider what may be shown:
//! the credentials of a feed are removed here, and a callback is stored twice, in full for its
//! owner and redacted for everybody else (S48, S54).

use std::borrow::Cow;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::account::AccountId;
use super::redaction;
use super::resource::{Resource, ResourceKind};
use super::topic::Topic;
use super::visibility::ListedTopics;
use super::words::words;

/// The maximum length of a sentence, in characters.
const LONGEST_DETAIL_CHARS: usize = 500;
/// The maximum length of an excerpt of a response: enough for its error message.
const LONGEST_EXCERPT_CHARS: usize = 200;

words! {
    /// The kind of an event.
    EventKind {
        /// A subscription was requested.
        Subscribe = "subscribe",
        /// A subscription was renewed.
        Renew = "renew",
        /// The end of a subscription was requested.
        Unsubscribe = "unsubscribe",
        /// The intent of a callback was verified.
        Verify = "verify",
        /// A ping said that a resource changed.
        Ping = "ping",
        /// A resource was fetched.
        Fetch = "fetch",
        /// Entries published before the first subscription were fetched.
        Backfill = "backfill",
        /// A notification was sent to a callback.
        Notify = "notify",
        /// A subscription was removed because its callback kept failing.
        Drop = "drop",
        /// The lease of a subscription ended.
        Expire = "expire",
        /// A request could not be read as any of these.
        Request = "request",
        /// Events are missing from the event log.
        Log = "log",
    }
}

words! {
    /// How an event ended.
    EventOutcome {
        /// The operation succeeded.
        Ok = "ok",
        /// The operation has not ended; another event will follow.
        Pending = "pending",
        /// feedgate refused the request.
        Refused = "refused",
        /// The operation failed at the other side.
        Failed = "failed",
    }
}

/// The beginning of a callback's response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerExcerpt {
    text: String,
    is_public: bool,
}

impl AnswerExcerpt {
    /// The excerpt of a response from a public address, or from a private one that the operator
    /// allowed, which only the operator may read (S13).
    pub fn new(body: &[u8], is_public: bool) -> AnswerExcerpt {
        let text = String::from_utf8_lossy(body);
        AnswerExcerpt { text: redaction::line(&text, LONGEST_EXCERPT_CHARS), is_public }
    }

    /// Returns the text, if others than the operator may read it; empty if not.
    pub fn public_text(&self) -> &str {
        if self.is_public { &self.text } else { "" }
    }
}

/// One event of the event log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When it happened.
    pub at: DateTime<Utc>,
    /// The kind of an event.
    pub kind: EventKind,
    /// How the operation ended.
    pub outcome: EventOutcome,
    /// The reason, as a code of `docs/errors.md` or a poll outcome; may be empty.
    pub code: Cow<'static, str>,
    /// The protocol of a subscription, or the source of a ping; may be empty.
    pub via: Cow<'static, str>,
    /// The address of the feed, without credentials; may be empty.
    pub feed: String,
    /// The callback in full; may be empty.
    pub callback: String,
    /// The account of the subscription, if it has one.
    pub account: Option<AccountId>,
    /// How many events this line stands for.
    pub many: u64,
    /// The duration.
    pub took: Option<Duration>,
    /// A sentence for people.
    pub detail: String,
    /// Details for the operator only: the response of a private address.
    pub private_detail: String,
    /// Whether the feed is one that strangers may not find, so that only the owner and the operator see
    /// the event (rule S56).
    pub is_unlisted: bool,
}

impl Event {
    /// A successful event without further details.
    pub fn new(kind: EventKind, at: DateTime<Utc>) -> Event {
        Event {
            at,
            kind,
            outcome: EventOutcome::Ok,
            code: Cow::Borrowed(""),
            via: Cow::Borrowed(""),
            feed: String::new(),
            callback: String::new(),
            account: None,
            many: 1,
            took: None,
            detail: String::new(),
            private_detail: String::new(),
            is_unlisted: false,
        }
    }

    /// Sets the feed as one of which strangers may see the events, or not.
    #[must_use]
    pub fn about_resource(self, resource: &Resource) -> Event {
        let is_unlisted =
            resource.kind != ResourceKind::Collection && !resource.is_listed(ListedTopics::Open);
        Event { is_unlisted, ..self.about_topic(&resource.topic) }
    }

    /// Sets the protocol of the subscription or the source of the ping.
    #[must_use]
    pub fn via(self, via: &'static str) -> Event {
        Event { via: Cow::Borrowed(via), ..self }
    }

    /// Sets the feed by its address, which may be any text that a client sent.
    #[must_use]
    pub fn about_feed(self, feed: &str) -> Event {
        Event { feed: redaction::feed(feed), ..self }
    }

    /// Sets the feed by its topic, which is redacted already.
    #[must_use]
    pub fn about_topic(self, topic: &Topic) -> Event {
        Event { feed: topic.redacted().to_owned(), ..self }
    }

    /// Sets the callback.
    #[must_use]
    pub fn to(self, callback: &str) -> Event {
        Event { callback: callback.to_owned(), ..self }
    }

    /// Sets the account that owns the subscription.
    #[must_use]
    pub fn owned_by(self, account: Option<AccountId>) -> Event {
        Event { account, ..self }
    }

    /// Sets the duration.
    #[must_use]
    pub fn lasting(self, took: Duration) -> Event {
        Event { took: Some(took), ..self }
    }

    /// Sets the outcome, and the reason as a code and as a sentence. The address of the callback is
    /// redacted from the sentence.
    #[must_use]
    pub fn ended(self, outcome: EventOutcome, code: &'static str, why: &str) -> Event {
        Event { outcome, code: Cow::Borrowed(code), ..self }.saying(why)
    }

    /// Sets the sentence for people, from which the address of the callback is redacted.
    #[must_use]
    pub fn saying(mut self, what: &str) -> Event {
        let what = redaction::without(&redaction::line(what, LONGEST_DETAIL_CHARS), &self.callback);
        self.detail = what;
        self
    }

    /// Sets the beginning of the response.
    #[must_use]
    pub fn answered(mut self, excerpt: &AnswerExcerpt) -> Event {
        let text = redaction::without(&excerpt.text, &self.callback);
        match (text.is_empty(), excerpt.is_public) {
            (true, _) => {}
            (false, true) => self.detail = format!("{}; response: {text}", self.detail),
            (false, false) => self.private_detail = format!("response: {text}"),
        }
        self
    }
}

/// A stored event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    /// The number, which is greater than that of every event that was visible before.
    pub id: i64,
    /// The event.
    pub event: Event,
}

/// The reader of the event log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventViewer {
    /// Any reader.
    Anonymous,
    /// The owner of subscriptions.
    Account(AccountId),
    /// The operator.
    Admin,
}

impl EventViewer {
    /// Whether the reader may see the callback of `event`.
    pub fn owns(self, event: &Event) -> bool {
        match self {
            EventViewer::Anonymous => false,
            EventViewer::Account(id) => event.account == Some(id),
            EventViewer::Admin => true,
        }
    }

    /// Whether the reader may know of `event` at all. What happened to the subscription of an account, or
    /// to a feed that only accounts subscribe to, is nobody else's concern.
    pub fn knows_of(self, event: &Event) -> bool {
        self.owns(event) || (event.account.is_none() && !event.is_unlisted)
    }
}

impl EventViewer {
    /// Whether the reader is shown `event` among the own ones: it is one of an own subscription, or tells
    /// how the source of a feed is that the reader subscribes to. What is done by others, or for them, is
    /// not.
    pub fn is_concerned_by(self, event: &Event, subscribes_to_feed: bool) -> bool {
        let is_of_feed =
            matches!(event.kind, EventKind::Fetch | EventKind::Ping | EventKind::Backfill);
        self.owns(event) || (subscribes_to_feed && is_of_feed && event.account.is_none())
    }
}

/// The events to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFilter {
    /// The reader. A filter matches only what the reader may see.
    pub viewer: EventViewer,
    /// Only events whose feed contains this text, ignoring case; empty for all.
    pub feed: String,
    /// Only events whose callback contains this text, or is this address; empty for all.
    pub callback: String,
    /// Only events of this kind.
    pub kind: Option<EventKind>,
    /// Only events with this outcome.
    pub outcome: Option<EventOutcome>,
    /// Only events after this one, oldest first; `None` reads the newest.
    pub after: Option<i64>,
    /// Only events before this one.
    pub before: Option<i64>,
    /// The maximum number of events.
    pub limit: usize,
}

impl EventFilter {
    /// The most events that one search examines. A filter is compared with one event after the
    /// other, so this bounds what a request costs.
    pub const EXAMINED: i64 = 10_000;

    /// Returns whether some events may not match, besides those out of its range.
    pub fn is_selective(&self) -> bool {
        let has_text = !self.feed.trim().is_empty() || !self.callback.trim().is_empty();
        has_text || self.kind.is_some() || self.outcome.is_some()
    }
}

/// What a search found.
#[derive(Clone, Debug, PartialEq)]
pub struct EventPage {
    /// The events, newest first, or oldest first if the filter has `after`.
    pub events: Vec<StoredEvent>,
    /// Where the next search begins: its `before`, or its `after` if this one had `after`. `None`
    /// if all events were examined. There may be a next page although this one is empty.
    pub next: Option<i64>,
    /// What `next` would be if no event had matched.
    pub next_if_empty: Option<i64>,
}

impl Default for EventFilter {
    fn default() -> EventFilter {
        EventFilter {
            viewer: EventViewer::Anonymous,
            feed: String::new(),
            callback: String::new(),
            kind: None,
            outcome: None,
            after: None,
            before: None,
            limit: 100,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s54_nothing_that_an_event_says_tells_the_path_of_its_callback() {
        let event = Event::new(EventKind::Notify, DateTime::UNIX_EPOCH)
            .to("https://reader.test/hook/s3cret-token?k=hunter22")
            .ended(EventOutcome::Failed, "http_4xx", "no /hook/s3cret-token here")
            .answered(&AnswerExcerpt::new(b"Cannot POST /hook/s3cret-token?k=hunter22\n", true));
        assert_eq!(event.detail, "no … here; response: Cannot POST …");
    }

    #[test]
    fn s13_what_an_inner_server_said_is_set_aside() {
        let response = AnswerExcerpt::new(b"<h1>printer</h1>", false);
        let event =
            Event::new(EventKind::Verify, DateTime::UNIX_EPOCH).saying("404").answered(&response);
        assert_eq!(
            (event.detail.as_str(), event.private_detail.as_str()),
            ("404", "response: <h1>printer</h1>")
        );
    }

    #[test]
    fn s37_nobody_is_concerned_by_what_is_sent_to_others() {
        let (ada, bob) = (Some(AccountId(1)), Some(AccountId(2)));
        let of = |kind, account| Event::new(kind, DateTime::UNIX_EPOCH).owned_by(account);
        #[rustfmt::skip]
        let cases = [
            (of(EventKind::Notify,    ada),  false, true),
            (of(EventKind::Notify,    bob),  true,  false),
            (of(EventKind::Notify,    None), true,  false),
            (of(EventKind::Subscribe, None), true,  false),
            (of(EventKind::Fetch,     None), true,  true),
            (of(EventKind::Ping,      None), true,  true),
            (of(EventKind::Fetch,     None), false, false),
        ];
        for (event, subscribes_to_feed, want) in cases {
            let is_concerned =
                EventViewer::Account(AccountId(1)).is_concerned_by(&event, subscribes_to_feed);
            assert_eq!(is_concerned, want, "{event:?}");
        }
    }

    #[test]
    fn every_word_is_read_back() {
        for kind in EventKind::ALL {
            assert_eq!(EventKind::from_word(kind.as_str()), Some(*kind));
        }
        for outcome in EventOutcome::ALL {
            assert_eq!(EventOutcome::from_word(outcome.as_str()), Some(*outcome));
        }
        assert_eq!(EventKind::from_word("party"), None);
    }
}
