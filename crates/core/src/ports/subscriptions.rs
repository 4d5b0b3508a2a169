//! The ports of subscriptions and of intents that wait for verification.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{ClaimLimits, EventArrival, StoreError};
use crate::account::AccountId;
use crate::claim::{ClaimToken, QueuePosition};
use crate::delivery_health::{AttemptResponse, DeliveryHealth};
use crate::intent::{DueIntent, Intent};
use crate::record::Seq;
use crate::resource::{Resource, ResourceId};
use crate::subscription::{
    DueSubscription, Format, Subscription, SubscriptionId, SubscriptionOwner, SubscriptionRequest,
};
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
    /// The state of its deliveries.
    pub delivery: DeliveryHealth,
    /// The last record from before the subscription: its first notification began behind it.
    pub begun_after: Seq,
}

/// How a claimed delivery ended.
#[derive(Clone, Debug, PartialEq)]
pub struct DeliveryResult {
    /// Whose delivery it was.
    pub id: SubscriptionId,
    /// The claim under which it was made. The result moves the cursor at most if that claim is lost.
    pub claim: ClaimToken,
    /// The generation of the subscription when it was claimed ([`DueSubscription::generation`]).
    pub generation: i64,
    /// How many replays had been requested when it was claimed ([`DueSubscription::replays`]).
    pub replays: i64,
    /// Whether the numbers of the delivery are versions of the body, and not of records.
    pub counts_bodies: bool,
    /// The number of the newest record or body when it was claimed ([`DueSubscription::newest`]).
    pub newest: Seq,
    /// What came of it.
    pub outcome: DeliveryOutcome,
    /// What the callback responded; `None` if no request was made.
    pub response: Option<AttemptResponse>,
}

impl DeliveryResult {
    /// Returns the result of a delivery that was claimed.
    pub fn new(
        due: &DueSubscription,
        outcome: DeliveryOutcome,
        response: Option<AttemptResponse>,
    ) -> DeliveryResult {
        let DueSubscription { claim, generation, replays, newest, .. } = *due;
        let id = due.subscription.id;
        let counts_bodies = due.subscription.format == Format::Raw;
        #[rustfmt::skip]
        let result = DeliveryResult {
            id, claim, generation, replays, counts_bodies, newest, outcome, response,
        };
        result
    }
}

/// A claimed delivery that has not been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldDelivery {
    /// Whose delivery it is.
    pub id: SubscriptionId,
    /// The claim under which it is held.
    pub claim: ClaimToken,
    /// The generation of the subscription when it was claimed ([`DueSubscription::generation`]).
    pub generation: i64,
}

impl From<&DueSubscription> for HeldDelivery {
    fn from(due: &DueSubscription) -> HeldDelivery {
        let DueSubscription { claim, generation, .. } = *due;
        HeldDelivery { id: due.subscription.id, claim, generation }
    }
}

/// What came of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// The callback acknowledged everything up to `cursor`.
    Delivered {
        /// The last number acknowledged.
        cursor: Seq,
        /// The version of the status that it was sent with it.
        status: i64,
    },
    /// The delivery failed. The cursor stays.
    Failed {
        /// When to try again; `None` waits for the next change.
        retry_at: Option<DateTime<Utc>>,
    },
    /// The delivery failed, as all before it have for long. The cursor stays, and the subscription is
    /// paused until its owner resumes or renews it.
    Suspended,
    /// The callback is gone for good (410) and so is the subscription.
    Ended,
}

