//! Backlogs: where to look for subscriptions that are owed something.
//!
//! A backlog is the subscriptions to one resource of one account (or of none) at one host of callbacks. Its
//! row says that some of them may be owed something, and when to look; what they are owed follows from
//! their cursors (`owed.rs`). So a change costs a row for each host and not for each subscriber, and no
//! row has to be kept equal to a cursor.
//!
//! Invariants:
//!
//! * A subscription that is ready is in a backlog with a row. Whatever makes one ready marks its backlog in
//!   the same transaction ([`mark`]).
//! * A backlog is claimed by one node at a time, which delivers to its subscriptions in the order of their
//!   numbers: a pass. A mark during a pass is another pass, which begins when all of this one are claimed.
//! * The row is deleted at the end of a pass without a mark, if no subscription waits for a retry.

use chrono::{DateTime, TimeDelta, Utc};
use foldhash::HashMap;

use crate::delivery::owed::is_ready;
use crate::engine::claims::ClaimedTable;
use crate::engine::row::Row;
use crate::engine::sql::{Value, params};
use crate::engine::tx::{Tx, Wake};
use feedgate_core::claim::ClaimToken;
use feedgate_core::store::StoreError;
use feedgate_core::subscription::SubscriptionId;

/// What identifies the row of a backlog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct BacklogId {
    pub(crate) resource: i64,
    pub(crate) number: i64,
}

impl BacklogId {
    /// Returns the key of the row.
    pub(crate) fn key(self) -> [i64; 2] {
        [self.resource, self.number]
    }

    /// Reads the numbers of the resource and of the backlog.
    pub(crate) fn read(row: &mut Row) -> Result<BacklogId, StoreError> {
        Ok(BacklogId { resource: row.int()?, number: row.int()? })
    }
}

/// The columns that [`Marks::add`] reads, of a subscription `s`.
macro_rules! marked_columns {
    () => {
        "s.resource_id, s.account_id, s.host, s.id"
    };
}
pub(crate) use marked_columns;

/// The backlogs of subscriptions that became ready.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// The least number of the subscriptions and their count, by resource, account and host.
    backlogs: HashMap<(i64, i64, String), (i64, i64)>,
}

impl Marks {
    fn read(rows: Vec<Row>) -> Result<Marks, StoreError> {
        let mut marks = Marks::default();
        rows.into_iter().try_for_each(|mut row| marks.add(&mut row))?;
        Ok(marks)
    }

    /// Adds the backlog of a subscription, which is read from `marked_columns!`.
    pub(crate) fn add(&mut self, row: &mut Row) -> Result<(), StoreError> {
        let (key, id) = ((row.int()?, row.int()?, row.text()?), row.int()?);
        let (least, count) = self.backlogs.entry(key).or_insert((id, 0));
        *least = id.min(*least);
        *count += 1;
        Ok(())
    }
}

/// Behind all subscriptions: a claim finds only those that are due at a retry.
pub(crate) const ONLY_RETRIES: i64 = i64::MAX;

/// [`ONLY_RETRIES`] in statements.
macro_rules! only_retries {
    () => {
        "9223372036854775807"
    };
}

