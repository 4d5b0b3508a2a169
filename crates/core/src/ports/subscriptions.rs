//! What may be asked of subscriptions, and of requests that are still to be verified.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{ClaimLimits, EventArrival, StoreError};
use crate::account::AccountId;
use crate::intent::{DueIntent, Intent};
use crate::record::Seq;
use crate::resource::{Resource, ResourceId};
use crate::subscription::{DueSubscription, Subscription, SubscriptionId, SubscriptionRequest};
use crate::topic::{Callback, Topic};

/// Which subscriptions to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionFilter {
    /// Only this account's, `AccountId::NOBODY` for the open ones; `None` lists everybody's.
    pub account: Option<AccountId>,
    /// Only those of this topic.
    pub topic: Option<String>,
    /// Only those with this callback.
    pub callback: Option<String>,
    /// How many to skip.
    pub offset: usize,
    /// How many to return.
    pub limit: usize,
}

/// A subscription in a list, with the resource it watches.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedSubscription {
    /// The subscription.
    pub subscription: Subscription,
    /// The resource.
    pub resource: Resource,
}

/// How a delivery ended.
#[derive(Clone, Debug, PartialEq)]
pub enum DeliveryResult {
    /// The callback acknowledged everything up to `cursor`.
    Delivered {
        /// Whose.
        id: SubscriptionId,
        /// The last number acknowledged.
        cursor: Seq,
        /// The version of the status that it was told with it.
        status: i64,
    },
    /// It did not. The cursor stays.
    Failed {
        /// Whose.
        id: SubscriptionId,
        /// When to try again; `None` waits for the next change.
        retry_at: Option<DateTime<Utc>>,
    },
    /// The callback is gone for good (410) and so is the subscription.
    Ended {
        /// Whose.
        id: SubscriptionId,
    },
}

/// Who is told.
#[async_trait]
pub trait Subscriptions: Send + Sync {
    /// Keeps a verified wish, with its resource if that is new.
    ///
    /// A new subscription starts at the head. One with the same account, topic,
    /// callback and protocol is renewed: secret, format and lease are replaced, its
    /// failures forgotten, its cursor kept.
    async fn subscribe(
        &self,
        request: &SubscriptionRequest,
        now: DateTime<Utc>,
    ) -> Result<Subscription, StoreError>;

    /// Ends a subscription; `false` if there was none. `protocol` is the word of
    /// [`feedgate_protocol::Protocol::as_str`]; `None` ends it in all.
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

    /// Takes subscriptions whose cursor lags, longest due first, and hides them from
    /// other takers until `until`.
    ///
    /// Nothing stays locked in between. If the taker dies, its claim expires and the
    /// subscription is handed out again: a callback may be told twice, but it is told.
    async fn claim_subscriptions(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        room: &ClaimLimits,
    ) -> Result<Vec<DueSubscription>, StoreError>;

    /// Keeps how deliveries ended and ends their claims. One whose log has grown
    /// meanwhile is due again at once. A cursor never moves back.
    async fn settle(
        &self,
        settled: &[DeliveryResult],
        now: DateTime<Utc>,
    ) -> Result<(), StoreError>;

    /// How far the subscribers of a resource have been told of what came after `before`.
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

/// Where a resource's numbers stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogNumbers {
    /// The last of its records.
    pub head: Seq,
    /// That of its newest body.
    pub body_version: i64,
}

/// How far the subscribers of a resource have been told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeliveryProgress {
    /// How many know all there is, some of it new.
    pub told: u64,
    /// How many are being told, or are to be told now.
    pub waiting: u64,
}

/// What still has to be verified.
#[async_trait]
pub trait Intents: Send + Sync {
    /// Keeps an intent, due at `due_at`, and returns its number. A newer one for the same
    /// account, topic, callback and protocol takes the place of an older.
    async fn enqueue_intent(
        &self,
        intent: &Intent,
        due_at: DateTime<Utc>,
    ) -> Result<i64, StoreError>;

    /// Takes intents due at `now`, as far as there is room by the names of the callbacks'
    /// hosts, and hides them until `until`. Those of callbacks that are subscribed to the
    /// topic already have no host.
    async fn claim_intents(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        room: &ClaimLimits,
    ) -> Result<Vec<DueIntent>, StoreError>;

    /// Puts an intent off, one attempt older.
    async fn retry_intent(&self, id: i64, at: DateTime<Utc>) -> Result<(), StoreError>;

    /// Does what an intent says, now that its callback has agreed, and forgets it, in one
    /// transaction. `None`, and nothing changes, if it is not held any more: a newer one has
    /// taken its place, or somebody else has carried it out.
    async fn complete_intent(
        &self,
        id: i64,
        intent: &Intent,
        now: DateTime<Utc>,
    ) -> Result<Option<EventArrival>, StoreError>;

    /// Forgets an intent: it was refused.
    async fn end_intent(&self, id: i64) -> Result<(), StoreError>;

    /// Forgets the intent for the account, topic, callback and protocol of `wish`, if there
    /// is one: what is asked now is newer.
    async fn supersede(&self, request: &SubscriptionRequest) -> Result<(), StoreError>;
}
