//! Claiming due subscriptions.
//!
//! Candidates are read without locks and claimed by an update that applies only while no other
//! claim on them is valid, so nodes that read the same candidates never both get one. Whether a
//! claim has expired is decided by the clock of the database, not by that of a node.

use foldhash::{HashMap, HashMapExt as _};
use futures_util::try_join;

use crate::delivery::account_turns::AccountTurns;
use crate::delivery::batches;
use crate::delivery::claimed_rows::{
    self, ClaimedQuery, ClaimedRow, claimed_columns, claimed_resources,
};
use crate::engine::claims::{self, HostLimitedSearch, Picked};
use crate::engine::lease::ClaimLease;
use crate::engine::row::Row;
use crate::engine::sql::params;
use crate::engine::tx::Tx;
use feedgate_core::claim::QueuePosition;
use feedgate_core::ports::{ClaimLimits, ClaimedSubscriptions, StoreError};
use feedgate_core::subscription::{DueSubscription, SubscriptionId};

/// The number of rows that are read together while a queue is searched.
const CHUNK: usize = 512;
/// The most rows that one search reads: some 10 ms of work.
const MOST_ROWS: usize = 16 * CHUNK;

/// Searches the queue after `from`, and claims as many jobs as `limits` allow. Accounts take turns if
/// more is due. The caller has called [`Tx::join_by_keys`].
pub(crate) async fn claim(
    tx: &Tx<'_>,
    lease: ClaimLease,
    limits: ClaimLimits,
    from: QueuePosition,
    turns: &AccountTurns,
) -> Result<ClaimedSubscriptions, StoreError> {
    const DUE: &str = "
        select resource_id, subscription_id, host, due_at, size
          from deliveries
         where due_at <= $1 and (due_at, subscription_id) > ($2, $3)
         order by due_at, subscription_id
         limit $4";
    let mut search = HostLimitedSearch::new(limits);
    turns.pick(tx, lease, &mut search).await?;
    let (mut position, mut rows_read, mut is_end) = (from, 0, false);
    while !is_end && rows_read < MOST_ROWS && !search.is_full() {
        let params = params![lease.now, position.due_at, position.number, CHUNK as i64];
        let rows = tx.query(DUE, params).await?;
        rows_read += rows.len();
        is_end = rows.len() < CHUNK;
        for row in rows {
            if search.is_full() {
                is_end = false;
                break;
            }
            let found = search.consider(row)?;
            // The next search begins with a batch of which not all could be picked.
            if search.is_full() && search.picked.last().is_some_and(Picked::is_part) {
                is_end = false;
                break;
            }
            position = found;
        }
    }
    turns.note_backlog(!is_end);
    let due = claim_picked(tx, lease, search.picked).await?;
    Ok(ClaimedSubscriptions { due, position, skipped: search.skipped, is_end })
}

/// How many rows are looked at for each delivery of other resources than the one that waits longest.
const NEWEST_LOOKED_AT: usize = 4;

/// Claims due subscriptions of one host: those that have waited longest, and about the same number of
/// those to other resources that became due last, if there are any. The caller has called
/// [`Tx::join_by_keys`].
pub(crate) async fn claim_of_host(
    tx: &Tx<'_>,
    lease: ClaimLease,
    host: &str,
    limit: usize,
) -> Result<Vec<DueSubscription>, StoreError> {
    const OLDEST: &str = "
        select resource_id, subscription_id, host, size
          from deliveries
         where host = $2 and due_at <= $1
         order by due_at, subscription_id
         limit $3";
    // Without the ones that wait longest, of which those that became due last would come before the others.
    const NEWEST: &str = "
        select resource_id, subscription_id, host, size
          from (select resource_id, subscription_id, host, size, due_at
                  from deliveries
                 where host = $2 and due_at <= $1
                 order by due_at desc, subscription_id desc
                 limit $4) newest
         where resource_id <> coalesce((select resource_id from deliveries
                                         where host = $2 and due_at <= $1
                                         order by due_at, subscription_id limit 1), 0)
         order by due_at desc, subscription_id desc
         limit $3";
    let (old, new) = (limit.div_ceil(2), limit / 2);
    let (first, last) = (
        params![lease.now, host, limit as i64],
        params![lease.now, host, new as i64, (limit * NEWEST_LOOKED_AT) as i64],
    );
    let (oldest, newest) = try_join!(tx.query(OLDEST, first), tx.query(NEWEST, last))?;
    let (oldest, newest) = (candidates(oldest)?, candidates(newest)?);
    let mut portion = Portion::default();
    portion.fill(&oldest, old, limit);
    portion.fill(&newest, (portion.count + new).min(limit), limit);
    portion.fill(&oldest, limit, limit);
    claim_picked(tx, lease, portion.picked).await
}

