//! The port of recorded attempts to deliver.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::StoreError;
use crate::attempt::{DeliveryAttempt, StoredAttempt};
use crate::subscription::SubscriptionId;

/// The attempts of a subscription to read, newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptRange {
    /// Only attempts before this one; `None` begins with the newest.
    pub before: Option<i64>,
    /// The maximum number of attempts.
    pub limit: usize,
}

/// How many attempts are kept, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptRetention {
    /// Attempts that began before this are deleted.
    pub since: DateTime<Utc>,
    /// The most attempts of all subscriptions. Several cells each keep their part of them.
    pub most: usize,
}

/// Recorded attempts to deliver, which end with their subscription.
#[async_trait]
pub trait Attempts: Send + Sync {
    /// Stores attempts in this order, and deletes the oldest of each of their subscriptions that has
    /// more than `most_of_subscription`. Attempts of subscriptions that ended meanwhile are left
    /// out. Returns how many were stored.
    async fn append_attempts(
        &self,
        attempts: Vec<DeliveryAttempt>,
        most_of_subscription: usize,
    ) -> Result<u64, StoreError>;

    /// Returns the attempts of a subscription, newest first.
    async fn attempts(
        &self,
        id: SubscriptionId,
        range: AttemptRange,
    ) -> Result<Vec<StoredAttempt>, StoreError>;

    /// Returns the attempt of a subscription with this number.
    async fn attempt(
        &self,
        id: SubscriptionId,
        number: i64,
    ) -> Result<Option<StoredAttempt>, StoreError>;

    /// Deletes the attempts that are too old or too many, a bounded number in each transaction.
    /// Returns how many.
    async fn trim_attempts(&self, retention: &AttemptRetention) -> Result<u64, StoreError>;
}
