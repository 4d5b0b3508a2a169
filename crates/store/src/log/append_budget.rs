//! How much may be appended for subscribers.
//!
//! Subscribing and pinging need no account, so that anybody could make the gateway store a feed that
//! has thousands of new entries whenever it is fetched. What such a resource appends is paid for at
//! a number of bytes a day, a quarter of which may be spent at once; until it is paid for, the
//! resource is not fetched again. It is charged to the network of its oldest subscriber as well, so
//! that many such resources cost a stranger no less than one. What is appended to a resource that
//! accounts watch is charged to one of them (`account_budget`), and the resource waits until the next
//! day if they have used up their budgets. A track, which copies the entries of others, has the same
//! budgets, and takes in nothing while it would have to wait. Resources that a collection of the operator
//! takes in are not limited. The first document of a resource is charged to networks only. Bodies that are
//! kept are charged to subscribers without an account.

use std::collections::HashMap;

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::try_join;

use crate::StoreSettings;
use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
use crate::log::account_budget::{self, AppendCost};
use crate::log::registrants::{self, Registrants};
use crate::tracks::is_in_use;
use feedgate_core::account::AccountId;
use feedgate_core::collection::PendingCollection;
use feedgate_core::registrant::RegistrantNetwork;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::StoreError;

/// The bytes that are counted for each record beside its document: its other columns, and the
/// entries of indices.
const RECORD_BYTES: u64 = 1_024;
/// How far the budget may be overdrawn.
pub(crate) const OVERDRAFT: TimeDelta = TimeDelta::hours(6);
/// What the status says of a resource that has to wait.
pub(crate) const REMARK: &str =
    "; the next fetch waits, because much was stored for subscribers without an account";
const DAY_US: u128 = 24 * 3_600 * 1_000_000;

/// The budgets of appends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AppendBudget {
    /// Of each resource that only subscribers without an account watch.
    pub(crate) bytes_per_day: u64,
    /// Of each network from which subscriptions without an account were requested.
    pub(crate) network_bytes_per_day: u64,
    /// Of each account.
    pub(crate) account_bytes_per_day: u64,
}

/// The resources without accounts whose whole budgets a network may use up. As much is appended in a
/// day to 100,000 feeds with ten entries of 4 KiB each.
const RESOURCES_OF_NETWORK: u64 = 16;

/// A resource to which something is appended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChargedResource {
    pub(crate) id: ResourceId,
    /// When its appends until now will have been paid for.
    pub(crate) paid_at: DateTime<Utc>,
    /// Whether what is appended is from its first document.
    pub(crate) is_first: bool,
    /// What its new body costs, in bytes. Accounts pay nothing for it.
    pub(crate) body_bytes: u64,
}

/// What a poll appended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AppendedSize {
    pub(crate) records: u64,
    pub(crate) bytes: u64,
}

impl AppendedSize {
    /// Returns how many bytes of a budget this costs.
    fn cost_bytes(self) -> u64 {
        self.bytes.saturating_add(self.records.saturating_mul(RECORD_BYTES))
    }
}

/// How much was appended for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Charged {
    /// When it will have been paid for.
    pub(crate) paid_at: DateTime<Utc>,
    /// What the status says if the resource has to wait for that.
    pub(crate) remark: &'static str,
    /// Whether the rest of its document waits as well, because the budget of a network is used up.
    pub(crate) is_rest_postponed: bool,
}

impl AppendBudget {
    /// Returns the budgets of one cell. All cells have equal parts of those of networks and accounts.
    pub(crate) fn from_settings(settings: &StoreSettings) -> AppendBudget {
        let (bytes_per_day, cells) =
            (settings.anonymous_bytes_per_day, settings.cells.max(1) as u64);
        AppendBudget {
            bytes_per_day,
            network_bytes_per_day: bytes_per_day.saturating_mul(RESOURCES_OF_NETWORK) / cells,
            account_bytes_per_day: settings.account_bytes_per_day / cells,
        }
    }

