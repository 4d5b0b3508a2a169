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
use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
use crate::hosts;
use crate::resources::group_queue;
use crate::{Db, Store};
use feedgate_core::host_groups::HostGroups;
use feedgate_core::poll::Trigger;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::{ClaimLimits, DueResource, StoreError};

/// When a claim begins and ends, by the clock of the caller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClaimTimes {
    pub(crate) now: DateTime<Utc>,
    pub(crate) until: DateTime<Utc>,
}

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
        times: ClaimTimes,
    ) -> Result<Vec<DueResource>, StoreError> {
        let limits_of_cell =
            ClaimLimits { per_host: usize::MAX, busy: Vec::new(), ..limits.clone() };
        let claimed = cell.claim_resources(times.now, times.until, &limits_of_cell).await?;
        if claimed.is_empty() {
            return Ok(claimed);
        }
        let decided = match self.admit(&claimed, limits, times).await {
            Ok(decided) => decided,
            Err(err) => {
                let undecided = claimed.into_iter().map(|due| (due, (times.now, String::new())));
                cell.put_back(undecided.collect()).await?;
                return Err(err);
            }
        };
        let (mut due, mut delayed) = (Vec::new(), Vec::new());
        for (claimed, delay) in claimed.into_iter().zip(decided) {
            match delay {
                None => due.push(claimed),
                Some(delay) => delayed.push((claimed, delay)),
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
        times: ClaimTimes,
    ) -> Result<Vec<Option<HostDelay>>, StoreError> {
        let candidate = |due: &DueResource| Candidate {
            group: self.group(&due.resource.fetch_url),
            is_pinged: due.trigger == Trigger::Ping,
        };
        let candidates: Vec<_> = claimed.iter().map(candidate).collect();
        let (groups, limits) = (self.shared.groups.clone(), limits.clone());
        let leases = self.shared.claims.clone();
        let decided = self.shared.write(move |tx| {
            Box::pin(async move {
                let lease = leases.lease(times.now, times.until);
                admit(tx, &groups, &limits, candidates, lease).await
            })
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
    pub(crate) async fn hold_host(&self, group: &str, times: ClaimTimes) -> Result<(), StoreError> {
        let (group, groups) = (group.to_owned(), self.shared.groups.clone());
        let leases = self.shared.claims.clone();
        let held = self.shared.write(move |tx| {
            Box::pin(async move {
                let lease = leases.lease(times.now, times.until);
                hosts::hold_group(tx, &groups, group, lease).await
            })
        });
        held.await
    }

    /// Extends the claims of hosts whose resources are being polled.
    pub(crate) async fn renew_hosts(
        &self,
        groups: Vec<String>,
        times: ClaimTimes,
    ) -> Result<(), StoreError> {
        let leases = self.shared.claims.clone();
        let renewed = self.shared.write(move |tx| {
            Box::pin(async move {
                let lease = leases.lease(times.now, times.until);
                hosts::renew_groups(tx, groups, lease).await
            })
        });
        renewed.await
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

    /// Returns the host groups of some resources.
    pub(crate) async fn groups_of(&self, ids: &[ResourceId]) -> Result<Vec<String>, StoreError> {
        const GROUPS: &str = "select distinct host from resources where id in ({ids $1})";
        let ids = Value::Ints(ids.iter().map(|id| id.0).collect());
        let rows = self.rows(GROUPS, &[ids]).await?;
        rows.into_iter().map(|mut row| row.text()).collect()
    }

    /// Releases claimed resources that have to wait for their hosts.
    pub(crate) async fn put_back(
        &self,
        delayed: Vec<(DueResource, HostDelay)>,
    ) -> Result<(), StoreError> {
        const PUT_BACK: &str = "
            update resources
               set claimed_until = null, claim_token = 0,
                   pinged = case when pinged = 2 then 1 else pinged end,
                   due_at = {given at}, next_fetch = {given at}, delay_reason = {given reason}
            {from rows}
             where resources.id = {given id} and claim_token = {given token}";
        let ids = delayed.iter().map(|(due, _)| due.resource.id.0);
        let tokens = delayed.iter().map(|(due, _)| due.claim.0);
        let times = delayed.iter().map(|(_, (due_at, _))| due_at.timestamp_micros());
        let reasons = delayed.iter().map(|(_, (_, why))| why.clone());
        let columns = [
            ("id", Value::Ints(ids.collect())),
            ("token", Value::Ints(tokens.collect())),
            ("at", Value::Ints(times.collect())),
            ("reason", Value::Texts(reasons.collect())),
        ];
        if delayed.is_empty() {
            return Ok(());
        }
        let put_back = self.write(move |tx| {
            Box::pin(async move { tx.execute_rows(PUT_BACK, &[], &columns).await })
        });
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
