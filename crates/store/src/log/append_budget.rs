//! How much a resource may append for subscribers without an account.
//!
//! Subscribing and pinging need no account, so that anybody could make the gateway store a feed that
//! has thousands of new entries whenever it is fetched. What such a resource appends is paid for at
//! a number of bytes a day, a quarter of which may be spent at once; until it is paid for, the
//! resource is not fetched again. Resources that an account or a collection of the operator watches
//! are not limited, and neither is the first document of a resource.

use chrono::{DateTime, TimeDelta, Utc};

use crate::engine::sql::params;
use crate::engine::tx::Tx;
use feedgate_core::ports::StoreError;
use feedgate_core::resource::ResourceId;

/// The bytes that are counted for each record beside its document: its other columns, and the
/// entries of indices.
const RECORD_BYTES: u64 = 1_024;
/// How far the budget may be overdrawn.
pub(crate) const OVERDRAFT: TimeDelta = TimeDelta::hours(6);
/// What the status says of a resource that has to wait.
pub(crate) const REMARK: &str =
    "; the next fetch waits, because much was stored for subscribers without an account";
const DAY_US: u128 = 24 * 3_600 * 1_000_000;

/// The budget of each resource.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AppendBudget {
    pub(crate) bytes_per_day: u64,
}

/// What a poll appended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AppendedSize {
    pub(crate) records: u64,
    pub(crate) bytes: u64,
}

impl AppendBudget {
    /// Returns when everything will have been paid for.
    fn paid_at(
        self,
        before: DateTime<Utc>,
        now: DateTime<Utc>,
        size: AppendedSize,
    ) -> DateTime<Utc> {
        let bytes = size.bytes + size.records * RECORD_BYTES;
        let cost = u128::from(bytes) * DAY_US / u128::from(self.bytes_per_day.max(1));
        let cost = i64::try_from(cost).unwrap_or(i64::MAX).min(10 * DAY_US as i64);
        before.max(now) + TimeDelta::microseconds(cost)
    }
}

/// Returns the earliest time of a fetch of a resource whose appends will have been paid for at
/// `paid_at`.
pub(crate) fn earliest(paid_at: DateTime<Utc>) -> DateTime<Utc> {
    paid_at - OVERDRAFT
}

/// Stores what was appended to a resource whose row is locked. Returns when its appends will have
/// been paid for.
pub(crate) async fn charge(
    tx: &Tx<'_>,
    budget: AppendBudget,
    (id, paid_at): (ResourceId, DateTime<Utc>),
    size: AppendedSize,
    now: DateTime<Utc>,
) -> Result<DateTime<Utc>, StoreError> {
    const PAID: &str = "update resources set appends_paid_at = $2 where id = $1";
    if size.records == 0 {
        return Ok(paid_at);
    }
    if has_trusted_watcher(tx, id).await? {
        return Ok(DateTime::UNIX_EPOCH);
    }
    let paid_at = budget.paid_at(paid_at, now, size);
    tx.execute(PAID, params![id.0, paid_at]).await?;
    Ok(paid_at)
}

/// Returns whether an account or a collection of the operator watches a resource.
pub(crate) async fn has_trusted_watcher(tx: &Tx<'_>, id: ResourceId) -> Result<bool, StoreError> {
    const TRUSTED: &str = "
        select 1 from subscriptions where resource_id = $1 and account_id <> 0
        union all
        select 1 from collection_members where resource_id = $1
        limit 1";
    Ok(tx.first(TRUSTED, params![id.0]).await?.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t02_a_quarter_of_the_budget_may_be_spent_at_once() {
        let budget = AppendBudget { bytes_per_day: 4 << 20 };
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(1);
        let size = |bytes| AppendedSize { records: 0, bytes };
        let after_one = budget.paid_at(DateTime::UNIX_EPOCH, now, size(1 << 20));
        assert_eq!(after_one, now + OVERDRAFT, "what was not spent before is lost");
        let after_two = budget.paid_at(after_one, now, size(1 << 20));
        assert_eq!(after_two, now + OVERDRAFT * 2);
        let many = AppendedSize { records: 1 << 10, bytes: 0 };
        assert_eq!(budget.paid_at(now, now, many), now + OVERDRAFT, "records have a size too");
        assert!(AppendBudget { bytes_per_day: 0 }.paid_at(now, now, size(u64::MAX / 2)) > now);
    }
}
