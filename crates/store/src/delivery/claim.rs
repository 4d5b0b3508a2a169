//! Claiming due subscriptions, and renewing and releasing claims.
//!
//! Candidates are read without locks and claimed by an update that applies only while no other
//! claim on them is valid, so nodes that read the same candidates never both get one. Whether a
//! claim has expired is decided by the clock of the database, not by that of a node.

use chrono::{DateTime, Utc};

use crate::delivery::account_turns::AccountTurns;
use crate::delivery::queue::status_owed;
use crate::delivery::row::{subscription, subscription_columns};
use crate::engine::claims::{self, HostLimitedSearch, Picked};
use crate::engine::lease::ClaimLease;
use crate::engine::sql::{Row, Value, params};
use crate::engine::tx::{Tx, Wake};
use feedgate_core::claim::{ClaimToken, QueuePosition};
use feedgate_core::ports::{ClaimLimits, ClaimedSubscriptions, StoreError};
use feedgate_core::record::Seq;
use feedgate_core::resource::ResourceId;
use feedgate_core::subscription::{DueSubscription, Format, SubscriptionId};

/// The number of rows that are read together while a queue is searched.
const CHUNK: usize = 512;
/// The most rows that one search reads: some 10 ms of work.
const MOST_ROWS: usize = 16 * CHUNK;

/// Searches the queue after `from`, and claims as many jobs as `limits` allow. Accounts take turns if
/// more is due.
pub(crate) async fn claim(
    tx: &Tx<'_>,
    lease: ClaimLease,
    limits: ClaimLimits,
    from: QueuePosition,
    turns: &AccountTurns,
) -> Result<ClaimedSubscriptions, StoreError> {
    const DUE: &str = "
        select resource_id, subscription_id, host, due_at
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
            position = search.consider(row)?;
        }
    }
    turns.note_backlog(!is_end);
    let due = claim_picked(tx, lease, search.picked).await?;
    Ok(ClaimedSubscriptions { due, position, skipped: search.skipped, is_end })
}

/// Claims due subscriptions of one host: those that have waited longest, and the same number of
/// those that became due last.
pub(crate) async fn claim_of_host(
    tx: &Tx<'_>,
    lease: ClaimLease,
    host: &str,
    limit: usize,
) -> Result<Vec<DueSubscription>, StoreError> {
    const OLDEST: &str = "
        select resource_id, subscription_id, host
          from deliveries
         where host = $2 and due_at <= $1
         order by due_at, subscription_id
         limit $3";
    const NEWEST: &str = "
        select resource_id, subscription_id, host
          from deliveries
         where host = $2 and due_at <= $1
         order by due_at desc, subscription_id desc
         limit $3";
    let oldest = tx.query(OLDEST, params![lease.now, host, limit.div_ceil(2) as i64]).await?;
    let newest = tx.query(NEWEST, params![lease.now, host, (limit / 2) as i64]).await?;
    let mut picked: Vec<Picked> = Vec::with_capacity(limit);
    for mut row in oldest.into_iter().chain(newest.into_iter().rev()) {
        let one = Picked { resource: row.int()?, number: row.int()?, host: row.text()? };
        if !picked.contains(&one) {
            picked.push(one);
        }
    }
    claim_picked(tx, lease, picked).await
}

/// Claims those of `picked` that no other node has claimed since they were read.
async fn claim_picked(
    tx: &Tx<'_>,
    lease: ClaimLease,
    picked: Vec<Picked>,
) -> Result<Vec<DueSubscription>, StoreError> {
    const CLAIM: &str = "
        update deliveries
           set due_at = $3, claimed_until = $3, claim_token = $4
        {from rows}
         where deliveries.resource_id = {given resource_id}
           and deliveries.subscription_id = {given id}
           and due_at <= $1 and (claimed_until is null or claimed_until <= $2)";
    const CLAIMED: &str = concat!(
        "select ",
        subscription_columns!(),
        ", d.claim_token, d.replay_from,
           case when s.format = 'raw' then r.body_version else r.head end, s.replayed_upto,
           s.replays, s.digest_replays, s.acknowledged, r.hops, ",
        status_owed!("s.statuses"),
        " from {rows}
           join deliveries d on d.resource_id = given.resource_id and d.subscription_id = given.id
           join subscriptions s on s.resource_id = d.resource_id and s.id = d.subscription_id
           join resources r on r.id = s.resource_id
          where d.claim_token = $1 and s.lease_until > $2"
    );
    let columns = claims::columns(&picked);
    let params = params![lease.now, lease.begins, lease.ends, lease.token.0];
    let claimed = tx.execute_rows(CLAIM, params, &columns).await?;
    let rows = tx.query_rows(CLAIMED, params![lease.token.0, lease.now], &columns).await?;
    if claimed > rows.len() as u64 {
        remove_expired(tx, lease, &columns).await?;
    }
    let found = claims::read(rows, &picked, claimed_row, |one| one.due.subscription.id.number);
    set_back(tx, found).await
}

