//! Recording the results of deliveries: cursors advance, and claims end.
//!
//! The delivery is removed from the queue first (its row, or its id from its batch), which shows whether
//! its claim is still held. It is queued again if the subscription is owed more, or waits for a retry.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use foldhash::HashMap;
use futures_util::try_join;

use crate::delivery::batches::{self, DeliveredMember};
use crate::delivery::common_results::CommonResults;
use crate::delivery::generations;
use crate::delivery::new_deliveries::{self, NewDelivery};
use crate::delivery::result_columns::{Newest, ResultColumns};
use crate::delivery::subscriber_counts::{CountedSubscription, count_off, counted_columns};
use crate::engine::row::Row;
use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
use crate::log::pending_fan_outs;
use crate::resources::row;
use feedgate_core::claim::ClaimToken;
use feedgate_core::ports::{DeliveryOutcome, DeliveryResult, StoreError};
use feedgate_core::resource::ResourceId;
use feedgate_core::subscription::SubscriptionId;

/// Records the results of deliveries. A result whose claim was lost changes nothing.
///
/// The resources are locked before anything is read. An append takes the same lock, so it is either
/// committed, and its head is read here, or comes later and finds the cursors and the queue as they
/// are written here. Without the lock an append could find the subscription in the queue, and the row
/// then be deleted for good because an older head was read.
pub(crate) async fn settle(
    tx: &Tx<'_>,
    settled: Vec<DeliveryResult>,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    let ((), newest) = try_join!(tx.join_by_keys(), lock_resources(tx, &settled))?;
    let held = end_claims(tx, &settled).await?;
    let (mut delivered, mut waiting, mut failed) =
        <(ResultColumns, ResultColumns, ResultColumns)>::default();
    let (mut suspended, mut ended) = <(ResultColumns, ResultColumns)>::default();
    let (mut outdated, mut results) = (ResultColumns::default(), Vec::with_capacity(settled.len()));
    for result in &settled {
        let Some(held) = held.get(&(result.id, result.claim)) else { continue };
        let newest = newest.get(&result.id.resource.0).copied().unwrap_or_default().numbers;
        match held.generation.is_none_or(|generation| generation == result.generation) {
            true => results.push((result, held.replay_from, newest)),
            false => outdated.push(result, held.replay_from, newest, acknowledged(result)),
        }
    }
    let common = CommonResults::take_from(&mut results);
    for (result, replay_from, newest) in results {
        let (columns, numbers) = match result.outcome {
            DeliveryOutcome::Delivered { .. } => (&mut delivered, acknowledged(result)),
            DeliveryOutcome::Failed { retry_at: Some(at) } => {
                (&mut waiting, [at.timestamp_micros(), 0])
            }
            DeliveryOutcome::Failed { retry_at: None } => (&mut failed, [0, 0]),
            DeliveryOutcome::Suspended => (&mut suspended, [0, 0]),
            DeliveryOutcome::Ended => (&mut ended, [0, 0]),
        };
        columns.push(result, replay_from, newest, numbers);
    }
    let mut rows = common.store(tx, now).await?;
    rows.extend(generations::store_outdated(tx, outdated, now).await?);
    rows.extend(tx.query_rows(DELIVERED, params![now], &delivered.named("told", "status")).await?);
    rows.extend(tx.query_rows(WAITING, params![now], &waiting.named("retry_at", "unused")).await?);
    rows.extend(tx.query_rows(FAILED, params![now], &failed.named("none", "unused")).await?);
    tx.execute_rows(SUSPENDED, params![now], &suspended.named("none", "unused")).await?;
    end(tx, ended).await?;
    queue_again(tx, rows, &newest, now).await
}

/// Returns the last number and the version of the status that a callback has acknowledged; -1 if none.
fn acknowledged(result: &DeliveryResult) -> [i64; 2] {
    match result.outcome {
        DeliveryOutcome::Delivered { cursor, status } => [cursor.0, status],
        _ => [-1, -1],
    }
}

/// A claim that a result ends.
#[derive(Clone, Copy, Default)]
struct EndedClaim {
    /// Where to set the cursor of the subscription.
    replay_from: Option<i64>,
    /// The generation of the subscription; `None` if it is the one that was claimed: whoever begins a new one
    /// takes the subscription out of its batch.
    generation: Option<i64>,
}

