//! What every poll leaves, whatever it found: when it is made again, the status, what the
//! poller remembers, and how it ended.
//!
//! Most polls find nothing and leave nothing else. These are kept many in one transaction
//! (`recorder.rs`); what a poll found besides is kept first (`append.rs`). The rows of the
//! resources are locked by then.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::try_join3;
use serde::Deserialize;

use super::sql::{self, Row, Value, params};
use super::tell::{Versions, tell_status};
use super::tx::{Tx, Wake};
use super::{Appended, StoreError, hosts};
use crate::domain::poll::{Found, Poll, Trigger};
use crate::domain::record::Seq;
use crate::domain::resource::ResourceId;
use crate::domain::schedule::Demand;
use crate::domain::status::Status;
use crate::domain::upstream::Offered;

/// The end of one poll.
#[derive(Clone, Debug)]
pub(super) struct Ending {
    id: ResourceId,
    at: DateTime<Utc>,
    trigger: Trigger,
    outcome: String,
    http_code: u16,
    took_ms: u32,
    wire_bytes: u64,
    is_well: bool,
    next_fetch: DateTime<Utc>,
    demand: Demand,
    is_failing: bool,
    versions: Versions,
    period_s: u32,
    measured: Measured,
    /// JSON of the status, and of what the poller remembers.
    status: String,
    polling: String,
}

/// What the row of a resource held when it was locked.
#[derive(Clone, Debug)]
pub(super) struct Held {
    /// The group of its servers.
    pub(super) host: String,
    /// 1: a ping came since the poll began; 2: the poll answers one.
    pub(super) pinged: i64,
    /// The least microseconds to the fetch that a ping wants.
    pub(super) spacing_us: i64,
    /// How often its status has changed.
    pub(super) versions: Versions,
}

/// What others than polls change in a status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Measured {
    last_maintenance_at: Option<DateTime<Utc>>,
    entries_count_since_last_maintenance: u64,
    velocity: u64,
}

impl Ending {
    /// The end of this poll, which found nothing but what is in its status, or whose
    /// findings have been kept.
    pub(super) fn of(id: ResourceId, poll: &Poll) -> Ending {
        let status = &poll.status;
        Ending {
            id,
            at: poll.at,
            trigger: poll.trigger,
            outcome: poll.outcome.clone(),
            http_code: status.http_code,
            took_ms: poll.took_ms,
            wire_bytes: poll.wire_bytes,
            is_well: poll.answered_well,
            next_fetch: poll.next_fetch,
            demand: poll.demand,
            is_failing: status.is_failing(),
            versions: Versions::of(status),
            period_s: status.period_s,
            measured: Measured::of(status),
            status: sql::json(status),
            polling: sql::json(&poll.polling),
        }
    }

    /// As it is with what was measured since the resource was claimed.
    fn with(mut self, measured: &Measured) -> Result<Ending, StoreError> {
        if self.measured != *measured {
            let status: Status = sql::parse_json(&self.status)?;
            self.status = sql::json(&Status {
                last_maintenance_at: measured.last_maintenance_at,
                entries_count_since_last_maintenance: measured.entries_count_since_last_maintenance,
                velocity: measured.velocity,
                ..status
            });
        }
        Ok(self)
    }
}

impl Measured {
    fn of(status: &Status) -> Measured {
        Measured {
            last_maintenance_at: status.last_maintenance_at,
            entries_count_since_last_maintenance: status.entries_count_since_last_maintenance,
            velocity: status.velocity,
        }
    }
}

/// Whether a poll leaves nothing but its [`Ending`].
pub(super) fn is_all(poll: &Poll) -> bool {
    let Poll { kind, fetch_url, site_url, feed_head, body, upstream, found, silent, .. } = poll;
    let is_same = kind.is_none() && fetch_url.is_none() && site_url.is_none();
    let is_empty = feed_head.is_none() && body.is_none() && *found == Found::Nothing;
    is_same && is_empty && *upstream == Offered::Unknown && !silent
}