    /// Returns when everything will have been paid for.
    fn paid_at(
        self,
        before: DateTime<Utc>,
        now: DateTime<Utc>,
        size: AppendedSize,
    ) -> DateTime<Utc> {
        let cost = u128::from(size.cost_bytes()) * DAY_US / u128::from(self.bytes_per_day.max(1));
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
    resource: ChargedResource,
    size: AppendedSize,
    now: DateTime<Utc>,
) -> Result<Charged, StoreError> {
    const PAID: &str = "update resources set appends_paid_at = $2 where id = $1";
    const FREE: Charged =
        Charged { paid_at: DateTime::UNIX_EPOCH, remark: "", is_rest_postponed: false };
    let ChargedResource { id, paid_at, is_first, body_bytes } = resource;
    let unchanged = Charged { paid_at, remark: REMARK, is_rest_postponed: false };
    if size.records == 0 && body_bytes == 0 {
        return Ok(unchanged);
    }
    let first = match watcher(tx, id).await? {
        Watcher::Nobody => return charge_anonymous(tx, budget, resource, size, now).await,
        Watcher::Collection | Watcher::Account(_) if size.records == 0 => return Ok(unchanged),
        Watcher::Account(first) if !is_first => first,
        Watcher::Collection | Watcher::Account(_) => return Ok(FREE),
    };
    let cost = AppendCost { bytes: size.cost_bytes(), budget: budget.account_bytes_per_day };
    let Some(wait_until) = account_budget::charge(tx, cost, (id, first), now).await? else {
        return Ok(FREE);
    };
    let charged =
        Charged { paid_at: wait_until + OVERDRAFT, remark: account_budget::REMARK, ..FREE };
    tx.execute(PAID, params![id.0, charged.paid_at]).await?;
    Ok(charged)
}

/// Charges the budget of a resource that neither an account nor a collection watches, and that of a network.
async fn charge_anonymous(
    tx: &Tx<'_>,
    budget: AppendBudget,
    ChargedResource { id, is_first, body_bytes, .. }: ChargedResource,
    size: AppendedSize,
    now: DateTime<Utc>,
) -> Result<Charged, StoreError> {
    let size = AppendedSize { bytes: size.bytes.saturating_add(body_bytes), ..size };
    const BEFORE: &str = "select anonymous_paid_at from resources where id = $1";
    const PAID: &str =
        "update resources set appends_paid_at = $2, anonymous_paid_at = $3 where id = $1";
    let params = params![id.0];
    let (before, registrants) =
        try_join!(tx.first(BEFORE, params), registrants::find_registrants(tx, id))?;
    let before = before.map(|mut row| row.time()).transpose()?;
    let before = before.unwrap_or(DateTime::UNIX_EPOCH);
    let own = if is_first { before } else { budget.paid_at(before, now, size) };
    let cost = AppendCost { bytes: size.cost_bytes(), budget: budget.network_bytes_per_day };
    let charged = (id, &registrants.networks[..]);
    let wait_until = account_budget::charge_networks(tx, cost, charged, now).await?;
    let charged = match wait_until.map(|until| until + OVERDRAFT).filter(|until| *until > own) {
        Some(paid_at) => {
            Charged { paid_at, remark: account_budget::NETWORK_REMARK, is_rest_postponed: true }
        }
        None => Charged { paid_at: own, remark: REMARK, is_rest_postponed: false },
    };
    tx.execute(PAID, params![id.0, charged.paid_at, own]).await?;
    Ok(charged)
}

/// Charges the budgets of tracks, whose rows are locked, for the records that they are about to take
/// in. Those of a track whose budget is used up are left out, and so are those of a track that has no
/// subscriptions, nor had one whose lease ended lately: they would be stored for nobody.
pub(crate) async fn charge_tracks(
    tx: &Tx<'_>,
    budget: AppendBudget,
    tracked: &mut [PendingCollection],
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    const PAID: &str = concat!(
        "select id, appends_paid_at from resources where id in ({ids $1}) and ",
        is_in_use!()
    );
    let logs = tracked.iter().map(|taken| taken.collection.0).collect();
    let mut paid_at = HashMap::new();
    for mut row in tx.query(PAID, &[Value::Ints(logs)]).await? {
        paid_at.insert(ResourceId(row.int()?), row.time()?);
    }
    for taken in tracked {
        let Some(paid_at) = paid_at.get_mut(&taken.collection) else {
            taken.records.clear();
            continue;
        };
        if earliest(*paid_at) > now {
            taken.records.clear();
            continue;
        }
        let bytes = taken.records.iter().map(|(record, _)| record.atom.len() as u64).sum();
        let size = AppendedSize { records: taken.records.len() as u64, bytes };
        let (id, paid_at_before) = (taken.collection, *paid_at);
        let resource =
            ChargedResource { id, paid_at: paid_at_before, is_first: false, body_bytes: 0 };
        let charged = charge(tx, budget, resource, size, now).await?;
        *paid_at = charged.paid_at;
    }
    Ok(())
}

/// Who watches a resource, apart from subscribers without an account.
enum Watcher {
    Nobody,
    /// Accounts; holds the first of them.
    Account(AccountId),
    /// A collection of the operator, and perhaps accounts.
    Collection,
}

async fn watcher(tx: &Tx<'_>, id: ResourceId) -> Result<Watcher, StoreError> {
    const MEMBER: &str = "select 1 from collection_members where resource_id = $1 limit 1";
    let params = params![id.0];
    let (member, account) = try_join!(
        tx.first(MEMBER, params),
        account_budget::next_watcher(tx, id, AccountId::NOBODY)
    )?;
    Ok(match (member, account) {
        (Some(_), _) => Watcher::Collection,
        (None, Some(first)) => Watcher::Account(first),
        (None, None) => Watcher::Nobody,
    })
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

/// Returns the network for which a resource is stored; `None` if it is stored for an account or a
/// collection of the operator. The network of old subscriptions is not known.
pub(crate) async fn anonymous_registrant(
    tx: &Tx<'_>,
    id: ResourceId,
) -> Result<Option<RegistrantNetwork>, StoreError> {
    if has_trusted_watcher(tx, id).await? {
        return Ok(None);
    }
    let Registrants { networks, has_subscriptions } = registrants::find_registrants(tx, id).await?;
    // What an account asked for is fetched before its subscription is stored.
    let unknown = has_subscriptions.then_some(RegistrantNetwork::UNKNOWN);
    Ok(networks.first().copied().or(unknown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t02_a_quarter_of_the_budget_may_be_spent_at_once() {
        let budget = AppendBudget {
            bytes_per_day: 4 << 20,
            network_bytes_per_day: 0,
            account_bytes_per_day: 0,
        };
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(1);
        let size = |bytes| AppendedSize { records: 0, bytes };
        let after_one = budget.paid_at(DateTime::UNIX_EPOCH, now, size(1 << 20));
        assert_eq!(after_one, now + OVERDRAFT, "what was not spent before is lost");
        let after_two = budget.paid_at(after_one, now, size(1 << 20));
        assert_eq!(after_two, now + OVERDRAFT * 2);
        let many = AppendedSize { records: 1 << 10, bytes: 0 };
        assert_eq!(budget.paid_at(now, now, many), now + OVERDRAFT, "records have a size too");
        let none = AppendBudget { bytes_per_day: 0, ..budget };
        assert!(none.paid_at(now, now, size(u64::MAX / 2)) > now);
    }
}
