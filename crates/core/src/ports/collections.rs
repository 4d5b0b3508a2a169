//! The port of collections.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::StoreError;
use crate::collection::{Collection, CollectionKind, PendingCollection};
use crate::resource::{Resource, ResourceId};
use crate::topic::Topic;

/// Collections: resources whose logs are filled from other logs.
#[async_trait]
pub trait Collections: Send + Sync {
    /// Returns the collection of this scope, creating or reopening it if necessary. It takes what
    /// is appended from then on.
    async fn open_collection(
        &self,
        collection: &Collection,
        now: DateTime<Utc>,
    ) -> Result<Resource, StoreError>;

    /// Returns the collection of this scope, open or not; `None` if it was never created.
    async fn collection(&self, scope: &CollectionKind) -> Result<Option<Resource>, StoreError>;

    /// Makes exactly these resources the members of a collection. Each counts the collection as a
    /// subscriber, so that it is polled.
    async fn set_members(
        &self,
        id: ResourceId,
        topics: &[Topic],
        now: DateTime<Utc>,
    ) -> Result<(), StoreError>;

    /// Closes the collections that belong to no account, except those in `but`: they keep their
    /// records and take no more. Returns their number.
    async fn close_collections(
        &self,
        but: &[ResourceId],
        now: DateTime<Utc>,
    ) -> Result<u64, StoreError>;

    /// Claims up to `limit` cursors of collections that are behind, longest due first, until
    /// `until`. Each returns at most `feedgate_store::COLLECT_BATCH` records.
    async fn claim_collecting(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<PendingCollection>, StoreError>;

    /// Appends the claimed records to the logs of their collections, and advances the cursors.
    /// Records that were taken by another node meanwhile are left out.
    async fn collect(
        &self,
        taken: Vec<PendingCollection>,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError>;
}
