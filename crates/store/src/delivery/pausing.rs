//! Pausing, resuming and retrying deliveries at the request of a subscriber.
//!
//! The resource is locked first, as in `deliveries`: an append is either committed, and its head is
//! read here, or finds here whether the subscription is paused.

use chrono::{DateTime, Utc};

use crate::delivery::deliveries::{owed, status_owed};
use crate::engine::sql::{Value, params};
use crate::engine::tx::{Tx, Wake};
use crate::resources::row;
use feedgate_core::account::DeactivatedAccount;
use feedgate_core::ports::StoreError;
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

/// Whether a subscription to a resource `r` is owed something.
macro_rules! is_owed {
    () => {
        concat!(
            "(cursor < ",
            owed!(),
            " or replay_from is not null or acknowledged_status < ",
            status_owed!("statuses"),
            ")"
        )
    };
}

/// Pauses deliveries. A claim stays, so that the result of a delivery in progress is recorded.
pub(crate) async fn pause(
    tx: &Tx<'_>,
    id: SubscriptionId,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    const PAUSE: &str = "
        update subscriptions
           set paused_at = coalesce(paused_at, $3), is_suspended = 0, due_at = null
         where resource_id = $1 and id = $2";
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
            set paused_at = null, is_suspended = 0,
                failures = case when is_suspended = 1 then 0 else failures end,
                failing_since = case when is_suspended = 1 then null else failing_since end,
                due_at = case when subscriptions.claimed_until > $3 then subscriptions.claimed_until
                              when ",
        is_owed!(),
        " then cast($3 as bigint) end
           from resources r
          where r.id = subscriptions.resource_id
            and subscriptions.resource_id = $1 and subscriptions.id = $2
            and paused_at is not null"
    );
    row::lock(tx, vec![id.resource.0]).await?;
    if tx.execute(RESUME, params![id.resource.0, id.number, now]).await? > 0 {
        tx.wake(Wake::Subscriptions).await?;
    }
    Ok(())
}

/// Makes a delivery that is owed due at once, unless it is in progress.
pub(crate) async fn retry(
    tx: &Tx<'_>,
    id: SubscriptionId,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    const RETRY: &str = concat!(
        "update subscriptions
            set due_at = case when subscriptions.claimed_until > $3 then subscriptions.due_at
                              else $3 end
           from resources r
          where r.id = subscriptions.resource_id
            and subscriptions.resource_id = $1 and subscriptions.id = $2
            and paused_at is null and ",
        is_owed!()
    );
    row::lock(tx, vec![id.resource.0]).await?;
    let is_retried = tx.execute(RETRY, params![id.resource.0, id.number, now]).await? > 0;
    if is_retried {
        tx.wake(Wake::Subscriptions).await?;
    }
    Ok(is_retried)
}

/// Pauses subscriptions of a deactivated account, those after the number `from`.
pub(crate) async fn pause_batch(
    tx: &Tx<'_>,
    account: DeactivatedAccount,
    from: i64,
) -> Result<PausedBatch, StoreError> {
    // No index is of a sum, so that the rows are found by their keys.
    const PAUSE: &str = "
        update subscriptions
           set paused_at = $2, due_at = null
         where (resource_id, id) in (select given.resource_id, given.id from {rows})
           and account_id + 0 = $1 and paused_at is null";
    let (keys, next) = lock_owned(tx, account, from).await?;
    let changed = tx.execute_rows(PAUSE, params![account.id.0, account.since], &keys).await?;
    Ok(PausedBatch { changed, next })
}

/// Resumes subscriptions that were paused when their account was deactivated, those after the number
/// `from`.
pub(crate) async fn resume_batch(
    tx: &Tx<'_>,
    account: DeactivatedAccount,
    from: i64,
    now: DateTime<Utc>,
) -> Result<PausedBatch, StoreError> {
    const RESUME: &str = concat!(
        "update subscriptions
            set paused_at = null,
                due_at = case when subscriptions.claimed_until > $3 then subscriptions.claimed_until
                              when ",
        is_owed!(),
        " then cast($3 as bigint) end
           from resources r
          where r.id = subscriptions.resource_id
            and (subscriptions.resource_id, subscriptions.id)
                in (select given.resource_id, given.id from {rows})
            and account_id + 0 = $1 and paused_at = $2"
    );
    let (keys, next) = lock_owned(tx, account, from).await?;
    let params = params![account.id.0, account.since, now];
    let changed = tx.execute_rows(RESUME, params, &keys).await?;
    if changed > 0 {
        tx.wake(Wake::Subscriptions).await?;
    }
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
