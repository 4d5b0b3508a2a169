//! Recording the results of deliveries: cursors advance, and retries are put off.
//!
//! A result counts as a whole only if its claim is held and the generation of its subscription is the one
//! that was claimed. What a subscription is owed after it follows from its cursor.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use foldhash::{HashMap, HashSet};
use futures_util::try_join;

use crate::delivery::backlogs::{self, BacklogId, EndedClaim};
use crate::delivery::common_results::CommonResults;
use crate::delivery::generations;
use crate::delivery::owed::WITH_NEXT_CHANGE;
use crate::delivery::result_columns::{Newest, ResultColumns, range_columns};
use crate::delivery::row::subscription_id;
use crate::delivery::subscriber_counts::{CountedSubscription, count_off, counted_columns};
use crate::engine::row::Row;
use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
use crate::log::pending_fan_outs;
use crate::resources::row;
use feedgate_core::claim::ClaimToken;
use feedgate_core::store::{DeliveryOutcome, DeliveryResult, StoreError};
use feedgate_core::subscription::SubscriptionId;

/// A result, and the backlog that this node has claimed for it; `None` if that claim was lost.
pub(crate) type HeldResult = (DeliveryResult, Option<BacklogId>);

/// Records the results of deliveries, and ends claims of backlogs under which nothing is in hand. Returns the
/// subscriptions that are owed more and are to be claimed again.
///
/// The resources are locked before anything is read. An append takes the same lock, so it is either
/// committed, and its head is read here, or comes later and finds the cursors as they are written here.
pub(crate) async fn store_results(
    tx: &Tx<'_>,
    settled: &[HeldResult],
    ended: &[EndedClaim],
    now: DateTime<Utc>,
) -> Result<Vec<SubscriptionId>, StoreError> {
    let ((), newest) = try_join!(tx.join_by_keys(), lock_resources(tx, settled, ended))?;
    let (held, generations) = try_join!(held_claims(tx, settled), generations_of(tx, settled))?;
    let mut columns = ColumnsByOutcome::default();
    let mut results = Vec::with_capacity(settled.len());
    for (result, backlog) in settled {
        let newest = newest.get(&result.id.resource.0).copied().unwrap_or_default().numbers;
        let is_held = backlog.is_some_and(|backlog| held.contains(&(backlog, result.claim)));
        match is_held && generations.get(&result.id) == Some(&result.generation) {
            true => results.push((result, newest)),
            false => columns.outdated.push(result, newest, acknowledged(result)),
        }
    }
    let common = CommonResults::take_from(&mut results);
    for (result, newest) in results {
        columns.add(tx, result, newest);
    }
    let mut rows = common.store(tx, now).await?;
    rows.extend(columns.store(tx, now).await?);
    let owed_more = owed_more(tx, rows, &newest).await?;
    // After the passes, as a job does that completes a fan-out, so that neither waits for the other.
    backlogs::end_claims(tx, ended, now).await?;
    Ok(owed_more)
}

/// The results that are stored in the same way.
#[derive(Default)]
struct ColumnsByOutcome {
    delivered: ResultColumns,
    waiting: ResultColumns,
    failed: ResultColumns,
    suspended: ResultColumns,
    ended: ResultColumns,
    outdated: ResultColumns,
}

impl ColumnsByOutcome {
    fn add(&mut self, tx: &Tx<'_>, result: &DeliveryResult, newest: Newest) {
        let (columns, numbers) = match result.outcome {
            DeliveryOutcome::Delivered { .. } => (&mut self.delivered, acknowledged(result)),
            DeliveryOutcome::Failed { retry_at: Some(at) } => {
                (&mut self.waiting, [tx.at(at).timestamp_micros(), 0])
            }
            DeliveryOutcome::Failed { retry_at: None } => (&mut self.failed, [WITH_NEXT_CHANGE, 0]),
            DeliveryOutcome::Suspended => (&mut self.suspended, [0, 0]),
            DeliveryOutcome::Ended => (&mut self.ended, [0, 0]),
        };
        columns.push(result, newest, numbers);
    }

    /// Stores the results. Returns subscriptions, each with 1 if it is owed more.
    async fn store(self, tx: &Tx<'_>, now: DateTime<Utc>) -> Result<Vec<Row>, StoreError> {
        let mut rows = generations::store_outdated(tx, self.outdated, now).await?;
        let delivered = self.delivered.named("told", "status");
        rows.extend(tx.query_rows(DELIVERED, params![now], &delivered).await?);
        let waiting = self.waiting.named("retry_at", "unused");
        tx.execute_rows(WAITING, params![now], &waiting).await?;
        let failed = self.failed.named("retry_at", "unused");
        rows.extend(tx.query_rows(FAILED, params![now], &failed).await?);
        let suspended = self.suspended.named("none", "unused");
        tx.execute_rows(SUSPENDED, params![now], &suspended).await?;
        end(tx, self.ended).await?;
        Ok(rows)
    }
}

/// Returns the last number and the version of the status that a callback has acknowledged; -1 if none.
fn acknowledged(result: &DeliveryResult) -> [i64; 2] {
    match result.outcome {
        DeliveryOutcome::Delivered { cursor, status } => [cursor.0, status],
        _ => [-1, -1],
    }
}

