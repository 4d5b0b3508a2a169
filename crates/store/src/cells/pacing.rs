//! The pacing of publishers' hosts over all cells.
//!
//! The resources of one host lie in many cells, and its rate limit holds for all of them together.
//! So the state of hosts is in the shared schema, and a claim has two steps: a cell claims
//! resources without regard to their hosts, and the shared schema decides which of them are polled
//! now. The others are released at once, each with its own place in the queue of its host
//! (`resources/group_queue.rs`).

use std::collections::BTreeMap;
use std::error::Error;

use chrono::{DateTime, Utc};
use tracing::warn;

use crate::engine::lease::ClaimLease;
use crate::engine::sql::params;
use crate::engine::tx::Tx;
use crate::hosts;
use crate::resources::{group_queue, release};
use crate::{Db, Store};
use feedgate_core::host_groups::HostGroups;
use feedgate_core::poll::Trigger;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::{ClaimLimits, DueResource, ReleasedResource, StoreError};

/// The due time of a resource that waits for its host, and the reason.
pub(crate) type HostDelay = (DateTime<Utc>, String);

/// The result of a poll as far as it concerns the host.
#[derive(Clone, Debug)]
pub(crate) struct EndedPoll {
    /// The group of the host.
    pub(crate) group: String,
    pub(crate) is_well: bool,
    pub(crate) at: DateTime<Utc>,
    /// The time that the schedule plans for the next poll.
    pub(crate) next_fetch: DateTime<Utc>,
}

/// A claimed resource that may have to wait for its host.
#[derive(Clone, Debug)]
struct Candidate {
    group: String,
    is_pinged: bool,
}

impl Store {
    /// Claims resources of one cell that are polled now. Those that are not are released, also if the
    /// shared schema cannot decide.
    pub(crate) async fn claim_from_cell(
        &self,
        cell: &Db,
        limits: &ClaimLimits,
        lease: ClaimLease,
    ) -> Result<Vec<DueResource>, StoreError> {
        let limits_of_cell =
            ClaimLimits { per_host: usize::MAX, busy: Vec::new(), ..limits.clone() };
        let claimed = cell.claim_resources(lease, &limits_of_cell).await?;
        if claimed.is_empty() {
            return Ok(claimed);
        }
        let release = |due: &DueResource, delay| ReleasedResource {
            put_off: Some(delay),
            ..ReleasedResource::unchanged(due, lease.now)
        };
        let decided = match self.admit(&claimed, limits, lease).await {
            Ok(decided) => decided,
            Err(err) => {
                let undecided = claimed.iter().map(|due| release(due, (lease.now, String::new())));
                cell.put_back(undecided.collect()).await?;
                return Err(err);
            }
        };
        let (mut due, mut delayed) = (Vec::new(), Vec::new());
        for (claimed, delay) in claimed.into_iter().zip(decided) {
            match delay {
                None => due.push(claimed),
                Some(delay) => delayed.push(release(&claimed, delay)),
            }
        }
        if let Err(err) = cell.put_back(delayed).await {
            let error = &err as &dyn Error;
            warn!(
                error,
                "resources that wait for their hosts were not released; their claims expire"
            );
        }
        Ok(due)
    }

    /// Decides which of the claimed resources are polled now: `None` for these, and a later time
    /// for the others, in the order of `claimed`.
    pub(crate) async fn admit(
        &self,
        claimed: &[DueResource],
        limits: &ClaimLimits,
        lease: ClaimLease,
    ) -> Result<Vec<Option<HostDelay>>, StoreError> {
        let candidate = |due: &DueResource| Candidate {
            group: self.group(&due.resource.fetch_url),
            is_pinged: due.trigger == Trigger::Ping,
        };
        let candidates: Vec<_> = claimed.iter().map(candidate).collect();
        let (groups, limits) = (self.shared.groups.clone(), limits.clone());
        let decided = self.shared.write(move |tx| {
            Box::pin(async move { admit(tx, &groups, &limits, candidates, lease).await })
        });
        decided.await
    }

    /// Releases the host of a resource after its poll. Returns when the resource is polled next
    /// if its host is behind, so that it has to wait longer than planned.
    pub(crate) async fn release_host(
        &self,
        ended: EndedPoll,
    ) -> Result<Option<HostDelay>, StoreError> {
        self.shared.write(move |tx| Box::pin(release_host(tx, ended))).await
    }

