//! The state that every poll stores, whatever it found: the time of the next poll, the status, the
//! polling state, and the outcome.
//!
//! Most polls find nothing and store nothing else. Such polls are stored many in one transaction
//! (`poll_result_batcher.rs`); new entries are stored first (`append.rs`). The rows of the
//! resources are locked by then.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::try_join;

use crate::clock::clock_moves::{ClockMoves, ClockStamp};
use crate::engine::row::Row;
use crate::engine::sql::{self, Value, params};
use crate::engine::tx::{Tx, Wake};
use crate::hosts;
use crate::log::append_budget;
use crate::log::fan_out::{Versions, mark_due_for_status};
use crate::resources::details;
use crate::resources::group_queue::{self, GroupQueue};
use crate::resources::measured::Measured;
use feedgate_core::claim::ClaimToken;
use feedgate_core::poll::{NewContent, Poll};
use feedgate_core::poll_times::PollTimes;
use feedgate_core::record::Seq;
use feedgate_core::resource::ResourceId;
use feedgate_core::schedule::Demand;
use feedgate_core::status::Status;
use feedgate_core::store::{Appended, StoreError};
use feedgate_core::upstream::UpstreamFinding;

/// The end of one poll.
#[derive(Clone, Debug)]
pub(crate) struct PollResult {
    id: ResourceId,
    claim: ClaimToken,
    /// The clock by which its times were read.
    clock: ClockStamp,
    at: DateTime<Utc>,
    is_well: bool,
    next_fetch: DateTime<Utc>,
    demand: Demand,
    is_failing: bool,
    is_gone: bool,
    versions: Versions,
    period_s: u32,
    left_alone_until: Option<DateTime<Utc>>,
    /// JSON of [`PollTimes`].
    pace: String,
    /// The details of the resource; `None` if they are unchanged.
    details: Option<Details>,
}

/// The details, which are written only if they changed.
#[derive(Clone, Debug)]
struct Details {
    measured: Measured,
    /// JSON of the status, and of the polling state.
    status: String,
    polling: String,
}

/// The columns of a resource when its row was locked.
#[derive(Clone, Debug)]
pub(crate) struct ResourceBefore {
    /// The claim of the resource.
    pub(crate) claim: ClaimToken,
    /// The host group of the resource.
    pub(crate) host: String,
    /// 1: a ping came since the poll began; 2: the poll is the response to a ping.
    pub(crate) pinged: i64,
    /// The least time from a ping to its fetch, in microseconds.
    pub(crate) spacing_us: i64,
    /// The versions of the status.
    pub(crate) versions: Versions,
    /// When the appends for subscribers without an account are paid for.
    pub(crate) appends_paid_at: DateTime<Utc>,
    /// How often the resource should be polled, as its subscriptions demand.
    pub(crate) demand: Demand,
}

impl PollResult {
    /// Returns the result of this poll, which found nothing but its status, or whose findings have
    /// been stored. `with_details` includes the details even if they are unchanged, and `clock` is the one by
    /// which the times of the poll were read.
    pub(crate) fn from_poll(
        id: ResourceId,
        poll: &Poll,
        with_details: bool,
        clock: ClockStamp,
    ) -> PollResult {
        let status = &poll.status;
        let kept = || Details {
            measured: Measured::from_status(status),
            status: details::json(status),
            polling: details::json(&poll.polling),
        };
        PollResult {
            id,
            claim: poll.claim,
            clock,
            at: poll.at,
            is_well: poll.answered_well,
            next_fetch: poll.next_fetch,
            demand: poll.demand,
            is_failing: status.is_failing(),
            is_gone: status.is_gone(),
            versions: Versions::from_status(status),
            period_s: status.period_s,
            left_alone_until: poll.polling.left_alone_until,
            pace: sql::json(&PollTimes::from_stored(status, &poll.polling)),
            details: (with_details || !poll.leaves_details).then(kept),
        }
    }

    /// Moves its times by as much as the clock was set since they were read.
    pub(crate) fn by_clock_of_now(mut self, moves: &ClockMoves) -> PollResult {
        let clock = moves.stamp();
        let by = moves.since(self.clock);
        self.clock = clock;
        self.at += by;
        self.next_fetch += by;
        self.left_alone_until = self.left_alone_until.map(|until| until + by);
        self
    }
}

impl Details {
    /// Replaces the measured fields with those that were stored since the resource was claimed.
    fn take_in(&mut self, measured: &Measured) -> Result<(), StoreError> {
        if self.measured != *measured {
            let status: Status = sql::parse_json(&self.status)?;
            self.status = details::json(&measured.clone().set(status));
        }
        Ok(())
    }
}

/// Returns whether a poll stores nothing but its [`PollResult`].
pub(crate) fn is_all(poll: &Poll) -> bool {
    let Poll {
        kind,
        fetch_url,
        source_network,
        site_url,
        feed_head,
        body,
        upstream,
        found,
        silent,
        ..
    } = poll;
    let is_same =
        kind.is_none() && fetch_url.is_none() && site_url.is_none() && source_network.is_none();
    let is_empty = feed_head.is_none() && body.is_none() && *found == NewContent::Nothing;
    let follows_baseline = poll.polling.baseline_at.is_some();
    is_same && is_empty && *upstream == UpstreamFinding::Unknown && !silent && !follows_baseline
}

/// A statement that reads resources before their polls are stored, without its lock.
macro_rules! columns_before {
    () => {
        "select id, head, claim_token, host, pinged, ping_interval, status_version,
                announced_status_version, min_period_s, base_period_ms, appends_paid_at
           from resources
          where id in ({ids $1})
          order by id "
    };
}