/// Keeps polls that leave nothing but their ending. The results are in their order; a
/// resource that is not there is an error of its own poll only.
pub(super) async fn record(
    tx: &Tx<'_>,
    endings: Vec<Ending>,
) -> Result<Vec<Result<Appended, StoreError>>, StoreError> {
    let held = lock(tx, &endings).await?;
    let mut results = Vec::with_capacity(endings.len());
    let mut ended = Vec::with_capacity(endings.len());
    for ending in endings {
        let Some((head, measured, held)) = held.get(&ending.id.0) else {
            results.push(Err(missing(ending.id)));
            continue;
        };
        results.push(Ok(Appended { head: *head, new: 0 }));
        ended.push((ending.with(measured)?, held.clone(), 0));
    }
    // Of one resource that was polled twice, the later poll holds.
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

/// There is no such resource, or there is no more.
pub(super) fn missing(id: ResourceId) -> StoreError {
    StoreError::Corrupt(format!("there is no resource {id}"))
}

async fn lock(
    tx: &Tx<'_>,
    endings: &[Ending],
) -> Result<HashMap<i64, (Seq, Measured, Held)>, StoreError> {
    const LOCK: &str = "
        select id, head, host, pinged, spacing, status_version, status_news, status
          from resources
         where id in ({ids $1})
         order by id
           {for update}";
    let ids = Value::Ints(endings.iter().map(|ending| ending.id.0).collect());
    let rows = tx.query(LOCK, &[ids]).await?;
    let read = |mut row: Row| {
        let (id, head) = (row.int()?, Seq(row.int()?));
        let held = Held {
            host: row.text()?,
            pinged: row.int()?,
            spacing_us: row.int()?,
            versions: Versions { all: row.int()?, news: row.int()? },
        };
        Ok((id, (head, row.json()?, held)))
    };
    rows.into_iter().map(read).collect()
}

/// Keeps how these polls of different resources ended, each with the number of news it
/// brought, gives back the groups of their servers, and tells whom a change of status
/// concerns.
pub(super) async fn end(tx: &Tx<'_>, ended: &[(Ending, Held, usize)]) -> Result<(), StoreError> {
    let mut groups: BTreeMap<&str, (bool, DateTime<Utc>)> = BTreeMap::new();
    for (ending, held, _) in ended {
        let group = groups.entry(&held.host).or_insert((false, ending.at));
        *group = (group.0 || ending.is_well, group.1.max(ending.at));
    }
    let release = hosts::release(tx, &groups);
    try_join3(move_on(tx, ended), release, keep_outcomes(tx, ended)).await?;
    for (ending, held, _) in ended {
        tell_status(tx, ending.id, (held.versions, ending.versions), ending.at).await?;
    }
    if ended.iter().any(|(_, held, _)| held.pinged == 1) {
        tx.wake(Wake::Resources).await?;
    }
    Ok(())
}

/// Brings the rows of the resources up to date and ends the claims.
async fn move_on(tx: &Tx<'_>, ended: &[(Ending, Held, usize)]) -> Result<(), StoreError> {
    const MOVE_ON: &str = "
        update resources
           set status = {given status}, polling = {given polling}, failing = {given failing},
               next_fetch = {given next_fetch}, due_at = {given next_fetch}, claimed_until = null,
               pinged = {given pinged}, fetched_at = {given at}, put_off_why = null,
               least_s = {given least_s}, unit_ms = {given unit_ms},
               status_version = {given version}, status_news = {given news}, period = {given period}
          {from rows}
         where resources.id = {given id}";
    // What a ping told of may have been written after the server answered.
    let next_fetch = |ending: &Ending, held: &Held| match held.pinged {
        1 => ending.next_fetch.min(ending.at + TimeDelta::microseconds(held.spacing_us)),
        _ => ending.next_fetch,
    };
    let ints = |of: fn(&Ending) -> i64| Value::Ints(ended.iter().map(|(e, ..)| of(e)).collect());
    let texts = |of: fn(&Ending) -> &String| {
        Value::Texts(ended.iter().map(|(e, ..)| of(e).clone()).collect())
    };
    let next = ended.iter().map(|(ending, held, _)| next_fetch(ending, held).timestamp_micros());
    let pinged = ended.iter().map(|(_, held, _)| i64::from(held.pinged == 1));
    let columns = [
        ("id", ints(|ending| ending.id.0)),
        ("status", texts(|ending| &ending.status)),
        ("polling", texts(|ending| &ending.polling)),
        ("failing", ints(|ending| ending.is_failing.into())),
        ("next_fetch", Value::Ints(next.collect())),
        ("pinged", Value::Ints(pinged.collect())),
        ("at", ints(|ending| ending.at.timestamp_micros())),
        ("least_s", ints(|ending| ending.demand.least_s.into())),
        ("unit_ms", ints(|ending| ending.demand.unit_ms.try_into().unwrap_or(i64::MAX))),
        ("version", ints(|ending| ending.versions.all)),
        ("news", ints(|ending| ending.versions.news)),
        ("period", ints(|ending| ending.period_s.into())),
    ];
    tx.execute_rows(MOVE_ON, params![], &columns).await.map(drop)
}

async fn keep_outcomes(tx: &Tx<'_>, ended: &[(Ending, Held, usize)]) -> Result<(), StoreError> {
    const KEEP: &str = "
        insert into fetches (resource_id, at, trigger, outcome, http_code, took_ms,
                             wire_bytes, appended)
        select given.id, given.at, given.trigger, given.outcome, given.http_code, given.took_ms,
               given.wire_bytes, given.appended
          from {rows}";
    let ints = |of: fn(&Ending) -> i64| Value::Ints(ended.iter().map(|(e, ..)| of(e)).collect());
    let texts =
        |of: fn(&Ending) -> &str| Value::Texts(ended.iter().map(|(e, ..)| of(e).into()).collect());
    let columns = [
        ("id", ints(|ending| ending.id.0)),
        ("at", ints(|ending| ending.at.timestamp_micros())),
        ("trigger", texts(|ending| ending.trigger.as_str())),
        ("outcome", texts(|ending| &ending.outcome)),
        ("http_code", ints(|ending| ending.http_code.into())),
        ("took_ms", ints(|ending| ending.took_ms.into())),
        ("wire_bytes", ints(|ending| ending.wire_bytes.try_into().unwrap_or(i64::MAX))),
        ("appended", Value::Ints(ended.iter().map(|(.., news)| *news as i64).collect())),
    ];
    tx.execute_rows(KEEP, params![], &columns).await.map(drop)
}
