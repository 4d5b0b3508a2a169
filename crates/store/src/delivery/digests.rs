//! Digests: once a day, a subscription that requested it is sent the newest entries again (row S-14).
//!
//! A digest is a replay. The number of replays that it made tells it from those that were requested.

use chrono::{DateTime, TimeDelta, Utc};

use crate::delivery::replays;
use crate::delivery::row::subscription_id;
use crate::engine::sql::params;
use crate::engine::tx::Tx;
use crate::resources::row;
use feedgate_core::record::Seq;
use feedgate_core::store::StoreError;
use feedgate_core::subscription::{SubscriptionId, SubscriptionRequest};

/// The time from one digest to the next.
const INTERVAL: TimeDelta = TimeDelta::days(1);
/// The most entries of a digest.
const MAX_ENTRIES: i64 = 10;
/// The most digests started in one transaction.
const BATCH: i64 = 100;

/// Returns when the first digest of a new subscription is due.
pub(crate) fn first(request: &SubscriptionRequest, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    request.digest.then(|| now + INTERVAL)
}

/// Starts up to [`BATCH`] digests that are due. Returns how many were. A subscription that is behind
/// is sent the newest entries anyway, and one that is paused is sent nothing.
pub(crate) async fn start(tx: &Tx<'_>, now: DateTime<Utc>) -> Result<u64, StoreError> {
    const DUE: &str = "
        select resource_id, id from subscriptions
         where digest_at <= $1 order by digest_at, id limit $2";
    let mut ids = Vec::new();
    for mut row in tx.query(DUE, params![now, BATCH]).await? {
        ids.push(subscription_id(&mut row)?);
    }
    row::lock(tx, ids.iter().map(|id| id.resource.0).collect()).await?;
    for id in &ids {
        start_one(tx, *id, now).await?;
    }
    Ok(ids.len() as u64)
}

async fn start_one(tx: &Tx<'_>, id: SubscriptionId, now: DateTime<Utc>) -> Result<(), StoreError> {
    const UP_TO_DATE: &str = "
        select digest_at, cursor from subscriptions
         where resource_id = $1 and id = $2 and paused_at is null
           and format <> 'raw' and cursor > 0
           and cursor = (select head from resources where id = $1 and kind <> 'other')";
    const NEXT: &str = "
        update subscriptions
           set digest_at = case when digest_at is not null
                                then cast($3 as bigint) + cast($4 as bigint) end,
               digest_replays = case when cast($5 as bigint) = 1 then replays
                                     else digest_replays end
         where resource_id = $1 and id = $2";
    let mut is_started = false;
    if let Some(mut row) = tx.first(UP_TO_DATE, params![id.resource.0, id.number]).await? {
        let is_due = row.opt_time()?.is_some_and(|at| at <= now);
        let cursor = Seq((row.int()? - MAX_ENTRIES).max(0));
        is_started = is_due && replays::replay(tx, id, cursor, now).await?;
    }
    let interval = INTERVAL.num_microseconds().unwrap_or(i64::MAX / 4);
    let params = params![id.resource.0, id.number, now, interval, i64::from(is_started)];
    tx.execute(NEXT, params).await.map(drop)
}
