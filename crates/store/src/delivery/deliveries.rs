//! Cursors: handing out subscriptions that lag, and moving them on.
//!
//! `due_at` says when a subscription may be handed out: now, at a retry's time, at the
//! end of a claim, or never while it is null. An append makes due only what is not.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use crate::delivery::row::{subscription, subscription_columns};
use crate::delivery::subscriber_counts::count_off;
use crate::engine::claims::{self, ClaimQueue};
use crate::engine::sql::{Row, Value, params};
use crate::engine::tx::{Tx, Wake};
use crate::resources::row;
use feedgate_core::ports::{ClaimLimits, DeliveryProgress, DeliveryResult, LogNumbers, StoreError};
use feedgate_core::record::Seq;
use feedgate_core::resource::ResourceId;
use feedgate_core::subscription::{DueSubscription, SubscriptionId};

/// Subscriptions whose cursor lags. One whose lease has ended is told no more.
const QUEUE: ClaimQueue = ClaimQueue {
    front: "
        select resource_id, id, host
          from subscriptions
         where due_at <= $1 and lease_until > $1
         order by due_at
         limit $2
           {skip locked}",
    // Steps from host to host through the index instead of reading all that is due.
    hosts: "
        with recursive step (host) as (
            select min(host) from subscriptions where due_at is not null
            union all
            select (select min(s.host) from subscriptions s
                     where s.due_at is not null and s.host > step.host)
              from step
             where step.host is not null),
        first as (
            select host, (select min(s.due_at) from subscriptions s
                           where s.due_at is not null and s.host = step.host) as due_at
              from step
             where host is not null)
        select host
          from first
         where due_at <= $1 and host not in ({texts $2})
         order by due_at
         limit $3",
    of_host: "
        select resource_id, id, host
          from subscriptions
         where host = $2 and due_at <= $1 and lease_until > $1
         order by due_at
         limit $3
           {skip locked}",
};

/// The version of the status of a resource `r` that a subscription with this option is
/// owed (`Statuses::version`).
macro_rules! status_owed {
    ($statuses:literal) => {
        concat!(
            "case ",
            $statuses,
            " when 'always' then r.status_version
                when 'transitions' then r.announced_status_version else 0 end"
        )
    };
}

/// Hands out due subscriptions.
pub(crate) async fn claim(
    tx: &Tx<'_>,
    now: DateTime<Utc>,
    until: DateTime<Utc>,
    room: ClaimLimits,
) -> Result<Vec<DueSubscription>, StoreError> {
    // Whose taker died goes back where a replay wanted it.
    const CLAIM: &str = "
        update subscriptions
           set due_at = $1, claimed_until = $1, replay_from = null,
               cursor = coalesce(replay_from, cursor),
               claimed_upto = case when format = 'raw' then r.body_version else r.head end
          from {rows}
          join resources r on r.id = given.resource_id
         where subscriptions.resource_id = given.resource_id
           and subscriptions.id = given.id";
    const CLAIMED: &str = concat!(
        "select ",
        subscription_columns!(),
        ", s.claimed_upto, s.replayed_upto, ",
        status_owed!("s.statuses"),
        " from {rows}
           join subscriptions s on s.resource_id = given.resource_id and s.id = given.id
           join resources r on r.id = s.resource_id"
    );
    let picked = claims::pick(tx, &QUEUE, now, &room).await?;
    let columns = claims::columns(&picked);
    tx.execute_rows(CLAIM, params![until], &columns).await?;
    let rows = tx.query_rows(CLAIMED, &[], &columns).await?;
    Ok(claims::read(rows, &picked, due, |due| due.subscription.id.number))
}

fn due(mut row: Row) -> Result<DueSubscription, StoreError> {
    let subscription = subscription(&mut row)?;
    let (owed, told_before) = (Seq(row.int()?), Seq(row.int()?));
    Ok(DueSubscription { subscription, owed, told_before, status: row.int()? })
}

