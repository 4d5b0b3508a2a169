//! The pacing of publishers' hosts over all cells.
//!
//! The resources of one host lie in many cells, and its rate limit holds for all of them together.
//! So the state of hosts is in the shared schema, and a claim has two steps: a cell claims
//! resources without regard to their hosts, and the shared schema decides which of them are polled
//! now. The others are released at once, each with its own place in the queue of its host
//! (`resources/group_queue.rs`).

use std::collections::{BTreeMap, HashSet};

use chrono::{DateTime, Utc};

use crate::Db;
use crate::cells::Cells;
use crate::engine::claims::Picked;
use crate::engine::sql::params;
use crate::engine::tx::Tx;
use crate::hosts;
use crate::resources::claim::ClaimTimes;
use crate::resources::group_queue;
use feedgate_core::host_groups::HostGroups;
use feedgate_core::poll::Trigger;
use feedgate_core::ports::{ClaimLimits, DueResource, Hosts, StoreError};
use feedgate_core::resource::ResourceId;

/// The due time of a resource that waits for its host, and the reason.
pub(super) type PutOff = (DateTime<Utc>, String);

/// The result of a poll as far as it concerns the host.
#[derive(Clone, Debug)]
pub(super) struct EndedPoll {
    /// The group of the host.
    pub(super) group: String,
    pub(super) is_well: bool,
    pub(super) at: DateTime<Utc>,
    /// The time that the schedule plans for the next poll.
    pub(super) next_fetch: DateTime<Utc>,
}

/// A claimed resource that may have to wait for its host.
#[derive(Clone, Debug)]
struct Candidate {
    group: String,
    is_pinged: bool,
}

impl Cells {
    /// Decides which of the claimed resources are polled now: `None` for these, and a later time
    /// for the others, in the order of `claimed`.
    pub(super) async fn admit(
        &self,
        claimed: &[DueResource],
        limits: &ClaimLimits,
        times: ClaimTimes,
    ) -> Result<Vec<Option<PutOff>>, StoreError> {
        let candidate = |due: &DueResource| Candidate {
            group: self.shared.group(&due.resource.fetch_url),
            is_pinged: due.trigger == Trigger::Ping,
        };
        let candidates: Vec<_> = claimed.iter().map(candidate).collect();
        let (groups, limits) = (self.shared.groups.clone(), limits.clone());
        let decided = self.shared.write(move |tx| {
            Box::pin(async move { admit(tx, &groups, &limits, candidates, times).await })
        });
        decided.await
    }

    /// Releases the host of a resource after its poll. Returns when the resource is polled next
    /// if its host is behind, so that it has to wait longer than planned.
    pub(super) async fn release_host(
        &self,
        ended: EndedPoll,
    ) -> Result<Option<PutOff>, StoreError> {
        self.shared.write(move |tx| Box::pin(release_host(tx, ended))).await
    }

    /// Claims the host of a resource that is polled out of turn.
    pub(super) async fn hold_host(&self, group: &str, times: ClaimTimes) -> Result<(), StoreError> {
        let (group, groups) = (group.to_owned(), self.shared.groups.clone());
        let held = self.shared.write(move |tx| {
            Box::pin(async move {
                hosts::hold_group(tx, &groups, group, (times.now, times.until)).await
            })
        });
        held.await
    }
}

async fn admit(
    tx: &Tx<'_>,
    groups: &HostGroups,
    limits: &ClaimLimits,
    candidates: Vec<Candidate>,
    times: ClaimTimes,
) -> Result<Vec<Option<PutOff>>, StoreError> {
    let names = candidates.iter().map(|candidate| candidate.group.clone()).collect();
    let mut queues = group_queue::read(tx, groups, names, times.now).await?;
    let mut picked = Vec::new();
    for (number, candidate) in candidates.iter().enumerate() {
        let is_busy = limits.busy.contains(&candidate.group);
        let queue = queues.get_mut(&candidate.group);
        if !is_busy && queue.is_some_and(|queue| queue.admit_poll(limits.per_host)) {
            let host = candidate.group.clone();
            picked.push(Picked { resource: 0, number: number as i64, host });
        }
    }
    let alone = (limits.per_host == 1).then_some(times.until);
    let held = hosts::claim_groups(tx, groups, picked, (times.now, alone)).await?;
    let held: HashSet<i64> = held.into_iter().map(|job| job.number).collect();
    let mut decided = Vec::with_capacity(candidates.len());
    for (number, candidate) in candidates.iter().enumerate() {
        let is_held = held.contains(&(number as i64));
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

async fn release_host(tx: &Tx<'_>, ended: EndedPoll) -> Result<Option<PutOff>, StoreError> {
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
    pub(super) async fn group_of(&self, id: ResourceId) -> Result<Option<String>, StoreError> {
        const GROUP: &str = "select host from resources where id = $1";
        let rows = self.rows(GROUP, params![id.0]).await?;
        rows.into_iter().next().map(|mut row| row.text()).transpose()
    }

    /// Delays a resource whose poll has ended, unless a ping has made it due since.
    pub(super) async fn queue_behind(
        &self,
        id: ResourceId,
        (due_at, why): PutOff,
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