/// What became of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoredResult {
    /// It was stored.
    Stored(Appended),
    /// It was not stored, because the details that it leaves unchanged have been changed by another
    /// poll.
    DetailsChanged,
    /// It was not stored, because the claim of its poll was lost.
    ClaimLost,
}

/// The outcome of storing a result.
pub(crate) type RecordOutcome = Result<StoredResult, StoreError>;

/// Stores polls that have nothing but their result. The outcomes are in the order of the polls;
/// `None` if the row of the resource is locked by another transaction, or missing. A result whose
/// claim was lost changes nothing.
pub(crate) async fn record_together(
    tx: &Tx<'_>,
    endings: Vec<PollResult>,
) -> Result<Vec<Option<RecordOutcome>>, StoreError> {
    const LOCK_FREE: &str = concat!(columns_before!(), "{for update} {skip locked}");
    let held = lock(tx, LOCK_FREE, &endings).await?;
    record_locked(tx, endings, &held).await
}

/// Stores one poll that has nothing but its result. Waits for the row of its resource.
pub(crate) async fn record_alone(tx: &Tx<'_>, ending: PollResult) -> RecordOutcome {
    const LOCK: &str = concat!(columns_before!(), "{for update}");
    let (id, ending) = (ending.id, vec![ending]);
    let held = lock(tx, LOCK, &ending).await?;
    let outcome = record_locked(tx, ending, &held).await?.pop().flatten();
    outcome.unwrap_or_else(|| Err(details::missing(id)))
}

/// Stores the polls of resources whose rows are locked.
async fn record_locked(
    tx: &Tx<'_>,
    endings: Vec<PollResult>,
    held: &HashMap<i64, (Seq, ResourceBefore)>,
) -> Result<Vec<Option<RecordOutcome>>, StoreError> {
    let measured = measured(tx, &endings).await?;
    let (mut results, mut ended) = (Vec::with_capacity(endings.len()), Vec::new());
    for mut ending in endings {
        let Some((head, held)) = held.get(&ending.id.0) else {
            results.push(None);
            continue;
        };
        if held.claim != ending.claim {
            results.push(Some(Ok(StoredResult::ClaimLost)));
            continue;
        }
        match (&mut ending.details, measured.get(&ending.id.0)) {
            (Some(details), Some(measured)) => details.take_in(measured)?,
            // Another poll of the resource was recorded since this one began.
            (None, _) if held.versions != ending.versions => {
                results.push(Some(Ok(StoredResult::DetailsChanged)));
                continue;
            }
            _ => {}
        }
        results.push(Some(Ok(StoredResult::Stored(Appended { head: *head, new: 0 }))));
        ended.push((ending, held.clone()));
    }
    // If a resource was polled twice, the later poll counts.
    let mut seen = HashSet::new();
    let (mut now, mut before) = (Vec::new(), Vec::new());
    for ended in ended.into_iter().rev() {
        let later = if seen.insert(ended.0.id.0) { &mut now } else { &mut before };
        later.push(ended);
    }
    before.reverse();
    for ended in before {
        end(tx, &[ended]).await?;
    }
    end(tx, &now).await?;
    Ok(results)
}

async fn lock(
    tx: &Tx<'_>,
    statement: &'static str,
    endings: &[PollResult],
) -> Result<HashMap<i64, (Seq, ResourceBefore)>, StoreError> {
    let ids = Value::Ints(endings.iter().map(|ending| ending.id.0).collect());
    let rows = tx.query(statement, &[ids]).await?;
    let read = |mut row: Row| {
        let (id, head, claim) = (row.int()?, Seq(row.int()?), ClaimToken(row.int()?));
        let (host, pinged, spacing_us) = (row.text()?, row.int()?, row.int()?);
        let versions = Versions { all: row.int()?, announced: row.int()? };
        let (demand, appends_paid_at) = (demand(&mut row)?, row.time()?);
        #[rustfmt::skip]
        let before = ResourceBefore {
            claim, host, pinged, spacing_us, versions, demand, appends_paid_at,
        };
        Ok((id, (head, before)))
    };
    rows.into_iter().map(read).collect()
}

/// Reads `min_period_s` and `base_period_ms`.
pub(crate) fn demand(row: &mut Row) -> Result<Demand, StoreError> {
    Ok(Demand { least_s: row.small()?, unit_ms: row.count()? })
}

/// Returns the measured fields of the resources whose details are written.
async fn measured(
    tx: &Tx<'_>,
    endings: &[PollResult],
) -> Result<HashMap<i64, Measured>, StoreError> {
    const MEASURED: &str =
        "select resource_id, status from resource_details where resource_id in ({ids $1})";
    let written = endings.iter().filter(|ending| ending.details.is_some());
    let written: Vec<i64> = written.map(|ending| ending.id.0).collect();
    if written.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = tx.query(MEASURED, &[Value::Ints(written)]).await?;
    rows.into_iter().map(|mut row| Ok((row.int()?, row.json()?))).collect()
}

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
    for (ending, _) in ended {
        let Some(details) = &ending.details else { continue };
        ids.push(ending.id.0);
        statuses.push(details.status.clone());
        pollings.push(details.polling.clone());
    }
    let columns = [
        ("id", Value::Ints(ids)),
        ("status", Value::Texts(statuses)),
        ("polling", Value::Texts(pollings)),
    ];
    tx.execute_rows(KEEP, params![], &columns).await.map(drop)
}
