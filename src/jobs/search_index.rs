//! Fills the search index with what is appended, and with what was stored before the index was
//! opened. If the index is switched off, it is closed and emptied.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::yield_now;
use tracing::info;

use crate::jobs::runner::{self, Job};
use feedgate_core::search::UnindexedRange;
use feedgate_core::store::StoreError;
use feedgate_store::Store;

/// The most logs that are indexed in one step. Each brings at most [`feedgate_store::INDEX_BATCH`]
/// records.
const BATCH: usize = 8;

/// The operator's settings for the search index.
#[derive(Clone, Copy, Debug)]
pub struct SearchIndexSettings {
    /// Whether there is an index.
    pub is_enabled: bool,
    /// How long this node owns a claimed batch.
    pub claim: Duration,
}

/// Fills the search index.
pub struct SearchIndexer {
    store: Arc<Store>,
    settings: SearchIndexSettings,
    /// Whether everything is queued that was stored before the index was opened; of a closed index,
    /// whether it is empty.
    is_settled: AtomicBool,
}

impl SearchIndexer {
    /// Opens or closes the index, and returns the job that fills or empties it.
    pub async fn prepare(
        store: Arc<Store>,
        settings: SearchIndexSettings,
    ) -> Result<SearchIndexer, StoreError> {
        match settings.is_enabled {
            true => store.open_search_index().await?,
            false => store.close_search_index().await?,
        }
        Ok(SearchIndexer { store, settings, is_settled: AtomicBool::new(false) })
    }

    async fn claim_batch(&self) -> Result<Vec<UnindexedRange>, StoreError> {
        let now = runner::now();
        self.store.claim_unindexed(now, now + self.settings.claim, BATCH).await
    }

    /// Queues some of what was stored before the index was opened. Returns whether there is more.
    async fn queue_older(&self) -> Result<bool, StoreError> {
        let is_more = self.store.queue_unindexed(runner::now()).await?;
        self.is_settled.store(!is_more, Ordering::Relaxed);
        Ok(is_more)
    }

    /// Empties the closed index.
    async fn clear(&self) -> Result<(), StoreError> {
        let mut cleared = 0;
        loop {
            match self.store.clear_search_index().await? {
                0 => break,
                some => cleared += some,
            }
        }
        if cleared > 0 {
            info!(rows = cleared, "the search index is switched off and was emptied");
        }
        self.is_settled.store(true, Ordering::Relaxed);
        Ok(())
    }
}

impl Job for SearchIndexer {
    type Item = Vec<UnindexedRange>;

    const NAME: &'static str = "search_index";

    async fn claim(&self, _limit: usize) -> Result<Vec<Vec<UnindexedRange>>, StoreError> {
        if !self.settings.is_enabled {
            if !self.is_settled.load(Ordering::Relaxed) {
                self.clear().await?;
            }
            return Ok(Vec::new());
        }
        let mut batch = self.claim_batch().await?;
        // What was stored before is queued in portions, so that new entries do not wait behind it.
        while batch.is_empty() && !self.is_settled.load(Ordering::Relaxed) {
            if !self.queue_older().await? {
                break;
            }
            batch = self.claim_batch().await?;
        }
        Ok(if batch.is_empty() { Vec::new() } else { vec![batch] })
    }

    async fn perform(&self, batch: Vec<UnindexedRange>) -> Result<(), StoreError> {
        let mut ranges = Vec::with_capacity(batch.len());
        for range in batch {
            ranges.push(range.to_indexed());
            // A range is some milliseconds of work.
            yield_now().await;
        }
        self.store.add_to_search_index(ranges, runner::now()).await
    }
}

impl std::fmt::Debug for SearchIndexer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SearchIndexer").field("settings", &self.settings).finish_non_exhaustive()
    }
}
