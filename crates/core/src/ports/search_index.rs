//! The port of the search index.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::StoreError;
use crate::search::{IndexSearch, IndexedRange, PossibleMatches, UnindexedRange};

/// The search index: the keys of the stored entries, which a job adds after the appends.
#[async_trait]
pub trait SearchIndex: Send + Sync {
    /// Opens the index: from then on, appends queue their records for it.
    async fn open_search_index(&self) -> Result<(), StoreError>;

    /// Closes the index: appends queue nothing any more.
    async fn close_search_index(&self) -> Result<(), StoreError>;

    /// Deletes a batch of what a closed index contains. Returns how many rows; 0 means that it is
    /// empty, or open.
    async fn clear_search_index(&self) -> Result<u64, StoreError>;

    /// Queues, for an index that was opened, a batch of the logs that were stored before. Returns
    /// whether there may be more.
    async fn queue_unindexed(&self, now: DateTime<Utc>) -> Result<bool, StoreError>;

    /// Claims the queued records of up to `limit` resources, longest due first, until `until`; at
    /// most `feedgate_store::INDEX_BATCH` of each.
    async fn claim_unindexed(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<UnindexedRange>, StoreError>;

    /// Adds the entries of claimed ranges to the index, each once, and removes what they replace.
    /// Ranges that were added by another node meanwhile are left out.
    async fn add_to_search_index(
        &self,
        ranges: Vec<IndexedRange>,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError>;

    /// Returns the newest entries that have the keys of a search. The number of rows that are read
    /// is bounded, so there may be fewer than the limit although there are more: the result says
    /// where to continue.
    async fn find_possible_matches(
        &self,
        search: &IndexSearch,
    ) -> Result<PossibleMatches, StoreError>;
}
