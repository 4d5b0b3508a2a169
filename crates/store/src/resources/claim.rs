//! Claiming due resources: as many of each host group as its rate limit allows, so that no group
//! delays the others.
//!
//! The queue is read in the order in which resources became due, without locks, and a bounded
//! number of rows. A resource whose group is at its limit is delayed by the claim that reads it: it
//! becomes due when its group may be free (`group_queue.rs`). So the resources of a group that is
//! always behind do not gather at the front, where each claim would read them again.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};

use crate::engine::claims::{self, Picked};
use crate::engine::sql::{Row, Value, params};
use crate::engine::tx::Tx;
use crate::hosts;
use crate::resources::group_queue::{self, GroupQueue};
use crate::resources::row::{resource, resource_columns};
use feedgate_core::host_groups::HostGroups;
use feedgate_core::poll::Trigger;
use feedgate_core::ports::{ClaimLimits, DueResource, StoreError};

/// The number of rows that a claim reads in each step, as multiples of the wanted number. The first
/// step is enough while most groups are free.
const PORTIONS: [usize; 4] = [1, 4, 4, 4];
/// The least wanted number for the size of a step.
const LEAST_PORTION: usize = 64;

/// The times at which a claim begins and ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClaimTimes {
    pub(crate) now: DateTime<Utc>,
    pub(crate) until: DateTime<Utc>,
}

/// The resources that one transaction claimed.
#[derive(Debug)]
pub(crate) struct ClaimedResources {
    pub(crate) due: Vec<DueResource>,
    /// Whether another transaction may claim more: resources were left unread, or another node
    /// claimed the picked ones.
    pub(crate) may_have_more: bool,
}

/// Claims as many due resources as the limits allow.
pub(crate) async fn claim(
    tx: &Tx<'_>,
    groups: &HostGroups,
    limits: &ClaimLimits,
    times: ClaimTimes,
) -> Result<ClaimedResources, StoreError> {
    if limits.limit == 0 || limits.per_host == 0 {
        return Ok(ClaimedResources { due: Vec::new(), may_have_more: false });
    }
    let mut search = Search::new(limits, times.now);
    let is_end = search.run(tx, groups).await?;
    let Search { picked, delayed, mut queues, .. } = search;

    let wanted = picked.len();
    let ids = picked.iter().map(|job| job.number).chain(delayed.iter().map(|late| late.id));
    let free = lock_unclaimed(tx, ids.collect(), times.now).await?;
    let picked: Vec<Picked> = picked.into_iter().filter(|job| free.contains(&job.number)).collect();
    let alone = (limits.per_host == 1).then_some(times.until);
    let picked = hosts::claim_groups(tx, groups, picked, (times.now, alone)).await?;
    let due = claim_picked(tx, &picked, times).await?;

    let delayed: Vec<Delayed> =
        delayed.into_iter().filter(|late| free.contains(&late.id)).collect();
    delay(tx, delayed, &mut queues).await?;
    let may_have_more = due.is_empty() && (!is_end || wanted > 0);
    Ok(ClaimedResources { due, may_have_more })
}

/// A resource whose group is at its limit.
#[derive(Debug)]
struct Delayed {
    id: i64,
    host: String,
    is_pinged: bool,
}

/// A search through the queue.
struct Search<'a> {
    limits: &'a ClaimLimits,
    busy: HashSet<&'a str>,
    now: DateTime<Utc>,
    queues: HashMap<String, GroupQueue>,
    picked: Vec<Picked>,
    delayed: Vec<Delayed>,
}

