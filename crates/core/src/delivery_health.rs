//! The delivery health of a subscription, as its account sees it.

use chrono::{DateTime, Utc};

use crate::record::Seq;
use crate::subscription::Subscription;

/// What came back from a callback in one attempt at a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptResponse {
    /// The status code; `None` if there was no response.
    pub status: Option<u16>,
    /// The beginning of the body, or the reason why there was no response. Only what the owner of
    /// the subscription may see.
    pub excerpt: String,
}

/// The last attempt at a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastAttempt {
    /// When it ended.
    pub at: DateTime<Utc>,
    /// What came back.
    pub response: AttemptResponse,
}

/// The state of the deliveries of a subscription, beside its cursor and failures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryHealth {
    /// The last attempt; `None` before the first one.
    pub last_attempt: Option<LastAttempt>,
    /// When something is to be delivered; `None` if nothing is owed.
    pub due_at: Option<DateTime<Utc>>,
    /// Since when deliveries are paused; `None` if they are not.
    pub paused_at: Option<DateTime<Utc>>,
    /// Whether they were paused by this gateway, because the callback had failed for long.
    pub is_suspended: bool,
    /// Until when a node holds the subscription for a delivery; `None` if no node does.
    pub claimed_until: Option<DateTime<Utc>>,
    /// When the next digest is sent; `None` if none are.
    pub next_digest_at: Option<DateTime<Utc>>,
    /// The number up to which the subscription is owed.
    pub owed: Seq,
}

/// The state of the deliveries of a subscription in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryState {
    /// Nothing is sent until the subscriber resumes deliveries.
    Paused,
    /// The callback has failed for long, and nothing is sent until the subscriber resumes deliveries or
    /// subscribes again.
    Suspended,
    /// The callback has everything.
    Ok,
    /// Something is to be delivered.
    Pending,
    /// A delivery is in progress.
    Delivering,
    /// The last attempt failed.
    Failing,
}

impl DeliveryState {
    /// The word that subscribers see.
    pub fn as_str(self) -> &'static str {
        match self {
            DeliveryState::Paused => "paused",
            DeliveryState::Suspended => "suspended",
            DeliveryState::Ok => "ok",
            DeliveryState::Pending => "pending",
            DeliveryState::Delivering => "delivering",
            DeliveryState::Failing => "failing",
        }
    }
}

impl DeliveryHealth {
    /// Returns the state of the deliveries of `subscription` at `now`.
    pub fn state(&self, subscription: &Subscription, now: DateTime<Utc>) -> DeliveryState {
        if self.is_suspended {
            DeliveryState::Suspended
        } else if self.paused_at.is_some() {
            DeliveryState::Paused
        } else if subscription.failures > 0 {
            DeliveryState::Failing
        } else if self.is_delivering(now) {
            DeliveryState::Delivering
        } else if self.due_at.is_some() {
            DeliveryState::Pending
        } else {
            DeliveryState::Ok
        }
    }

    /// Returns when the next attempt is made; `None` if nothing is owed, or if a delivery is in
    /// progress.
    pub fn next_attempt(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.due_at.filter(|_| !self.is_delivering(now))
    }

    /// Returns how many records or bodies the callback has not acknowledged.
    pub fn lag(&self, subscription: &Subscription) -> i64 {
        (self.owed.0 - subscription.cursor.0).max(0)
    }

    fn is_delivering(&self, now: DateTime<Utc>) -> bool {
        self.claimed_until.is_some_and(|until| until > now)
    }
}
