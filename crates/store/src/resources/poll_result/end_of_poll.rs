//! The rows that change with every poll: the resource goes on to its next fetch, and the group of its server is
//! released.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::try_join;

use super::{PollResult, ResourceBefore};
use crate::engine::sql::{Value, params};
use crate::engine::tx::{Tx, Wake};
use crate::hosts;
use crate::log::append_budget;
use crate::log::fan_out::mark_due_for_status;
use crate::resources::group_queue::{self, GroupQueue};
use crate::resources::names::{self, ListedDetails};
use feedgate_core::schedule::Demand;
use feedgate_core::store::StoreError;

/// Stores the results of these polls of different resources, releases the groups of their servers,
/// and wakes the workers that a change of status concerns.
pub(crate) async fn end(
    tx: &Tx<'_>,
    ended: &[(PollResult, ResourceBefore)],
) -> Result<(), StoreError> {
    let mut groups: BTreeMap<&str, (bool, DateTime<Utc>)> = BTreeMap::new();
    for (ending, held) in ended {
        let at = tx.at(ending.at);
        let group = groups.entry(&held.host).or_insert((false, at));
        *group = (group.0 || ending.is_well, group.1.max(at));
    }
    let release = hosts::release(tx, &groups);
    let names = groups.keys().map(|&name| name.to_owned()).collect();
    let latest = groups.values().map(|(_, at)| *at).max().unwrap_or_default();
    let mut queues = group_queue::read_behind(tx, names, latest).await?;
    let moved = move_on(tx, ended, &mut queues);
    try_join!(moved, keep_demands(tx, ended), keep_details(tx, ended), release)?;
    group_queue::save(tx, &queues).await?;
    for (ending, held) in ended {
        mark_due_for_status(tx, ending.id, (held.versions, ending.versions), ending.at).await?;
    }
    if ended.iter().any(|(_, held)| held.pinged == 1) {
        tx.wake(Wake::Resources);
    }
    Ok(())
}

/// Updates the rows of the resources and ends the claims. A resource whose group is behind goes to
/// the end of its queue.
async fn move_on(
    tx: &Tx<'_>,
    ended: &[(PollResult, ResourceBefore)],
    queues: &mut HashMap<String, GroupQueue>,
) -> Result<(), StoreError> {
    const MOVE_ON: &str = "
        update resources
           set poll_times = {given poll_times}, failing = {given failing},
               answered_at = case when {given failing} = 0 and {given is_well} = 1
                                  then {given at} else answered_at end,
               is_baseline_known = case when {given failing} = 0 and {given is_well} = 1
                                        then 1 else is_baseline_known end,
               gone_at = case when {given gone} = 1 then coalesce(gone_at, {given at}) else null end,
               next_fetch = {given next_fetch}, due_at = {given next_fetch}, claimed_until = null,
               claim_token = 0, pinged = {given pinged}, fetched_at = {given at}, delay_reason = nullif({given reason}, ''),
               status_version = {given version}, announced_status_version = {given announced},
               period_s = {given period_s}, left_alone_until = {given left_alone_until}
          {from rows}
         where resources.id = {given id}";
    let at = ended.iter().map(|(ending, _)| tx.at(ending.at).timestamp_micros());
    let ints = |of: fn(&PollResult) -> i64| Value::Ints(ended.iter().map(|(e, _)| of(e)).collect());
    let texts = |of: fn(&PollResult) -> &String| {
        Value::Texts(ended.iter().map(|(e, _)| of(e).clone()).collect())
    };
    let (mut next, mut reasons) = (Vec::new(), Vec::new());
    for (ending, held) in ended {
        let (due_at, reason) = next_fetch(tx, ending, held, queues.get_mut(&held.host));
        next.push(due_at);
        reasons.push(reason);
    }
    let pinged = ended.iter().map(|(_, held)| i64::from(held.pinged == 1));
    let left_alone = ended
        .iter()
        .map(|(ending, _)| ending.left_alone_until.map(|until| tx.at(until).timestamp_micros()));
    let left_alone = Value::OptInts(left_alone.collect());
    let columns = [
        ("id", ints(|ending| ending.id.0)),
        ("poll_times", texts(|ending| &ending.pace)),
        ("failing", ints(|ending| ending.is_failing.into())),
        ("is_well", ints(|ending| ending.is_well.into())),
        ("gone", ints(|ending| ending.is_gone.into())),
        ("next_fetch", Value::Ints(next)),
        ("reason", Value::Texts(reasons)),
        ("pinged", Value::Ints(pinged.collect())),
        ("at", Value::Ints(at.collect())),
        ("version", ints(|ending| ending.versions.all)),
        ("announced", ints(|ending| ending.versions.announced)),
        ("period_s", ints(|ending| ending.period_s.into())),
        ("left_alone_until", left_alone),
    ];
    tx.execute_rows(MOVE_ON, params![], &columns).await.map(drop)
}

