//! Recording the results of deliveries: cursors advance, and claims end.
//!
//! `due_at` is the time at which a subscription may be claimed: now, at a retry's time, at the end
//! of a claim, or never while it is null. An append changes `due_at` only where it is null.

use chrono::{DateTime, Utc};

use crate::delivery::subscriber_counts::{CountedSubscription, count_off, counted_columns};
use crate::engine::sql::{Value, params};
use crate::engine::tx::{Tx, Wake};
use crate::resources::row;
use feedgate_core::delivery_health::AttemptResponse;
use feedgate_core::ports::{
    DeliveryOutcome, DeliveryProgress, DeliveryResult, LogNumbers, StoreError,
};
use feedgate_core::record::Seq;
use feedgate_core::resource::ResourceId;
use feedgate_core::subscription::SubscriptionId;

/// The version of the status of a resource `r` that a subscription with this option is owed
/// (`Statuses::version`).
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

pub(crate) use status_owed;

/// Records the results of deliveries. A result whose claim was lost changes nothing.
///
/// The resources are locked before anything is read. An append takes the same lock, so it is either
/// committed, and its head is read here, or comes later and reads the cursors written here. Without
/// the lock a head could be read, moved by an append that finds the subscription still claimed, and
/// then `due_at` cleared for good: at "read committed" PostgreSQL waits for a changed row of
/// `subscriptions` and reads it again, but not the row of `resources` that it was joined with.
pub(crate) async fn settle(
    tx: &Tx<'_>,
    settled: Vec<DeliveryResult>,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    lock_resources(tx, &settled).await?;
    let (mut delivered, mut waiting, mut failed) = <(Columns, Columns, Columns)>::default();
    let (mut suspended, mut ended) = <(Columns, Columns)>::default();
    for result in &settled {
        match result.outcome {
            DeliveryOutcome::Delivered { cursor, status } => {
                delivered.push(result, [cursor.0, status]);
            }
            DeliveryOutcome::Failed { retry_at: Some(at) } => {
                waiting.push(result, [at.timestamp_micros(), 0]);
            }
            DeliveryOutcome::Failed { retry_at: None } => failed.push(result, [0, 0]),
            DeliveryOutcome::Suspended => suspended.push(result, [0, 0]),
            DeliveryOutcome::Ended => ended.push(result, [0, 0]),
        }
    }
    let mut rows =
        tx.query_rows(DELIVERED, params![now], &delivered.named("told", "status")).await?;
    rows.extend(tx.query_rows(WAITING, params![now], &waiting.named("retry_at", "none")).await?);
    rows.extend(tx.query_rows(FAILED, params![now], &failed.named("none", "unused")).await?);
    tx.query_rows(SUSPENDED, params![now], &suspended.named("none", "unused")).await?;
    end(tx, ended).await?;
    for mut row in rows {
        if row.opt_time()?.is_some_and(|due_at| due_at <= now) {
            tx.wake(Wake::Subscriptions).await?;
        }
    }
    Ok(())
}

/// The columns of results: the subscription, the claim, two numbers and the response of each.
#[derive(Default)]
struct Columns {
    resources: Vec<i64>,
    ids: Vec<i64>,
    claims: Vec<i64>,
    numbers: [Vec<i64>; 2],
    /// Status codes; 0 without a response, and [`NO_ATTEMPT`] without a request.
    codes: Vec<i64>,
    excerpts: Vec<String>,
}

/// Stands for the status code of a delivery that made no request.
const NO_ATTEMPT: i64 = -1;

impl Columns {
    fn push(&mut self, result: &DeliveryResult, numbers: [i64; 2]) {
        self.resources.push(result.id.resource.0);
        self.ids.push(result.id.number);
        self.claims.push(result.claim.0);
        let response = result.response.as_ref();
        let code = |response: &AttemptResponse| response.status.unwrap_or_default().into();
        self.codes.push(response.map_or(NO_ATTEMPT, code));
        self.excerpts.push(response.map(|response| response.excerpt.clone()).unwrap_or_default());
        for (column, number) in self.numbers.iter_mut().zip(numbers) {
            column.push(number);
        }
    }

