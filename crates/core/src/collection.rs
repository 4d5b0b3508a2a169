//! Collections: resources that are never fetched, whose logs are fed by the logs of others.
//!
//! Whatever holds for a log holds for theirs: pages, cursors, subscriptions. They are not
//! collected themselves, so there are no circles.

use super::account::AccountId;
use super::record::{Audience, Record, Seq};
use super::resource::{Resource, ResourceId};
use super::topic::Topic;

/// What a collection takes in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CollectionKind {
    /// Every public resource.
    All,
    /// Whatever an account subscribes to, as long as it does.
    Account(AccountId),
    /// The topics that the operator lists under a name.
    Named(CollectionName),
}

impl CollectionKind {
    /// The text by which the store knows it.
    pub fn kept(&self) -> String {
        match self {
            CollectionKind::All => "all".to_owned(),
            CollectionKind::Account(account) => format!("account {}", account.0),
            CollectionKind::Named(name) => format!("named {}", name.as_str()),
        }
    }

    /// Whose subscriptions it follows, if it does.
    pub fn account(&self) -> Option<AccountId> {
        match self {
            CollectionKind::Account(account) => Some(*account),
            CollectionKind::All | CollectionKind::Named(_) => None,
        }
    }
}

/// What the operator calls a collection: it stands in addresses.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CollectionName(String);

impl CollectionName {
    /// The longest, in bytes.
    pub const LONGEST_BYTES: usize = 64;

    /// Accepts lower-case letters, digits, `-` and `_`.
    pub fn parse(text: &str) -> Option<CollectionName> {
        let good = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_')
        };
        let is_name = (1..=Self::LONGEST_BYTES).contains(&text.len()) && text.bytes().all(good);
        is_name.then(|| CollectionName(text.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A collection on its way into the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collection {
    /// What it takes in.
    pub scope: CollectionKind,
    /// What it goes by as a resource. It counts when the collection is made, and stays: the
    /// ids of feed and entries are made of it. Of a collection that is not public it holds
    /// something that nobody can guess.
    pub topic: Topic,
    /// The title of its feed.
    pub title: String,
}

/// A collection as the operator describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredCollection {
    /// What it is called.
    pub name: CollectionName,
    /// The resources in it.
    pub topics: Vec<Topic>,
    /// The login of the account that it is shown to; `None` shows it to everybody.
    pub account: Option<String>,
}

/// What a collection has yet to take in from the log of one resource.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingCollection {
    /// The collection.
    pub collection: ResourceId,
    /// The resource.
    pub member: Resource,
    /// The last number that need not be taken in.
    pub after: Seq,
    /// The last number that is taken in with this.
    pub upto: Seq,
    /// What stands between them and is for others, ascending, with whom it reaches.
    pub records: Vec<(Record, Audience)>,
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
