//! Pausing, resuming and retrying deliveries at the request of a subscriber.
//!
//! The resource is locked first, as in `deliveries`: an append is either committed, and its head is
//! read here, or finds here whether the subscription is paused.

use chrono::{DateTime, Utc};

use crate::delivery::generations::{self, next_generation};
use crate::delivery::{batches, queue};
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
    tx.execute(PAUSE, params![id.resource.0, id.number, now]).await?;
    dequeue(tx, &key(id)).await
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
                failing_since = case when is_suspended = 1 then null else failing_since end, ",
        next_generation!(),
        " where resource_id = $1 and id = $2 and paused_at is not null"
    );
    row::lock(tx, vec![id.resource.0]).await?;
    if tx.execute(RESUME, params![id.resource.0, id.number]).await? > 0 {
        queue_resumed(tx, &key(id), now).await?;
    }
    Ok(())
}

/// Makes a delivery that is owed due at once. If one is in progress, its failure puts off nothing.
pub(crate) async fn retry(
    tx: &Tx<'_>,
    id: SubscriptionId,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    row::lock(tx, vec![id.resource.0]).await?;
    let is_in_progress = queue::lock_in_progress(tx, id, now).await?;
    let is_owed = queue::owes_anything(tx, id).await?;
    if is_owed {
        generations::begin(tx, id).await?;
    }
    if is_owed && !is_in_progress {
        queue::enqueue_subscription(tx, id, now).await?;
    }
    Ok(is_owed)
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
    dequeue(tx, &keys).await?;
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
            set paused_at = null, ",
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
    queue_resumed(tx, &resumed, now).await?;
    Ok(PausedBatch { changed, next })
}

fn key(id: SubscriptionId) -> [(&'static str, Value); 2] {
    [("resource_id", Value::Ints(vec![id.resource.0])), ("id", Value::Ints(vec![id.number]))]
}

/// Takes paused subscriptions out of the queue. The row of a delivery in progress stays until its
/// result is recorded.
async fn dequeue(tx: &Tx<'_>, keys: &[(&'static str, Value); 2]) -> Result<(), StoreError> {
    const WAITING: &str = "
        delete from deliveries
        {using rows}
         where deliveries.resource_id = {given resource_id}
           and deliveries.subscription_id = {given id}
           and claim_token = 0 and replay_from is null";
    const IN_PROGRESS: &str = "
        update deliveries set due_at = null
        {from rows}
         where deliveries.resource_id = {given resource_id}
           and deliveries.subscription_id = {given id}";
    batches::take_out(tx, keys).await?;
    tx.execute_rows(WAITING, &[], keys).await?;
    tx.execute_rows(IN_PROGRESS, &[], keys).await.map(drop)
}

/// Queues resumed subscriptions that are owed something, or to which a node delivered when they were
/// paused.
async fn queue_resumed(
    tx: &Tx<'_>,
    keys: &[(&'static str, Value); 2],
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    const IN_PROGRESS: &str = "
        update deliveries
           set due_at = case when claimed_until > $1 then claimed_until else cast($1 as bigint) end
        {from rows}
         where deliveries.resource_id = {given resource_id}
           and deliveries.subscription_id = {given id}";
    if tx.execute_rows(IN_PROGRESS, params![now], keys).await? > 0 {
        tx.wake(Wake::Subscriptions);
    }
    queue::enqueue_owed(tx, keys, now).await
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
