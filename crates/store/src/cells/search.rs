//! The search index: each cell has one of its own entries, and a search merges what they find.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::future::try_join_all;

use crate::cells::Cells;
use crate::cells::claiming::CellClaims;
use feedgate_core::ports::{SearchIndex, StoreError};
use feedgate_core::search::{IndexSearch, IndexedRange, PossibleMatches, UnindexedRange};

#[async_trait]
impl SearchIndex for Cells {
    async fn open_search_index(&self) -> Result<(), StoreError> {
        try_join_all(self.cells.iter().map(|cell| cell.open_search_index())).await.map(drop)
    }

    async fn close_search_index(&self) -> Result<(), StoreError> {
        try_join_all(self.cells.iter().map(|cell| cell.close_search_index())).await.map(drop)
    }

    async fn clear_search_index(&self) -> Result<u64, StoreError> {
        let cleared = self.cells.iter().map(|cell| cell.clear_search_index());
        Ok(try_join_all(cleared).await?.into_iter().sum())
    }

    async fn queue_unindexed(&self, now: DateTime<Utc>) -> Result<bool, StoreError> {
        let queued = self.cells.iter().map(|cell| cell.queue_unindexed(now));
        Ok(try_join_all(queued).await?.into_iter().any(|is_more| is_more))
    }

    async fn claim_unindexed(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<UnindexedRange>, StoreError> {
        let mut claims = CellClaims::new(limit);
        for cell in self.in_turn() {
            if claims.left() == 0 {
                break;
            }
            claims.add(cell.claim_unindexed(now, until, claims.left()).await);
        }
        claims.finish()
    }

    async fn add_to_search_index(
        &self,
        ranges: Vec<IndexedRange>,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let by_cell = self.by_cell(ranges, |range| range.resource.0);
        for (cell, ranges) in self.cells.iter().zip(by_cell) {
            if !ranges.is_empty() {
                cell.add_to_search_index(ranges, now).await?;
            }
        }
        Ok(())
    }

    async fn find_possible_matches(
        &self,
        search: &IndexSearch,
    ) -> Result<PossibleMatches, StoreError> {
        let found = self.cells.iter().map(|cell| cell.find_possible_matches(search));
        let found = try_join_all(found).await?;
        // Before this position, a cell may have entries that it has not returned.
        let mut continues_before = found.iter().filter_map(|found| found.continues_before).max();
        let mut entries: Vec<_> = found.into_iter().flat_map(|found| found.entries).collect();
        entries.retain(|entry| continues_before.is_none_or(|before| entry.position >= before));
        entries.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.position));
        if entries.len() > search.limit {
            entries.truncate(search.limit);
            continues_before = entries.last().map(|entry| entry.position);
        }
        Ok(PossibleMatches { entries, continues_before })
    }
}
