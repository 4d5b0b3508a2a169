//! The queue of deliveries: each subscription that is owed something has a row of its own, or is a member
//! of a batch, which is one row (`batches.rs`).
//!
//! A subscription is put into the queue by what makes it owe something (an append, a replay, a change of
//! the status), and removed by the result of the delivery that brings it up to date. In between a node
//! claims it, and a failed delivery gives it a later `due_at`. Whoever puts a subscription into the queue or
//! takes it out has locked the resource, except for claims, which remove expired subscriptions, and
//! releases, which remove paused ones. Moving a member from its batch to a row of its own requires only the
//! lock of the batch.

use chrono::{DateTime, Utc};

use crate::delivery::batch_members::is_in_no_batch;
use crate::delivery::batches;
use crate::engine::sql::{Value, params};
use crate::engine::tx::{Tx, Wake};
use feedgate_core::ports::StoreError;
use feedgate_core::subscription::SubscriptionId;

/// The beginning of a statement that selects subscriptions `s` for [`enqueue_unless_queued`]. It ends with a
/// condition.
macro_rules! select_due {
    () => {
        "select s.resource_id, s.id, s.account_id, s.host from subscriptions s"
    };
}
pub(crate) use select_due;

/// Makes subscriptions due that a statement beginning with `select_due!` selects; their resources are
/// locked. One that is in the queue stays as it is: new records are sent with the delivery that is in
/// progress or waits for a retry (rule D2).
pub(crate) async fn enqueue_unless_queued(
    tx: &Tx<'_>,
    select: &str,
    params: &[Value],
    keys: &[(&'static str, Value)],
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    // Citus (12.1) passes the same on with a syntax error as one `insert … select`.
    const INSERT: &str = "
        insert into deliveries (resource_id, subscription_id, account_id, host, due_at)
        {values resource_id, subscription_id, account_id, host, due_at}
            on conflict (resource_id, subscription_id) do nothing";
    let (mut resources, mut ids) = (Vec::new(), Vec::new());
    let (mut accounts, mut hosts) = (Vec::new(), Vec::new());
    for mut row in tx.query_rows(select, params, keys).await? {
        resources.push(row.int()?);
        ids.push(row.int()?);
        accounts.push(row.int()?);
        hosts.push(row.text()?);
    }
    let due_at = vec![now.timestamp_micros(); ids.len()];
    let columns = [
        ("resource_id", Value::Ints(resources)),
        ("subscription_id", Value::Ints(ids)),
        ("account_id", Value::Ints(accounts)),
        ("host", Value::Texts(hosts)),
        ("due_at", Value::Ints(due_at)),
    ];
    if tx.execute_rows(INSERT, &[], &columns).await? > 0 {
        tx.wake(Wake::Subscriptions);
    }
    Ok(())
}

/// The version of the status of a resource `r` that the subscription is owed (`Statuses::version`).
macro_rules! status_owed {
    () => {
        "case statuses when 'always' then r.status_version
                       when 'transitions' then r.announced_status_version else 0 end"
    };
}
pub(crate) use status_owed;

/// The number of the newest record or body of a resource `r` that the subscription is owed.
macro_rules! owed {
    () => {
        "case when format = 'raw' then r.body_version else r.head end"
    };
}
pub(crate) use owed;

/// The condition that a subscription to a resource `r` is owed something.
macro_rules! is_owed {
    () => {
        concat!("(cursor < ", owed!(), " or acknowledged_status < ", status_owed!(), ")")
    };
}
pub(crate) use is_owed;

/// The condition that a row of `subscriptions` has no row of its own in the queue, in which a replay may
/// wait for the end of a delivery. The cursor of a member of a batch may advance during its delivery, because
/// the result never moves it back.
macro_rules! has_no_own_row {
    () => {
        "not exists (select 1 from deliveries d
                      where d.resource_id = subscriptions.resource_id
                        and d.subscription_id = subscriptions.id)"
    };
}
pub(crate) use has_no_own_row;

/// Takes a subscription out of its batch and locks its row, so that no node claims it meanwhile.
/// Returns whether a node delivers.
pub(crate) async fn lock_in_progress(
    tx: &Tx<'_>,
    id: SubscriptionId,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    const LOCK: &str = "
        select claimed_until from deliveries
         where resource_id = $1 and subscription_id = $2 {for update}";
    let [resource, number] = [id.resource.0, id.number].map(|number| Value::Ints(vec![number]));
    batches::take_out(tx, &[("resource_id", resource), ("id", number)]).await?;
    let found = tx.first(LOCK, params![id.resource.0, id.number]).await?;
    let claimed_until = found.map_or(Ok(None), |mut row| row.opt_time())?;
    Ok(claimed_until.is_some_and(|until| until > now))
}

/// Makes a subscription due at once to which no node delivers. A replay that waits for the end of a
/// delivery stays.
pub(crate) async fn enqueue_subscription(
    tx: &Tx<'_>,
    id: SubscriptionId,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    const PUT: &str = "
        insert into deliveries (resource_id, subscription_id, account_id, host, due_at)
        select s.resource_id, s.id, s.account_id, s.host, cast($3 as bigint)
          from subscriptions s where s.resource_id = $1 and s.id = $2
            on conflict (resource_id, subscription_id) do update
           set due_at = excluded.due_at";
    tx.execute(PUT, params![id.resource.0, id.number, now]).await?;
    tx.wake(Wake::Subscriptions);
    Ok(())
}

/// Returns whether a subscription is owed something and not paused.
pub(crate) async fn owes_anything(tx: &Tx<'_>, id: SubscriptionId) -> Result<bool, StoreError> {
    const OWED: &str = concat!(
        "select 1 from subscriptions s join resources r on r.id = s.resource_id
          where s.resource_id = $1 and s.id = $2 and s.paused_at is null and ",
        is_owed!()
    );
    Ok(tx.first(OWED, params![id.resource.0, id.number]).await?.is_some())
}

/// Makes those of the given subscriptions (`resource_id` and `id`) due that are owed something, not
/// paused and not in the queue.
pub(crate) async fn enqueue_owed(
    tx: &Tx<'_>,
    keys: &[(&'static str, Value); 2],
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    const OWED: &str = concat!(
        select_due!(),
        " join {rows} on s.resource_id = given.resource_id and s.id = given.id
          join resources r on r.id = s.resource_id
          where s.paused_at is null and ",
        is_owed!(),
        " and ",
        is_in_no_batch!("s.resource_id", "s.id")
    );
    enqueue_unless_queued(tx, OWED, &[], keys, now).await
}

/// Sets where the delivery in progress leaves the cursor.
pub(crate) async fn replay_after(
    tx: &Tx<'_>,
    id: SubscriptionId,
    cursor: i64,
) -> Result<(), StoreError> {
    const REPLAY: &str = "
        update deliveries set replay_from = $3 where resource_id = $1 and subscription_id = $2";
    tx.execute(REPLAY, params![id.resource.0, id.number, cursor]).await.map(drop)
}

/// Deletes the row of a subscription.
pub(crate) async fn remove_one(tx: &Tx<'_>, id: SubscriptionId) -> Result<(), StoreError> {
    const REMOVE: &str = "delete from deliveries where resource_id = $1 and subscription_id = $2";
    tx.execute(REMOVE, params![id.resource.0, id.number]).await.map(drop)
}

/// Takes subscriptions out of the queue, given as `resource_id` and `id`.
pub(crate) async fn remove(
    tx: &Tx<'_>,
    keys: &[(&'static str, Value); 2],
) -> Result<(), StoreError> {
    const REMOVE: &str = "
        delete from deliveries
        {using rows}
         where deliveries.resource_id = {given resource_id}
           and deliveries.subscription_id = {given id}";
    batches::take_out(tx, keys).await?;
    tx.execute_rows(REMOVE, &[], keys).await.map(drop)
}

/// Takes those subscriptions out of the queue, given as `resource_id` and `id`, that have ended.
pub(crate) async fn remove_ended(
    tx: &Tx<'_>,
    keys: &[(&'static str, Value); 2],
) -> Result<(), StoreError> {
    const REMOVE: &str = "
        delete from deliveries
        {using rows}
         where deliveries.resource_id = {given resource_id}
           and deliveries.subscription_id = {given id}
           and not exists (select 1 from subscriptions s
                            where s.resource_id = deliveries.resource_id
                              and s.id = deliveries.subscription_id)";
    batches::take_out(tx, keys).await?;
    tx.execute_rows(REMOVE, &[], keys).await.map(drop)
}
