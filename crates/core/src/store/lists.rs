//! The lists of the console: pages of feeds and of subscriptions, and how many there are.

use crate::account::AccountId;
use crate::feed_name::NameSearch;
use crate::feed_state::FeedState;
use crate::resource::{Resource, ResourceId};
use crate::store::subscriptions::ListedSubscription;

/// A place in a list: behind the row with these keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListPosition {
    /// The key that is a text, if the list has one.
    pub text: String,
    /// The key that is a number, if the list has one.
    pub number: i64,
    /// The number of the row.
    pub id: i64,
}

impl Default for ListPosition {
    /// Returns the beginning of every list.
    fn default() -> ListPosition {
        ListPosition { text: String::new(), number: i64::MIN, id: i64::MIN }
    }
}

impl ListPosition {
    /// Returns the place as a parameter of addresses.
    pub fn to_param(&self) -> String {
        format!("{}.{}.{}", self.number, self.id, self.text)
    }

    /// Reads the parameter.
    pub fn from_param(param: &str) -> Option<ListPosition> {
        let mut parts = param.splitn(3, '.');
        let (number, id) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(ListPosition { text: parts.next()?.to_owned(), number, id })
    }
}

/// The order of a list of feeds. A list of the feeds in a state is in the order of their numbers, one of
/// those that a search finds in the order of its longest word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FeedOrder {
    /// By title, or by address if there is none.
    #[default]
    Title,
    /// By the time of the newest entry, newest first.
    LastChange,
    /// By the time of the next fetch.
    NextFetch,
}

/// The feeds to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeedQuery {
    /// Only those that this account subscribes to; `None` lists all that somebody subscribes to.
    pub account: Option<AccountId>,
    /// Only those that a search finds.
    pub search: NameSearch,
    /// Only those in this state.
    pub state: Option<FeedState>,
    /// The order.
    pub order: FeedOrder,
    /// Where the page begins.
    pub after: ListPosition,
    /// The maximum number of feeds.
    pub limit: usize,
}

/// A page of feeds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FeedsFound {
    /// The feeds.
    pub feeds: Vec<Resource>,
    /// Where the next page begins; `None` on the last. The page may be short or empty although there
    /// is another, because the number of feeds that are compared for one is limited.
    pub next: Option<ListPosition>,
}

/// The state of the subscriptions to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListedState {
    /// The last attempt failed, and another follows.
    Failing,
    /// Paused by its owner.
    Paused,
    /// Paused by the gateway.
    Suspended,
}

impl ListedState {
    /// All states, in the order of the filter.
    pub const ALL: [ListedState; 3] =
        [ListedState::Failing, ListedState::Paused, ListedState::Suspended];

    /// Returns the word, that of `DeliveryState`.
    pub fn as_str(self) -> &'static str {
        match self {
            ListedState::Failing => "failing",
            ListedState::Paused => "paused",
            ListedState::Suspended => "suspended",
        }
    }

    /// Parses the word.
    pub fn from_word(word: &str) -> Option<ListedState> {
        ListedState::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

/// The subscriptions to list, in the order of their accounts and numbers; those of a resource in the order
/// of their numbers, and those of a search in the order of their hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionQuery {
    /// Only those of this account; `None` lists all.
    pub account: Option<AccountId>,
    /// Only those to this resource.
    pub resource: Option<ResourceId>,
    /// Only those in this state.
    pub state: Option<ListedState>,
    /// Only those whose callback begins with this, with or without its scheme; empty lists all.
    pub search: String,
    /// Where the page begins.
    pub after: ListPosition,
    /// The maximum number of subscriptions.
    pub limit: usize,
}

/// A page of subscriptions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SubscriptionsFound {
    /// The subscriptions.
    pub listed: Vec<ListedSubscription>,
    /// Where the next page begins, as in [`FeedsFound`].
    pub next: Option<ListPosition>,
}

/// How many feeds and subscriptions the lists have. A number of [`ListCounts::MOST`] or more says that
/// there are at least as many; but all subscriptions of an account are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListCounts {
    /// The feeds.
    pub feeds: u64,
    /// The feeds that fail, with those that are gone.
    pub failing_feeds: u64,
    /// The subscriptions.
    pub subscriptions: u64,
    /// The subscriptions that fail and are not paused.
    pub failing_subscriptions: u64,
}

impl ListCounts {
    /// The most rows that are counted.
    pub const MOST: u64 = 10_000;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_is_written() {
        let begin = ListPosition::default();
        let behind = ListPosition { text: "a.b. c".to_owned(), number: -7, id: 12 };
        for position in [begin.clone(), behind.clone()] {
            assert_eq!(ListPosition::from_param(&position.to_param()), Some(position));
        }
        assert!(begin < behind);
        for wrong in ["", "1", "1.2", "1.x.", "x.1."] {
            assert_eq!(ListPosition::from_param(wrong), None, "{wrong}");
        }
    }
}
