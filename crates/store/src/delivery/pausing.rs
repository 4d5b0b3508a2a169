//! Pausing, resuming and retrying deliveries at the request of a subscriber.
//!
//! The resource is locked first, as in `deliveries`: an append is either committed, and its head is
//! read here, or finds here whether the subscription is paused.

use chrono::{DateTime, Utc};

use crate::delivery::generations::next_generation;
use crate::delivery::owed::is_owed;
use crate::delivery::{backlogs, reading_lists};
use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
use crate::resources::row;
use feedgate_core::account::DeactivatedAccount;
use feedgate_core::store::StoreError;
use feedgate_core::subscription::SubscriptionId;

/// The subscriptions of an account that are changed in one transaction.
const BATCH: i64 = 500;

/// A part of the subscriptions of an account.
pub(crate) struct PausedBatch {
    /// How many were changed.
    pub(crate) changed: u64,
    /// The number after which the next batch begins; `None` if there is none.
    pub(crate) next: Option<i64>,
}

/// Pauses deliveries. A claim stays, so that the result of a delivery in progress is recorded.
pub(crate) async fn pause(
    tx: &Tx<'_>,
    id: SubscriptionId,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    const PAUSE: &str = concat!(
        "update subscriptions
            set paused_at = coalesce(paused_at, $3), is_suspended = 0, ",
        next_generation!(),
        " where resource_id = $1 and id = $2"
    );
    row::lock(tx, vec![id.resource.0]).await?;
    tx.execute(PAUSE, params![id.resource.0, id.number, now]).await.map(drop)
}

/// Ends a pause. Failures before a suspension count no more.
pub(crate) async fn resume(
    tx: &Tx<'_>,
    id: SubscriptionId,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    const RESUME: &str = concat!(
        "update subscriptions
            set paused_at = null, is_suspended = 0, retry_at = null,
                failures = case when is_suspended = 1 then 0 else failures end,
                failing_since = case when is_suspended = 1 then null else failing_since end, ",
        next_generation!(),
        " where resource_id = $1 and id = $2 and paused_at is not null"
    );
    row::lock(tx, vec![id.resource.0]).await?;
    if tx.execute(RESUME, params![id.resource.0, id.number]).await? > 0 {
        backlogs::mark_one(tx, id, now).await?;
    }
    Ok(())
}

/// Makes a delivery that is owed due at once. If one is in progress, its failure puts off nothing.
pub(crate) async fn retry(
    tx: &Tx<'_>,
    id: SubscriptionId,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    const OWED: &str = concat!(
        "select 1 from subscriptions s join resources r on r.id = s.resource_id
          where s.resource_id = $1 and s.id = $2 and s.paused_at is null and ",
        is_owed!()
    );
    const RETRY: &str = concat!(
        "update subscriptions set retry_at = null, ",
        next_generation!(),
        " where resource_id = $1 and id = $2"
    );
    row::lock(tx, vec![id.resource.0]).await?;
    let key = params![id.resource.0, id.number];
    if tx.first(OWED, key).await?.is_none() {
        return Ok(false);
    }
    tx.execute(RETRY, key).await?;
    backlogs::mark_one(tx, id, now).await?;
    Ok(true)
}

/// Pauses subscriptions of a deactivated account, those after the number `from`.
pub(crate) async fn pause_batch(
    tx: &Tx<'_>,
    account: DeactivatedAccount,
    from: i64,
) -> Result<PausedBatch, StoreError> {
    // No index is of a sum, so that the rows are found by their keys.
    const PAUSE: &str = concat!(
        "update subscriptions
            set paused_at = $2, ",
        next_generation!(),
        " where (resource_id, id) in (select given.resource_id, given.id from {rows})
            and account_id + 0 = $1 and paused_at is null"
    );
    let (keys, next) = lock_owned(tx, account, from).await?;
    let changed = tx.execute_rows(PAUSE, params![account.id.0, account.since], &keys).await?;
    Ok(PausedBatch { changed, next })
}

/// Resumes subscriptions that were paused when their account was deactivated, those after the number
/// `from`. The reading lists that they follow are due.
pub(crate) async fn resume_batch(
    tx: &Tx<'_>,
    account: DeactivatedAccount,
    from: i64,
    now: DateTime<Utc>,
) -> Result<PausedBatch, StoreError> {
    const RESUME: &str = concat!(
        "update subscriptions
            set paused_at = null, retry_at = null, ",
        next_generation!(),
        " where (resource_id, id) in (select given.resource_id, given.id from {rows})
            and account_id + 0 = $1 and paused_at = $2
         returning resource_id, id"
    );
    let (keys, next) = lock_owned(tx, account, from).await?;
    let (mut on, mut ids) = (Vec::new(), Vec::new());
    for mut row in tx.query_rows(RESUME, params![account.id.0, account.since], &keys).await? {
        on.push(row.int()?);
        ids.push(row.int()?);
    }
    let changed = ids.len() as u64;
    let resumed = [("resource_id", Value::Ints(on)), ("id", Value::Ints(ids))];
    backlogs::mark_ready(tx, &resumed, now).await?;
    reading_lists::mark_resumed_due(tx, &resumed).await?;
    Ok(PausedBatch { changed, next })
}

/// Locks the resources of subscriptions of an account, those after the number `from`. Returns the
/// subscriptions as columns for `{rows}`, and the last number if there may be more.
async fn lock_owned(
    tx: &Tx<'_>,
    account: DeactivatedAccount,
    from: i64,
) -> Result<([(&'static str, Value); 2], Option<i64>), StoreError> {
    const OWNED: &str = "
        select resource_id, id from subscriptions
         where account_id = $1 and id > $2 order by id limit $3";
    let (mut on, mut ids) = (Vec::new(), Vec::new());
    for mut row in tx.query(OWNED, params![account.id.0, from, BATCH]).await? {
        on.push(row.int()?);
        ids.push(row.int()?);
    }
    let next = ids.last().copied().filter(|_| ids.len() as i64 == BATCH);
    row::lock(tx, on.clone()).await?;
    Ok(([("resource_id", Value::Ints(on)), ("id", Value::Ints(ids))], next))
}
