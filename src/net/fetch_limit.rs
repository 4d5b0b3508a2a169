//! Limits the number of concurrent fetches of this node, those on behalf of requests included.
//!
//! Anybody can cause fetches by requests, of servers that take as long as they like. So fetches on
//! behalf of requests have a part of all permits, and never keep scheduled polls waiting. Those of strangers
//! have a part of these, of which no network has more than is left to the others. Fetches that
//! take long move to a slow lane, so that hundreds of servers that hang delay no fetch from another.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use super::fetch_owner::FetchOwner;
use super::politeness::Patience;
use crate::document_budget::{DocumentBudget, GatewayBusy, SMALL_BODY_BYTES, Share};
use crate::fair_shares::{FairShare, FairShares};
use crate::lane_slots::{LaneSlot, LaneSlots};
use feedgate_core::registrant::RegistrantNetwork;

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
    for_anonymous: LaneSlots,
    networks: FairShares<RegistrantNetwork>,
}

/// The permit for one fetch, until dropped.
#[derive(Debug)]
pub(super) struct FetchPermit {
    _slots: Arc<Vec<LaneSlot>>,
    _place: Option<FairShare<RegistrantNetwork>>,
    /// The task that moves them to the slow lanes.
    _moving: AbortOnDropHandle<()>,
}

impl FetchLimit {
    /// Creates `concurrency` permits. Fetches on behalf of requests have half of them, and no more
    /// than can fill half of the memory for small bodies; strangers have three quarters of these.
    pub(super) fn new(concurrency: usize, documents: &DocumentBudget) -> FetchLimit {
        let bodies = documents.capacity_bytes(Share::SmallBodies) / SMALL_BODY_BYTES / 2;
        let bodies = usize::try_from(bodies).unwrap_or(usize::MAX);
        let for_requests = (concurrency / 2).min(bodies).max(1);
        let slow_for_requests = (for_requests * SLOW_LANE).min(bodies);
        let concurrency = concurrency.max(1);
        let anonymous = |count: usize| (count - count.div_ceil(4)).max(1);
        let (quick, slow) = (anonymous(for_requests), anonymous(slow_for_requests));
        FetchLimit {
            all: LaneSlots::new(concurrency, concurrency * SLOW_LANE, SLOW_AFTER),
            for_requests: LaneSlots::new(for_requests, slow_for_requests, SLOW_AFTER),
            for_anonymous: LaneSlots::new(quick, slow, SLOW_AFTER),
            networks: FairShares::new((quick + slow) as u64),
        }
    }

    /// Waits for a permit, within the limits of `patience`.
    pub(super) async fn acquire(
        &self,
        patience: Patience,
        requester: FetchOwner,
    ) -> Result<FetchPermit, GatewayBusy> {
        let permit = timeout(patience.wait_for_gateway(), self.wait(patience, requester)).await;
        permit.ok().flatten().ok_or_else(GatewayBusy::for_now)
    }

    async fn wait(&self, patience: Patience, requester: FetchOwner) -> Option<FetchPermit> {
        // Permits for requests come first: a fetch that waits for one takes none of the others.
        let is_for_request = patience.is_for_request();
        let (mut slots, mut place) = (Vec::new(), None);
        if let FetchOwner::Anonymous(network) = requester
            && is_for_request
        {
            place = Some(self.networks.enter(network, 1).await);
            slots.push(self.for_anonymous.acquire().await?);
        }
        if is_for_request {
            slots.push(self.for_requests.acquire().await?);
        }
        slots.push(self.all.acquire().await?);
        let slots = Arc::new(slots);
        let held = Arc::clone(&slots);
        let moving = tokio::spawn(async move {
            join_all(held.iter().map(LaneSlot::turn_slow)).await;
        });
        Some(FetchPermit { _slots: slots, _place: place, _moving: AbortOnDropHandle::new(moving) })
    }
}

impl Patience {
    /// Returns whether a request waits for the fetch.
    pub fn is_for_request(self) -> bool {
        matches!(self, Patience::Interactive | Patience::FirstFetch)
    }

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
        while let Ok(permit) = limit.acquire(Patience::Interactive, FetchOwner::Known).await {
            requested.push(permit);
        }
        assert_eq!(requested.len(), 4 + 4 * SLOW_LANE, "the slow lane is full too");
        let mut polls = Vec::new();
        while let Ok(permit) = limit.acquire(Patience::Background, FetchOwner::Known).await {
            polls.push(permit);
        }
        assert_eq!(polls.len(), 4 + 4 * SLOW_LANE);
        requested.pop();
        assert!(limit.acquire(Patience::Interactive, FetchOwner::Known).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn h20_fetches_for_strangers_leave_permits_for_accounts_and_for_each_other() {
        let limit = FetchLimit::new(64, &DocumentBudget::new(1 << 30, 1));
        let network = |last: u8| RegistrantNetwork::from_client(Some([192, 0, 2, last].into()));
        let get = async |requester| limit.acquire(Patience::Interactive, requester).await;
        let mut held = Vec::new();
        for last in 1..=5 {
            while let Ok(permit) = get(FetchOwner::Anonymous(network(last))).await {
                held.push(permit);
            }
        }
        assert!(held.len() > 40, "{}", held.len());
        let sixth = get(FetchOwner::Anonymous(network(6))).await;
        assert!(sixth.is_ok(), "five networks leave permits to a sixth");
        let accounts = [get(FetchOwner::Known).await, get(FetchOwner::Known).await];
        assert!(accounts.iter().all(Result::is_ok), "an account does not wait for them");
        drop(held);
        let permit = get(FetchOwner::Anonymous(network(1))).await;
        assert!(permit.is_ok());
    }
}
