//! Reading lists: OPML documents whose feeds an account subscribes to.
//!
//! The subscription to the document has the callback and the options of the others, which are made for it and
//! name it ([`Subscription::reading_list`]). What the account subscribed to by itself names no list, and is left
//! alone.
//!
//! [`Subscription::reading_list`]: crate::subscription::Subscription::reading_list

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::account::AccountId;
use crate::claim::ClaimToken;
use crate::subscription::SubscriptionId;
use crate::topic::{Callback, Topic};

/// What came of the feeds of a reading list when it was read last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadingListReport {
    /// When that was; `None`: it has not been read yet.
    pub read_at: Option<DateTime<Utc>>,
    /// Why subscriptions to feeds that the document does not state any more have not ended, or why no feeds
    /// could be read, as a part of a sentence.
    pub problem: Option<String>,
    /// The number of feeds that the document states, each counted once.
    pub stated: usize,
    /// The number of these that are beyond the most that are subscribed to for one list.
    pub omitted: usize,
    /// The feeds in the order of the document, and then those that were removed from it.
    pub feeds: Vec<ReadingListFeed>,
}

/// What came of a feed of a reading list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadingListFeed {
    /// The address in the list.
    pub url: String,
    /// What came of it.
    pub state: ReadingListState,
    /// A code for programs if it was refused, otherwise empty (`docs/errors.md`).
    pub code: String,
    /// The reason if it was refused, otherwise empty.
    pub reason: String,
    /// Since when it has this state.
    pub at: DateTime<Utc>,
}

/// What came of a feed of a reading list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadingListState {
    /// The account is subscribed to the feed for the list.
    Subscribed,
    /// The account subscribed to it by itself, or for another list.
    Existing,
    /// The subscription was refused.
    Refused,
    /// Its subscription was ended by the account or the callback. It is not subscribed to again.
    Ended,
    /// The feed was removed from the list, and its subscription has ended.
    Removed,
}

impl ReadingListState {
    /// All states.
    pub const ALL: [ReadingListState; 5] = [
        ReadingListState::Subscribed,
        ReadingListState::Existing,
        ReadingListState::Refused,
        ReadingListState::Ended,
        ReadingListState::Removed,
    ];

    /// Returns the word for the state.
    pub fn as_str(self) -> &'static str {
        match self {
            ReadingListState::Subscribed => "subscribed",
            ReadingListState::Existing => "existing",
            ReadingListState::Refused => "refused",
            ReadingListState::Ended => "ended",
            ReadingListState::Removed => "removed",
        }
    }
}

impl ReadingListReport {
    /// Returns how many feeds have this state.
    pub fn count(&self, state: ReadingListState) -> usize {
        self.feeds.iter().filter(|feed| feed.state == state).count()
    }
}

/// A reading list that was claimed to be read.
#[derive(Clone, Debug, PartialEq)]
pub struct DueReadingList {
    /// The subscription to the document, which may have ended.
    pub id: SubscriptionId,
    /// The claim.
    pub claim: ClaimToken,
    /// The account.
    pub account: AccountId,
    /// The document.
    pub topic: Topic,
    /// The callback of all subscriptions for the list.
    pub callback: Callback,
    /// The report before.
    pub report: ReadingListReport,
}

impl DueReadingList {
    /// Returns the text by which the lists of an account are limited, as those of a host in other queues.
    pub fn owner(&self) -> String {
        self.account.0.to_string()
    }
}
