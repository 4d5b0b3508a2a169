//! Batches: deliveries that share a row of the queue, and so a due time and a claim.
//!
//! Deliveries of one resource that get the same due time, for one account and at one host, are put into
//! batches: after an append, and when results make them due again. A batch is a row of `deliveries` with a
//! negative number, which is found, claimed and renewed like a delivery, and which has the numbers of its
//! members (`batch_members.rs`). So a claim changes one row instead of hundreds.
//!
//! Invariants:
//!
//! * A subscription is a member of one batch, or has a row of its own, or is not in the queue.
//! * A member is delivered only by the node that has claimed its batch.
//! * Members are never added to a batch. They leave it with their results, when a host can take fewer
//!   than the batch has ([`take_out_first_members`]), and when a subscription is treated by itself ([`take_out`]).
//! * Whoever changes the members has locked the row of the batch.

use std::collections::{BTreeMap, BTreeSet};

use foldhash::{HashSet, HashSetExt as _};
use futures_util::try_join;

use crate::delivery::batch_members::{Members, has_member};
use crate::engine::claims::{Picked, readable};
use crate::engine::lease::ClaimLease;
use crate::engine::row::Row;
use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
use feedgate_core::claim::ClaimToken;
use feedgate_core::ports::StoreError;
use feedgate_core::resource::ResourceId;
use feedgate_core::subscription::{BatchNumber, SubscriptionId};

/// A batch whose row is locked.
#[derive(Clone, Debug)]
pub(super) struct LockedBatch {
    resource: i64,
    number: i64,
    members: Members,
}