    /// Claims the host of a resource that is polled out of turn.
    pub(crate) async fn hold_host(&self, group: &str, lease: ClaimLease) -> Result<(), StoreError> {
        let (group, groups) = (group.to_owned(), self.shared.groups.clone());
        let held = self.shared.write(move |tx| {
            Box::pin(async move { hosts::hold_group(tx, &groups, group, lease).await })
        });
        held.await
    }

    /// Extends the claims of hosts whose resources are being polled.
    pub(crate) async fn renew_hosts(
        &self,
        groups: Vec<String>,
        lease: ClaimLease,
    ) -> Result<(), StoreError> {
        self.shared.write(move |tx| Box::pin(hosts::renew_groups(tx, groups, lease))).await
    }
}

async fn admit(
    tx: &Tx<'_>,
    groups: &HostGroups,
    limits: &ClaimLimits,
    candidates: Vec<Candidate>,
    lease: ClaimLease,
) -> Result<Vec<Option<HostDelay>>, StoreError> {
    let names = candidates.iter().map(|candidate| candidate.group.clone()).collect();
    let mut queues = group_queue::read(tx, groups, names, lease.now).await?;
    let mut admitted = Vec::with_capacity(candidates.len());
    for candidate in &candidates {
        let is_busy = limits.busy.contains(&candidate.group);
        let queue = queues.get_mut(&candidate.group);
        admitted.push(!is_busy && queue.is_some_and(|queue| queue.admit_poll(limits.per_host)));
    }
    let taken = candidates.iter().zip(&admitted).filter(|(_, is_admitted)| **is_admitted);
    let taken = taken.map(|(candidate, _)| candidate.group.clone()).collect();
    let held = hosts::claim_groups(tx, groups, taken, (lease, limits.per_host == 1)).await?;
    let mut decided = Vec::with_capacity(candidates.len());
    for (candidate, is_admitted) in candidates.iter().zip(admitted) {
        let is_held = is_admitted && held.contains(&candidate.group);
        let queue = queues.get_mut(&candidate.group).filter(|_| !is_held);
        decided.push(queue.and_then(|queue| {
            let slot = queue.next_slot(candidate.is_pinged);
            let why = queue.reason(&candidate.group);
            Some((DateTime::from_timestamp_micros(slot.due_at)?, why))
        }));
    }
    group_queue::save(tx, &queues).await?;
    Ok(decided)
}

async fn release_host(tx: &Tx<'_>, ended: EndedPoll) -> Result<Option<HostDelay>, StoreError> {
    let EndedPoll { group, is_well, at, next_fetch } = ended;
    hosts::release(tx, &BTreeMap::from([(group.as_str(), (is_well, at))])).await?;
    let mut queues = group_queue::read_behind(tx, vec![group.clone()], at).await?;
    let Some(queue) = queues.get_mut(&group) else { return Ok(None) };
    let slot = queue.slot_after_poll(next_fetch.timestamp_micros());
    let why = queue.reason(&group);
    group_queue::save(tx, &queues).await?;
    let due_at = DateTime::from_timestamp_micros(slot.due_at).filter(|_| slot.is_queued);
    Ok(due_at.map(|due_at| (due_at, why)))
}

impl Db {
    /// Returns the host group of a resource.
    pub(crate) async fn group_of(&self, id: ResourceId) -> Result<Option<String>, StoreError> {
        const GROUP: &str = "select host from resources where id = $1";
        let rows = self.rows(GROUP, params![id.0]).await?;
        rows.into_iter().next().map(|mut row| row.text()).transpose()
    }

    /// Releases claimed resources that have to wait for their hosts.
    pub(crate) async fn put_back(&self, delayed: Vec<ReleasedResource>) -> Result<(), StoreError> {
        if delayed.is_empty() {
            return Ok(());
        }
        let put_back =
            self.write(move |tx| Box::pin(async move { release::end_claims(tx, &delayed).await }));
        put_back.await.map(drop)
    }

    /// Delays a resource whose poll has ended, unless a ping has made it due since.
    pub(crate) async fn queue_behind(
        &self,
        id: ResourceId,
        (due_at, why): HostDelay,
    ) -> Result<(), StoreError> {
        const DELAY: &str = "
            update resources
               set due_at = $2, next_fetch = $2, delay_reason = $3
             where id = $1 and pinged = 0 and claimed_until is null and due_at < $2";
        let delayed = self.write(move |tx| {
            Box::pin(async move { tx.execute(DELAY, params![id.0, due_at, why]).await })
        });
        delayed.await.map(drop)
    }
}
