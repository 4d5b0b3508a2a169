//! Claiming due subscriptions: backlogs that are due, and the subscriptions in them that are ready.
//!
//! Backlogs are claimed as any rows are (`engine/claims.rs`).

use std::collections::BTreeSet;

use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};
use futures_util::try_join;

use crate::delivery::account_turns::AccountTurns;
use crate::delivery::backlogs::{BACKLOGS, BacklogId};
use crate::delivery::claimed_rows::{self, ClaimedRows, claimed_columns};
use crate::delivery::owed::{is_active, is_not_retried};
use crate::delivery::portions::{Portion, ReadPortion, alternate, share};
use crate::engine::claims::searched_queue::HostLimitedSearch;
use crate::engine::lease::ClaimLease;
use crate::engine::row::Row;
use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
use feedgate_core::claim::{ClaimToken, QueuePosition};
use feedgate_core::served_hosts::ServedNow;
use feedgate_core::store::{ClaimLimits, StoreError};
use feedgate_core::subscription::DueSubscription;

/// The number of rows that are read together while due backlogs are searched.
const CHUNK: usize = 512;
/// The most rows that one search reads: some 10 ms of work.
const MOST_ROWS: usize = 16 * CHUNK;

/// Subscriptions that were claimed, and the portions of backlogs that were read for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClaimedPortions {
    pub(crate) due: Vec<DueSubscription>,
    pub(crate) portions: Vec<ReadPortion>,
    /// Whether some were not claimed because their resources are being written.
    pub(crate) are_some_locked: bool,
}

/// Where a search ended: as in [`ClaimedSubscriptions`](feedgate_core::store::ClaimedSubscriptions).
#[derive(Clone, Copy, Debug)]
pub(crate) struct SearchEnd {
    pub(crate) position: QueuePosition,
    pub(crate) skipped: usize,
    pub(crate) is_end: bool,
}

/// Where a claim searches, and for how much.
#[derive(Clone, Debug)]
pub(crate) struct ClaimSearch {
    pub(crate) limits: ClaimLimits,
    /// The search begins behind this place.
    pub(crate) from: QueuePosition,
    /// Portions of passes that are under way on this node.
    pub(crate) continued: Vec<Portion>,
    /// The hosts that this node serves.
    pub(crate) served: ServedNow,
}

/// Reads the next portions of passes under way, searches due backlogs, and claims as many subscriptions as
/// the limits allow. Accounts take turns if more is due. The caller has called [`Tx::join_by_keys`].
pub(crate) async fn claim(
    tx: &Tx<'_>,
    lease: ClaimLease,
    search: ClaimSearch,
    turns: &AccountTurns,
) -> Result<(ClaimedPortions, SearchEnd), StoreError> {
    const DUE: &str = "
        select resource_id, number, host, due_at, size
          from backlogs
         where due_at <= $1 and (due_at, number) > ($2, $3)
         order by due_at, number
         limit $4";
    let ClaimSearch { limits, from, continued, served } = search;
    let (mut position, mut rows_read, mut is_end) = (from, 0, false);
    // A part is left to the passes under way, and a part to what is not claimed yet.
    let (limit, wanted) = (limits.limit, continued.iter().map(|portion| portion.most).sum());
    let new = limit - (limit / 2).min(wanted);
    let nodes = served.nodes();
    let search = HostLimitedSearch::new(ClaimLimits { limit: new, ..limits });
    let mut search = search.of_served(served);
    for portion in &continued {
        search.count_in(&portion.host, portion.most);
    }
    turns.pick(tx, lease, &mut search, nodes).await?;
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
            position = search.consider(row)?;
        }
    }
    turns.note_backlog(!is_end);
    let (skipped, mut left) = (search.skipped, limit - search.count);
    let mut portions: Vec<Portion> = search.picked.into_iter().map(Portion::from).collect();
    for portion in continued {
        let most = portion.most.min(left);
        left -= most;
        portions.extend((most > 0).then_some(Portion { most, ..portion }));
    }
    let claimed = claim_portions(tx, lease, portions).await?;
    Ok((claimed, SearchEnd { position, skipped, is_end }))
}

