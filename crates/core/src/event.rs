//! What happened, as the log page tells it: one event is one line.
//!
//! Kinds, outcomes and codes are closed lists of words that programs may rely on; the
//! sentence beside them is for people. Whoever makes an event need not think of what may
//! be shown: a feed's credentials are gone once it is in here, and a callback is kept
//! twice, whole for its owner and as anybody may see it (rules S48 and S54).

use std::borrow::Cow;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::account::AccountId;
use super::redaction;

/// The longest sentence of an event, in characters.
const LONGEST_DETAIL_CHARS: usize = 500;
/// The longest excerpt of an answer: enough for the sentence that says what is wrong.
const LONGEST_EXCERPT_CHARS: usize = 200;

/// Makes an enum with a word for each variant.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal),* $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$doc])* $variant),* }

        impl $name {
            /// All of them, in the order in which they are offered.
            pub const ALL: &[$name] = &[$($name::$variant),*];

            /// The word kept in the store and shown.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word),* }
            }

            /// Reads the word.
            pub fn from_word(word: &str) -> Option<$name> {
                $name::ALL.iter().copied().find(|held| held.as_str() == word)
            }
        }
    };
}

words! {
    /// What it was about.
    EventKind {
        /// Somebody asked to be told.
        Subscribe = "subscribe",
        /// Somebody asked to go on being told.
        Renew = "renew",
        /// Somebody asked not to be told any more.
        Unsubscribe = "unsubscribe",
        /// A callback was asked whether it agrees.
        Verify = "verify",
        /// Somebody said that a resource changed.
        Ping = "ping",
        /// A resource was fetched.
        Fetch = "fetch",
        /// What was published before was brought in.
        Backfill = "backfill",
        /// A callback was told.
        Notify = "notify",
        /// A subscription was dropped because its callback failed.
        Drop = "drop",
        /// A lease ended.
        Expire = "expire",
        /// A request that could not be read as any of these.
        Request = "request",
        /// Events that are not in the log.
        Log = "log",
    }
}

words! {
    /// How it ended.
    EventOutcome {
        /// As was asked.
        Ok = "ok",
        /// It has not ended: more will be told.
        Pending = "pending",
        /// feedgate said no.
        Refused = "refused",
        /// Somebody else did not do what they should.
        Failed = "failed",
    }
}

/// The beginning of what a callback answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerExcerpt {
    text: String,
    is_public: bool,
}

impl AnswerExcerpt {
    /// Of an answer that came from a public address, or from an inner one that the operator
    /// allows: its words are the operator's own affair (rule S13).
    pub fn new(body: &[u8], is_public: bool) -> AnswerExcerpt {
        let text = String::from_utf8_lossy(body);
        AnswerExcerpt { text: redaction::line(&text, LONGEST_EXCERPT_CHARS), is_public }
    }
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at: DateTime<Utc>,
    /// What it was about.
    pub kind: EventKind,
    /// How it ended.
    pub outcome: EventOutcome,
    /// Why, as one of the words of `docs/errors.md` or of fetch outcomes; may be empty.
    pub code: Cow<'static, str>,
    /// The protocol of a subscription, or the door of a ping; may be empty.
    pub via: Cow<'static, str>,
    /// The feed as anybody may see it; may be empty.
    pub feed: String,
    /// The callback, whole; may be empty.
    pub callback: String,
    /// Whose subscription it is; `None` for nobody's.
    pub account: Option<AccountId>,
    /// How many events these are.
    pub many: u64,
    /// How long it took.
    pub took: Option<Duration>,
    /// In words.
    pub detail: String,
    /// What only some may read: an answer from an inner address.
    pub aside: String,
}

impl Event {
    /// One that went well, of which nothing else is known yet.
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
            aside: String::new(),
        }
    }

    /// By this protocol or door.
    #[must_use]
    pub fn via(self, via: &'static str) -> Event {
        Event { via: Cow::Borrowed(via), ..self }
    }

    /// About the feed at this address, whatever somebody wrote.
    #[must_use]
    pub fn about_feed(self, feed: &str) -> Event {
        Event { feed: redaction::feed(feed), ..self }
    }

    /// With the callback at this address.
    #[must_use]
    pub fn to(self, callback: &str) -> Event {
        Event { callback: callback.to_owned(), ..self }
    }

    /// Of this account's.
    #[must_use]
    pub fn owned_by(self, account: Option<AccountId>) -> Event {
        Event { account, ..self }
    }

    /// That took so long.
    #[must_use]
    pub fn lasting(self, took: Duration) -> Event {
        Event { took: Some(took), ..self }
    }

    /// That ended otherwise, with the reason as a word and in words. Where these say how the
    /// callback is called, it is left out.
    #[must_use]
    pub fn ended(self, outcome: EventOutcome, code: &'static str, why: &str) -> Event {
        Event { outcome, code: Cow::Borrowed(code), ..self }.saying(why)
    }

    /// With something to say.
    #[must_use]
    pub fn saying(mut self, what: &str) -> Event {
        let what = redaction::without(&redaction::line(what, LONGEST_DETAIL_CHARS), &self.callback);
        self.detail = what;
        self
    }

    /// With what was answered.
    #[must_use]
    pub fn answered(mut self, excerpt: &AnswerExcerpt) -> Event {
        let text = redaction::without(&excerpt.text, &self.callback);
        match (text.is_empty(), excerpt.is_public) {
            (true, _) => {}
            (false, true) => self.detail = format!("{}; it said: {text}", self.detail),
            (false, false) => self.aside = format!("it said: {text}"),
        }
        self
    }
}

/// An event that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    /// Its number: greater than that of every event that could be seen before it.
    pub id: i64,
    /// The event.
    pub event: Event,
}

/// Who looks at the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventViewer {
    /// Anybody.
    Stranger,
    /// Who owns some of the subscriptions.
    Account(AccountId),
    /// The operator.
    Admin,
}

impl EventViewer {
    /// Whether the callback of `event` is theirs to see.
    pub fn owns(self, event: &Event) -> bool {
        match self {
            EventViewer::Stranger => false,
            EventViewer::Account(id) => event.account == Some(id),
            EventViewer::Admin => true,
        }
    }
}

/// Which events to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFilter {
    /// For whom: a filter finds nothing that they may not see.
    pub viewer: EventViewer,
    /// Only those whose feed holds this text, in any case; empty for all.
    pub feed: String,
    /// Only those whose callback holds this text, or is this address; empty for all.
    pub callback: String,
    /// Only those of this kind.
    pub kind: Option<EventKind>,
    /// Only those with this outcome.
    pub outcome: Option<EventOutcome>,
    /// Those after this one, the oldest of them; `None` reads the newest.
    pub after: Option<i64>,
    /// Those before this one.
    pub before: Option<i64>,
    /// How many at most.
    pub limit: usize,
}

impl Default for EventFilter {
    fn default() -> EventFilter {
        EventFilter {
            viewer: EventViewer::Stranger,
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
        assert_eq!(event.detail, "no … here; it said: Cannot POST …");
    }

    #[test]
    fn s13_what_an_inner_server_said_is_set_aside() {
        let said = AnswerExcerpt::new(b"<h1>printer</h1>", false);
        let event =
            Event::new(EventKind::Verify, DateTime::UNIX_EPOCH).saying("404").answered(&said);
        assert_eq!(
            (event.detail.as_str(), event.aside.as_str()),
            ("404", "it said: <h1>printer</h1>")
        );
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
