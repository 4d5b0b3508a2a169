//! The end of a poll: what it found goes into the log, and whoever follows the log
//! becomes due, in one transaction (rules N11, N13).
//!
//! The resource's row is locked first, and everything else that changes a resource's
//! subscriptions locks it too. So numbers have no gaps, two nodes that found the same
//! change append it once, and no cursor is read while its head moves.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};

use super::sql::{self, Value, params};
use super::tx::{Tx, Wake};
use super::{Appended, StoreError, hosts, moves, pings, upstreams};
use crate::domain::limit::Groups;
use crate::domain::poll::{Body, Poll, Trigger};
use crate::domain::record::{EntryKey, NewRecord, Seq};
use crate::domain::resource::ResourceId;
use crate::domain::status::Status;

/// What the row held when it was locked.
struct Before {
    host: String,
    head: i64,
    body_version: i64,
    status: Status,
    /// 1: a ping came since the poll began; 2: the poll answers one.
    pinged: i64,
    spacing_us: i64,
}

/// Keeps all that `poll` found.
pub(super) async fn record(
    tx: &Tx<'_>,
    groups: &Groups,
    id: ResourceId,
    mut poll: Poll,
) -> Result<Appended, StoreError> {
    let before = lock(tx, id).await?;
    let records = unknown(tx, id, std::mem::take(&mut poll.records)).await?;
    let new = records.len();
    let head = before.head + new as i64;
    append(tx, id, before.head, records, poll.at).await?;
    let body_version = match poll.body.take() {
        Some(body) => keep_body(tx, id, before.body_version, body).await?,
        None => before.body_version,
    };
    move_on(tx, id, &before, &poll, (head, body_version)).await?;
    hosts::release(tx, &before.host, !poll.status.is_failing(), poll.at).await?;
    if let Some(url) = &poll.fetch_url {
        moves::settle(tx, groups, id, (url, poll.at)).await?;
    }
    if let Some(url) = &poll.site_url {
        pings::name(tx, id, "site", url).await?;
    }
    keep_outcome(tx, id, &poll, new, before.pinged != 0).await?;
    if new > 0 {
        upstreams::count(tx, id, (new, poll.trigger), poll.at).await?;
    }
    upstreams::offer(tx, id, std::mem::take(&mut poll.upstream), poll.at).await?;
    if poll.silent {
        // A body after the first is a change of it, whatever it has turned out to be.
        let there_before = if before.body_version == 0 { body_version } else { 0 };
        skip(tx, id, &before, (head, there_before)).await?;
    }
    if head > before.head || body_version > before.body_version {
        make_due(tx, id, poll.at, (head, body_version)).await?;
    }
    Ok(Appended { head: Seq(head), new })
}

/// Keeps what an upstream sent: records, and nothing else of the resource changes but
/// that there are more of them.
pub(super) async fn push(
    tx: &Tx<'_>,
    id: ResourceId,
    records: Vec<NewRecord>,
    at: DateTime<Utc>,
) -> Result<Appended, StoreError> {
    const GROW: &str = "update resources set head = $2, status = $3 where id = $1";
    let before = lock(tx, id).await?;
    let records = unknown(tx, id, records).await?;
    let new = records.len();
    let head = before.head + new as i64;
    if new > 0 {
        append(tx, id, before.head, records, at).await?;
        let mut status = before.status.clone();
        status.entries_count_since_last_maintenance += new as u64;
        tx.execute(GROW, params![id.0, head, sql::json(&status)]).await?;
        upstreams::count(tx, id, (new, Trigger::Push), at).await?;
        make_due(tx, id, at, (head, before.body_version)).await?;
    }
    Ok(Appended { head: Seq(head), new })
}

async fn lock(tx: &Tx<'_>, id: ResourceId) -> Result<Before, StoreError> {
    const LOCK: &str = "
        select host, head, body_version, status, pinged, spacing
          from resources
         where id = $1
           {for update}";
    let row = tx.first(LOCK, params![id.0]).await?;
    let mut row = row.ok_or_else(|| StoreError::Corrupt(format!("there is no resource {id}")))?;
    Ok(Before {
        host: row.text()?,
        head: row.int()?,
        body_version: row.int()?,
        status: row.json()?,
        pinged: row.int()?,
        spacing_us: row.int()?,
    })
}

