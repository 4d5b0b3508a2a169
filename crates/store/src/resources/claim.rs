//! Claiming due resources, as many of each host group as its rate limit allows, so that no group
//! delays the others; and renewing claims.
//!
//! The queue is read in the order in which resources became due, without locks, and a bounded
//! number of rows. The picked resources are claimed as any rows are (`engine/claims.rs`).
//!
//! A resource whose group is at its limit is delayed by the claim that reads it: it becomes due when
//! its group may be free (`group_queue.rs`). So the resources of a group that is always behind do
//! not gather at the front, where each claim would read them again.

use std::collections::{HashMap, HashSet};

use futures_util::try_join;

use crate::engine::claims::{ClaimedTable, readable};
use crate::engine::lease::ClaimLease;
use crate::engine::row::Row;
use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
use crate::hosts;
use crate::resources::group_queue::{self, GroupQueue};
use crate::resources::release;
use crate::resources::row::{resource, resource_columns};
use feedgate_core::claim::ClaimToken;
use feedgate_core::host_groups::HostGroups;
use feedgate_core::poll::Trigger;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::{ClaimLimits, DueResource, ReleasedResource, StoreError};

/// The number of rows that a claim reads in each step: a multiple of the wanted number, and no fewer than a
/// least number. The first step is enough while most groups are free. Where more is due than can be polled,
/// claims want few: what the first step reads beyond these is read again by the next claim.
const PORTIONS: [(usize, usize); 4] = [(1, 16), (4, 64), (4, 128), (4, 640)];

/// The resources that one transaction claimed.
#[derive(Debug)]
pub(crate) struct ClaimedResources {
    pub(crate) due: Vec<DueResource>,
    /// The resources that must wait for their groups.
    pub(crate) delays: GroupDelays,
    /// Whether another transaction may claim more: resources were left unread, or another node
    /// claimed the picked ones.
    pub(crate) may_have_more: bool,
}

/// Claims as many due resources as the limits allow.
pub(crate) async fn claim(
    tx: &Tx<'_>,
    groups: &HostGroups,
    limits: &ClaimLimits,
    lease: ClaimLease,
) -> Result<ClaimedResources, StoreError> {
    let mut search = Search::new(limits, lease);
    if limits.limit == 0 || limits.per_host == 0 {
        let delays = search.into_delays();
        return Ok(ClaimedResources { due: Vec::new(), delays, may_have_more: false });
    }
    let ((), is_end) = try_join!(tx.join_by_keys(), search.run(tx, groups))?;
    let picked = std::mem::take(&mut search.picked);
    let wanted = picked.len();
    let claimed = claim_picked(tx, &picked, lease).await?;
    let due = claim_groups(tx, groups, claimed, (lease, limits.per_host == 1)).await?;
    let may_have_more = due.is_empty() && (!is_end || wanted > 0);
    Ok(ClaimedResources { due, delays: search.into_delays(), may_have_more })
}

/// A resource whose group is at its limit.
#[derive(Clone, Debug)]
struct Delayed {
    id: i64,
    host: String,
    is_pinged: bool,
}

/// A search through the queue.
struct Search<'a> {
    limits: &'a ClaimLimits,
    busy: HashSet<&'a str>,
    lease: ClaimLease,
    queues: HashMap<String, GroupQueue>,
    /// The keys of the resources that are to be claimed.
    picked: Vec<[i64; 1]>,
    delayed: Vec<Delayed>,
}

