//! Alerts: what the owner of an account is told about its callbacks, its feeds and its quota.
//!
//! There is no queue of alerts. What an account is to be told is the difference between what it was told
//! and what is so now; so each alert is sent once, and what has changed back before it was sent is not.

use chrono::{DateTime, TimeDelta, Utc};

use super::account::AccountId;
use super::claim::ClaimToken;
use super::delivery_health::LastAttempt;
use super::resource_id::ResourceId;
use super::signing::Secret;
use super::subscription::SubscriptionId;
use super::topic::Callback;
use super::words::words;

/// The least time between two requests to an alert address.
pub const SPACING: TimeDelta = TimeDelta::seconds(10);

/// The owner of this share of a quota is told that it is nearly used up, in percent …
const NEAR_PERCENT: u64 = 90;
/// … and told so again only after less than this share was used, in percent.
const FREE_PERCENT: u64 = 80;

words! {
    /// What an alert says.
    AlertKind {
        /// A callback has failed five times in a row.
        Failing = "failing",
        /// A callback that was reported as failing or suspended has accepted a delivery.
        Recovered = "recovered",
        /// Deliveries to a callback are suspended, because it has failed for a month.
        Suspended = "suspended",
        /// A feed is gone for good.
        FeedGone = "feed_gone",
        /// A feed is fetched at another URL from now on.
        FeedMoved = "feed_moved",
        /// The account has nearly as many subscriptions as it may have.
        QuotaNear = "quota_near",
    }
}

impl AlertKind {
    /// Parses words that are separated by spaces; `None` if one is unknown.
    pub fn from_words(words: &str) -> Option<Vec<AlertKind>> {
        words.split_whitespace().map(AlertKind::from_word).collect()
    }

    /// Returns the words, separated by spaces, as they are stored.
    pub fn to_words(kinds: &[AlertKind]) -> String {
        kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(" ")
    }
}

/// Where the alerts of an account are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertAddress {
    /// The account.
    pub account: AccountId,
    /// The URL.
    pub callback: Callback,
    /// The key of the signatures; `None`: alerts are not signed.
    pub secret: Option<Secret>,
    /// What is sent.
    pub kinds: Vec<AlertKind>,
}

/// A stored alert address, and what the account was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertAddressState {
    /// The address.
    pub address: AlertAddress,
    /// The login of the account; `None` while it is deactivated.
    pub login: Option<String>,
    /// The claim of the row.
    pub claim: ClaimToken,
    /// When the account first named an alert address.
    pub created_at: DateTime<Utc>,
    /// Until when the feeds were gone or moved that the account was told of.
    pub feeds_told_until: DateTime<Utc>,
    /// Whether the account was told that its quota is nearly used up.
    pub is_quota_told: bool,
    /// Consecutive failed attempts.
    pub failures: u32,
    /// The last attempt; `None` before the first one.
    pub last_attempt: Option<AlertAttempt>,
    /// When it is looked for alerts, or when a failed attempt is retried.
    pub due_at: DateTime<Utc>,
}

/// An attempt to send alerts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertAttempt {
    /// When it ended.
    pub at: DateTime<Utc>,
    /// The result as a stable code, as in the event log.
    pub code: String,
}

/// An alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alert {
    /// About the callback of a subscription.
    Callback(CallbackAlert),
    /// About a feed.
    Feed(FeedAlert),
    /// About the quota of subscriptions.
    Quota {
        /// The number of subscriptions.
        used: u64,
        /// The most that the account may have.
        limit: u64,
    },
}

/// An alert about the callback of a subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallbackAlert {
    /// What it says.
    pub kind: AlertKind,
    /// The subscription.
    pub subscription: SubscriptionId,
    /// The topic, as it was subscribed to.
    pub topic: String,
    /// The callback.
    pub callback: String,
    /// Consecutive failed attempts.
    pub failures: u32,
    /// When the first of them was.
    pub failing_since: Option<DateTime<Utc>>,
    /// The last attempt.
    pub last_attempt: Option<LastAttempt>,
}

/// An alert about a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedAlert {
    /// What it says.
    pub kind: AlertKind,
    /// The feed.
    pub feed: ResourceId,
    /// The topic.
    pub topic: String,
    /// When it was found.
    pub at: DateTime<Utc>,
    /// The URL at which the feed is fetched.
    pub fetch_url: String,
}

/// What an account has to be told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwedAlerts {
    /// How many alerts there are of each kind that the account wants; kinds without any are left out.
    pub counts: Vec<(AlertKind, u64)>,
    /// The first of these alerts.
    pub listed: Vec<Alert>,
    /// Whether there are more than are counted here, which are sent next.
    pub has_more: bool,
    /// What the account has been told once these alerts have been accepted.
    pub told: ToldAlerts,
}

/// What an account has been told once alerts have been accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToldAlerts {
    /// Subscriptions, each with its state as `subscriptions.alerted` has it.
    pub subscriptions: Vec<(SubscriptionId, i64)>,
    /// Until when the feeds were gone or moved.
    pub feeds_until: DateTime<Utc>,
    /// Whether the quota is nearly used up.
    pub is_quota_near: bool,
}

impl OwedAlerts {
    /// Returns how many alerts there are.
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|(_, count)| count).sum()
    }
}

/// Returns whether the owner of a quota has been told that it is nearly used up, once what is owed was told;
/// `is_told`, whether it was before.
pub fn is_quota_near(used: u64, limit: u64, is_told: bool) -> bool {
    let percent = if is_told { FREE_PERCENT } else { NEAR_PERCENT };
    u128::from(used) * 100 >= u128::from(limit) * u128::from(percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_near_until_much_less_of_it_is_used() {
        #[rustfmt::skip]
        let cases = [
            (89, 100, false, false), (90, 100, false, true), (89, 100, true, true), (79, 100, true, false),
            (1, 1, false, true), (u64::MAX - 1, u64::MAX, false, true), (0, u64::MAX, false, false),
        ];
        for (used, limit, is_told, want) in cases {
            assert_eq!(is_quota_near(used, limit, is_told), want, "{used} of {limit}, {is_told}");
        }
    }

    #[test]
    fn kinds_are_stored_as_words() {
        let words = AlertKind::to_words(AlertKind::ALL);
        assert_eq!(AlertKind::from_words(&words).as_deref(), Some(AlertKind::ALL));
        assert_eq!(AlertKind::from_words("failing sinking"), None);
    }
}
