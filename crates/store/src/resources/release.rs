//! Releasing a claimed resource without the result of a poll.

use std::collections::BTreeMap;

use crate::engine::sql::params;
use crate::engine::tx::{Tx, Wake};
use crate::hosts;
use feedgate_core::store::{ReleasedResource, StoreError};

/// Ends the claim of a resource and of its host group, unless the claim was lost.
pub(crate) async fn release(tx: &Tx<'_>, released: ReleasedResource) -> Result<(), StoreError> {
    const RELEASE: &str = "
        update resources
           set claimed_until = null, claim_token = 0,
               pinged = case when pinged = 2 then 1 else pinged end,
               due_at = coalesce($2, due_at), next_fetch = coalesce($2, next_fetch),
               delay_reason = coalesce($3, delay_reason),
               left_alone_until = coalesce($5, left_alone_until)
         where id = $1 and claim_token = $4 and claimed_until is not null
        returning host";
    let ReleasedResource { id, claim, at, put_off, left_alone_until } = released;
    let (due_at, reason) = put_off.unzip();
    let params = params![id.0, due_at, reason, claim.0, left_alone_until];
    let Some(mut row) = tx.first(RELEASE, params).await? else { return Ok(()) };
    let host = row.text()?;
    hosts::release(tx, &BTreeMap::from([(host.as_str(), (false, at))])).await?;
    if due_at.is_none() {
        tx.wake(Wake::Resources);
    }
    Ok(())
}