impl<'a> Search<'a> {
    fn new(limits: &'a ClaimLimits, now: DateTime<Utc>) -> Search<'a> {
        let busy = limits.busy.iter().map(String::as_str).collect();
        let (queues, picked, delayed) = (HashMap::new(), Vec::new(), Vec::new());
        Search { limits, busy, now, queues, picked, delayed }
    }

    /// Reads the queue until enough is picked. Returns whether its end was reached.
    async fn run(&mut self, tx: &Tx<'_>, groups: &HostGroups) -> Result<bool, StoreError> {
        const DUE: &str = "
            select id, host, pinged, due_at
              from resources
             where subscribers > 0 and due_at <= $1 and (due_at, id) > ($2, $3)
               and (claimed_until is null or claimed_until <= $1)
             order by due_at, id
             limit $4";
        let (mut due_at, mut id) = (i64::MIN, i64::MIN);
        for portions in PORTIONS {
            let portion = self.limits.limit.max(LEAST_PORTION) * portions;
            let rows = tx.query(DUE, params![self.now, due_at, id, portion as i64]).await?;
            let is_end = rows.len() < portion;
            let rows: Vec<Candidate> =
                rows.into_iter().map(Candidate::read).collect::<Result<_, _>>()?;
            let hosts = rows.iter().map(|row| &row.host);
            let new = hosts.filter(|host| !self.queues.contains_key(*host)).cloned().collect();
            self.queues.extend(group_queue::read(tx, groups, new, self.now).await?);
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
            self.picked.push(Picked { resource: id, number: id, host });
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

/// Locks the resources that are still due and unclaimed, and returns them.
async fn lock_unclaimed(
    tx: &Tx<'_>,
    ids: Vec<i64>,
    now: DateTime<Utc>,
) -> Result<HashSet<i64>, StoreError> {
    // The order is the same in all statements that lock several resources (`row::lock`).
    const LOCK: &str = "
        select id from resources
         where id in ({ids $1}) and due_at <= $2
           and (claimed_until is null or claimed_until <= $2)
         order by id
           {for update}";
    if !tx.is_shared() {
        // SQLite has one writer: a resource that was unclaimed when it was read is unclaimed.
        return Ok(ids.into_iter().collect());
    }
    let rows = tx.query(LOCK, &[Value::Ints(ids), now.into()]).await?;
    rows.into_iter().map(|mut row| row.int()).collect()
}

async fn claim_picked(
    tx: &Tx<'_>,
    picked: &[Picked],
    times: ClaimTimes,
) -> Result<Vec<DueResource>, StoreError> {
    const CLAIM: &str = "
        update resources
           set claimed_until = $1,
               pinged = case when pinged = 1 then 2 else pinged end
          {from rows}
         where resources.id = {given id}";
    const CLAIMED: &str = concat!(
        "select ",
        resource_columns!(),
        ", r.pinged
           from {rows}
           join resources r on r.id = given.id
           join resource_details d on d.resource_id = r.id"
    );
    tx.execute_rows(CLAIM, params![times.until], &claims::columns(picked)).await?;
    let rows = tx.query_rows(CLAIMED, &[], &claims::columns(picked)).await?;
    Ok(claims::read(rows, picked, due_resource, |due| due.resource.id.0))
}

fn due_resource(mut row: Row) -> Result<DueResource, StoreError> {
    let resource = resource(&mut row)?;
    let trigger = if row.int()? > 0 { Trigger::Ping } else { Trigger::Schedule };
    Ok(DueResource { resource, trigger })
}

/// Moves the due time of each resource to when its group may be free.
async fn delay(
    tx: &Tx<'_>,
    delayed: Vec<Delayed>,
    queues: &mut HashMap<String, GroupQueue>,
) -> Result<(), StoreError> {
    const DELAY: &str = "
        update resources
           set due_at = {given at}, next_fetch = {given at},
               delay_reason = coalesce(nullif({given reason}, ''), delay_reason)
          {from rows}
         where resources.id = {given id}";
    let (mut ids, mut times, mut reasons) = (Vec::new(), Vec::new(), Vec::new());
    for Delayed { id, host, is_pinged } in delayed {
        let Some(queue) = queues.get_mut(&host) else { continue };
        let slot = queue.next_slot(is_pinged);
        ids.push(id);
        times.push(slot.due_at);
        reasons.push(if slot.is_queued { queue.reason(&host) } else { String::new() });
    }
    let columns =
        [("id", Value::Ints(ids)), ("at", Value::Ints(times)), ("reason", Value::Texts(reasons))];
    tx.execute_rows(DELAY, &[], &columns).await?;
    group_queue::save(tx, queues).await
}