/// Claims due subscriptions of one host, of all its backlogs about as many: those that continue, those that
/// have waited longest, and those that became due last. The caller has called [`Tx::join_by_keys`].
pub(crate) async fn claim_of_host(
    tx: &Tx<'_>,
    lease: ClaimLease,
    (host, limit): (&str, usize),
    continued: Vec<Portion>,
) -> Result<ClaimedPortions, StoreError> {
    const OLDEST: &str = "
        select resource_id, number, size from backlogs
         where host = $2 and due_at <= $1
         order by due_at, number
         limit $3";
    const NEWEST: &str = "
        select resource_id, number, size from backlogs
         where host = $2 and due_at <= $1
         order by due_at desc, number desc
         limit $3";
    let of_host = |most: usize| [lease.now.into(), host.into(), (most as i64).into()];
    let (all, half): ([Value; 3], [Value; 3]) = (of_host(limit), of_host(limit / 2));
    let (oldest, newest) = try_join!(tx.query(OLDEST, &all), tx.query(NEWEST, &half))?;
    let read = |mut row: Row| {
        let id = BacklogId::read(&mut row)?;
        Ok((id, row.int()?.max(1) as usize))
    };
    let oldest = oldest.into_iter().map(read).collect::<Result<Vec<_>, StoreError>>()?;
    let newest = newest.into_iter().map(read).collect::<Result<Vec<_>, StoreError>>()?;
    let mut candidates: Vec<(Portion, usize)> =
        continued.into_iter().map(|portion| (portion, usize::MAX)).collect();
    let mut known = HashSet::new();
    for (id, size) in alternate(oldest, newest) {
        if known.insert(id) {
            candidates.push((Portion::of_due(id, host), size));
        }
    }
    claim_portions(tx, lease, share(candidates, limit)).await
}

/// Claims the backlogs that are not held, unless another node has claimed them since they were read, and
/// reads the portions.
async fn claim_portions(
    tx: &Tx<'_>,
    lease: ClaimLease,
    mut portions: Vec<Portion>,
) -> Result<ClaimedPortions, StoreError> {
    let resources: BTreeSet<i64> = portions.iter().map(|portion| portion.id.resource).collect();
    // An append waits, so that it is either seen here or marks the backlog that is claimed here.
    let resources = resources.into_iter().collect();
    let resources = claimed_rows::lock_idle_resources(tx, resources).await?;
    let wanted = portions.len();
    portions.retain(|portion| resources.contains_key(&portion.id.resource));
    let are_some_locked = portions.len() < wanted;
    claim_backlogs(tx, lease, &mut portions).await?;
    let claimed = read_portions(tx, lease, &resources, portions).await?;
    Ok(ClaimedPortions { are_some_locked, ..claimed })
}

/// Claims the backlogs that are not held. Keeps the portions of those that were claimed.
async fn claim_backlogs(
    tx: &Tx<'_>,
    lease: ClaimLease,
    portions: &mut Vec<Portion>,
) -> Result<(), StoreError> {
    let new = portions.iter().filter(|portion| portion.held.is_none());
    let keys: Vec<_> = new.map(|portion| portion.id.key()).collect();
    let mut claimed = HashMap::new();
    for (key, mut row) in BACKLOGS.claim(tx, lease, &keys).await? {
        claimed.insert(key, (row.int()?, row.opt_time()?));
    }
    portions.retain_mut(|portion| {
        if portion.held.is_some() {
            return true;
        }
        portion.held = Some(lease.token);
        claimed.get(&portion.id.key()).is_some_and(|(after, next_retry)| {
            (portion.after, portion.next_retry) = (*after, *next_retry);
            true
        })
    });
    Ok(())
}

