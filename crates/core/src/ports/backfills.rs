//! What may be asked of a store about histories that are being brought in.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::StoreError;
use crate::backfill::{Backfill, PastPage};
use crate::resource::{Resource, ResourceId};
use crate::subscription::{Subscription, SubscriptionRequest};

/// A history of which something is to be brought in, with its resource.
#[derive(Clone, Debug, PartialEq)]
pub struct DueBackfill {
    /// How far it has come.
    pub backfill: Backfill,
    /// The resource as it stood when claimed.
    pub resource: Resource,
}

/// What sources published before they were watched.
#[async_trait]
pub trait Backfills: Send + Sync {
    /// Keeps a verified wish as [`Subscriptions::subscribe`](super::Subscriptions::subscribe) does, and begins to bring in
    /// the history of its resource, in one transaction; not if that is being done, or was
    /// done within the hour. A resource of which nothing was ever read is not polled
    /// meanwhile, so that its history comes first.
    async fn subscribe_with_history(
        &self,
        request: &SubscriptionRequest,
        now: DateTime<Utc>,
    ) -> Result<Subscription, StoreError>;

    /// Takes up to `limit` histories with which something is to be done at `now`, and hides
    /// them until `until`.
    async fn claim_backfills(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<DueBackfill>, StoreError>;

    /// Lays aside what a page holds, and moves on to where it leads, due at `now`. `false`,
    /// and nothing changes, if somebody else has done so since `backfill` was read.
    async fn stage_backfill(
        &self,
        backfill: &Backfill,
        page: PastPage,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError>;

    /// Keeps where a backfill stands, due at `due_at`; `false` as above.
    async fn save_backfill(
        &self,
        backfill: &Backfill,
        due_at: DateTime<Utc>,
    ) -> Result<bool, StoreError>;

    /// Moves some of what was laid aside into the log, oldest first; what the log holds
    /// already stays as it is. These records reach nobody. `false` once nothing is left: the
    /// backfill is done, and a resource that was held back is due.
    async fn commit_staged(&self, id: ResourceId, now: DateTime<Utc>) -> Result<bool, StoreError>;

    /// Forgets a backfill and what was laid aside for it.
    async fn drop_backfill(&self, id: ResourceId, now: DateTime<Utc>) -> Result<(), StoreError>;

    /// Those of these resources, in any order.
    async fn backfills(&self, ids: &[ResourceId]) -> Result<Vec<Backfill>, StoreError>;
}
