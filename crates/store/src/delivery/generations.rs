//! Generations of subscriptions: what tells a claim from before a change from one after it.
//!
//! Whoever pauses, resumes, renews, replays or retries a subscription begins a new generation of it, in
//! the transaction of the change. A delivery that was claimed before is then not sent any more, and the
//! result of one that was being sent moves the cursor at most.

use chrono::{DateTime, Utc};

use crate::delivery::result_columns::ResultColumns;
use crate::delivery::row::subscription_id;
use crate::engine::row::Row;
use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
use feedgate_core::store::{HeldDelivery, StoreError};
use feedgate_core::subscription::SubscriptionId;

/// The assignment that begins a new generation of a row of `subscriptions`.
macro_rules! next_generation {
    () => {
        "generation = generation + 1"
    };
}
pub(crate) use next_generation;

/// Returns the subscriptions of those of `held` whose claims are held at `now`, and which have neither
/// ended nor begun a new generation.
pub(crate) async fn still_current(
    tx: &Tx<'_>,
    held: &[HeldDelivery],
    now: DateTime<Utc>,
) -> Result<Vec<SubscriptionId>, StoreError> {
    const CURRENT: &str = "
        select given.resource_id, given.id
          from {rows}
         where (select 1 from subscriptions s
                 where s.resource_id = given.resource_id and s.id = given.id
                   and s.generation = given.generation and s.lease_until > $1
                   and (select 1 from backlogs b
                         where b.resource_id = s.resource_id and b.account_id = s.account_id
                           and b.host = s.host
                           and b.claim_token = given.token and b.claimed_until > $1) = 1) = 1";
    let numbers = |number: fn(&HeldDelivery) -> i64| Value::Ints(held.iter().map(number).collect());
    let columns = [
        ("resource_id", numbers(|held| held.id.resource.0)),
        ("id", numbers(|held| held.id.number)),
        ("token", numbers(|held| held.claim.0)),
        ("generation", numbers(|held| held.generation)),
    ];
    let rows = tx.query_rows(CURRENT, params![now], &columns).await?;
    rows.into_iter().map(|mut row| subscription_id(&mut row)).collect()
}

/// Stores the results of deliveries whose claims were lost, or made in an earlier generation: `told` is the
/// last number that the callback has acknowledged, and `status` the version of the status, or -1 if the
/// delivery failed. The cursor stays if a replay was requested since, or counts something else now. Returns
/// each subscription with 1 if it is ready.
pub(crate) async fn store_outdated(
    tx: &Tx<'_>,
    results: ResultColumns,
    now: DateTime<Utc>,
) -> Result<Vec<Row>, StoreError> {
    /// The condition that the numbers of a result and of its subscription count the same.
    macro_rules! counts_same {
        () => {
            "{given counts_bodies} = case when format = 'raw' then 1 else 0 end"
        };
    }
    // The versions of a status that the subscription does not choose any more are greater than its own.
    const OUTDATED: &str = concat!(
        "update subscriptions
            set acknowledged = acknowledged
                               + case when {given told} < 0 or {given code} < 0 then 0 else 1 end,
                acknowledged_status = case when {given status} > acknowledged_status
                                            and {given status} <= case statuses
                                                when 'always' then {given status_version}
                                                when 'transitions' then {given announced} else 0 end
                                           then {given status} else acknowledged_status end,
                replayed_upto = case when replays <> {given replays_before}
                                      and replayed_upto < {given told} and ",
        counts_same!(),
        "                            then {given told} else replayed_upto end,
                cursor = case when replays = {given replays_before} and {given told} > cursor and ",
        counts_same!(),
        "                     then {given told} else cursor end
         {from rows}
          where subscriptions.resource_id = {given resource_id}
            and subscriptions.id = {given id}
         returning subscriptions.resource_id, subscriptions.id,
                   case when paused_at is null and (retry_at is null or retry_at <= $1)
                         and (cursor < case when format = 'raw' then {given body_version}
                                            else {given head} end
                              or acknowledged_status < case statuses
                                     when 'always' then {given status_version}
                                     when 'transitions' then {given announced} else 0 end)
                        then 1 else 0 end"
    );
    let columns = results.named("told", "status");
    // SQLite refuses parameters behind the last one that the statement has: the excerpts.
    tx.query_rows(OUTDATED, params![now], &columns[..columns.len() - 1]).await
}