/// A batch is not split for less than this part of a portion: each delivery that leaves it becomes a row.
const LEAST_MISSING: usize = 4;

/// The deliveries that are claimed together for one host.
#[derive(Default)]
struct Portion {
    picked: Vec<Picked>,
    /// The places of the picked rows, by their numbers.
    places: HashMap<i64, usize>,
    /// How many deliveries are picked, with the members of batches.
    count: usize,
}

impl Portion {
    /// Picks the first rows, until there are `enough` deliveries. A batch is claimed as a whole, which
    /// costs less, if there are no more than `limit` in all. Otherwise it is split if it is the first of
    /// `rows`, or if at least a part of `enough` is missing ([`LEAST_MISSING`]).
    fn fill(&mut self, candidates: &[Picked], enough: usize, limit: usize) {
        let begun_with = self.count;
        for candidate in candidates {
            let (number, size) = (candidate.number, candidate.size);
            let missing = enough.saturating_sub(self.count);
            let place = self.places.get(&number).copied();
            let picked = place.map_or(0, |place| self.picked[place].count);
            let left = size.saturating_sub(picked); // another node may have split the batch meanwhile
            let is_whole = self.count + left <= limit;
            let is_too_little = self.count > begun_with && missing < enough / LEAST_MISSING;
            if missing == 0 || (!is_whole && is_too_little) {
                break;
            }
            let more = if is_whole { left } else { left.min(missing) };
            let place = place.unwrap_or_else(|| {
                self.places.insert(number, self.picked.len());
                self.picked.push(candidate.clone());
                self.picked.len() - 1
            });
            self.picked[place].count += more;
            self.count += more;
        }
    }
}

/// Reads rows of the queue of which nothing is picked yet.
fn candidates(rows: Vec<Row>) -> Result<Vec<Picked>, StoreError> {
    let read = |mut row: Row| {
        let (resource, number, host) = (row.int()?, row.int()?, row.text()?);
        let size = row.int()?.max(1) as usize;
        Ok(Picked { resource, number, host, count: 0, size })
    };
    rows.into_iter().map(read).collect()
}

/// Claims those of `picked` that no other node has claimed since they were read.
async fn claim_picked(
    tx: &Tx<'_>,
    lease: ClaimLease,
    picked: Vec<Picked>,
) -> Result<Vec<DueSubscription>, StoreError> {
    // The order in which the deliveries are returned.
    let mut places: HashMap<i64, usize> = HashMap::new();
    let (mut single, mut whole) = (Vec::new(), Vec::new());
    for (place, one) in picked.into_iter().enumerate() {
        places.insert(one.number, place);
        if one.is_part() {
            for number in batches::take_out_first_members(tx, lease, &one).await? {
                places.insert(number, place);
                single.push(Picked { number, count: 1, size: 1, ..one.clone() });
            }
        } else if one.number < 0 {
            whole.push(one);
        } else {
            single.push(one);
        }
    }
    // Rows are locked in the order of their keys, so that two nodes rarely wait for each other.
    single.sort_unstable_by_key(|one: &Picked| (one.resource, one.number));
    whole.sort_unstable_by_key(|one: &Picked| (one.resource, one.number));
    let mut found = claim_single(tx, lease, &single).await?;
    found.extend(claim_batches(tx, lease, &whole).await?);
    found.sort_by_key(|(number, _)| places.get(number).copied().unwrap_or(usize::MAX));
    set_back(tx, found.into_iter().map(|(_, row)| row).collect()).await
}

/// Claims those of `{rows}` that are due at `$1` and have no claim that is valid at `$2`, until `$3`, with
/// the token `$4`. `due_at + 0` matches no index, so that PostgreSQL finds the rows by their keys.
macro_rules! claim_statement {
    () => {
        "update deliveries
            set due_at = $3, claimed_until = $3, claim_token = $4
         {from rows}
          where deliveries.resource_id = {given resource_id}
            and deliveries.subscription_id = {given id}
            and deliveries.due_at + 0 <= $1 and (claimed_until is null or claimed_until <= $2)"
    };
}

