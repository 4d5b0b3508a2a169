//! Subscriptions, their deliveries, and what becomes of these.

use chrono::{DateTime, Utc};

use crate::account::AccountId;
use crate::claim::{ClaimToken, QueuePosition};
use crate::delivery_health::{AttemptResponse, DeliveryHealth};
use crate::record::Seq;
use crate::resource::{Resource, ResourceId};
use crate::subscription::{DueSubscription, Format, Subscription, SubscriptionId};

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

/// The subscriptions of an account to read, in the order of their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriptionRange {
    /// The account.
    pub account: AccountId,
    /// Only those of this resource.
    pub resource: Option<ResourceId>,
    /// Only those after this number; 0 begins with the first.
    pub after: i64,
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
