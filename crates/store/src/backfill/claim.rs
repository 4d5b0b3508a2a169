//! Claiming due steps of backfills; and the claims of resources that are not polled during their backfill.

use chrono::{DateTime, Utc};

use crate::backfill::{HOLD, backfill, backfill_columns, for_accounts};
use crate::engine::claims::{ClaimedTable, readable};
use crate::engine::lease::ClaimLease;
use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
use crate::resources::row::{lock, resource, resource_columns};
use feedgate_core::backfill::BackfillShare;
use feedgate_core::claim::ClaimToken;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::{DueBackfill, StoreError};

/// The claims of backfills, of one share each time. Their due times may be null: where that is excluded,
/// PostgreSQL would read a whole index of those that are due.
pub(crate) const BACKFILLS: ClaimedTable<1> = ClaimedTable {
    only: "for_accounts = $3 and",
    is_free: "coalesce(due_at <= $2, false)",
    set: ", is_postponed = 0",
    ..ClaimedTable::new("backfills", ["resource_id"])
};

/// Claims due backfills. The rows of their resources are locked before they are claimed, because some of the
/// resources are claimed too.
pub(crate) async fn claim(
    tx: &Tx<'_>,
    share: BackfillShare,
    lease: ClaimLease,
    limit: usize,
) -> Result<Vec<DueBackfill>, StoreError> {
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
    let due = BACKFILLS.read_due(tx, lease.now, &[for_accounts(share).into()], limit).await?;
    if due.is_empty() {
        return Ok(Vec::new());
    }
    let keys: Vec<_> = due.into_iter().map(|(key, _)| key).collect();
    lock(tx, keys.as_flattened().to_vec()).await?;
    let claimed = BACKFILLS.claim(tx, lease, &keys).await?;
    let claimed: Vec<i64> = claimed.into_iter().map(|([id], _)| id).collect();
    hold_back(tx, &claimed, lease.ends).await?;
    let rows = tx.query(CLAIMED, &[Value::Ints(claimed)]).await?;
    let due = rows.into_iter().filter_map(|mut row| {
        let due = backfill(&mut row).and_then(|backfill| {
            Ok(DueBackfill { backfill, claim: lease.token, resource: resource(&mut row)? })
        });
        readable(due)
    });
    Ok(due.collect())
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