/// Claims deliveries that are in no batch. Returns them with their numbers.
async fn claim_single(
    tx: &Tx<'_>,
    lease: ClaimLease,
    picked: &[Picked],
) -> Result<Vec<(i64, ClaimedRow)>, StoreError> {
    const CLAIMED: &str = concat!(
        "select s.id, ",
        claimed_columns!(),
        ", d.claim_token, d.replay_from
           from {rows}
           join deliveries d on d.resource_id = given.resource_id and d.subscription_id = given.id
           join subscriptions s on s.resource_id = given.resource_id and s.id = given.id"
    );
    let columns = claims::columns(picked);
    let claim = params![lease.now, lease.now, lease.ends, lease.token.0];
    // An append after the resources are read is noticed when the result is stored.
    let (claimed, resources) = try_join!(
        tx.execute_rows(claim_statement!(), claim, &columns),
        claimed_resources(tx, picked)
    )?;
    let query = ClaimedQuery { sql: CLAIMED, columns: &columns, count: picked.len() };
    let found = claimed_rows::read(tx, lease, &resources, query).await?;
    if claimed > found.len() as u64 {
        remove_expired(tx, lease, picked).await?;
    }
    Ok(found)
}

/// Claims whole batches. Returns their members, each with the number of its batch.
async fn claim_batches(
    tx: &Tx<'_>,
    lease: ClaimLease,
    picked: &[Picked],
) -> Result<Vec<(i64, ClaimedRow)>, StoreError> {
    const CLAIM: &str = concat!(
        claim_statement!(),
        " returning deliveries.resource_id, deliveries.subscription_id, members"
    );
    const MEMBERS: &str = concat!(
        "select given.batch, ",
        claimed_columns!(),
        " from {rows}
           join subscriptions s on s.resource_id = given.resource_id
                               and s.id >= given.first_id and s.id <= given.last_id"
    );
    let columns = claims::columns(picked);
    let claim = params![lease.now, lease.now, lease.ends, lease.token.0];
    // An append after the resources are read is noticed when the result is stored.
    let (claimed, resources) =
        try_join!(tx.query_rows(CLAIM, claim, &columns), claimed_resources(tx, picked))?;
    let claimed = batches::read_batches(claimed);
    let (columns, count) = (batches::member_columns(&claimed), batches::count_members(&claimed));
    let query = ClaimedQuery { sql: MEMBERS, columns: &columns, count };
    let found = claimed_rows::read(tx, lease, &resources, query).await?;
    if found.len() < count {
        batches::remove_expired(tx, lease, claimed).await?;
    }
    Ok(found)
}

/// Deletes those of the claimed rows whose subscriptions have expired or ended.
async fn remove_expired(
    tx: &Tx<'_>,
    lease: ClaimLease,
    picked: &[Picked],
) -> Result<(), StoreError> {
    const REMOVE: &str = "
        delete from deliveries
        {using rows}
         where deliveries.resource_id = {given resource_id}
           and deliveries.subscription_id = {given id} and deliveries.claim_token = {given token}
           and not exists (select 1 from subscriptions s
                            where s.resource_id = deliveries.resource_id
                              and s.id = deliveries.subscription_id and s.lease_until > $1)";
    let columns = claims::columns_with_token(picked, lease.token);
    tx.execute_rows(REMOVE, params![lease.now], &columns).await.map(drop)
}

/// Sets the cursors back of which a replay was requested while a node that died was delivering.
async fn set_back(tx: &Tx<'_>, found: Vec<ClaimedRow>) -> Result<Vec<DueSubscription>, StoreError> {
    const SET_BACK: &str = "
        update subscriptions set cursor = $3 where resource_id = $1 and id = $2";
    const DONE: &str = "
        update deliveries set replay_from = null where resource_id = $1 and subscription_id = $2";
    let mut claimed = Vec::with_capacity(found.len());
    for ClaimedRow { due, replay_from } in found {
        if let Some(cursor) = replay_from {
            let SubscriptionId { resource, number } = due.subscription.id;
            tx.execute(SET_BACK, params![resource.0, number, cursor]).await?;
            tx.execute(DONE, params![resource.0, number]).await?;
        }
        claimed.push(due);
    }
    Ok(claimed)
}