    fn named(self, first: &'static str, second: &'static str) -> [(&'static str, Value); 7] {
        let [one, two] = self.numbers;
        [
            ("resource_id", Value::Ints(self.resources)),
            ("id", Value::Ints(self.ids)),
            ("claim", Value::Ints(self.claims)),
            (first, Value::Ints(one)),
            (second, Value::Ints(two)),
            ("code", Value::Ints(self.codes)),
            ("excerpt", Value::Texts(self.excerpts)),
        ]
    }
}

/// The cursor after the end of a delivery: the start of a requested replay, or else never further
/// back than before.
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

/// The number of the newest record or body that the subscription is owed.
macro_rules! owed {
    () => {
        "case when format = 'raw' then r.body_version else r.head end"
    };
}

pub(crate) use owed;

/// The rest of a statement that ends claims, which sets the new due times.
macro_rules! of_given {
    () => {
        " from {rows}
          join resources r on r.id = given.resource_id
         where subscriptions.resource_id = given.resource_id
           and subscriptions.id = given.id and subscriptions.claim_token = given.claim
        returning subscriptions.due_at"
    };
}

/// The assignments that record an attempt, if a request was made.
macro_rules! attempted {
    () => {
        "attempted_at = case when given.code < 0 then attempted_at else cast($1 as bigint) end,
         attempt_status = case when given.code < 0 then attempt_status else given.code end,
         attempt_excerpt = case when given.code < 0 then attempt_excerpt else given.excerpt end, "
    };
}

const DELIVERED: &str = concat!(
    "update subscriptions set ",
    attempted!(),
    "       failures = 0, failed_changes = 0, failing_since = null,
            claimed_until = null, claim_token = 0, replay_from = null,
            acknowledged = acknowledged + case when given.code < 0 then 0 else 1 end,
            acknowledged_status = case when given.status > acknowledged_status then given.status
                               else acknowledged_status end,
            replayed_upto = case when replay_from is not null and replayed_upto < given.told
                               then given.told else replayed_upto end,
            cursor = ",
    cursor_after!("given.told"),
    ", due_at = case when paused_at is not null then null when ",
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

/// A statement that ends a claim without advancing its cursor; `$due` is when the subscription is
/// due again.
macro_rules! failed {
    ($($due:expr),*) => {
        concat!(
            "update subscriptions set ",
            attempted!(),
            "       failures = failures + 1, failing_since = coalesce(failing_since, $1),
                    failed_changes = failed_changes + case when failed_changes = 0 or claimed_upto > failed_upto
                                           then 1 else 0 end,
                    failed_upto = case when failed_changes = 0 or claimed_upto > failed_upto
                                       then claimed_upto else failed_upto end,
                    claimed_until = null, claim_token = 0, replay_from = null,
                    cursor = ",
            cursor_after!("cursor"),
            ", due_at = case when paused_at is not null then null when ",
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

/// A subscription is due at once only if there is more to deliver than the failed delivery
/// contained.
const FAILED: &str =
    failed!("replay_from is not null or claimed_upto < ", owed!(), " then cast($1 as bigint)");

/// A subscription that is suspended is due again once it is resumed or renewed.
const SUSPENDED: &str = concat!(
    "update subscriptions set ",
    attempted!(),
    "       failures = failures + 1, failing_since = coalesce(failing_since, $1),
            claimed_until = null, claim_token = 0, replay_from = null, due_at = null,
            is_suspended = case when paused_at is null then 1 else is_suspended end,
            paused_at = coalesce(paused_at, $1), cursor = ",
    cursor_after!("cursor"),
    of_given!()
);

/// Locks the resources of the results: for writing if their subscribers are to be counted again, in
/// share mode if not, so that results can be stored concurrently.
async fn lock_resources(tx: &Tx<'_>, settled: &[DeliveryResult]) -> Result<(), StoreError> {
    const HOLD: &str = "select id from resources where id in ({ids $1}) order by id {for share}";
    let ids = settled.iter().map(|one| one.id.resource.0).collect::<Vec<_>>();
    if settled.iter().any(|one| one.outcome == DeliveryOutcome::Ended) {
        return row::lock(tx, ids).await;
    }
    tx.query(HOLD, &[Value::Ints(ids)]).await.map(drop)
}

async fn end(tx: &Tx<'_>, ended: Columns) -> Result<(), StoreError> {
    const END: &str = concat!(
        "delete from subscriptions
          where (resource_id, id, claim_token)
                in (select given.resource_id, given.id, given.claim from {rows})
         returning ",
        counted_columns!()
    );
    let gone = tx.query_rows(END, &[], &ended.named("none", "unused")).await?;
    let gone = gone.into_iter().map(|mut row| CountedSubscription::read(&mut row));
    count_off(tx, gone.collect::<Result<_, _>>()?).await
}

/// Returns how many subscriptions have received what was stored after `before`, and how many still
/// wait for it.
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
                 + (select count(*) from fan_outs f where f.resource_id = $1)
          from subscriptions s
          join resources r on r.id = s.resource_id
         where s.resource_id = $1 and s.lease_until > $4";
    let params = [resource.0.into(), before.head.0.into(), before.body_version.into(), now.into()];
    let Some(mut row) = tx.first(TELLING, &params).await? else {
        return Ok(DeliveryProgress::default());
    };
    Ok(DeliveryProgress { told: row.count()?, waiting: row.count()? })
}

/// Sets a cursor back. A delivery in progress ends first, because its result would advance the
/// cursor again.
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
               replays = replays + 1,
               due_at = case when paused_at is not null then null
                             when claimed_until > $4 then due_at else $4 end
         where resource_id = $1 and id = $2 and cursor >= $3";
    row::lock(tx, vec![id.resource.0]).await?;
    let params = params![id.resource.0, id.number, cursor.0.max(0), now];
    let done = tx.execute(REPLAY, params).await? > 0;
    if done {
        tx.wake(Wake::Subscriptions).await?;
    }
    Ok(done)
}