/// Returns the claims under which backlogs are held.
async fn held_claims(
    tx: &Tx<'_>,
    settled: &[HeldResult],
) -> Result<HashSet<(BacklogId, ClaimToken)>, StoreError> {
    const HELD: &str = "
        select b.resource_id, b.number, b.claim_token
          from {rows}
          join backlogs b on b.resource_id = given.resource_id and b.number = given.number";
    let ids: BTreeSet<_> = settled.iter().filter_map(|(_, backlog)| *backlog).collect();
    let columns = [
        ("resource_id", Value::Ints(ids.iter().map(|id| id.resource).collect())),
        ("number", Value::Ints(ids.iter().map(|id| id.number).collect())),
    ];
    let rows = tx.query_rows(HELD, &[], &columns).await?.into_iter();
    let read = |mut row: Row| {
        let id = BacklogId::read(&mut row)?;
        Ok((id, ClaimToken(row.int()?)))
    };
    rows.map(read).collect()
}

/// Returns the generations of the subscriptions.
async fn generations_of(
    tx: &Tx<'_>,
    settled: &[HeldResult],
) -> Result<HashMap<SubscriptionId, i64>, StoreError> {
    const GENERATIONS: &str = "
        select s.resource_id, s.id, s.generation
          from {rows}
          join subscriptions s on s.resource_id = given.resource_id
                              and s.id >= given.first_id and s.id <= given.last_id";
    let columns = range_columns(settled.iter().map(|(result, _)| result.id).collect());
    let rows = tx.query_rows(GENERATIONS, &[], &columns).await?.into_iter();
    let read = |mut row: Row| Ok((subscription_id(&mut row)?, row.int()?));
    rows.map(read).collect()
}

/// Returns the subscriptions whose rows say that they are owed more. While a pass over all subscriptions of a
/// resource is under way, they are left to the next pass, so that nobody is notified twice before all others
/// are notified once.
async fn owed_more(
    tx: &Tx<'_>,
    rows: Vec<Row>,
    locked: &HashMap<i64, LockedResource>,
) -> Result<Vec<SubscriptionId>, StoreError> {
    let (mut again, mut passed_over) = (Vec::new(), BTreeSet::new());
    for mut row in rows {
        let id = subscription_id(&mut row)?;
        if row.int()? == 1 {
            again.push(id);
            let locked = locked.get(&id.resource.0).filter(|locked| locked.is_passed_over);
            passed_over.extend(locked.map(|_| id.resource.0));
        }
    }
    if !passed_over.is_empty() {
        // A pass may have ended since the resource was locked.
        let passed_over: Vec<_> = passed_over.into_iter().collect();
        let repeated = pending_fan_outs::repeat_passes(tx, &passed_over).await?;
        again.retain(|id| !repeated.contains(&id.resource.0));
    }
    Ok(again)
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

/// The rest of a statement that records results: it returns each subscription with 1 if it is not paused and
/// the condition `$owed` is met, otherwise with 0.
macro_rules! of_given {
    ($($owed:expr),*) => {
        concat!(
            " {from rows}
             where subscriptions.resource_id = {given resource_id}
               and subscriptions.id = {given id}
            returning subscriptions.resource_id, subscriptions.id,
                      case when paused_at is null and (",
            $($owed,)*
            ") then 1 else 0 end"
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
    "       failures = 0, failed_changes = 0, failing_since = null, retry_at = null,
            acknowledged = acknowledged + case when {given code} < 0 then 0 else 1 end,
            acknowledged_status = case when {given status} > acknowledged_status
                                       then {given status} else acknowledged_status end,
            cursor = case when {given told} > cursor then {given told} else cursor end",
    of_given!(
        "cursor < ",
        newest!(),
        " or {given status} < ",
        newest_status!(),
        " and acknowledged_status < ",
        newest_status!()
    )
);

/// The assignments that record a failed delivery.
macro_rules! failed {
    () => {
        concat!(
            "update subscriptions set ",
            attempted!(),
            "       failures = failures + 1, failing_since = coalesce(failing_since, $1),
                    failed_changes = failed_changes
                                     + case when failed_changes = 0 or {given newest} > failed_upto
                                            then 1 else 0 end,
                    failed_upto = case when failed_changes = 0 or {given newest} > failed_upto
                                       then {given newest} else failed_upto end,
                    retry_at = {given retry_at}"
        )
    };
}

const WAITING: &str = concat!(
    failed!(),
    " {from rows}
     where subscriptions.resource_id = {given resource_id} and subscriptions.id = {given id}"
);

/// A subscription is owed more only if there is more to deliver than the failed delivery contained.
const FAILED: &str = concat!(failed!(), of_given!("{given newest} < ", newest!()));

/// A subscription that is suspended is claimed again once it is resumed or renewed.
const SUSPENDED: &str = concat!(
    "update subscriptions set ",
    attempted!(),
    "       failures = failures + 1, failing_since = coalesce(failing_since, $1),
            is_suspended = case when paused_at is null then 1 else is_suspended end,
            paused_at = coalesce(paused_at, $1), retry_at = null
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
    settled: &[HeldResult],
    ended: &[EndedClaim],
) -> Result<HashMap<i64, LockedResource>, StoreError> {
    const HOLD: &str = "
        select id, head, body_version, status_version, announced_status_version,
               (select count(*) from fan_outs f where f.resource_id = resources.id)
          from resources where id in ({ids $1}) order by id {for share}";
    let of_results = settled.iter().map(|(result, _)| result.id.resource.0);
    let ids: BTreeSet<_> = of_results.chain(ended.iter().map(|one| one.id.resource)).collect();
    let ids: Vec<_> = ids.into_iter().collect();
    if settled.iter().any(|(result, _)| result.outcome == DeliveryOutcome::Ended) {
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