/// Removes deliveries whose claims are still held from the queue. Returns these claims.
async fn end_claims(
    tx: &Tx<'_>,
    settled: &[DeliveryResult],
) -> Result<HashMap<(SubscriptionId, ClaimToken), EndedClaim>, StoreError> {
    const END: &str = "
        delete from deliveries
        {using rows}
         where deliveries.resource_id = {given resource_id}
           and deliveries.subscription_id = {given id} and claim_token = {given claim}
        returning deliveries.resource_id, subscription_id, claim_token, replay_from,
                  (select s.generation from subscriptions s
                    where s.resource_id = deliveries.resource_id
                      and s.id = deliveries.subscription_id)";
    let members = settled.iter().filter_map(|DeliveryResult { id, claim, batch, .. }| {
        batch.map(|batch| DeliveredMember { id: *id, batch, claim: *claim })
    });
    let members: Vec<_> = members.collect();
    let ended = batches::end_members(tx, &members).await?;
    let mut held: HashMap<_, _> =
        ended.into_iter().map(|claim| (claim, EndedClaim::default())).collect();
    // A delivery that has left its batch has the claim itself.
    let single = settled.iter().filter(|result| !held.contains_key(&(result.id, result.claim)));
    let single: Vec<_> = single.collect();
    let numbers = |number: fn(&DeliveryResult) -> i64| {
        Value::Ints(single.iter().map(|result| number(result)).collect())
    };
    let columns = [
        ("resource_id", numbers(|result| result.id.resource.0)),
        ("id", numbers(|result| result.id.number)),
        ("claim", numbers(|result| result.claim.0)),
    ];
    for mut row in tx.query_rows(END, &[], &columns).await? {
        let id = SubscriptionId { resource: ResourceId(row.int()?), number: row.int()? };
        let claim = ClaimToken(row.int()?);
        let ended = EndedClaim { replay_from: row.opt_int()?, generation: row.opt_int()? };
        held.insert((id, claim), ended);
    }
    Ok(held)
}

/// Queues the subscriptions again whose rows, with their numbers and due times, have a due time. While a pass
/// over all subscriptions of a resource is under way, those that are due at once are left to the next pass, so
/// that nobody is notified twice before all others are notified once.
async fn queue_again(
    tx: &Tx<'_>,
    rows: Vec<Row>,
    locked: &HashMap<i64, LockedResource>,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    const AGAIN: &str = "
        select given.due_at, s.resource_id, s.id, s.account_id, s.host
          from {rows}
          join subscriptions s on s.resource_id = given.resource_id and s.id = given.id";
    let (mut resources, mut ids, mut times) = (Vec::new(), Vec::new(), Vec::new());
    let mut left = BTreeSet::new();
    for mut row in rows {
        let (resource, id, due_at) = (row.int()?, row.int()?, row.opt_time()?);
        let Some(due_at) = due_at else { continue };
        if due_at <= now && locked.get(&resource).is_some_and(|locked| locked.is_passed_over) {
            left.insert(resource);
            continue;
        }
        resources.push(resource);
        ids.push(id);
        times.push(due_at.timestamp_micros());
    }
    if !left.is_empty() {
        pending_fan_outs::repeat_passes(tx, &left.into_iter().collect::<Vec<_>>()).await?;
    }
    let columns = [
        ("resource_id", Value::Ints(resources)),
        ("id", Value::Ints(ids)),
        ("due_at", Value::Ints(times)),
    ];
    let again = tx.query_rows(AGAIN, &[], &columns).await?.into_iter().map(|mut row| {
        let due_at = row.time()?;
        NewDelivery::read(&mut row, due_at)
    });
    new_deliveries::enqueue(tx, again.collect::<Result<_, _>>()?, now).await
}

/// The cursor after the end of a delivery: the start of a requested replay, or else never further
/// back than before.
macro_rules! cursor_after {
    ($told:literal) => {
        concat!(
            "coalesce({given replay_from}, case when ",
            $told,
            " > cursor then ",
            $told,
            " else cursor end)"
        )
    };
}

/// The number of the newest record or body that a subscription is owed.
macro_rules! newest {
    () => {
        "case when format = 'raw' then {given body_version} else {given head} end"
    };
}

/// The version of the status that a subscription is owed (`Statuses::version`).
macro_rules! newest_status {
    () => {
        "case statuses when 'always' then {given status_version}
                       when 'transitions' then {given announced} else 0 end"
    };
}

