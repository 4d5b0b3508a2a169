//! Collections: resources that are never fetched, and whose logs are filled from other logs.
//!
//! Pages, cursors and subscriptions work as for any other log. A collection is not collected
//! itself, so that there are no cycles.

use super::account::AccountId;
use super::record::{Audience, Record, Seq};
use super::resource::{Resource, ResourceId};
use super::topic::Topic;

/// The scope of a collection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CollectionKind {
    /// Every public resource.
    All,
    /// The resources to which an account subscribes, for as long as it does.
    Account(AccountId),
    /// The topics that the operator lists under a name.
    Named(CollectionName),
}

impl CollectionKind {
    /// The text in the store.
    pub fn kept(&self) -> String {
        match self {
            CollectionKind::All => "all".to_owned(),
            CollectionKind::Account(account) => format!("account {}", account.0),
            CollectionKind::Named(name) => format!("named {}", name.as_str()),
        }
    }

    /// The account whose subscriptions the collection follows, if any.
    pub fn account(&self) -> Option<AccountId> {
        match self {
            CollectionKind::Account(account) => Some(*account),
            CollectionKind::All | CollectionKind::Named(_) => None,
        }
    }
}

/// The operator's name for a collection, which is part of its address.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CollectionName(String);

impl CollectionName {
    /// The maximum length in bytes.
    pub const LONGEST_BYTES: usize = 64;

    /// Accepts lower-case letters, digits, `-` and `_`.
    pub fn parse(text: &str) -> Option<CollectionName> {
        let good = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_')
        };
        let is_name = (1..=Self::LONGEST_BYTES).contains(&text.len()) && text.bytes().all(good);
        is_name.then(|| CollectionName(text.to_owned()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A collection to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collection {
    /// The scope.
    pub scope: CollectionKind,
    /// The topic. It takes effect when the collection is created and never changes, because the ids
    /// of the feed and its entries are derived from it. The topic of a private collection contains
    /// a random part.
    pub topic: Topic,
    /// The title of its feed.
    pub title: String,
}

/// A collection in the operator's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredCollection {
    /// The name.
    pub name: CollectionName,
    /// The member resources.
    pub topics: Vec<Topic>,
    /// The login of the account that may read the collection; `None` if it is public.
    pub account: Option<String>,
}

/// The records that a collection has to take from the log of one resource.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingCollection {
    /// The collection.
    pub collection: ResourceId,
    /// The resource.
    pub member: Resource,
    /// The last number that was taken before.
    pub after: Seq,
    /// The last number that this step takes.
    pub upto: Seq,
    /// The records in between with an audience, ascending.
    pub records: Vec<(Record, Audience)>,
    /// The accounts whose tracks may receive the records, because nobody else may find the resource;
    /// `None`: all tracks.
    pub accounts: Option<Vec<AccountId>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_fit_for_an_address() {
        for good in ["news", "2026-tides", "a_b", &"x".repeat(64)] {
            assert_eq!(CollectionName::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", "News", "a b", "a/b", "é", ".", &"x".repeat(65)] {
            assert_eq!(CollectionName::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn no_two_scopes_are_kept_alike() {
        let name = CollectionName::parse("3").unwrap();
        let kept = [
            CollectionKind::All,
            CollectionKind::Account(AccountId(3)),
            CollectionKind::Named(name),
        ]
        .map(|scope| scope.kept());
        assert_eq!(kept, ["all", "account 3", "named 3"]);
    }
}
