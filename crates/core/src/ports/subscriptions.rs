//! The ports of subscriptions and of intents that wait for verification.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{ClaimLimits, EventArrival, StoreError};
use crate::account::AccountId;
use crate::intent::{DueIntent, Intent};
use crate::record::Seq;
use crate::resource::{Resource, ResourceId};
use crate::subscription::{DueSubscription, Subscription, SubscriptionId, SubscriptionRequest};
use crate::topic::{Callback, Topic};

/// The subscriptions to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionFilter {
    /// Only those of this account, `AccountId::NOBODY` for open subscriptions; `None` lists all.
    pub account: Option<AccountId>,
    /// Only those of this topic.
    pub topic: Option<String>,
    /// Only those with this callback.
    pub callback: Option<String>,
    /// The number of subscriptions to skip.
    pub offset: usize,
    /// The maximum number of subscriptions.
    pub limit: usize,
}

/// A subscription in a list, with its resource.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedSubscription {
    /// The subscription.
    pub subscription: Subscription,
    /// The resource.
    pub resource: Resource,
}

/// The result of a delivery.
#[derive(Clone, Debug, PartialEq)]
pub enum DeliveryResult {
    /// The callback acknowledged everything up to `cursor`.
    Delivered {
        /// The subscription.
        id: SubscriptionId,
        /// The last number acknowledged.
        cursor: Seq,
        /// The version of the status that was sent.
        status: i64,
    },
    /// The delivery failed. The cursor stays.
    Failed {
        /// The subscription.
        id: SubscriptionId,
        /// When to retry; `None` waits for the next change.
        retry_at: Option<DateTime<Utc>>,
    },
    /// The callback responded with 410, which deletes the subscription.
    Ended {
        /// The subscription.
        id: SubscriptionId,
    },
}

/// Subscriptions and their deliveries.
#[async_trait]
pub trait Subscriptions: Send + Sync {
    /// Stores a verified subscription request, and creates its resource if necessary.
    ///
    /// A new subscription starts at the head. A subscription with the same account, topic, callback
    /// and protocol is renewed: secret, format and lease are replaced, failures are reset, and the
    /// cursor is kept.
    async fn subscribe(
        &self,
        request: &SubscriptionRequest,
        now: DateTime<Utc>,
    ) -> Result<Subscription, StoreError>;

    /// Deletes a subscription; `false` if there was none. `protocol` is the word of
    /// [`feedgate_protocol::Protocol::as_str`]; `None` deletes it for all protocols.
    async fn unsubscribe(
        &self,
        account: Option<AccountId>,
        topic: &Topic,
        callback: &Callback,
        protocol: Option<&str>,
    ) -> Result<bool, StoreError>;

    /// One page of subscriptions, oldest first, and how many there are in all. Of those after
    /// the offset, 10,000 are counted at most.
    async fn list(
        &self,
        filter: &SubscriptionFilter,
    ) -> Result<(Vec<ListedSubscription>, u64), StoreError>;

    /// Claims subscriptions whose cursor is behind, longest due first, until `until`.
    ///
    /// No lock is held in between. If the process ends, its claim expires and the subscription can
    /// be claimed again, so that a notification may be sent twice but is never lost.
    async fn claim_subscriptions(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        room: &ClaimLimits,
    ) -> Result<Vec<DueSubscription>, StoreError>;

    /// Stores the results of deliveries and ends their claims. A subscription whose log has grown
    /// meanwhile is due again immediately. A cursor never moves back.
    async fn settle(
        &self,
        settled: &[DeliveryResult],
        now: DateTime<Utc>,
    ) -> Result<(), StoreError>;

    /// Returns the delivery progress of a resource for what came after `before`.
    async fn delivery_progress(
        &self,
        resource: ResourceId,
        before: LogNumbers,
        now: DateTime<Utc>,
    ) -> Result<DeliveryProgress, StoreError>;

    /// Makes the subscription due again from an earlier cursor.
    async fn replay(
        &self,
        id: SubscriptionId,
        cursor: Seq,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError>;
}

/// The numbers of a resource at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogNumbers {
    /// The newest record.
    pub head: Seq,
    /// The newest body.
    pub body_version: i64,
}

/// The delivery progress of a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeliveryProgress {
    /// The number of subscriptions that received everything, including new content.
    pub told: u64,
    /// The number of subscriptions with a delivery in progress or due.
    pub waiting: u64,
}

/// Intents that wait for verification.
#[async_trait]
pub trait Intents: Send + Sync {
    /// Stores an intent, due at `due_at`, and returns its number. It replaces an older one for the
    /// same account, topic, callback and protocol.
    async fn enqueue_intent(
        &self,
        intent: &Intent,
        due_at: DateTime<Utc>,
    ) -> Result<i64, StoreError>;

    /// Claims intents due at `now`, within the limits for the hosts of their callbacks, until
    /// `until`. The limits do not apply to callbacks that have a subscription to the topic.
    async fn claim_intents(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        room: &ClaimLimits,
    ) -> Result<Vec<DueIntent>, StoreError>;

    /// Postpones an intent after a failed attempt.
    async fn retry_intent(&self, id: i64, at: DateTime<Utc>) -> Result<(), StoreError>;

    /// Carries out an intent after its callback agreed, and deletes it, in one transaction. Returns
    /// `None` without changes if the intent has been replaced by a newer one, or was carried out
    /// already.
    async fn complete_intent(
        &self,
        id: i64,
        intent: &Intent,
        now: DateTime<Utc>,
    ) -> Result<Option<EventArrival>, StoreError>;

    /// Deletes an intent that was refused.
    async fn end_intent(&self, id: i64) -> Result<(), StoreError>;

    /// Deletes the intent for the account, topic, callback and protocol of `request`, if there is
    /// one, because a newer request supersedes it.
    async fn supersede(&self, request: &SubscriptionRequest) -> Result<(), StoreError>;
}
