//! What may be asked of a store about collections.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::StoreError;
use crate::collection::{Collection, CollectionKind, PendingCollection};
use crate::resource::{Resource, ResourceId};
use crate::topic::Topic;

/// Logs that are fed by other logs.
#[async_trait]
pub trait Collections: Send + Sync {
    /// The collection of this scope, made if there is none, and opened if it was closed. What
    /// is appended from then on is taken in.
    async fn open_collection(
        &self,
        collection: &Collection,
        now: DateTime<Utc>,
    ) -> Result<Resource, StoreError>;

    /// The collection of this scope, open or not; `None` if it was never made.
    async fn collection(&self, scope: &CollectionKind) -> Result<Option<Resource>, StoreError>;

    /// Makes these resources, and no others, the members of a collection. Each counts it as
    /// a subscriber, so that it is polled.
    async fn set_members(
        &self,
        id: ResourceId,
        topics: &[Topic],
        now: DateTime<Utc>,
    ) -> Result<(), StoreError>;

    /// Closes the collections that are nobody's account's, `but` these: they keep what they
    /// hold and take in nothing more. Returns how many.
    async fn close_collections(
        &self,
        but: &[ResourceId],
        now: DateTime<Utc>,
    ) -> Result<u64, StoreError>;

    /// Takes up to `limit` cursors of collections that lag, longest due first, and hides them
    /// until `until`. Each brings at most `feedgate_store::COLLECT_BATCH` records.
    async fn claim_collecting(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<PendingCollection>, StoreError>;

    /// Appends what was taken to the logs of its collections, and moves their cursors. What
    /// somebody else has taken in meanwhile is left out.
    async fn collect(
        &self,
        taken: Vec<PendingCollection>,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError>;
}
