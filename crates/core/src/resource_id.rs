//! The number and the kind of a resource.

use std::fmt;

/// The number of a resource in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResourceId(pub i64);

impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The kind of a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResourceKind {
    /// Unknown, because no fetch has succeeded yet.
    #[default]
    Unknown,
    /// A feed (RSS, Atom, RDF, CDF, JSON Feed), whose records are entries.
    Feed,
    /// Any other content, whose records are its revisions.
    Other,
    /// A collection, which is never fetched, and whose records come from other logs (see
    /// [`super::collection`]).
    Collection,
}

impl ResourceKind {
    /// The word in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            ResourceKind::Unknown => "unknown",
            ResourceKind::Feed => "feed",
            ResourceKind::Other => "other",
            ResourceKind::Collection => "collection",
        }
    }

    /// Parses the word in the store.
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