/// Reads the subscriptions of portions that are ready, in the order of the portions.
async fn read_portions(
    tx: &Tx<'_>,
    lease: ClaimLease,
    resources: &HashMap<i64, claimed_rows::ClaimedResource>,
    portions: Vec<Portion>,
) -> Result<ClaimedPortions, StoreError> {
    /// The subscriptions of a claimed backlog, searched in an index.
    macro_rules! of_backlog {
        ($index:literal) => {
            concat!(
                " from backlogs b
                  join resources r on r.id = b.resource_id
                  join subscriptions s {sqlite indexed by ",
                $index,
                "}
                    on s.resource_id = b.resource_id and s.host = b.host
                   and s.account_id = b.account_id
                 where b.resource_id = {given resource_id} and b.number = {given number}
                   and b.claim_token = {given token} and ",
                is_active!("$1"),
                " and "
            )
        };
    }
    // PostgreSQL searches the indices once for each portion.
    const READY: &str = concat!(
        "select {given place}, {given token}, s.is_retried, s.id, ",
        claimed_columns!(),
        " {from rows} {postgres cross join lateral} {sqlite from}
         (select *
            from (select s.*, 0 as is_retried",
        of_backlog!("subscriptions_backlog"),
        is_not_retried!(),
        "            and s.id > {given after} order by s.id limit {given most}) passed
          union all
          select *
            from (select s.*, 1 as is_retried",
        of_backlog!("subscriptions_retry_at"),
        "                s.retry_at <= $1 order by s.retry_at limit {given most}) retried) s"
    );
    let tokens = portions.iter().map(|portion| portion.held.map_or(0, |token| token.0));
    let most = |portion: &Portion| portion.most_rows() as i64;
    let columns = [
        ("place", Value::Ints((0..portions.len() as i64).collect())),
        ("resource_id", Value::Ints(portions.iter().map(|portion| portion.id.resource).collect())),
        ("number", Value::Ints(portions.iter().map(|portion| portion.id.number).collect())),
        ("token", Value::Ints(tokens.collect())),
        ("after", Value::Ints(portions.iter().map(|portion| portion.after).collect())),
        ("most", Value::Ints(portions.iter().map(most).collect())),
    ];
    let mut rows: Vec<ClaimedRows> = portions.iter().map(|_| ClaimedRows::default()).collect();
    claimed_rows::read(tx, lease, resources, (READY, &columns), &mut rows).await?;
    let mut claimed = ClaimedPortions::default();
    for (portion, rows) in portions.into_iter().zip(rows) {
        claimed.add(portion, rows);
    }
    Ok(claimed)
}

impl ClaimedPortions {
    /// Adds what was found of a portion, at most as much as was wanted.
    fn add(&mut self, portion: Portion, rows: ClaimedRows) {
        let ClaimedRows { passed, retried, last, due: mut found } = rows;
        let is_at_end = passed.max(retried) < portion.most_rows();
        found.retain(|due| !portion.without.contains(&due.subscription.id.number));
        let is_cut = found.len() > portion.most;
        found.truncate(portion.most);
        let claimed: Vec<_> = found.iter().map(|due| due.subscription.id.number).collect();
        // A place before the last one that was claimed costs no more than reading some again.
        let last = if is_cut { claimed.last().copied().min(last) } else { last };
        let after = last.unwrap_or(portion.after).max(portion.after);
        let is_stuck = claimed.is_empty() && after == portion.after;
        let is_unreadable = claimed.is_empty() && passed.max(retried) > portion.without.len();
        self.portions.push(ReadPortion {
            id: portion.id,
            host: portion.host,
            token: portion.held.unwrap_or(ClaimToken::NONE),
            after,
            is_at_end: (is_at_end && !is_cut) || is_stuck,
            is_unreadable,
            next_retry: portion.next_retry,
            claimed,
        });
        self.due.extend(found);
    }
}
