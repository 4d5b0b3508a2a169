//! Batches: deliveries that share a due time and a claim.
//!
//! Deliveries of one resource that get the same due time, for one account and at one host, are put into
//! batches: after an append, and when results make them due again. A batch is a row of `deliveries` with a
//! negative number, which is found, claimed and renewed like a delivery. Its members are rows with neither
//! a due time nor a claim of their own, so the indices of the queue do not contain them, and a claim
//! changes one row instead of hundreds.
//!
//! Invariants:
//!
//! * A member is delivered only by the node that has claimed its batch.
//! * Members are never added to a batch. They leave it with their results, when a host can take fewer
//!   than the batch has ([`claim_members`]), and when a subscription is treated by itself ([`take_out`]).
//! * Whoever takes a member out has locked the resource or the row of the batch.

use std::collections::{BTreeSet, HashMap, HashSet};

use chrono::{DateTime, Utc};

use crate::engine::claims::{self, Picked};
use crate::engine::lease::ClaimLease;
use crate::engine::sql::{Row, Value, params};
use crate::engine::tx::{Tx, Wake};
use feedgate_core::claim::ClaimToken;
use feedgate_core::ports::StoreError;
use feedgate_core::resource::ResourceId;
use feedgate_core::subscription::{BatchNumber, SubscriptionId};

/// The most members of a batch: an eighth of what is claimed together for a fast host (`LARGEST_PORTION`
/// of the delivery job), so that most claims take whole batches.
const MOST_MEMBERS: usize = 128;

/// A column of a row of `deliveries` that members have from their batch: the due time or the end of the
/// claim. `$delivery` is the row.
macro_rules! shared {
    ($delivery:literal, $column:literal) => {
        concat!(
            "case when ",
            $delivery,
            ".batch is null then ",
            $delivery,
            ".",
            $column,
            " else (select batches.",
            $column,
            " from deliveries batches where batches.resource_id = ",
            $delivery,
            ".resource_id and batches.subscription_id = ",
            $delivery,
            ".batch) end"
        )
    };
}
pub(crate) use shared;

/// A subscription that is owed something and is not in the queue.
#[derive(Clone, Debug)]
pub(crate) struct NewDelivery {
    pub(crate) resource: i64,
    pub(crate) subscription: i64,
    pub(crate) account: i64,
    pub(crate) host: String,
    pub(crate) due_at: DateTime<Utc>,
}

impl NewDelivery {
    /// Reads a row with the numbers of the resource, the subscription and the account, and the host.
    pub(crate) fn read(mut row: Row, due_at: DateTime<Utc>) -> Result<NewDelivery, StoreError> {
        let (resource, subscription) = (row.int()?, row.int()?);
        let (account, host) = (row.int()?, row.text()?);
        Ok(NewDelivery { resource, subscription, account, host, due_at })
    }
}

/// Puts the deliveries into the queue that a statement beginning with `select_due!` selects, all of one
/// resource, which is locked. They are due at once.
pub(crate) async fn enqueue_selected(
    tx: &Tx<'_>,
    select: &str,
    params: &[Value],
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    tx.join_by_keys().await?;
    let selected = tx.query(select, params).await?.into_iter();
    let selected = selected.map(|row| NewDelivery::read(row, now)).collect::<Result<_, _>>()?;
    enqueue(tx, selected, now).await?;
    tx.plan_as_usual().await
}

