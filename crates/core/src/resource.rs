//! Anything with a URL that is watched, and where it stands.

use std::fmt;

use chrono::{DateTime, Utc};

use super::poll::Polling;
use super::record::Seq;
use super::status::Status;
use super::topic::Topic;

/// A resource's number in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResourceId(pub i64);

impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a resource has turned out to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResourceKind {
    /// Never yet fetched with success.
    #[default]
    Unknown,
    /// RSS, Atom, RDF, CDF, JSON Feed: its records are entries.
    Feed,
    /// Anything else: its records are revisions of its content.
    Other,
    /// Never fetched: its records are those of others (see [`super::collection`]).
    Collection,
}

impl ResourceKind {
    /// The word kept in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            ResourceKind::Unknown => "unknown",
            ResourceKind::Feed => "feed",
            ResourceKind::Other => "other",
            ResourceKind::Collection => "collection",
        }
    }

    /// Reads the word kept in the store.
    pub fn from_word(word: &str) -> Option<ResourceKind> {
        let all = [
            ResourceKind::Unknown,
            ResourceKind::Feed,
            ResourceKind::Other,
            ResourceKind::Collection,
        ];
        all.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// One watched resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// Its number, which also names its archive: `/feeds/{id}/recent`.
    pub id: ResourceId,
    /// Its identity, as the first subscriber wrote it.
    pub topic: Topic,
    /// Where it is polled. Differs from the topic after a permanent move (rule P21).
    pub fetch_url: String,
    /// What it has turned out to be.
    pub kind: ResourceKind,
    /// The greatest number in its log; 0 while the log is empty.
    pub head: Seq,
    /// Grows by one whenever the body changes; 0 before the first body.
    pub body_version: i64,
    /// The feed without its entries, as serialized Atom elements; empty for what is
    /// no feed. See `render::atom::head`.
    pub feed_head: String,
    /// When it is fetched next.
    pub next_fetch: DateTime<Utc>,
    /// What subscribers are told about it.
    pub status: Status,
    /// What the poller remembers about it.
    pub polling: Polling,
    /// How many live subscriptions it has; told to its publisher (rule P34).
    pub subscribers: u32,
    /// Until when an upstream is relied on to tell of changes (rule P53); `None` for
    /// whom nobody is.
    pub pushed_until: Option<DateTime<Utc>>,
}
