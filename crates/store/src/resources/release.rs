//! Releasing claimed resources without the results of polls.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use crate::engine::sql::Value;
use crate::engine::tx::{Tx, Wake};
use crate::hosts;
use feedgate_core::store::{ReleasedResource, StoreError};

/// Ends the claim of a resource and of its host group, unless the claim was lost.
pub(crate) async fn release(tx: &Tx<'_>, released: ReleasedResource) -> Result<(), StoreError> {
    let at = tx.at(released.at);
    let is_due = released.put_off.is_none();
    let Some(host) = end_claims(tx, &[released]).await?.pop() else { return Ok(()) };
    hosts::release(tx, &BTreeMap::from([(host.as_str(), (false, at))])).await?;
    if is_due {
        tx.wake(Wake::Resources);
    }
    Ok(())
}

/// Ends those claims of resources that were not lost. Returns the host groups of the resources.
pub(crate) async fn end_claims(
    tx: &Tx<'_>,
    released: &[ReleasedResource],
) -> Result<Vec<String>, StoreError> {
    const RELEASE: &str = "
        update resources
           set claimed_until = null, claim_token = 0,
               pinged = case when pinged = 2 then 1 else pinged end,
               due_at = coalesce({given again_at}, due_at),
               next_fetch = coalesce({given again_at}, next_fetch),
               delay_reason = coalesce({given reason}, delay_reason),
               left_alone_until = coalesce({given alone_until}, left_alone_until)
        {from rows}
         where resources.id = {given id} and claim_token = {given token}
           and claimed_until is not null
        returning host";
    let micros = |at: &DateTime<Utc>| tx.at(*at).timestamp_micros();
    let due_at = released.iter().map(|one| one.put_off.as_ref().map(|(due_at, _)| due_at));
    let reasons = released.iter().map(|one| one.put_off.as_ref().map(|(_, why)| why));
    let left_alone = released.iter().map(|one| one.left_alone_until.as_ref().map(micros));
    let columns = [
        ("id", Value::Ints(released.iter().map(|one| one.id.0).collect())),
        ("token", Value::Ints(released.iter().map(|one| one.claim.0).collect())),
        ("again_at", Value::OptInts(due_at.map(|at| at.map(micros)).collect())),
        ("reason", Value::OptTexts(reasons.map(|why| why.cloned()).collect())),
        ("alone_until", Value::OptInts(left_alone.collect())),
    ];
    let hosts = tx.query_rows(RELEASE, &[], &columns).await?;
    hosts.into_iter().map(|mut row| row.text()).collect()
}