/// Those whose key the log does not know, each key once.
async fn unknown(
    tx: &Tx<'_>,
    id: ResourceId,
    mut records: Vec<NewRecord>,
) -> Result<Vec<NewRecord>, StoreError> {
    let mut known = known(tx, id, records.iter().map(|record| &record.key)).await?;
    records.retain(|record| known.insert(record.key.0.to_vec()));
    Ok(records)
}

/// Which of `keys` the log knows.
pub(super) async fn known(
    tx: &Tx<'_>,
    id: ResourceId,
    keys: impl Iterator<Item = &EntryKey>,
) -> Result<HashSet<Vec<u8>>, StoreError> {
    const KNOWN: &str = "
        select key from entry_keys where resource_id = $1 and key in ({blobs $2})";
    let keys: Vec<_> = keys.map(|key| key.0.to_vec()).collect();
    if keys.is_empty() {
        return Ok(HashSet::new());
    }
    let known = tx.query(KNOWN, params![id.0, Value::Blobs(keys)]).await?;
    known.into_iter().map(|mut row| row.blob()).collect()
}

/// Numbers `records` from `head` + 1 and keeps them with their keys.
async fn append(
    tx: &Tx<'_>,
    id: ResourceId,
    head: i64,
    records: Vec<NewRecord>,
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    const KEYS: &str = "
        insert into entry_keys (resource_id, key, seen_at)
        select cast($1 as bigint), given.key, cast($2 as bigint) from {rows}";
    const RECORDS: &str = "
        insert into records (resource_id, seq, at, entry_hash, entry_id, atom)
        select cast($1 as bigint), given.seq, cast($2 as bigint), given.entry_hash,
               given.entry_id, given.atom
          from {rows}";
    let keys = records.iter().map(|record| record.key.0.to_vec()).collect();
    tx.execute_rows(KEYS, params![id.0, at], &[("key", Value::Blobs(keys))]).await?;

    let seqs = (head + 1..).take(records.len()).collect();
    let hashes = records.iter().map(|record| EntryKey::of(&record.entry_id).0.to_vec());
    let hashes = hashes.collect();
    let (ids, atoms) = records.into_iter().map(|record| (record.entry_id, record.atom)).unzip();
    let columns = [
        ("seq", Value::Ints(seqs)),
        ("entry_hash", Value::Blobs(hashes)),
        ("entry_id", Value::Texts(ids)),
        ("atom", Value::Texts(atoms)),
    ];
    tx.execute_rows(RECORDS, params![id.0, at], &columns).await.map(drop)
}

/// Keeps the newest body. Returns its version, which is `version` still if the bytes
/// are those already kept.
async fn keep_body(
    tx: &Tx<'_>,
    id: ResourceId,
    version: i64,
    body: Body,
) -> Result<i64, StoreError> {
    const SAME: &str = "select 1 from bodies where resource_id = $1 and hash = $2";
    const KEEP: &str = "
        insert into bodies (resource_id, version, content_type, hash, bytes)
        values ($1, $2, $3, $4, $5)
            on conflict (resource_id) do update
           set version = excluded.version, content_type = excluded.content_type,
               hash = excluded.hash, bytes = excluded.bytes";
    let hash = Sha256::digest(&body.bytes).to_vec();
    if tx.first(SAME, params![id.0, hash.clone()]).await?.is_some() {
        return Ok(version);
    }
    let params = params![id.0, version + 1, body.content_type, hash, body.bytes];
    tx.execute(KEEP, params).await?;
    Ok(version + 1)
}