/// The rest of a statement that records results: it returns each subscription with the time at which
/// it is due again, `$due`, or null if it is paused or the condition `$owed` is not met.
macro_rules! of_given {
    ($due:literal, $($owed:expr),*) => {
        concat!(
            " {from rows}
             where subscriptions.resource_id = {given resource_id}
               and subscriptions.id = {given id}
            returning subscriptions.resource_id, subscriptions.id,
                      case when paused_at is null and (",
            $($owed,)*
            ") then cast(",
            $due,
            " as bigint) end"
        )
    };
}

/// The assignments that record an attempt, if a request was made.
macro_rules! attempted {
    () => {
        "attempted_at = case when {given code} < 0 then attempted_at else cast($1 as bigint) end,
         attempt_status = case when {given code} < 0 then attempt_status else {given code} end,
         attempt_excerpt = case when {given code} < 0 then attempt_excerpt
                                else {given excerpt} end, "
    };
}

const DELIVERED: &str = concat!(
    "update subscriptions set ",
    attempted!(),
    "       failures = 0, failed_changes = 0, failing_since = null,
            acknowledged = acknowledged + case when {given code} < 0 then 0 else 1 end,
            acknowledged_status = case when {given status} > acknowledged_status
                                       then {given status} else acknowledged_status end,
            replayed_upto = case when {given replay_from} is not null
                                  and replayed_upto < {given told} then {given told}
                                 else replayed_upto end,
            cursor = ",
    cursor_after!("{given told}"),
    of_given!(
        "$1",
        "cursor < ",
        newest!(),
        " or {given status} < ",
        newest_status!(),
        " and acknowledged_status < ",
        newest_status!()
    )
);

/// A statement that records a failed delivery, after which a subscription is due at `$due` if `$owed`
/// is met.
macro_rules! failed {
    ($due:literal, $($owed:expr),*) => {
        concat!(
            "update subscriptions set ",
            attempted!(),
            "       failures = failures + 1, failing_since = coalesce(failing_since, $1),
                    failed_changes = failed_changes
                                     + case when failed_changes = 0 or {given newest} > failed_upto
                                            then 1 else 0 end,
                    failed_upto = case when failed_changes = 0 or {given newest} > failed_upto
                                       then {given newest} else failed_upto end,
                    cursor = coalesce({given replay_from}, cursor)",
            of_given!($due, $($owed),*)
        )
    };
}

const WAITING: &str = failed!(
    "{given retry_at}",
    "cursor < ",
    newest!(),
    " or acknowledged_status < ",
    newest_status!()
);

/// A subscription is due at once only if there is more to deliver than the failed delivery
/// contained.
const FAILED: &str =
    failed!("$1", "{given replay_from} is not null or {given newest} < ", newest!());

/// A subscription that is suspended is due again once it is resumed or renewed.
const SUSPENDED: &str = concat!(
    "update subscriptions set ",
    attempted!(),
    "       failures = failures + 1, failing_since = coalesce(failing_since, $1),
            is_suspended = case when paused_at is null then 1 else is_suspended end,
            paused_at = coalesce(paused_at, $1),
            cursor = coalesce({given replay_from}, cursor)
     {from rows}
      where subscriptions.resource_id = {given resource_id} and subscriptions.id = {given id}"
);

/// A resource that is locked while results are stored.
#[derive(Clone, Copy, Default)]
struct LockedResource {
    numbers: Newest,
    /// Whether a pass over its subscriptions is under way.
    is_passed_over: bool,
}

/// Locks the resources of the results: for writing if their subscribers are to be counted again, in
/// share mode if not, so that results can be stored concurrently. Returns their newest numbers.
async fn lock_resources(
    tx: &Tx<'_>,
    settled: &[DeliveryResult],
) -> Result<HashMap<i64, LockedResource>, StoreError> {
    const HOLD: &str = "
        select id, head, body_version, status_version, announced_status_version,
               (select count(*) from fan_outs f where f.resource_id = resources.id)
          from resources where id in ({ids $1}) order by id {for share}";
    let ids: BTreeSet<_> = settled.iter().map(|one| one.id.resource.0).collect();
    let ids: Vec<_> = ids.into_iter().collect();
    if settled.iter().any(|one| one.outcome == DeliveryOutcome::Ended) {
        row::lock(tx, ids.clone()).await?;
    }
    let rows = tx.query(HOLD, &[Value::Ints(ids)]).await?.into_iter();
    let read = |mut row: Row| {
        let number = row.int()?;
        let numbers = [row.int()?, row.int()?, row.int()?, row.int()?];
        Ok((number, LockedResource { numbers, is_passed_over: row.int()? != 0 }))
    };
    rows.map(read).collect()
}

async fn end(tx: &Tx<'_>, ended: ResultColumns) -> Result<(), StoreError> {
    const END: &str = concat!(
        "delete from subscriptions
          where (resource_id, id) in (select given.resource_id, given.id from {rows})
         returning ",
        counted_columns!()
    );
    let gone = tx.query_rows(END, &[], &ended.named("none", "unused")).await?;
    let gone = gone.into_iter().map(|mut row| CountedSubscription::read(&mut row));
    count_off(tx, gone.collect::<Result<_, _>>()?).await
}
