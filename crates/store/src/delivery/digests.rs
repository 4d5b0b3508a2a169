//! Digests: once a day, a subscription that requested it is sent the newest entries again (row S-14).
//!
//! A digest is a replay. The number of replays that it made tells it from those that were requested.

use chrono::{DateTime, TimeDelta, Utc};

use crate::delivery::deliveries;
use crate::engine::sql::params;
use crate::engine::tx::Tx;
use crate::resources::row;
use feedgate_core::ports::StoreError;
use feedgate_core::record::Seq;
use feedgate_core::resource::ResourceId;
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
        let resource = ResourceId(row.int()?);
        ids.push(SubscriptionId { resource, number: row.int()? });
    }
    row::lock(tx, ids.iter().map(|id| id.resource.0).collect()).await?;
    for id in &ids {
        start_one(tx, *id, now).await?;
    }
    Ok(ids.len() as u64)
}

async fn start_one(tx: &Tx<'_>, id: SubscriptionId, now: DateTime<Utc>) -> Result<(), StoreError> {
    // No index is of a sum, so that the row is found by its key.
    const UP_TO_DATE: &str = "
        select s.cursor
          from subscriptions s join resources r on r.id = s.resource_id
         where s.resource_id = $1 and s.id = $2 and s.digest_at + 0 <= $3 and s.paused_at is null
           and s.cursor > 0 and s.cursor = r.head and s.format <> 'raw' and r.kind <> 'other'";
    const NEXT: &str = "
        update subscriptions
           set digest_at = cast($3 as bigint) + cast($4 as bigint),
               digest_replays = case when cast($5 as bigint) = 1 then replays
                                     else digest_replays end
         where resource_id = $1 and id = $2";
    let found = tx.first(UP_TO_DATE, params![id.resource.0, id.number, now]).await?;
    let is_started = match found {
        Some(mut row) => {
            let cursor = Seq((row.int()? - MAX_ENTRIES).max(0));
            deliveries::replay(tx, id, cursor, now).await?
        }
        None => false,
    };
    let interval = INTERVAL.num_microseconds().unwrap_or(i64::MAX / 4);
    let params = params![id.resource.0, id.number, now, interval, i64::from(is_started)];
    tx.execute(NEXT, params).await.map(drop)
}