/// Keeps how deliveries ended.
///
/// The resources are locked before anything is read. An append takes the same lock, so
/// it is either done, and its head is seen here, or comes after and sees the cursors
/// written here. Without the lock a head could be read, moved by an append that finds
/// the subscription still claimed, and then `due_at` cleared for good: at "read
/// committed" PostgreSQL waits for a changed row of `subscriptions` and reads it anew,
/// but not the row of `resources` it was joined with.
pub(crate) async fn settle(
    tx: &Tx<'_>,
    settled: Vec<DeliveryResult>,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    lock_resources(tx, &settled).await?;
    let (mut delivered, mut waiting, mut failed, mut ended) =
        (BTreeMap::new(), BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for one in settled {
        match one {
            DeliveryResult::Delivered { id, cursor, status } => {
                let (furthest, latest) = delivered.entry(id).or_insert((cursor.0, status));
                (*furthest, *latest) = (cursor.0.max(*furthest), status.max(*latest));
            }
            DeliveryResult::Failed { id, retry_at: Some(at) } => {
                waiting.insert(id, at.timestamp_micros());
            }
            DeliveryResult::Failed { id, retry_at: None } => {
                failed.insert(id, 0);
            }
            DeliveryResult::Ended { id } => {
                ended.insert(id, 0);
            }
        }
    }
    let [resources, ids, told] = columns("told", &cursors(&delivered));
    let statuses = ("status", Value::Ints(delivered.values().map(|(_, status)| *status).collect()));
    let delivered = [resources, ids, told, statuses];
    let mut rows = tx.query_rows(DELIVERED, params![now], &delivered).await?;
    rows.extend(tx.query_rows(WAITING, params![now], &columns("retry_at", &waiting)).await?);
    rows.extend(tx.query_rows(FAILED, params![now], &columns("none", &failed)).await?);
    end(tx, &ended).await?;
    for mut row in rows {
        if row.opt_time()?.is_some_and(|due_at| due_at <= now) {
            tx.wake(Wake::Subscriptions).await?;
        }
    }
    Ok(())
}

/// Where a cursor stands once its delivery has ended: where a replay wanted it, else
/// never further back.
macro_rules! cursor_after {
    ($told:literal) => {
        concat!(
            "coalesce(replay_from, case when ",
            $told,
            " > cursor then ",
            $told,
            " else cursor end)"
        )
    };
}

/// What the subscription is owed by now.
macro_rules! owed {
    () => {
        "case when format = 'raw' then r.body_version else r.head end"
    };
}

/// The rest of a statement that ends claims: it gives what is due when.
macro_rules! of_given {
    () => {
        " from {rows}
          join resources r on r.id = given.resource_id
         where subscriptions.resource_id = given.resource_id
           and subscriptions.id = given.id
        returning subscriptions.due_at"
    };
}

const DELIVERED: &str = concat!(
    "update subscriptions
        set failures = 0, failed_changes = 0, failing_since = null, claimed_until = null, replay_from = null,
            acknowledged_status = case when given.status > acknowledged_status then given.status
                               else acknowledged_status end,
            replayed_upto = case when replay_from is not null and replayed_upto < given.told
                               then given.told else replayed_upto end,
            cursor = ",
    cursor_after!("given.told"),
    ", due_at = case when ",
    cursor_after!("given.told"),
    " < ",
    owed!(),
    " then cast($1 as bigint) when given.status < ",
    status_owed!("statuses"),
    " and acknowledged_status < ",
    status_owed!("statuses"),
    " then cast($1 as bigint) end",
    of_given!()
);

/// What ends a claim without moving its cursor on; `$due` says when it is due again.
macro_rules! failed {
    ($($due:expr),*) => {
        concat!(
            "update subscriptions
                set failures = failures + 1, failing_since = coalesce(failing_since, $1),
                    failed_changes = failed_changes + case when failed_changes = 0 or claimed_upto > failed_upto
                                           then 1 else 0 end,
                    failed_upto = case when failed_changes = 0 or claimed_upto > failed_upto
                                       then claimed_upto else failed_upto end,
                    claimed_until = null, replay_from = null,
                    cursor = ",
            cursor_after!("cursor"),
            ", due_at = case when ",
            $($due,)*
            " end",
            of_given!()
        )
    };
}

const WAITING: &str = failed!(
    cursor_after!("cursor"),
    " < ",
    owed!(),
    " or acknowledged_status < ",
    status_owed!("statuses"),
    " then given.retry_at"
);

/// A subscription is due at once only if there is more to deliver than what was tried.
const FAILED: &str =
    failed!("replay_from is not null or claimed_upto < ", owed!(), " then cast($1 as bigint)");

/// Locks the resources of the results: for writing if their subscribers are to be counted anew,
/// in share mode if not, so that results can be stored concurrently.
async fn lock_resources(tx: &Tx<'_>, settled: &[DeliveryResult]) -> Result<(), StoreError> {
    const HOLD: &str = "select id from resources where id in ({ids $1}) order by id {for share}";
    let ids = settled.iter().map(|one| id_of(one).resource.0).collect::<Vec<_>>();
    if settled.iter().any(|one| matches!(one, DeliveryResult::Ended { .. })) {
        return row::lock(tx, ids).await;
    }
    tx.query(HOLD, &[Value::Ints(ids)]).await.map(drop)
}

fn id_of(settled: &DeliveryResult) -> SubscriptionId {
    match settled {
        DeliveryResult::Delivered { id, .. }
        | DeliveryResult::Failed { id, .. }
        | DeliveryResult::Ended { id } => *id,
    }
}

fn cursors(delivered: &BTreeMap<SubscriptionId, (i64, i64)>) -> BTreeMap<SubscriptionId, i64> {
    delivered.iter().map(|(id, (cursor, _))| (*id, *cursor)).collect()
}

fn columns(
    name: &'static str,
    given: &BTreeMap<SubscriptionId, i64>,
) -> [(&'static str, Value); 3] {
    [
        ("resource_id", Value::Ints(given.keys().map(|id| id.resource.0).collect())),
        ("id", Value::Ints(given.keys().map(|id| id.number).collect())),
        (name, Value::Ints(given.values().copied().collect())),
    ]
}

async fn end(tx: &Tx<'_>, ended: &BTreeMap<SubscriptionId, i64>) -> Result<(), StoreError> {
    const END: &str = "
        delete from subscriptions
         where (resource_id, id) in (select given.resource_id, given.id from {rows})
        returning resource_id";
    let gone = tx.query_rows(END, &[], &columns("none", ended)).await?;
    let gone = gone.into_iter().map(|mut row| row.int());
    count_off(tx, &gone.collect::<Result<Vec<_>, StoreError>>()?).await
}

/// How far subscribers have been told of what came after `before`.
pub(crate) async fn delivery_progress(
    tx: &Tx<'_>,
    resource: ResourceId,
    before: LogNumbers,
    now: DateTime<Utc>,
) -> Result<DeliveryProgress, StoreError> {
    const TELLING: &str = "
        select coalesce(sum(case when s.format = 'raw'
                                 then case when s.cursor >= r.body_version
                                            and r.body_version > $3 then 1 else 0 end
                                 else case when s.cursor >= r.head
                                            and r.head > $2 then 1 else 0 end end), 0),
               coalesce(sum(case when s.claimed_until > $4 or s.due_at <= $4
                                 then 1 else 0 end), 0)
          from subscriptions s
          join resources r on r.id = s.resource_id
         where s.resource_id = $1 and s.lease_until > $4";
    let params = [resource.0.into(), before.head.0.into(), before.body_version.into(), now.into()];
    let Some(mut row) = tx.first(TELLING, &params).await? else {
        return Ok(DeliveryProgress::default());
    };
    Ok(DeliveryProgress { told: row.count()?, waiting: row.count()? })
}

/// Sets a cursor back. A delivery in hand is left to end first: it would move the
/// cursor on again.
pub(crate) async fn replay(
    tx: &Tx<'_>,
    id: SubscriptionId,
    cursor: Seq,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    const REPLAY: &str = "
        update subscriptions
           set cursor = case when claimed_until > $4 then cursor else $3 end,
               replay_from = case when claimed_until > $4 then cast($3 as bigint) end,
               replayed_upto = case when replayed_upto < cursor then cursor else replayed_upto end,
               due_at = case when claimed_until > $4 then due_at else $4 end
         where resource_id = $1 and id = $2 and cursor >= $3";
    row::lock(tx, vec![id.resource.0]).await?;
    let params = params![id.resource.0, id.number, cursor.0.max(0), now];
    let done = tx.execute(REPLAY, params).await? > 0;
    if done {
        tx.wake(Wake::Subscriptions).await?;
    }
    Ok(done)
}