/// Puts deliveries into the queue, those that are alike in batches. Their resources are locked.
pub(crate) async fn enqueue(
    tx: &Tx<'_>,
    deliveries: Vec<NewDelivery>,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    const INSERT: &str = "
        insert into deliveries (resource_id, subscription_id, account_id, host, due_at, batch, size)
        {values resource_id, subscription_id, account_id, host, due_at, batch, size}";
    if deliveries.is_empty() {
        return Ok(());
    }
    let mut groups: HashMap<(i64, i64, &str, DateTime<Utc>), Vec<i64>> = HashMap::new();
    for one in &deliveries {
        let group = (one.resource, one.account, one.host.as_str(), one.due_at);
        groups.entry(group).or_default().push(one.subscription);
    }
    let parts = groups.iter().flat_map(|(group, members)| {
        members.chunks(MOST_MEMBERS).map(move |members| (*group, members))
    });
    let parts: Vec<_> = parts.collect();
    let many = parts.iter().filter(|(_, members)| members.len() > 1);
    let possible = many.flat_map(|((resource, ..), members)| {
        possible_numbers(members).map(move |number| (*resource, number))
    });
    let taken = existing_batches(tx, &possible.collect::<Vec<_>>()).await?;
    let mut rows = Vec::with_capacity(deliveries.len() + parts.len());
    for ((resource, account, host, due_at), members) in parts {
        let mut numbers = possible_numbers(members).into_iter();
        let number = numbers.find(|number| !taken.contains(&(resource, *number)));
        let batch = number.filter(|_| members.len() > 1);
        let row = NewRow { resource, number: 0, account, host, due_at: None, batch, size: 1 };
        if let Some(number) = batch {
            let (due_at, size) = (Some(due_at), members.len());
            rows.push(NewRow { number, due_at, batch: None, size, ..row });
        }
        let due_at = batch.is_none().then_some(due_at);
        rows.extend(members.iter().map(|number| NewRow { number: *number, due_at, ..row }));
    }
    tx.execute_rows(INSERT, &[], &row_columns(&rows)).await?;
    if deliveries.iter().any(|one| one.due_at <= now) {
        tx.wake(Wake::Subscriptions);
    }
    Ok(())
}

/// Returns the numbers that a batch with these members may have: those of the first and of the last
/// one, negated. An older batch may still have one of them. If both are taken, the deliveries are queued
/// one by one.
fn possible_numbers(members: &[i64]) -> [i64; 2] {
    [members.first(), members.last()].map(|member| -member.copied().unwrap_or_default())
}

/// Returns which of these batches, given with their resources, exist.
async fn existing_batches(
    tx: &Tx<'_>,
    batches: &[(i64, i64)],
) -> Result<HashSet<(i64, i64)>, StoreError> {
    const EXISTING: &str = "
        select d.resource_id, d.subscription_id
          from {rows}
          join deliveries d on d.resource_id = given.resource_id and d.subscription_id = given.id";
    let rows = tx.query_rows(EXISTING, &[], &key_columns(batches)).await?;
    rows.into_iter().map(|mut row| Ok((row.int()?, row.int()?))).collect()
}

/// A row that is inserted into `deliveries`.
#[derive(Clone, Copy)]
struct NewRow<'a> {
    resource: i64,
    number: i64,
    account: i64,
    host: &'a str,
    due_at: Option<DateTime<Utc>>,
    batch: Option<i64>,
    size: usize,
}

fn row_columns(rows: &[NewRow<'_>]) -> [(&'static str, Value); 7] {
    let due_at = rows.iter().map(|row| row.due_at.map(|at| at.timestamp_micros()));
    [
        ("resource_id", Value::Ints(rows.iter().map(|row| row.resource).collect())),
        ("subscription_id", Value::Ints(rows.iter().map(|row| row.number).collect())),
        ("account_id", Value::Ints(rows.iter().map(|row| row.account).collect())),
        ("host", Value::Texts(rows.iter().map(|row| row.host.to_owned()).collect())),
        ("due_at", Value::OptInts(due_at.collect())),
        ("batch", Value::OptInts(rows.iter().map(|row| row.batch).collect())),
        ("size", Value::Ints(rows.iter().map(|row| row.size as i64).collect())),
    ]
}

