//! Limits the number of concurrent fetches of this node, those on behalf of requests included.
//!
//! Anybody can cause fetches by requests, of servers that take as long as they like. So fetches on
//! behalf of requests have a part of all permits, and never keep scheduled polls waiting.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::politeness::Patience;
use crate::document_budget::{DocumentBudget, GatewayBusy, SMALL_BODY_BYTES, Share};

/// The permits of this node.
#[derive(Debug)]
pub(super) struct FetchLimit {
    all: Arc<Semaphore>,
    for_requests: Arc<Semaphore>,
}

/// The permit for one fetch, until dropped.
#[derive(Debug)]
pub(super) struct FetchPermit {
    _all: OwnedSemaphorePermit,
    _for_requests: Option<OwnedSemaphorePermit>,
}

impl FetchLimit {
    /// Creates `concurrency` permits. Fetches on behalf of requests have half of them, and no more
    /// than can fill half of the memory for small bodies.
    pub(super) fn new(concurrency: usize, documents: &DocumentBudget) -> FetchLimit {
        let bodies = documents.capacity_bytes(Share::SmallBodies) / SMALL_BODY_BYTES / 2;
        let bodies = usize::try_from(bodies).unwrap_or(usize::MAX);
        let for_requests = (concurrency / 2).min(bodies).max(1);
        FetchLimit {
            all: Arc::new(Semaphore::new(concurrency.max(1))),
            for_requests: Arc::new(Semaphore::new(for_requests)),
        }
    }

    /// Waits for a permit, within the limits of `patience`.
    pub(super) async fn acquire(&self, patience: Patience) -> Result<FetchPermit, GatewayBusy> {
        let acquire = async {
            // Permits for requests come first: a fetch that waits for one takes none of the others.
            let for_requests = match patience {
                Patience::Interactive | Patience::FirstFetch => {
                    Arc::clone(&self.for_requests).acquire_owned().await.ok()
                }
                Patience::Background | Patience::Continued => None,
            };
            // Waiting fails only if a semaphore is closed, which nothing does.
            let all = Arc::clone(&self.all).acquire_owned().await.ok()?;
            Some(FetchPermit { _all: all, _for_requests: for_requests })
        };
        let permit = timeout(patience.wait_for_gateway(), acquire).await;
        permit.ok().flatten().ok_or_else(GatewayBusy::for_now)
    }
}

impl Patience {
    /// Returns how long a fetch waits for a permit or for memory.
    pub(super) fn wait_for_gateway(self) -> Duration {
        match self {
            Patience::Background | Patience::Continued => Duration::from_secs(2),
            Patience::Interactive | Patience::FirstFetch => Duration::from_secs(5),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn fetches_for_requests_leave_permits_for_scheduled_polls() {
        let limit = FetchLimit::new(8, &DocumentBudget::new(1 << 30, 1));
        let mut requested = Vec::new();
        while let Ok(permit) = limit.acquire(Patience::Interactive).await {
            requested.push(permit);
        }
        assert_eq!(requested.len(), 4);
        let mut polls = Vec::new();
        while let Ok(permit) = limit.acquire(Patience::Background).await {
            polls.push(permit);
        }
        assert_eq!(polls.len(), 4);
        requested.pop();
        assert!(limit.acquire(Patience::Interactive).await.is_ok());
    }
}
