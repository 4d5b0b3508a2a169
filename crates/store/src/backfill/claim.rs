//! Claiming due steps of backfills, and renewing claims; and the claims of resources that are not
//! polled during their backfill.

use chrono::{DateTime, Utc};

use crate::backfill::{HOLD, backfill, backfill_columns, for_accounts};
use crate::engine::claims;
use crate::engine::lease::ClaimLease;
use crate::engine::row::Row;
use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
use crate::log::row::most;
use crate::resources::row::{lock, resource, resource_columns};
use feedgate_core::backfill::BackfillShare;
use feedgate_core::claim::ClaimToken;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::{DueBackfill, StoreError};

/// Claims due backfills. Candidates are read without locks. The rows of their resources are locked
/// before they are claimed, because some of the resources are claimed too.
pub(crate) async fn claim(
    tx: &Tx<'_>,
    share: BackfillShare,
    lease: ClaimLease,
    limit: usize,
) -> Result<Vec<DueBackfill>, StoreError> {
    const NEXT: &str = "
        select resource_id from backfills
         where for_accounts = $4 and due_at <= $1 and (claim_token = 0 or due_at <= $2)
         order by due_at
         limit $3";
    const CLAIM: &str = "
        update backfills
           set due_at = $3, claim_token = $4, is_postponed = 0
         where resource_id in ({ids $5}) and due_at <= $1 and (claim_token = 0 or due_at <= $2)
        returning resource_id";
    const CLAIMED: &str = concat!(
        "select ",
        backfill_columns!(),
        ", ",
        resource_columns!(),
        " from backfills b
          join resources r on r.id = b.resource_id
          join resource_details d on d.resource_id = r.id
          where b.resource_id in ({ids $1})"
    );
    let ids = |rows: Vec<Row>| {
        let ids = rows.into_iter().map(|mut row| row.int());
        ids.collect::<Result<Vec<_>, StoreError>>()
    };
    let ClaimLease { now, ends, token } = lease;
    let next = ids(tx.query(NEXT, params![now, now, most(limit), for_accounts(share)]).await?)?;
    if next.is_empty() {
        return Ok(Vec::new());
    }
    lock(tx, next.clone()).await?;
    let [now, until] = [now, ends].map(Value::from);
    let claim = [now.clone(), now, until, token.0.into(), Value::Ints(next)];
    let claimed = ids(tx.query(CLAIM, &claim).await?)?;
    hold_back(tx, &claimed, ends).await?;
    let rows = tx.query(CLAIMED, &[Value::Ints(claimed)]).await?;
    let due = rows.into_iter().filter_map(|mut row| {
        let due = backfill(&mut row).and_then(|backfill| {
            Ok(DueBackfill { backfill, claim: token, resource: resource(&mut row)? })
        });
        claims::readable(due)
    });
    Ok(due.collect())
}

/// Extends the claims that have not been lost, and returns their resources.
pub(crate) async fn renew(
    tx: &Tx<'_>,
    claims: Vec<(ResourceId, ClaimToken)>,
    lease: ClaimLease,
) -> Result<Vec<ResourceId>, StoreError> {
    const RENEW: &str = "
        update backfills
           set due_at = $1
          from {rows}
         where backfills.resource_id = given.id and claim_token = given.token
        returning backfills.resource_id";
    let columns = [
        ("id", Value::Ints(claims.iter().map(|(id, _)| id.0).collect())),
        ("token", Value::Ints(claims.iter().map(|(_, token)| token.0).collect())),
    ];
    let rows = tx.query_rows(RENEW, params![lease.ends], &columns).await?;
    rows.into_iter().map(|mut row| Ok(ResourceId(row.int()?))).collect()
}

/// Locks the row of a resource. Returns whether its backfill has this claim.
pub(crate) async fn lock_claimed(
    tx: &Tx<'_>,
    id: ResourceId,
    claim: ClaimToken,
) -> Result<bool, StoreError> {
    const IS_CLAIMED: &str = "select 1 from backfills where resource_id = $1 and claim_token = $2";
    lock(tx, vec![id.0]).await?;
    Ok(tx.first(IS_CLAIMED, params![id.0, claim.0]).await?.is_some())
}

/// Extends the claims of those of these resources that are not polled during their backfill, until
/// after a step at that time.
pub(crate) async fn hold_back(
    tx: &Tx<'_>,
    ids: &[i64],
    step: DateTime<Utc>,
) -> Result<(), StoreError> {
    const HOLD_BACK: &str = "
        update resources set due_at = $2, claimed_until = $2
         where fetched_at is null and claim_token = 0
           and id in (select b.resource_id from backfills b
                       where b.resource_id in ({ids $1}) and b.delays_polling = 1 and b.ended_at is null)";
    let params = [Value::Ints(ids.to_vec()), Value::from(step + HOLD)];
    tx.execute(HOLD_BACK, &params).await.map(drop)
}
