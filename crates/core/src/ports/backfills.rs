//! The port of backfills.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::StoreError;
use crate::backfill::{Backfill, PastPage};
use crate::claim::ClaimToken;
use crate::resource::{Resource, ResourceId};
use crate::subscription::{Subscription, SubscriptionRequest};

/// A backfill that was claimed, with its resource.
#[derive(Clone, Debug, PartialEq)]
pub struct DueBackfill {
    /// The progress of the backfill.
    pub backfill: Backfill,
    /// The claim, which the results of the step name.
    pub claim: ClaimToken,
    /// The resource as it stood when claimed.
    pub resource: Resource,
}

/// What came of appending a batch of staged entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitProgress {
    /// More entries may be staged.
    More,
    /// No entry is left, and the backfill is complete.
    Complete,
    /// Nothing was appended, because the claim was lost.
    ClaimLost,
}

/// Backfills: entries that sources published before their first subscription.
#[async_trait]
pub trait Backfills: Send + Sync {
    /// Stores a verified subscription request as
    /// [`Subscriptions::subscribe`](super::Subscriptions::subscribe) does, and starts a backfill of
    /// its resource, in one transaction. No backfill is started if one is in progress or ended
    /// within the last hour. A resource that was never fetched is not polled meanwhile, so that the
    /// older entries are appended first.
    async fn subscribe_with_history(
        &self,
        request: &SubscriptionRequest,
        now: DateTime<Utc>,
    ) -> Result<Subscription, StoreError>;

    /// Claims up to `limit` backfills that are due at `now`, until `until`.
    async fn claim_backfills(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<DueBackfill>, StoreError>;

    /// Extends those of `claims` that were not lost to `until`, and returns their resources.
    async fn renew_backfill_claims(
        &self,
        claims: &[(ResourceId, ClaimToken)],
        now: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Result<Vec<ResourceId>, StoreError>;

    /// Stages the entries of a document and advances the backfill to its link, due at `now`, which
    /// ends the claim. Returns `false` without changes if the claim was lost.
    async fn stage_backfill(
        &self,
        backfill: &Backfill,
        claim: ClaimToken,
        page: PastPage,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError>;

    /// Stores the state of a backfill, due at `due_at`, and ends the claim; `false` as above.
    async fn save_backfill(
        &self,
        backfill: &Backfill,
        claim: ClaimToken,
        due_at: DateTime<Utc>,
    ) -> Result<bool, StoreError>;

    /// Appends a batch of staged entries to the log, oldest first. Entries that the log contains
    /// stay as they are, and the new records have no audience. Once none is left, the backfill is
    /// complete, and a delayed resource becomes due.
    async fn commit_staged(
        &self,
        id: ResourceId,
        claim: ClaimToken,
        now: DateTime<Utc>,
    ) -> Result<CommitProgress, StoreError>;

    /// Deletes a backfill and its staged entries. If the claim was lost, nothing changes.
    async fn drop_backfill(
        &self,
        id: ResourceId,
        claim: ClaimToken,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError>;

    /// Returns the backfills of these resources, in any order.
    async fn backfills(&self, ids: &[ResourceId]) -> Result<Vec<Backfill>, StoreError>;
}
