//! Which resource, and what kind it is of.

use std::fmt;

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