/// Makes backlogs due at `now`. During a pass, stores that another one follows.
pub(crate) async fn mark(tx: &Tx<'_>, marks: Marks, now: DateTime<Utc>) -> Result<(), StoreError> {
    // Citus (12.1) passes `insert … select` on with a syntax error.
    const MARK: &str = concat!(
        "insert into backlogs (resource_id, number, account_id, host, size, due_at)
         {values resource_id, number, account_id, host, size, due_at}
             on conflict (resource_id, account_id, host) do update
            set is_marked = case when backlogs.claim_token = 0
                                  and backlogs.after_id in (0, ",
        only_retries!(),
        "                         ) then 0 else 1 end,
                after_id = case when backlogs.claim_token = 0 and backlogs.after_id = ",
        only_retries!(),
        "                       then 0 else backlogs.after_id end,
                due_at = case when backlogs.claim_token = 0 and excluded.due_at < backlogs.due_at
                              then excluded.due_at else backlogs.due_at end,
                size = case when excluded.size > backlogs.size then excluded.size
                            else backlogs.size end"
    );
    if marks.backlogs.is_empty() {
        return Ok(());
    }
    let mut backlogs: Vec<_> = marks.backlogs.into_iter().collect();
    // Rows are locked in the order of their keys, so that no two transactions wait for each other.
    backlogs.sort_unstable_by_key(|((resource, ..), (number, _))| (*resource, *number));
    let due_at = vec![tx.at(now).timestamp_micros(); backlogs.len()];
    let (mut resources, mut accounts, mut hosts) = (Vec::new(), Vec::new(), Vec::new());
    let (mut numbers, mut sizes) = (Vec::new(), Vec::new());
    for ((resource, account, host), (number, size)) in backlogs {
        resources.push(resource);
        accounts.push(account);
        hosts.push(host);
        numbers.push(number);
        sizes.push(size);
    }
    let columns = [
        ("resource_id", Value::Ints(resources)),
        ("number", Value::Ints(numbers)),
        ("account_id", Value::Ints(accounts)),
        ("host", Value::Texts(hosts)),
        ("size", Value::Ints(sizes)),
        ("due_at", Value::Ints(due_at)),
    ];
    tx.execute_rows(MARK, &[], &columns).await?;
    tx.wake(Wake::Subscriptions);
    Ok(())
}

/// Marks the backlogs of the subscriptions that `select` returns, with `marked_columns!`.
pub(crate) async fn mark_selected(
    tx: &Tx<'_>,
    select: &str,
    params: &[Value],
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    mark(tx, Marks::read(tx.query(select, params).await?)?, now).await
}

/// Marks the backlog of a subscription.
pub(crate) async fn mark_one(
    tx: &Tx<'_>,
    id: SubscriptionId,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    const ONE: &str = concat!(
        "select ",
        marked_columns!(),
        " from subscriptions s where s.resource_id = $1 and s.id = $2"
    );
    mark_selected(tx, ONE, params![id.resource.0, id.number], now).await
}

/// Marks the backlogs of those of the given subscriptions (`resource_id` and `id`) that are ready.
pub(crate) async fn mark_ready(
    tx: &Tx<'_>,
    keys: &[(&'static str, Value); 2],
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    const READY: &str = concat!(
        "select ",
        marked_columns!(),
        " from {rows}
          join subscriptions s on s.resource_id = given.resource_id and s.id = given.id
          join resources r on r.id = s.resource_id
         where ",
        is_ready!("$1")
    );
    mark(tx, Marks::read(tx.query_rows(READY, params![now], keys).await?)?, now).await
}

/// The claim of a backlog that ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndedClaim {
    pub(crate) id: BacklogId,
    pub(crate) token: ClaimToken,
    /// The last subscription that the pass has come to; 0: another pass begins; [`ONLY_RETRIES`]: none does.
    pub(crate) after: i64,
    /// Whether the pass has come to its end: another one begins if the backlog was marked meanwhile.
    pub(crate) is_at_end: bool,
    /// Whether some are due at once.
    pub(crate) is_due: bool,
    /// When some that were given back are due, which is later; `None` if none were.
    pub(crate) again_at: Option<DateTime<Utc>>,
    /// Whether another pass follows this one, which has not ended.
    pub(crate) is_repeated: bool,
}

impl EndedClaim {
    /// Moves its times, because the clock was set.
    pub(crate) fn move_times(&mut self, by: TimeDelta) {
        self.again_at = self.again_at.map(|at| at + by);
    }
}

/// The time of the next retry of a subscription in a row of `backlogs`.
macro_rules! next_retry {
    ($now:literal) => {
        concat!(
            "(select s.retry_at
                from resources r
                join subscriptions s {sqlite indexed by subscriptions_retry_at}
                  on s.resource_id = r.id
               where r.id = backlogs.resource_id and s.host = backlogs.host
                 and s.account_id = backlogs.account_id
                 and s.retry_at is not null and s.retry_at < ",
            $crate::delivery::owed::next_change!(),
            " and ",
            $crate::delivery::owed::is_active!($now),
            "  order by s.retry_at limit 1)"
        )
    };
}

/// The claims of backlogs. After a claim that has expired, a pass begins: what its node knew of the passes is lost.
pub(crate) const BACKLOGS: ClaimedTable<2> = ClaimedTable {
    columns: concat!(", after_id, ", next_retry!("$2")),
    ends: "due_at = $1, claimed_until = $1",
    set: ", after_id = case when claim_token = 0 then after_id else 0 end,
            is_marked = case when after_id = 0 or claim_token <> 0 then 0 else is_marked end",
    ..ClaimedTable::new("backlogs", ["resource_id", "number"])
};

/// Ends claims that are still held. A backlog is due at once if it was marked, or when the next of its
/// subscriptions is tried again; it is deleted if neither is so.
pub(crate) async fn end_claims(
    tx: &Tx<'_>,
    ended: &[EndedClaim],
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    const DELETE: &str = concat!(
        "delete from backlogs
         {using rows}
          where backlogs.resource_id = {given resource_id} and backlogs.number = {given number}
            and backlogs.claim_token = {given token} and backlogs.is_marked = 0
            and ",
        next_retry!("$1"),
        " is null"
    );
    let mut ended: Vec<_> = ended.iter().collect();
    ended.sort_unstable_by_key(|ended| ended.id); // as in `mark`
    let (done, kept): (Vec<&EndedClaim>, Vec<&EndedClaim>) =
        ended.iter().copied().partition(|ended| !ended.is_due && ended.again_at.is_none());
    let claims: Vec<_> = done.iter().map(|ended| (ended.id, ended.token)).collect();
    let deleted = tx.execute_rows(DELETE, params![now], &held_columns(&claims)).await?;
    let kept = if deleted == done.len() as u64 { kept } else { ended };
    keep_backlogs(tx, &kept, now).await
}

/// Ends claims of backlogs that are not deleted.
async fn keep_backlogs(
    tx: &Tx<'_>,
    kept: &[&EndedClaim],
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    const KEEP: &str = concat!(
        "update backlogs
            set claim_token = 0, claimed_until = null,
                after_id = case when {given at_end} = 1 and is_marked = 1 then 0 else {given after} end,
                is_marked = case when {given at_end} = 1 or {given after} = 0 then 0
                                 when {given repeated} = 1 then 1 else is_marked end,
                due_at = case when {given at_end} = 1 and is_marked = 1 then cast($1 as bigint)
                              when {given again_at} is not null then {given again_at}
                              when is_marked = 1 then cast($1 as bigint)
                              else coalesce(",
        next_retry!("$1"),
        "                                   , cast($1 as bigint)) end
         {from rows}
          where backlogs.resource_id = {given resource_id} and backlogs.number = {given number}
            and backlogs.claim_token = {given token}
        returning backlogs.due_at"
    );
    let claims: Vec<_> = kept.iter().map(|ended| (ended.id, ended.token)).collect();
    let [resources, numbers, tokens] = held_columns(&claims);
    let again = kept.iter().map(|ended| {
        let again_at = ended.again_at.or_else(|| ended.is_due.then_some(now));
        again_at.map(|at| tx.at(at).timestamp_micros())
    });
    let now = tx.at(now);
    let at_end = kept.iter().map(|ended| i64::from(ended.is_at_end));
    let repeated = kept.iter().map(|ended| i64::from(ended.is_repeated));
    let columns = [
        resources,
        numbers,
        tokens,
        ("after", Value::Ints(kept.iter().map(|ended| ended.after).collect())),
        ("again_at", Value::OptInts(again.collect())),
        ("at_end", Value::Ints(at_end.collect())),
        ("repeated", Value::Ints(repeated.collect())),
    ];
    for mut row in tx.query_rows(KEEP, params![now], &columns).await? {
        if row.time()? <= now {
            tx.wake(Wake::Subscriptions);
        }
    }
    Ok(())
}

/// Extends claims that are still held. Returns their backlogs.
pub(crate) async fn renew_claims(
    tx: &Tx<'_>,
    held: &[(BacklogId, ClaimToken)],
    until: DateTime<Utc>,
) -> Result<Vec<BacklogId>, StoreError> {
    let claimed = held.iter().map(|(id, token)| (id.key(), *token)).collect();
    let renewed = BACKLOGS.renew(tx, claimed, until).await?;
    Ok(renewed.into_iter().map(|[resource, number]| BacklogId { resource, number }).collect())
}

/// Returns whether some of these backlogs were marked.
pub(crate) async fn are_marked(
    tx: &Tx<'_>,
    held: &[(BacklogId, ClaimToken)],
) -> Result<bool, StoreError> {
    // A join would be planned for a table without backlogs, and read all of them.
    const MARKED: &str = "
        select 1
          from {rows}
         where (select b.is_marked from backlogs b
                 where b.resource_id = given.resource_id and b.number = given.number
                   and b.claim_token = given.token) = 1
         limit 1";
    Ok(!tx.query_rows(MARKED, &[], &held_columns(held)).await?.is_empty())
}

/// Begins another pass of those of these backlogs that were marked, and returns them.
pub(crate) async fn begin_passes(
    tx: &Tx<'_>,
    held: &[(BacklogId, ClaimToken)],
) -> Result<Vec<BacklogId>, StoreError> {
    const BEGIN: &str = "
        update backlogs set is_marked = 0
        {from rows}
         where backlogs.resource_id = {given resource_id} and backlogs.number = {given number}
           and backlogs.claim_token = {given token} and is_marked = 1
        returning backlogs.resource_id, backlogs.number";
    let begun = tx.query_rows(BEGIN, &[], &held_columns(held)).await?;
    begun.into_iter().map(|mut row| BacklogId::read(&mut row)).collect()
}

fn held_columns(held: &[(BacklogId, ClaimToken)]) -> [(&'static str, Value); 3] {
    [
        ("resource_id", Value::Ints(held.iter().map(|(id, _)| id.resource).collect())),
        ("number", Value::Ints(held.iter().map(|(id, _)| id.number).collect())),
        ("token", Value::Ints(held.iter().map(|(_, token)| token.0).collect())),
    ]
}