/// Takes subscriptions, given as `resource_id` and `id`, out of their batches: each gets a row of its own,
/// with the due time and the claim of the batch.
pub(crate) async fn take_out(
    tx: &Tx<'_>,
    keys: &[(&'static str, Value)],
) -> Result<(), StoreError> {
    // A member that another transaction takes out meanwhile is not found.
    const LOCK: &str = concat!(
        "select b.resource_id, b.subscription_id, b.members, given.id
           from {rows}
           join deliveries b {sqlite indexed by deliveries_members} on ",
        has_member!("b", "given.resource_id", "given.id"),
        " {for update of b}"
    );
    let mut batches: BTreeMap<(i64, i64), (Members, BTreeSet<i64>)> = BTreeMap::new();
    for mut row in tx.query_rows(LOCK, &[], keys).await? {
        let key = (row.int()?, row.int()?);
        let Some(members) = readable(Members::read(&mut row)) else { continue };
        batches.entry(key).or_insert_with(|| (members, BTreeSet::new())).1.insert(row.int()?);
    }
    let batches = batches.into_iter().map(|((resource, number), (members, leaving))| {
        (LockedBatch { resource, number, members }, leaving)
    });
    give_own_rows(tx, batches.collect()).await
}

/// Takes the first `batch.count` members out of a batch, if it is due and not claimed. Returns their ids.
pub(super) async fn take_out_first_members(
    tx: &Tx<'_>,
    lease: ClaimLease,
    batch: &Picked,
) -> Result<Vec<i64>, StoreError> {
    const LOCK: &str = "
        select members from deliveries
         where resource_id = $1 and subscription_id = $2
           and due_at <= $3 and (claimed_until is null or claimed_until <= $4) {for update}";
    let (resource, number) = (batch.resource, batch.number);
    let params = params![resource, number, lease.now, lease.now];
    let Some(mut row) = tx.first(LOCK, params).await? else { return Ok(Vec::new()) };
    let Some(members) = readable(Members::read(&mut row)) else { return Ok(Vec::new()) };
    let first: BTreeSet<_> = members.ids().iter().take(batch.count).copied().collect();
    give_own_rows(tx, vec![(LockedBatch { resource, number, members }, first.clone())]).await?;
    Ok(first.into_iter().collect())
}

/// Gives some members of each batch rows of their own.
async fn give_own_rows(
    tx: &Tx<'_>,
    batches: Vec<(LockedBatch, BTreeSet<i64>)>,
) -> Result<(), StoreError> {
    const INSERT: &str = "
        insert into deliveries (resource_id, subscription_id, account_id, host, due_at, claimed_until,
                                claim_token)
        select b.resource_id, given.id, b.account_id, b.host, b.due_at, b.claimed_until, b.claim_token
          from {rows}
          join deliveries b on b.resource_id = given.resource_id and b.subscription_id = given.batch";
    let (mut batch_keys, mut member_ids, mut remaining) = (Vec::new(), Vec::new(), Vec::new());
    for (mut batch, leaving) in batches {
        batch_keys.extend(leaving.iter().map(|_| (batch.resource, batch.number)));
        batch.members.retain(|id| !leaving.contains(&id));
        member_ids.extend(leaving);
        remaining.push(batch);
    }
    let [resources, (_, batches)] = key_columns(&batch_keys);
    let columns = [resources, ("id", Value::Ints(member_ids)), ("batch", batches)];
    tx.execute_rows(INSERT, &[], &columns).await?;
    store_members(tx, remaining).await
}

/// Stores which members are left in batches. Those without members are deleted.
async fn store_members(tx: &Tx<'_>, batches: Vec<LockedBatch>) -> Result<(), StoreError> {
    const STORE: &str = "
        update deliveries set members = {given members}, size = {given size}
        {from rows}
         where deliveries.resource_id = {given resource_id}
           and deliveries.subscription_id = {given id}";
    const REMOVE: &str = "
        delete from deliveries
        {using rows}
         where deliveries.resource_id = {given resource_id}
           and deliveries.subscription_id = {given id}";
    let key = |batch: &LockedBatch| (batch.resource, batch.number);
    let (empty, left): (Vec<_>, Vec<_>) =
        batches.into_iter().partition(|batch| batch.members.ids().is_empty());
    let [resources, numbers] = key_columns(&left.iter().map(key).collect::<Vec<_>>());
    let sizes = left.iter().map(|batch| batch.members.ids().len() as i64);
    let texts = left.iter().map(|batch| batch.members.to_text());
    let columns = [
        resources,
        numbers,
        ("size", Value::Ints(sizes.collect())),
        ("members", Value::Texts(texts.collect())),
    ];
    let removed = key_columns(&empty.iter().map(key).collect::<Vec<_>>());
    try_join!(tx.execute_rows(STORE, &[], &columns), tx.execute_rows(REMOVE, &[], &removed))?;
    Ok(())
}

/// Reads batches from rows with `resource_id`, `subscription_id` and `members`. Unreadable ones are left out.
pub(super) fn read_batches(rows: Vec<Row>) -> Vec<LockedBatch> {
    let read = |mut row: Row| {
        let (resource, number) = (row.int()?, row.int()?);
        Ok(LockedBatch { resource, number, members: Members::read(&mut row)? })
    };
    rows.into_iter().filter_map(|row| readable(read(row))).collect()
}

/// Returns how many members the batches have in total.
pub(super) fn count_members(batches: &[LockedBatch]) -> usize {
    batches.iter().map(|batch| batch.members.ids().len()).sum()
}

/// Returns the members of batches as columns for `{rows}`: the `batch`, `resource_id`, `first_id` and
/// `last_id` of each range of consecutive ids.
pub(super) fn member_columns(batches: &[LockedBatch]) -> [(&'static str, Value); 4] {
    let (mut resources, mut firsts, mut lasts) = (Vec::new(), Vec::new(), Vec::new());
    let mut numbers = Vec::new();
    for batch in batches {
        for (first, last) in batch.members.ranges() {
            numbers.push(batch.number);
            resources.push(batch.resource);
            firsts.push(first);
            lasts.push(last);
        }
    }
    [
        ("batch", Value::Ints(numbers)),
        ("resource_id", Value::Ints(resources)),
        ("first_id", Value::Ints(firsts)),
        ("last_id", Value::Ints(lasts)),
    ]
}

/// Removes those members of the batches whose subscriptions have expired or ended.
pub(super) async fn remove_expired(
    tx: &Tx<'_>,
    lease: ClaimLease,
    mut batches: Vec<LockedBatch>,
) -> Result<(), StoreError> {
    const LEASES: &str = "
        select s.id, s.lease_until
          from {rows}
          join subscriptions s on s.resource_id = given.resource_id
                              and s.id >= given.first_id and s.id <= given.last_id";
    let mut valid = HashSet::new();
    for mut row in tx.query_rows(LEASES, &[], &member_columns(&batches)).await? {
        let (id, lease_until) = (row.int()?, row.time()?);
        valid.extend((lease_until > lease.now).then_some(id));
    }
    for batch in &mut batches {
        batch.members.retain(|id| valid.contains(&id));
    }
    store_members(tx, batches).await
}

/// A member of a batch, and the claim of the batch under which it was delivered.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeliveredMember {
    pub(super) id: SubscriptionId,
    pub(super) batch: BatchNumber,
    pub(super) claim: ClaimToken,
}

/// Removes members from batches whose claims are still held. Returns those that were removed, with their
/// claims.
pub(super) async fn end_members(
    tx: &Tx<'_>,
    members: &[DeliveredMember],
) -> Result<Vec<(SubscriptionId, ClaimToken)>, StoreError> {
    const LOCK: &str = "
        select b.resource_id, b.subscription_id, b.claim_token, b.members
          from {rows}
          join deliveries b on b.resource_id = given.resource_id and b.subscription_id = given.id
         where b.claim_token = given.claim
         {for update of b}";
    let mut claims: BTreeMap<(i64, i64, i64), HashSet<i64>> = BTreeMap::new();
    for DeliveredMember { id, batch, claim } in members {
        claims.entry((id.resource.0, batch.0, claim.0)).or_default().insert(id.number);
    }
    let keys: Vec<_> = claims.keys().map(|(resource, number, _)| (*resource, *number)).collect();
    let [resources, numbers] = key_columns(&keys);
    let tokens = claims.keys().map(|(_, _, token)| *token).collect();
    let columns = [resources, numbers, ("claim", Value::Ints(tokens))];
    let (mut remaining, mut ended) = (Vec::new(), Vec::with_capacity(members.len()));
    for mut row in tx.query_rows(LOCK, &[], &columns).await? {
        let (resource, number, token) = (row.int()?, row.int()?, row.int()?);
        let Some(members) = readable(Members::read(&mut row)) else { continue };
        let mut batch = LockedBatch { resource, number, members };
        let Some(delivered) = claims.get(&(resource, number, token)) else { continue };
        batch.members.retain(|id| {
            let is_delivered = delivered.contains(&id);
            if is_delivered {
                let id = SubscriptionId { resource: ResourceId(resource), number: id };
                ended.push((id, ClaimToken(token)));
            }
            !is_delivered
        });
        remaining.push(batch);
    }
    store_members(tx, remaining).await?;
    Ok(ended)
}

/// Returns batches or subscriptions as columns for `{rows}`.
pub(super) fn key_columns(rows: &[(i64, i64)]) -> [(&'static str, Value); 2] {
    [
        ("resource_id", Value::Ints(rows.iter().map(|(resource, _)| *resource).collect())),
        ("id", Value::Ints(rows.iter().map(|(_, number)| *number).collect())),
    ]
}
