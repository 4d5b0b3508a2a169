//! Renewing and releasing the claims of deliveries.

use std::collections::{BTreeSet, HashSet};

use chrono::{DateTime, Utc};

use crate::delivery::batch_members::has_member;
use crate::delivery::batches;
use crate::engine::row::Row;
use crate::engine::sql::{Value, params};
use crate::engine::tx::{Tx, Wake};
use feedgate_core::claim::ClaimToken;
use feedgate_core::ports::StoreError;
use feedgate_core::resource::ResourceId;
use feedgate_core::subscription::SubscriptionId;

/// Extends the claims that have not been lost, and returns their subscriptions. The claim of a member
/// of a batch is that of the batch.
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
    const BATCHES: &str = concat!(
        "select given.resource_id, given.id, b.subscription_id, given.token
           from {rows}
           join deliveries b {sqlite indexed by deliveries_members} on ",
        has_member!("b", "given.resource_id", "given.id")
    );
    let id =
        |row: &mut Row| Ok(SubscriptionId { resource: ResourceId(row.int()?), number: row.int()? });
    let (mut members, mut claimed) = (Vec::new(), BTreeSet::new());
    for mut row in tx.query_rows(BATCHES, &[], &columns(claims)).await? {
        let (member, number, token) = (id(&mut row)?, row.int()?, ClaimToken(row.int()?));
        let batch = SubscriptionId { number, ..member };
        members.push((member, batch));
        claimed.insert((batch.resource.0, batch.number, token.0));
    }
    let batches = claimed.into_iter().map(|(resource, number, token)| {
        (SubscriptionId { resource: ResourceId(resource), number }, ClaimToken(token))
    });
    let all: Vec<_> = claims.iter().copied().chain(batches).collect();
    let renewed = tx.query_rows(RENEW, params![until], &columns(&all)).await?;
    let renewed = renewed.into_iter().map(|mut row| id(&mut row));
    let mut renewed = renewed.collect::<Result<HashSet<_>, StoreError>>()?;
    let held = members.into_iter().filter(|(_, batch)| renewed.contains(batch));
    let held: Vec<_> = held.map(|(member, _)| member).collect();
    renewed.retain(|id| id.number > 0); // the numbers of batches are negative
    renewed.extend(held);
    Ok(renewed.into_iter().collect())
}

/// Releases claims under which nothing was sent. A member leaves its batch first.
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
    batches::take_out(tx, &columns[..2]).await?;
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