/// Subscriptions that were claimed by searching the queue of due ones.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimedSubscriptions {
    /// The claimed ones, longest due first.
    pub due: Vec<DueSubscription>,
    /// Where the search ended. What lies before it is claimed, or of a host that has all it can
    /// take.
    pub position: QueuePosition,
    /// How many due deliveries were not claimed because their hosts could take no more.
    pub skipped: usize,
    /// Whether the search reached the end of the queue.
    pub is_end: bool,
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

    /// Returns the number of subscriptions of an owner. The cost does not grow with the number.
    async fn count_owned(&self, owner: &SubscriptionOwner) -> Result<u64, StoreError>;

    /// One page of subscriptions, oldest first, and how many there are in all. Of those after
    /// the offset, 10,000 are counted at most.
    async fn list(
        &self,
        filter: &SubscriptionFilter,
    ) -> Result<(Vec<ListedSubscription>, u64), StoreError>;

    /// Returns the subscription with this number.
    async fn listed(&self, id: SubscriptionId) -> Result<Option<ListedSubscription>, StoreError>;

    /// Claims subscriptions whose cursor lags, longest due first, and hides them from other
    /// takers until `until`. The search begins behind `from` and looks at a bounded number of
    /// rows.
    ///
    /// Nothing stays locked in between. If the taker dies, its claim expires and the
    /// subscription is handed out again: a callback may be notified twice, but it is notified.
    async fn claim_subscriptions(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        limits: &ClaimLimits,
        from: QueuePosition,
    ) -> Result<ClaimedSubscriptions, StoreError>;

    /// Claims up to `limit` due subscriptions whose callbacks are at `host`, of each resource and account
    /// about as many: so a change with thousands of subscribers there does not hold up the next change of
    /// another resource.
    async fn claim_subscriptions_of_host(
        &self,
        host: &str,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<DueSubscription>, StoreError>;

    /// Extends the claims of this node to `until`, and returns whose of `claims`, which are all those in
    /// progress, are still held.
    async fn renew_subscription_claims(
        &self,
        claims: &[(SubscriptionId, ClaimToken)],
        now: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<Vec<SubscriptionId>, StoreError>;

    /// Gives back claims under which nothing was sent: what they held is due at `now`.
    async fn release_subscription_claims(
        &self,
        claims: &[(SubscriptionId, ClaimToken)],
        now: DateTime<Utc>,
    ) -> Result<(), StoreError>;

    /// Returns those of `held` that may still be sent: their claims are held, and their subscriptions have
    /// neither ended nor begun a new generation.
    async fn still_current(
        &self,
        held: &[HeldDelivery],
        now: DateTime<Utc>,
    ) -> Result<Vec<SubscriptionId>, StoreError>;

    /// Records how deliveries ended and ends their claims. One whose log has grown
    /// meanwhile is due again once all that was due with it has been sent. A cursor never moves back. A
    /// result whose claim was lost, or of an earlier generation of its subscription, moves the cursor at
    /// most, and not if a replay was requested since.
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

    /// Pauses deliveries: nothing is due until they are resumed, and what has been claimed is not sent.
    /// A request that is being sent ends, and moves the cursor if it succeeds.
    async fn pause(&self, id: SubscriptionId, now: DateTime<Utc>) -> Result<(), StoreError>;

    /// Ends a pause. Whatever is owed is due at once.
    async fn resume(&self, id: SubscriptionId, now: DateTime<Utc>) -> Result<(), StoreError>;

    /// Makes a delivery that is owed due at once, or, while one is in progress, once that has ended.
    /// Returns `false` if nothing is owed.
    async fn retry_delivery(
        &self,
        id: SubscriptionId,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError>;

    /// Makes the subscription due again from an earlier cursor.
    async fn replay(
        &self,
        id: SubscriptionId,
        cursor: Seq,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError>;

    /// Makes subscriptions due whose digests are, from some entries before their cursors, and sets the
    /// time of the next one. Returns how many; 0 only if no digest is due.
    async fn start_digests(&self, now: DateTime<Utc>) -> Result<u64, StoreError>;
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

    /// Stores an intent as [`enqueue_intent`](Self::enqueue_intent) does, and claims it until
    /// `until`, for a caller that verifies it at once.
    async fn enqueue_claimed_intent(
        &self,
        intent: &Intent,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<DueIntent, StoreError>;

    /// Claims intents due at `now`, within the limits for the hosts of their callbacks, until
    /// `until`. The limits do not apply to callbacks that have a subscription to the topic.
    async fn claim_intents(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        room: &ClaimLimits,
    ) -> Result<Vec<DueIntent>, StoreError>;

    /// Postpones an intent after a failed attempt. If the claim was lost, nothing changes.
    async fn retry_intent(&self, due: &DueIntent, at: DateTime<Utc>) -> Result<(), StoreError>;

    /// Makes a claimed intent due at `at`, without counting an attempt. If the claim was lost, nothing
    /// changes.
    async fn release_intent(&self, due: &DueIntent, at: DateTime<Utc>) -> Result<(), StoreError>;

    /// Carries out an intent after its callback agreed, and deletes it, in one transaction. Returns
    /// `None` without changes if the intent has been replaced by a newer one, or was carried out
    /// already, or its claim was lost.
    async fn complete_intent(
        &self,
        due: &DueIntent,
        now: DateTime<Utc>,
    ) -> Result<Option<EventArrival>, StoreError>;

    /// Deletes an intent that was refused. If the claim was lost, nothing changes.
    async fn end_intent(&self, due: &DueIntent) -> Result<(), StoreError>;

    /// Deletes the intent for the account, topic, callback and protocol of `request`, if there is
    /// one, because a newer request supersedes it.
    async fn supersede(&self, request: &SubscriptionRequest) -> Result<(), StoreError>;
}