/// Deletes those of the claimed rows whose subscriptions have expired or ended.
async fn remove_expired(
    tx: &Tx<'_>,
    lease: ClaimLease,
    columns: &[(&'static str, Value); 2],
) -> Result<(), StoreError> {
    const REMOVE: &str = "
        delete from deliveries
        {using rows}
         where deliveries.resource_id = {given resource_id}
           and deliveries.subscription_id = {given id} and claim_token = $1
           and not exists (select 1 from subscriptions s
                            where s.resource_id = deliveries.resource_id
                              and s.id = deliveries.subscription_id and s.lease_until > $2)";
    tx.execute_rows(REMOVE, params![lease.token.0, lease.now], columns).await.map(drop)
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

/// A row that was claimed.
struct ClaimedRow {
    due: DueSubscription,
    /// Where to set the cursor first.
    replay_from: Option<i64>,
}

fn claimed_row(mut row: Row) -> Result<ClaimedRow, StoreError> {
    let mut subscription = subscription(&mut row)?;
    let (claim, replay_from) = (ClaimToken(row.int()?), row.opt_int()?);
    subscription.cursor = replay_from.map_or(subscription.cursor, Seq);
    let (newest, told_before) = (Seq(row.int()?), Seq(row.int()?));
    let (replays, digest_replays) = (row.int()?, row.int()?);
    let (acknowledged, hops, status) = (row.int()?, row.small()?, row.int()?);
    // A later replay is no digest.
    let is_digest = digest_replays > 0
        && digest_replays == replays
        && subscription.format != Format::Raw
        && subscription.cursor < told_before;
    // A subscriber may ignore digests, so that what was never sent before follows by itself.
    let owed = if is_digest { newest.min(told_before) } else { newest };
    #[rustfmt::skip]
    let due = DueSubscription {
        subscription, claim, owed, newest, told_before, replays, is_digest, acknowledged, hops, status,
    };
    Ok(ClaimedRow { due, replay_from })
}

/// Extends the claims that have not been lost, and returns their subscriptions.
pub(crate) async fn renew(
    tx: &Tx<'_>,
    claims: &[(SubscriptionId, ClaimToken)],
    until: DateTime<Utc>,
) -> Result<Vec<SubscriptionId>, StoreError> {
    const RENEW: &str = "
        update deliveries
           set due_at = case when due_at is null then null else cast($1 as bigint) end,
               claimed_until = $1
          from {rows}
         where deliveries.resource_id = given.resource_id
           and deliveries.subscription_id = given.id and claim_token = given.token
        returning deliveries.resource_id, deliveries.subscription_id";
    let rows = tx.query_rows(RENEW, params![until], &columns(claims)).await?;
    let ids = rows
        .into_iter()
        .map(|mut row| Ok(SubscriptionId { resource: ResourceId(row.int()?), number: row.int()? }));
    ids.collect()
}

/// Releases claims under which nothing was sent.
pub(crate) async fn release(
    tx: &Tx<'_>,
    claims: &[(SubscriptionId, ClaimToken)],
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    // Nothing is owed to a subscription that was paused meanwhile.
    const PAUSED: &str = "
        delete from deliveries
        {using rows}
         where deliveries.resource_id = {given resource_id}
           and deliveries.subscription_id = {given id} and claim_token = {given token}
           and due_at is null and replay_from is null";
    const RELEASE: &str = "
        update deliveries
           set due_at = case when due_at is null then null else cast($1 as bigint) end,
               claimed_until = null, claim_token = 0
        {from rows}
         where deliveries.resource_id = {given resource_id}
           and deliveries.subscription_id = {given id} and claim_token = {given token}";
    let columns = columns(claims);
    tx.execute_rows(PAUSED, &[], &columns).await?;
    if tx.execute_rows(RELEASE, params![now], &columns).await? > 0 {
        tx.wake(Wake::Subscriptions);
    }
    Ok(())
}

fn columns(claims: &[(SubscriptionId, ClaimToken)]) -> [(&'static str, Value); 3] {
    [
        ("resource_id", Value::Ints(claims.iter().map(|(id, _)| id.resource.0).collect())),
        ("id", Value::Ints(claims.iter().map(|(id, _)| id.number).collect())),
        ("token", Value::Ints(claims.iter().map(|(_, token)| token.0).collect())),
    ]
}