/// Takes subscriptions, given as `resource_id` and `id`, out of their batches: each gets the due time
/// and the claim of its batch as its own.
pub(crate) async fn take_out(
    tx: &Tx<'_>,
    keys: &[(&'static str, Value)],
) -> Result<(), StoreError> {
    // The lock keeps other nodes from claiming the batch meanwhile.
    const LOCK: &str = "
        select m.resource_id, m.subscription_id, m.batch
          from {rows}
          join deliveries m on m.resource_id = given.resource_id and m.subscription_id = given.id
          join deliveries batches
               on batches.resource_id = m.resource_id and batches.subscription_id = m.batch
         {for update of batches}";
    // A member that another transaction has taken out meanwhile stays as it is.
    const TAKE_OUT: &str = "
        update deliveries
           set (due_at, claimed_until, claim_token) =
               (select b.due_at, b.claimed_until, b.claim_token from deliveries b
                 where b.resource_id = deliveries.resource_id
                   and b.subscription_id = deliveries.batch),
               batch = null
        {from rows}
         where deliveries.resource_id = {given resource_id}
           and deliveries.subscription_id = {given id} and deliveries.batch + 0 = {given batch}";
    let members = tx.query_rows(LOCK, &[], keys).await?.into_iter();
    let members = members.map(|mut row| Ok((row.int()?, row.int()?, row.int()?)));
    let members = members.collect::<Result<Vec<_>, StoreError>>()?;
    tx.execute_rows(TAKE_OUT, &[], &member_columns(&members)).await?;
    let batches = members.into_iter().map(|(resource, _, batch)| (resource, batch));
    remove_empty(tx, &key_columns(&distinct(batches))).await
}

/// Claims a part of the members of a batch that is due and that no node has claimed. They leave the
/// batch. Returns their numbers.
pub(super) async fn claim_members(
    tx: &Tx<'_>,
    lease: ClaimLease,
    batch: &Picked,
) -> Result<Vec<i64>, StoreError> {
    const LOCK: &str = "
        update deliveries set size = size - cast($3 as bigint)
         where resource_id = $1 and subscription_id = $2
           and due_at <= $4 and (claimed_until is null or claimed_until <= $5)";
    const MEMBERS: &str = "
        select m.subscription_id
          from deliveries m {sqlite indexed by deliveries_batch}
         where m.resource_id = $1 and m.batch = $2
         order by m.subscription_id limit $3";
    const TAKE: &str = "
        update deliveries set batch = null, due_at = $1, claimed_until = $1, claim_token = $2
        {from rows}
         where deliveries.resource_id = {given resource_id}
           and deliveries.subscription_id = {given id} and deliveries.batch + 0 = {given batch}
        returning deliveries.subscription_id";
    let (resource, number, count) = (batch.resource, batch.number, batch.count as i64);
    let params = params![resource, number, count, lease.now, lease.begins];
    if tx.execute(LOCK, params).await? == 0 {
        return Ok(Vec::new());
    }
    let members = tx.query(MEMBERS, params![resource, number, count]).await?.into_iter();
    let members = members.map(|mut row| Ok((resource, row.int()?, number)));
    let members = member_columns(&members.collect::<Result<Vec<_>, StoreError>>()?);
    let taken = tx.query_rows(TAKE, params![lease.ends, lease.token.0], &members).await?;
    if taken.len() < batch.count {
        remove_empty(tx, &key_columns(&[(resource, number)])).await?;
    }
    taken.into_iter().map(|mut row| row.int()).collect()
}

/// Deletes those members of the claimed batches whose subscriptions have expired or ended, and the batches
/// that are empty then.
pub(super) async fn remove_expired(
    tx: &Tx<'_>,
    lease: ClaimLease,
    batches: &[Picked],
) -> Result<(), StoreError> {
    const EXPIRED: &str = "
        delete from deliveries
        {using rows}
         where deliveries.resource_id = {given resource_id} and deliveries.batch = {given id}
           and exists (select 1 from deliveries b
                        where b.resource_id = {given resource_id} and b.subscription_id = {given id}
                          and b.claim_token = {given token})
           and not exists (select 1 from subscriptions s
                            where s.resource_id = deliveries.resource_id
                              and s.id = deliveries.subscription_id and s.lease_until > $1)";
    let claimed = claims::columns_with_token(batches, lease.token);
    tx.execute_rows(EXPIRED, params![lease.now], &claimed).await?;
    remove_empty(tx, &claims::columns(batches)).await
}

/// A member of a batch, and the claim of the batch under which it was delivered.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeliveredMember {
    pub(super) id: SubscriptionId,
    pub(super) batch: BatchNumber,
    pub(super) claim: ClaimToken,
}

/// Deletes members of batches whose claims are still held, and the batches that are empty then. Returns
/// the deleted members with their claims, each with where to set the cursor of its subscription.
pub(super) async fn end_members(
    tx: &Tx<'_>,
    members: &[DeliveredMember],
) -> Result<Vec<((SubscriptionId, ClaimToken), Option<i64>)>, StoreError> {
    // Two transactions that delete the last members of a batch at the same time would otherwise each
    // see those of the other, and keep the empty batch.
    const LOCK: &str = "
        select deliveries.resource_id, deliveries.subscription_id, deliveries.claim_token
          from {rows}
          join deliveries on deliveries.resource_id = given.resource_id
                         and deliveries.subscription_id = given.id
         where deliveries.claim_token = given.claim
         {for update of deliveries}";
    // `batch + 0` matches no index, so that PostgreSQL finds the rows by their keys.
    const END: &str = "
        delete from deliveries
        {using rows}
         where deliveries.resource_id = {given resource_id}
           and deliveries.subscription_id = {given id} and deliveries.batch + 0 = {given batch}
        returning deliveries.resource_id, deliveries.subscription_id, deliveries.batch,
                  deliveries.replay_from";
    let claims: BTreeSet<_> = members
        .iter()
        .map(|member| (member.id.resource.0, member.batch.0, member.claim.0))
        .collect();
    let batches: Vec<_> = claims.iter().map(|(resource, batch, _)| (*resource, *batch)).collect();
    let [resources, numbers] = key_columns(&batches);
    let tokens = claims.iter().map(|(_, _, token)| *token).collect();
    let columns = [resources, numbers, ("claim", Value::Ints(tokens))];
    let held = tx.query_rows(LOCK, &[], &columns).await?.into_iter();
    let held = held.map(|mut row| Ok(((row.int()?, row.int()?), row.int()?)));
    let held = held.collect::<Result<HashMap<(i64, i64), i64>, StoreError>>()?;
    let of_held = |member: &&DeliveredMember| {
        held.get(&(member.id.resource.0, member.batch.0)) == Some(&member.claim.0)
    };
    let members: Vec<_> = members
        .iter()
        .filter(of_held)
        .map(|DeliveredMember { id, batch, .. }| (id.resource.0, id.number, batch.0))
        .collect();
    let ended = tx.query_rows(END, &[], &member_columns(&members)).await?.into_iter();
    remove_empty(tx, &key_columns(&held.keys().copied().collect::<Vec<_>>())).await?;
    let ended = ended.map(|mut row| {
        let id = SubscriptionId { resource: ResourceId(row.int()?), number: row.int()? };
        let claim = held.get(&(id.resource.0, row.int()?)).copied().unwrap_or_default();
        Ok(((id, ClaimToken(claim)), row.opt_int()?))
    });
    ended.collect()
}

/// Deletes those batches that have no members. Each row has the resource and the number of one, which may
/// be null.
pub(super) async fn remove_empty_of(tx: &Tx<'_>, rows: Vec<Row>) -> Result<(), StoreError> {
    let mut batches = Vec::new();
    for mut row in rows {
        let (resource, number) = (row.int()?, row.opt_int()?);
        batches.extend(number.map(|number| (resource, number)));
    }
    remove_empty(tx, &key_columns(&distinct(batches.into_iter()))).await
}

async fn remove_empty(tx: &Tx<'_>, batches: &[(&'static str, Value)]) -> Result<(), StoreError> {
    const EMPTY: &str = "
        delete from deliveries
        {using rows}
         where deliveries.resource_id = {given resource_id}
           and deliveries.subscription_id = {given id}
           and not exists (select 1 from deliveries m {sqlite indexed by deliveries_batch}
                            where m.resource_id = deliveries.resource_id
                              and m.batch = deliveries.subscription_id)";
    tx.execute_rows(EMPTY, &[], batches).await.map(drop)
}

/// Returns the batches without repetitions.
fn distinct(batches: impl Iterator<Item = (i64, i64)>) -> Vec<(i64, i64)> {
    batches.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Returns members, each with its resource, its number and that of its batch, as columns for `{rows}`.
fn member_columns(members: &[(i64, i64, i64)]) -> [(&'static str, Value); 3] {
    let keys: Vec<_> = members.iter().map(|(resource, number, _)| (*resource, *number)).collect();
    let [resources, numbers] = key_columns(&keys);
    let batches = members.iter().map(|(_, _, batch)| *batch).collect();
    [resources, numbers, ("batch", Value::Ints(batches))]
}

/// Returns batches or subscriptions as columns for `{rows}`.
fn key_columns(rows: &[(i64, i64)]) -> [(&'static str, Value); 2] {
    [
        ("resource_id", Value::Ints(rows.iter().map(|(resource, _)| *resource).collect())),
        ("id", Value::Ints(rows.iter().map(|(_, number)| *number).collect())),
    ]
}