impl<'a> Search<'a> {
    fn new(limits: &'a ClaimLimits, lease: ClaimLease) -> Search<'a> {
        let busy = limits.busy.iter().map(String::as_str).collect();
        let (queues, picked, delayed) = (HashMap::new(), Vec::new(), Vec::new());
        Search { limits, busy, lease, queues, picked, delayed }
    }

    fn into_delays(self) -> GroupDelays {
        GroupDelays { lease: self.lease, delayed: self.delayed, queues: self.queues }
    }

    /// Reads the queue until enough is picked. Returns whether its end was reached.
    async fn run(&mut self, tx: &Tx<'_>, groups: &HostGroups) -> Result<bool, StoreError> {
        const DUE: &str = "
            select id, host, pinged, due_at
              from resources
             where subscribers > 0 and due_at <= $1 and (due_at, id) > ($2, $3)
               and (claimed_until is null or claimed_until <= $4)
             order by due_at, id
             limit $5";
        let (mut due_at, mut id) = (i64::MIN, i64::MIN);
        for (multiple, least) in PORTIONS {
            let portion = (self.limits.limit * multiple).max(least);
            let now = self.lease.now;
            let rows = tx.query(DUE, params![now, due_at, id, now, portion as i64]).await?;
            let is_end = rows.len() < portion;
            let rows: Vec<Candidate> =
                rows.into_iter().map(Candidate::read).collect::<Result<_, _>>()?;
            let hosts = rows.iter().map(|row| &row.host);
            let new = hosts.filter(|host| !self.queues.contains_key(*host)).cloned().collect();
            self.queues.extend(group_queue::read(tx, groups, new, now).await?);
            for row in rows {
                if self.picked.len() == self.limits.limit {
                    return Ok(false);
                }
                (due_at, id) = (row.due_at, row.id);
                self.consider(row);
            }
            if is_end {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Picks a candidate if its group is below its limit.
    fn consider(&mut self, row: Candidate) {
        let Candidate { id, host, is_pinged, .. } = row;
        let is_busy = self.busy.contains(host.as_str());
        let queue = self.queues.get_mut(&host);
        if !is_busy && queue.is_some_and(|queue| queue.admit_poll(self.limits.per_host)) {
            self.picked.push([id]);
        } else {
            self.delayed.push(Delayed { id, host, is_pinged });
        }
    }
}

/// A due resource, as it was read without a lock.
struct Candidate {
    id: i64,
    host: String,
    is_pinged: bool,
    due_at: i64,
}

impl Candidate {
    fn read(mut row: Row) -> Result<Candidate, StoreError> {
        let (id, host) = (row.int()?, row.text()?);
        Ok(Candidate { id, host, is_pinged: row.int()? > 0, due_at: row.int()? })
    }
}

/// The claims of resources. Their due times stay as the schedule has planned them.
pub(crate) const RESOURCES: ClaimedTable<1> = ClaimedTable {
    columns: ", host",
    is_free: "due_at + 0 <= $2 and (claimed_until is null or claimed_until <= $2)",
    ends: "claimed_until = $1",
    set: ", pinged = case when pinged = 1 then 2 else pinged end",
    ..ClaimedTable::new("resources", ["id"])
};

/// Reads claimed resources.
const CLAIMED: &str = concat!(
    "select ",
    resource_columns!(),
    ", r.claim_token, r.pinged
       from {rows}
       join resources r on r.id = given.id
       join resource_details d on d.resource_id = r.id"
);

/// Claims those of the resources that no other node has claimed since they were read.
async fn claim_picked(
    tx: &Tx<'_>,
    picked: &[[i64; 1]],
    lease: ClaimLease,
) -> Result<Vec<ClaimedResource>, StoreError> {
    let claimed = RESOURCES.claim(tx, lease, picked).await?;
    let ids: Vec<_> = claimed.iter().map(|(id, _)| *id).collect();
    let rows = tx.query_rows(CLAIMED, &[], &RESOURCES.rows(&ids)).await?;
    let due = rows.into_iter().filter_map(|row| readable(due_resource(row)));
    let mut due: HashMap<_, _> = due.map(|due| (due.resource.id.0, due)).collect();
    let claimed = claimed.into_iter().filter_map(|([id], mut row)| {
        let due = due.remove(&id)?;
        Some(row.text().map(|group| ClaimedResource { due, group }))
    });
    claimed.collect()
}

/// A resource that is claimed, and the group that has yet to be.
struct ClaimedResource {
    due: DueResource,
    group: String,
}

/// Claims the host groups of claimed resources, for as long as the resources if they are polled
/// alone. A resource whose group another node has claimed meanwhile is given back, so a group is
/// claimed only together with a resource.
async fn claim_groups(
    tx: &Tx<'_>,
    groups: &HostGroups,
    claimed: Vec<ClaimedResource>,
    (lease, is_alone): (ClaimLease, bool),
) -> Result<Vec<DueResource>, StoreError> {
    let names = claimed.iter().map(|one| one.group.clone()).collect();
    let free = hosts::claim_groups(tx, groups, names, (lease, is_alone)).await?;
    let (due, lost): (Vec<_>, Vec<_>) =
        claimed.into_iter().partition(|one| free.contains(&one.group));
    let lost = lost.iter().map(|one| ReleasedResource::unchanged(&one.due, lease.now));
    release::end_claims(tx, &lost.collect::<Vec<_>>()).await?;
    Ok(due.into_iter().map(|one| one.due).collect())
}

/// Claims one resource, due or not, with its host group.
pub(crate) async fn claim_one(
    tx: &Tx<'_>,
    groups: &HostGroups,
    id: ResourceId,
    lease: ClaimLease,
) -> Result<Option<DueResource>, StoreError> {
    const OUT_OF_TURN: ClaimedTable<1> = ClaimedTable {
        is_free: "(claimed_until is null or claimed_until <= $2) and kind <> 'collection'",
        ..RESOURCES
    };
    let key = [[id.0]];
    let ((), mut claimed) = try_join!(tx.join_by_keys(), OUT_OF_TURN.claim(tx, lease, &key))?;
    let Some((_, mut row)) = claimed.pop() else { return Ok(None) };
    // The resource is locked now, before its group.
    let hold = hosts::hold_group(tx, groups, row.text()?, lease);
    let rows = RESOURCES.rows(&key);
    let ((), mut claimed) = try_join!(hold, tx.query_rows(CLAIMED, &[], &rows))?;
    let claimed = claimed.pop().map(due_resource).transpose()?;
    // A resource is claimed out of turn for a request that waits for the result.
    Ok(claimed.map(|due| DueResource { trigger: Trigger::Ping, ..due }))
}

fn due_resource(mut row: Row) -> Result<DueResource, StoreError> {
    let resource = resource(&mut row)?;
    let claim = ClaimToken(row.int()?);
    let trigger = if row.int()? > 0 { Trigger::Ping } else { Trigger::Schedule };
    Ok(DueResource { resource, claim, trigger })
}

/// Extends the claims that have not been lost, with those of their host groups, and returns their
/// resources.
pub(crate) async fn renew(
    tx: &Tx<'_>,
    claims: Vec<(ResourceId, ClaimToken)>,
    lease: ClaimLease,
) -> Result<RenewedClaims, StoreError> {
    const GROUPS: &str = "select distinct host from resources where id in ({ids $1})";
    let claims = claims.into_iter().map(|(id, token)| ([id.0], token)).collect();
    let renewed = RESOURCES.renew(tx, claims, lease.ends).await?;
    let ids: Vec<i64> = renewed.into_iter().map(|[id]| id).collect();
    let resources = ids.iter().copied().map(ResourceId).collect();
    let rows = tx.query(GROUPS, &[Value::Ints(ids)]).await?;
    let groups = rows.into_iter().map(|mut row| row.text()).collect::<Result<Vec<_>, _>>()?;
    hosts::renew_groups(tx, groups.clone(), lease).await?;
    Ok(RenewedClaims { resources, groups })
}

/// The resources whose claims were renewed.
#[derive(Clone, Debug)]
pub(crate) struct RenewedClaims {
    pub(crate) resources: Vec<ResourceId>,
    /// Their host groups, each once.
    pub(crate) groups: Vec<String>,
}

/// The resources that a claim has read and that must wait, because their groups are at their limit.
/// They are delayed in a transaction of their own: in that of the claim their rows would be locked
/// behind those of the claimed ones, and two nodes that read the same queue would wait for each
/// other.
#[derive(Clone, Debug)]
pub(crate) struct GroupDelays {
    lease: ClaimLease,
    delayed: Vec<Delayed>,
    queues: HashMap<String, GroupQueue>,
}

impl GroupDelays {
    /// Returns whether no resource must wait.
    pub(crate) fn is_empty(&self) -> bool {
        self.delayed.is_empty()
    }

    /// Moves the due time of each resource to when its group may be free, unless another node has
    /// claimed or delayed it since it was read.
    pub(crate) async fn store(mut self, tx: &Tx<'_>) -> Result<(), StoreError> {
        const DELAY: &str = "
            update resources
               set due_at = {given at}, next_fetch = {given at},
                   delay_reason = coalesce(nullif({given reason}, ''), delay_reason)
            {from rows}
             where resources.id = {given id} and due_at <= $1
               and (claimed_until is null or claimed_until <= $2)";
        if tx.has_clock_moved(&self.lease) {
            return Ok(()); // they are delayed when they are read again
        }
        let mut rows = Vec::with_capacity(self.delayed.len());
        for Delayed { id, host, is_pinged } in self.delayed {
            let Some(queue) = self.queues.get_mut(&host) else { continue };
            let slot = queue.next_slot(is_pinged);
            let reason = if slot.is_queued { queue.reason(&host) } else { String::new() };
            rows.push((id, slot.due_at, reason));
        }
        rows.sort_unstable_by_key(|(id, ..)| *id);
        let columns = [
            ("id", Value::Ints(rows.iter().map(|(id, ..)| *id).collect())),
            ("at", Value::Ints(rows.iter().map(|(_, at, _)| *at).collect())),
            ("reason", Value::Texts(rows.into_iter().map(|(.., reason)| reason).collect())),
        ];
        tx.execute_rows(DELAY, params![self.lease.now, self.lease.now], &columns).await?;
        group_queue::save(tx, &self.queues).await
    }
}