/// Brings the resource's own row up to date and ends the claim.
async fn move_on(
    tx: &Tx<'_>,
    id: ResourceId,
    before: &Before,
    poll: &Poll,
    (head, body_version): (i64, i64),
) -> Result<(), StoreError> {
    const MOVE_ON: &str = "
        update resources
           set head = $2, body_version = $3, status = $4, polling = $5, failing = $6,
               next_fetch = $7, due_at = $7, claimed_until = null, pinged = $8,
               fetched_at = $9, put_off_why = null,
               kind = coalesce($10, kind), site_url = coalesce($11, site_url),
               feed_head = coalesce($12, feed_head), least_s = $13, unit_ms = $14
         where id = $1";
    // Upkeep may have measured the resource since it was claimed.
    let status = Status {
        last_maintenance_at: before.status.last_maintenance_at,
        velocity: before.status.velocity,
        entries_count_since_last_maintenance: before.status.entries_count_since_last_maintenance
            + head.abs_diff(before.head),
        ..poll.status.clone()
    };
    // What a ping told of may have been written after the server answered.
    let pinged = before.pinged == 1;
    let spacing = chrono::Duration::microseconds(before.spacing_us);
    let next_fetch = if pinged { poll.next_fetch.min(poll.at + spacing) } else { poll.next_fetch };
    let params = params![
        id.0,
        head,
        body_version,
        sql::json(&status),
        sql::json(&poll.polling),
        status.is_failing(),
        next_fetch,
        i64::from(pinged),
        poll.at,
        poll.kind.map(|kind| kind.as_str()),
        poll.site_url.as_deref(),
        poll.feed_head.as_deref(),
        i64::from(poll.demand.least_s),
        i64::try_from(poll.demand.unit_ms).unwrap_or(i64::MAX),
    ];
    tx.execute(MOVE_ON, params).await?;
    if pinged {
        tx.wake(Wake::Resources).await?;
    }
    Ok(())
}

async fn keep_outcome(
    tx: &Tx<'_>,
    id: ResourceId,
    poll: &Poll,
    new: usize,
    pinged: bool,
) -> Result<(), StoreError> {
    const KEEP: &str = "
        insert into fetches (resource_id, at, trigger, outcome, http_code, took_ms,
                             wire_bytes, appended, announced)
        values ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    #[rustfmt::skip]
    let params = params![
        id.0, poll.at, poll.trigger.as_str(), poll.outcome.as_str(),
        i64::from(poll.status.http_code), i64::from(poll.took_ms),
        i64::try_from(poll.wire_bytes).unwrap_or(i64::MAX), new as i64,
        pinged || poll.trigger == Trigger::Ping,
    ];
    tx.execute(KEEP, params).await.map(drop)
}

/// Makes every live subscription due that is now behind. One that is being told, or
/// waits for a retry, already has a later time: what is new comes with that (rule D2).
async fn make_due(
    tx: &Tx<'_>,
    id: ResourceId,
    at: DateTime<Utc>,
    (head, body_version): (i64, i64),
) -> Result<(), StoreError> {
    const BEHIND: &str = "
        update subscriptions
           set due_at = $2
         where resource_id = $1 and due_at is null and lease_until > $2
           and cursor < case when format = 'raw' then cast($4 as bigint)
                             else cast($3 as bigint) end";
    if tx.execute(BEHIND, params![id.0, at, head, body_version]).await? > 0 {
        tx.wake(Wake::Subscriptions).await?;
    }
    Ok(())
}

/// Moves those who had been told everything past what nobody is to be told: up to `head`,
/// or `body_version` where that is further.
async fn skip(
    tx: &Tx<'_>,
    id: ResourceId,
    before: &Before,
    (head, body_version): (i64, i64),
) -> Result<(), StoreError> {
    const SKIP: &str = "
        update subscriptions
           set cursor = case when format <> 'raw' then cast($3 as bigint)
                             when cursor < cast($2 as bigint) then cast($2 as bigint)
                             else cursor end
         where resource_id = $1 and due_at is null
           and cursor >= case when format = 'raw' then cast($4 as bigint)
                              else cast($5 as bigint) end";
    let params = params![id.0, body_version, head, before.body_version, before.head];
    tx.execute(SKIP, params).await.map(drop)
}
