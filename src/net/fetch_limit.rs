//! Limits the number of concurrent fetches of this node, those on behalf of requests included.
//!
//! Anybody can cause fetches by requests, of servers that take as long as they like. So fetches on
//! behalf of requests have a part of all permits, and never keep scheduled polls waiting. Fetches that
//! take long move to a slow lane, so that hundreds of servers that hang delay no fetch from another.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use super::politeness::Patience;
use crate::document_budget::{DocumentBudget, GatewayBusy, SMALL_BODY_BYTES, Share};
use crate::lane_slots::{LaneSlot, LaneSlots};

/// The size of the slow lane for fetches and polls, as a multiple of the quick one. A fetch that waits for
/// a response takes little more than a connection; the memory for its document is reserved later.
pub(crate) const SLOW_LANE: usize = 4;
/// How long a fetch takes before it moves to the slow lane. Many servers take longer; but as many fetches
/// begin together as the quick lane takes, so 300 of servers that hang delay the next one by half a second.
pub(crate) const SLOW_AFTER: Duration = Duration::from_millis(100);

/// The permits of this node.
#[derive(Debug)]
pub(super) struct FetchLimit {
    all: LaneSlots,
    for_requests: LaneSlots,
}

/// The permit for one fetch, until dropped.
#[derive(Debug)]
pub(super) struct FetchPermit {
    _slots: Arc<(LaneSlot, Option<LaneSlot>)>,
    /// The task that moves them to the slow lanes.
    _moving: AbortOnDropHandle<()>,
}

impl FetchLimit {
    /// Creates `concurrency` permits. Fetches on behalf of requests have half of them, and no more
    /// than can fill half of the memory for small bodies.
    pub(super) fn new(concurrency: usize, documents: &DocumentBudget) -> FetchLimit {
        let bodies = documents.capacity_bytes(Share::SmallBodies) / SMALL_BODY_BYTES / 2;
        let bodies = usize::try_from(bodies).unwrap_or(usize::MAX);
        let for_requests = (concurrency / 2).min(bodies).max(1);
        let slow_for_requests = (for_requests * SLOW_LANE).min(bodies);
        let concurrency = concurrency.max(1);
        FetchLimit {
            all: LaneSlots::new(concurrency, concurrency * SLOW_LANE, SLOW_AFTER),
            for_requests: LaneSlots::new(for_requests, slow_for_requests, SLOW_AFTER),
        }
    }

    /// Waits for a permit, within the limits of `patience`.
    pub(super) async fn acquire(&self, patience: Patience) -> Result<FetchPermit, GatewayBusy> {
        let acquire = async {
            // Permits for requests come first: a fetch that waits for one takes none of the others.
            let for_requests = match patience {
                Patience::Interactive | Patience::FirstFetch => {
                    Some(self.for_requests.acquire().await?)
                }
                Patience::Background | Patience::Continued => None,
            };
            let slots = Arc::new((self.all.acquire().await?, for_requests));
            let held = Arc::clone(&slots);
            let moving = tokio::spawn(async move {
                let of_requests = async {
                    if let Some(slot) = &held.1 {
                        slot.turn_slow().await;
                    }
                };
                tokio::join!(held.0.turn_slow(), of_requests);
            });
            Some(FetchPermit { _slots: slots, _moving: AbortOnDropHandle::new(moving) })
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
        assert_eq!(requested.len(), 4 + 4 * SLOW_LANE, "the slow lane is full too");
        let mut polls = Vec::new();
        while let Ok(permit) = limit.acquire(Patience::Background).await {
            polls.push(permit);
        }
        assert_eq!(polls.len(), 4 + 4 * SLOW_LANE);
        requested.pop();
        assert!(limit.acquire(Patience::Interactive).await.is_ok());
    }
}
