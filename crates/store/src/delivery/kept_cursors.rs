//! The cursors of subscriptions whose leases have ended (rule D9).
//!
//! A subscriber that renews its lease late continues where it stopped, for as long as its cursor is
//! kept. Subscriptions that were ended otherwise, on request or with 410, leave none. Only WebSub
//! subscriptions leave one: rssCloud notifications say that a document changed, and not what is new.

use chrono::{DateTime, TimeDelta, Utc};
use sha2::{Digest, Sha256};

use crate::delivery::row::number;
use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::{DroppedSubscription, StoreError};
use feedgate_core::subscription::{Format, SubscriptionRequest};
use feedgate_protocol::Protocol;

/// How long a cursor is kept.
const KEPT_FOR: TimeDelta = TimeDelta::days(7);
/// The most cursors that are deleted in one transaction.
const BATCH: i64 = 500;

/// A subscription whose lease has ended.
pub(crate) struct EndedLease {
    pub(crate) resource: i64,
    pub(crate) alias: String,
    pub(crate) format: Format,
    pub(crate) cursor: i64,
}

/// Stores the cursors of subscriptions whose leases ended at `now`.
pub(crate) async fn keep_cursors(
    tx: &Tx<'_>,
    ended: Vec<(EndedLease, &DroppedSubscription)>,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    const KEEP: &str = "
        insert into kept_cursors (resource_id, hash, counts_bodies, cursor, until)
        {values resource_id, hash, counts_bodies, cursor, until}
            on conflict (resource_id, hash) do update
           set counts_bodies = excluded.counts_bodies, cursor = excluded.cursor,
               until = excluded.until";
    let is_kept = |dropped: &DroppedSubscription| dropped.protocol == Protocol::WebSub.as_str();
    let ended: Vec<_> = ended.into_iter().filter(|(_, dropped)| is_kept(dropped)).collect();
    let hashes = ended.iter().map(|(ended, dropped)| {
        hash(number(dropped.account), &dropped.callback, &dropped.protocol, &ended.alias)
    });
    let ints = |value: fn(&EndedLease) -> i64| {
        Value::Ints(ended.iter().map(|(ended, _)| value(ended)).collect())
    };
    let until = (now + KEPT_FOR).timestamp_micros();
    let columns = [
        ("resource_id", ints(|ended| ended.resource)),
        ("hash", Value::Blobs(hashes.collect())),
        ("counts_bodies", ints(|ended| (ended.format == Format::Raw).into())),
        ("cursor", ints(|ended| ended.cursor)),
        ("until", Value::Ints(vec![until; ended.len()])),
    ];
    tx.execute_rows(KEEP, &[], &columns).await.map(drop)
}

/// Returns the cursor from which a new subscription continues, and forgets it; `None` if it begins
/// with what comes next.
pub(crate) async fn take_cursor(
    tx: &Tx<'_>,
    id: ResourceId,
    request: &SubscriptionRequest,
    now: DateTime<Utc>,
) -> Result<Option<i64>, StoreError> {
    const TAKE: &str = "
        delete from kept_cursors where resource_id = $1 and hash = $2
        returning counts_bodies, cursor, until";
    if request.protocol != Protocol::WebSub {
        return Ok(None);
    }
    let (callback, protocol) = (request.callback.as_str(), request.protocol.as_str());
    let alias = request.topic.alias().unwrap_or_default();
    let hash = hash(number(request.account), callback, protocol, alias);
    let Some(mut row) = tx.first(TAKE, params![id.0, hash]).await? else { return Ok(None) };
    let (counts_bodies, cursor, until) = (row.int()? != 0, row.int()?, row.time()?);
    // A cursor over records has no meaning for bodies, nor the other way round.
    let is_usable = until > now && counts_bodies == (request.format == Format::Raw);
    Ok(is_usable.then_some(cursor))
}

/// Deletes cursors that are no longer kept, a bounded number of them.
pub(crate) async fn forget_cursors(tx: &Tx<'_>, now: DateTime<Utc>) -> Result<(), StoreError> {
    const OLD: &str = "
        select resource_id, hash from kept_cursors where until <= $1 order by until limit $2";
    const FORGET: &str = "
        delete from kept_cursors
         where (resource_id, hash) in (select given.resource_id, given.hash from {rows})
           and until <= $1";
    let (mut on, mut hashes) = (Vec::new(), Vec::new());
    for mut row in tx.query(OLD, params![now, BATCH]).await? {
        on.push(row.int()?);
        hashes.push(row.blob()?);
    }
    let columns = [("resource_id", Value::Ints(on)), ("hash", Value::Blobs(hashes))];
    tx.execute_rows(FORGET, params![now], &columns).await.map(drop)
}

fn hash(account: i64, callback: &str, protocol: &str, alias: &str) -> Vec<u8> {
    let mut hash = Sha256::new();
    hash.update(account.to_be_bytes());
    for part in [callback, protocol, alias] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().to_vec()
}
