//! Half of the budget, for work that must leave the other half to everything else: previews without an
//! account, which anybody may request of any document.

use std::sync::Arc;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use super::{DocumentBudget, Parsers, Pool, SMALL_BODY_BYTES, Share, UNIT_BYTES};
use feedgate_feed::parse::max_memory;

/// Half of each share, and of the parsers for large documents. What is taken from it is taken from the whole
/// as well, afterwards.
#[derive(Debug)]
pub(super) struct BudgetHalf {
    pools: [Pool; 5],
    for_large: Arc<Semaphore>,
}

impl BudgetHalf {
    fn new(pools: &[Pool; 5], parsers: &Parsers) -> BudgetHalf {
        let half = |pool: &Pool| Pool::new((pool.capacity / 2).max(1));
        let for_large = (parsers.large_count / 2).max(1);
        BudgetHalf {
            pools: pools.each_ref().map(half),
            for_large: Arc::new(Semaphore::new(for_large)),
        }
    }

    /// Waits for units of the half of a share: all of it, if that is less.
    pub(super) async fn acquire(
        &self,
        share: Share,
        units: u32,
    ) -> Result<OwnedSemaphorePermit, AcquireError> {
        self.pools[share as usize].acquire(units).await
    }

    /// Waits for the permission to wait for a parser for large documents.
    pub(super) async fn acquire_parser(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.for_large).acquire_owned().await.ok()
    }

    fn bytes(&self, share: Share) -> u64 {
        u64::from(self.pools[share as usize].capacity) * UNIT_BYTES
    }
}

impl DocumentBudget {
    /// Returns this budget for work that may have half of each share, and of the parsers for large
    /// documents. Clones of it share the half.
    pub fn half(&self) -> DocumentBudget {
        let half = BudgetHalf::new(&self.pools, &self.parsers);
        DocumentBudget { half: Some(Arc::new(half)), ..self.clone() }
    }

    /// Returns the maximum length of a body: `limit_bytes`, or with half of a small budget, a length up to
    /// which each document fits into the half, but no less than that of small bodies.
    pub(crate) fn longest_body(&self, limit_bytes: u64) -> u64 {
        let Some(half) = &self.half else { return limit_bytes };
        let fits = |bytes: u64| {
            let length = usize::try_from(bytes).unwrap_or(usize::MAX >> 8);
            bytes <= half.bytes(Share::LargeBodies)
                && (2 * length + max_memory(length)) as u64 <= half.bytes(Share::LargeDocuments)
        };
        let mut longest = limit_bytes;
        while longest > SMALL_BODY_BYTES && !fits(longest) {
            longest = (longest / 8 * 7).max(SMALL_BODY_BYTES);
        }
        longest
    }
}
