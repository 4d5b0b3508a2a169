//! The worker that polls resources as they become due, or are pinged.

use std::sync::Arc;
use std::time::Duration;

use super::Poller;
use crate::jobs::claim_renewal::{ClaimRenewal, HeldClaim};
use crate::jobs::runner::{self, HostPermit, Job, LaneSlot};
use crate::net::{self, Patience};
use feedgate_core::resource::ResourceId;
use feedgate_core::store::{DueResource, StoreError};
use feedgate_store::Store;

/// Renews the claims of polls, each of which lasts as long as `lease`.
pub(super) fn renewal(store: Arc<Store>, lease: Duration) -> ClaimRenewal<ResourceId> {
    ClaimRenewal::start(Poller::NAME, lease, move |claims, now, until| {
        let store = Arc::clone(&store);
        async move { store.renew_resource_claims(&claims, now, until).await }
    })
}

/// A claimed resource, with the permit to poll its host.
#[derive(Debug)]
pub struct ClaimedPoll {
    due: DueResource,
    permit: HostPermit,
    claim: HeldClaim<ResourceId>,
}

/// What a poll takes up.
#[derive(Debug, Default)]
pub(super) struct PollPlace<'s> {
    /// The permit for the host group, which is returned when the group need not wait for this poll any more.
    pub(super) permit: Option<HostPermit>,
    /// The slot of the worker.
    pub(super) slot: Option<&'s LaneSlot>,
}

/// What a step of a poll waits for.
#[derive(Clone, Copy, Debug)]
pub(super) enum WaitsFor {
    /// Servers; or the threads and the store, with a document that keeps these busy.
    Others,
    /// The store, which is as slow for others.
    Store,
}

/// Awaits a step of a poll, whose slot moves to the slow lane if it takes long.
pub(super) async fn in_slot<T>(
    slot: Option<&LaneSlot>,
    waits_for: WaitsFor,
    step: impl Future<Output = T>,
) -> T {
    match (slot, waits_for) {
        (None, _) => step.await,
        (Some(slot), WaitsFor::Others) => slot.during(step).await,
        (Some(slot), WaitsFor::Store) => slot.during_own_work(step).await,
    }
}

impl Job for Poller {
    type Item = ClaimedPoll;

    const NAME: &'static str = "poll";

    const SLOW_LANE: usize = net::SLOW_LANE;
    const SLOW_AFTER: Duration = net::SLOW_AFTER;

    /// A ping over rssCloud makes a resource due and wakes the workers of all nodes, and the request
    /// itself polls the resource. On PostgreSQL it has usually claimed it 3 ms after the signal, so a worker
    /// that waits longer rarely competes with it. Other pings are fetched by a worker, so much later.
    const WAKE_DELAY: Duration = Duration::from_millis(5);

    /// Each claim reads the resources that are due, and those in hand before them.
    const GATHER: Duration = Duration::from_millis(20);

    async fn claim(&self, limit: usize) -> Result<Vec<Self::Item>, StoreError> {
        self.check_standstill(runner::now()).await?;
        // Read behind the check, which takes long if the clock was set.
        let now = runner::now();
        let (limits, until) = (self.permits.claim_limits(limit), self.claims.end_of_claim(now));
        let due = self.store.claim_resources(now, until, &limits).await?;
        let claimed = due.into_iter().map(|due| {
            let permit = self.permits.acquire(self.store.group(&due.resource.fetch_url));
            let claim = self.claims.hold_claim(due.resource.id, due.claim, until);
            ClaimedPoll { due, permit, claim }
        });
        Ok(claimed.collect())
    }

    async fn perform(&self, item: ClaimedPoll) -> Result<(), StoreError> {
        self.poll_claimed(item, None).await
    }

    /// The slot moves to the slow lane if the server takes long, rather than the store.
    async fn perform_in(&self, slot: LaneSlot, item: ClaimedPoll) -> Result<(), StoreError> {
        self.poll_claimed(item, Some(&slot)).await
    }

    fn number(item: &ClaimedPoll) -> Option<i64> {
        Some(item.due.resource.id.0)
    }
}

impl Poller {
    async fn poll_claimed(
        &self,
        item: ClaimedPoll,
        slot: Option<&LaneSlot>,
    ) -> Result<(), StoreError> {
        let ClaimedPoll { due, permit, claim: _held } = item;
        let place = PollPlace { permit: Some(permit), slot };
        self.poll_in(place, &due, runner::now(), Patience::Background).await.map(drop)
    }
}
