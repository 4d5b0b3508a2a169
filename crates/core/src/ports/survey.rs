//! What may be asked of everything that is watched, and of all who watch it: in steps, none
//! of which reads more than some thousand rows.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::StoreError;
use crate::resource::{ResourceId, ResourceKind};
use crate::subscription::SubscriptionId;

/// A resource that somebody subscribes to, as lists show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedResource {
    /// Its number.
    pub id: ResourceId,
    /// Its topic, as the first subscriber wrote it.
    pub topic: String,
    /// Its title as plain text; empty if none is known.
    pub title: String,
    /// The web site it belongs to.
    pub site_url: Option<String>,
    /// What it has turned out to be; never a collection.
    pub kind: ResourceKind,
    /// How many subscribe to it, as its publisher is told (rule P34).
    pub subscribers: u32,
    /// When it was last polled.
    pub fetched_at: Option<DateTime<Utc>>,
    /// When the newest record was appended to its log.
    pub changed_at: Option<DateTime<Utc>>,
}

/// A subscription that is no account's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenSubscription {
    /// Its number.
    pub id: SubscriptionId,
    /// Whom to tell, whole: it is not to be shown so (rule S54).
    pub callback: String,
    /// The word of [`feedgate_protocol::Protocol::as_str`].
    pub protocol: String,
    /// Consecutive changes of which it could not be told.
    pub errors: u32,
    /// Consecutive attempts that failed.
    pub failures: u32,
    /// When the first of them was.
    pub failing_since: Option<DateTime<Utc>>,
    /// When it was first made.
    pub created_at: DateTime<Utc>,
    /// When it ends unless renewed.
    pub lease_until: DateTime<Utc>,
}

/// A page of open subscriptions, by the numbers of their resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenSubscriptions {
    /// Those of the page; what is no account's may be little of what was read, or nothing.
    pub open: Vec<OpenSubscription>,
    /// Their resources, by number; collections are left out.
    pub resources: Vec<WatchedResource>,
    /// The last one that was read, behind which the next page begins; `None` on the last.
    pub next: Option<SubscriptionId>,
}

/// Subscriptions that are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriberGroup {
    /// Host and port of their callbacks.
    pub host: String,
    /// The word of [`feedgate_protocol::Protocol::as_str`].
    pub protocol: String,
    /// Whether their callbacks are told over TLS.
    pub is_https: bool,
    /// Whether they are no account's.
    pub is_open: bool,
    /// How many there are.
    pub many: u64,
    /// Those of them whose last attempt failed.
    pub failing: u64,
}

/// What some subscriptions come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionCounts {
    /// Each subscription is in one of them.
    pub groups: Vec<SubscriberGroup>,
    /// The last one that was counted; `None` if there are no more behind it.
    pub next: Option<SubscriptionId>,
}

/// Everything that is watched, read from its beginning to its end. What changes meanwhile
/// is seen as it was or as it is.
#[async_trait]
pub trait Survey: Send + Sync {
    /// Some resources that somebody subscribes to, ascending from behind `after`; empty
    /// behind the last.
    async fn watched(&self, after: ResourceId) -> Result<Vec<WatchedResource>, StoreError>;

    /// Reads up to `limit` subscriptions behind `after`, and gives those that are no
    /// account's and whose lease lasts at `now`.
    async fn open_page(
        &self,
        after: SubscriptionId,
        limit: usize,
        now: DateTime<Utc>,
    ) -> Result<OpenSubscriptions, StoreError>;

    /// Counts some subscriptions behind `after` whose lease lasts at `now`.
    async fn count_some(
        &self,
        after: SubscriptionId,
        now: DateTime<Utc>,
    ) -> Result<SubscriptionCounts, StoreError>;

    /// How many pings were listed since `since`.
    async fn pings_since(&self, since: DateTime<Utc>) -> Result<u64, StoreError>;
}