/// Returns when a resource is polled next, in microseconds since 1970, and the reason if it must
/// wait for its group.
fn next_fetch(
    tx: &Tx<'_>,
    ending: &PollResult,
    held: &ResourceBefore,
    queue: Option<&mut GroupQueue>,
) -> (i64, String) {
    let earliest = append_budget::earliest(held.appends_paid_at);
    let wanted = tx.at(ending.next_fetch).max(earliest);
    match queue {
        // The change that a ping reported may have been written after the server responded.
        _ if held.pinged == 1 => {
            let spaced = tx.at(ending.at) + TimeDelta::microseconds(held.spacing_us);
            let spaced = spaced.max(ending.left_alone_until.map_or(spaced, |until| tx.at(until)));
            (wanted.min(spaced.max(earliest)).timestamp_micros(), String::new())
        }
        Some(queue) => {
            let slot = queue.slot_after_poll(wanted.timestamp_micros());
            (slot.due_at, if slot.is_queued { queue.reason(&held.host) } else { String::new() })
        }
        None => (wanted.timestamp_micros(), String::new()),
    }
}

/// Stores the poll demand of the resources for which it has changed.
async fn keep_demands(
    tx: &Tx<'_>,
    ended: &[(PollResult, ResourceBefore)],
) -> Result<(), StoreError> {
    const KEEP: &str = "
        update resources
           set min_period_s = {given least_s}, base_period_ms = {given unit_ms}
          {from rows}
         where resources.id = {given id}";
    let other = ended.iter().filter(|(ending, held)| !ending.demand.is_about(held.demand));
    let other: Vec<_> = other.map(|(ending, _)| (ending.id.0, ending.demand)).collect();
    let unit_ms = |demand: Demand| i64::try_from(demand.unit_ms).unwrap_or(i64::MAX);
    let columns = [
        ("id", Value::Ints(other.iter().map(|(id, _)| *id).collect())),
        ("least_s", Value::Ints(other.iter().map(|(_, it)| it.least_s.into()).collect())),
        ("unit_ms", Value::Ints(other.iter().map(|(_, it)| unit_ms(*it)).collect())),
    ];
    tx.execute_rows(KEEP, params![], &columns).await.map(drop)
}

/// Stores the details of the resources for which they have changed.
async fn keep_details(
    tx: &Tx<'_>,
    ended: &[(PollResult, ResourceBefore)],
) -> Result<(), StoreError> {
    const KEEP: &str = "
        update resource_details
           set status = {given status}, polling = {given polling}
          {from rows}
         where resource_details.resource_id = {given id}";
    let (mut ids, mut statuses, mut pollings) = (Vec::new(), Vec::new(), Vec::new());
    let mut listed = HashMap::new();
    for (ending, _) in ended {
        let Some(details) = &ending.details else { continue };
        ids.push(ending.id.0);
        let (title, last_new) = (details.title.as_str(), details.last_new);
        listed.insert(ending.id.0, ListedDetails { title, last_new });
        statuses.push(details.status.clone());
        pollings.push(details.polling.clone());
    }
    let columns = [
        ("id", Value::Ints(ids)),
        ("status", Value::Texts(statuses)),
        ("polling", Value::Texts(pollings)),
    ];
    tx.execute_rows(KEEP, params![], &columns).await?;
    names::follow_details(tx, listed).await
}
