//! How much is appended in a day to the resources that an account watches, or a network of strangers
//! (rule S44).
//!
//! What is appended to a resource is charged to the first of its accounts, by their numbers, that has
//! not used up its budget of the day. If no account watches it, that is the network from which the
//! oldest subscription was requested, or one of the next. If all have, the resource is not fetched
//! again before the next day, in UTC. So the appends of an account or a network are bounded in bytes
//! and in records, however many resources it watches. Each cell counts for itself, and has an equal
//! part of the budget.

use chrono::{DateTime, Utc};

use crate::engine::sql::params;
use crate::engine::tx::Tx;
use feedgate_core::account::AccountId;
use feedgate_core::registrant::RegistrantNetwork;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::StoreError;

/// The rows over which the count of an account is spread.
const STRIPES: i64 = 16;
/// The accounts of a resource that are looked at. The statements that an append takes are bounded by
/// it.
const MOST_WATCHERS: usize = 4;
/// What the status says of a resource that has to wait.
pub(super) const REMARK: &str = "; the next fetch waits until tomorrow (UTC), because as much was stored today as the accounts \
     that watch this may store in a day";
/// What the status says of a resource that has to wait for the budget of a network.
pub(super) const NETWORK_REMARK: &str = "; the next fetch waits until tomorrow (UTC), because as much was stored today for subscriptions \
     that were requested from the same network as may be stored in a day";
const DAY_S: i64 = 24 * 3_600;
/// The time after midnight over which the fetches of resources that waited are spread.
const SPREAD_S: i64 = 3_600;

/// What an append costs an account or a network.
#[derive(Clone, Copy)]
pub(super) struct AppendCost {
    /// The bytes that are counted for it.
    pub(super) bytes: u64,
    /// The budget in a day.
    pub(super) budget: u64,
}

/// Charges what was appended to a resource that is watched by `first` and perhaps by other accounts.
/// Returns when the resource may be fetched again; `None` if it need not wait.
pub(super) async fn charge(
    tx: &Tx<'_>,
    mut cost: AppendCost,
    (id, first): (ResourceId, AccountId),
    now: DateTime<Utc>,
) -> Result<Option<DateTime<Utc>>, StoreError> {
    let mut next = Some(first);
    for _ in 0..MOST_WATCHERS {
        let Some(account) = next else { break };
        if charge_owner(tx, &mut cost, (account.0, id), now).await? {
            return Ok(None);
        }
        next = next_watcher(tx, id, account).await?;
    }
    Ok(tomorrow(id, now))
}

/// Charges what was appended to a resource that no account watches to the networks of its strangers, as
/// [`charge`] does. Networks that are not known are charged nothing.
pub(super) async fn charge_networks(
    tx: &Tx<'_>,
    mut cost: AppendCost,
    (id, networks): (ResourceId, &[RegistrantNetwork]),
    now: DateTime<Utc>,
) -> Result<Option<DateTime<Utc>>, StoreError> {
    for network in networks {
        if charge_owner(tx, &mut cost, (network.as_number(), id), now).await? {
            return Ok(None);
        }
    }
    Ok(if networks.is_empty() { None } else { tomorrow(id, now) })
}

/// Charges the account or the network with this number, unless its budget of the day is used up. Returns
/// whether some of the budget is left.
async fn charge_owner(
    tx: &Tx<'_>,
    cost: &mut AppendCost,
    (owner, id): (i64, ResourceId),
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let most = i64::try_from(cost.budget).unwrap_or(i64::MAX);
    let part = OwnerPart { owner, stripe: id.0 % STRIPES, day: day_of(now) };
    let used = used_on(tx, owner, part.day).await?;
    let charged = if used < most { std::mem::take(&mut cost.bytes) } else { 0 };
    let charged = i64::try_from(charged).unwrap_or(i64::MAX);
    let is_used_up = used.saturating_add(charged) >= most;
    if charged > 0 || is_used_up {
        add(tx, part, charged, is_used_up).await?;
    }
    Ok(!is_used_up)
}

/// Returns when a resource whose owners have used up their budgets is fetched again.
fn tomorrow(id: ResourceId, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp((day_of(now) + 1) * DAY_S + id.0 % SPREAD_S, 0)
}

/// Returns the account with the next number that watches a resource.
pub(super) async fn next_watcher(
    tx: &Tx<'_>,
    id: ResourceId,
    after: AccountId,
) -> Result<Option<AccountId>, StoreError> {
    const NEXT: &str = "
        select account_id from subscriptions
         where resource_id = $1 and account_id > $2 and account_id <> 0
         order by account_id limit 1";
    let next = tx.first(NEXT, params![id.0, after.0]).await?;
    next.map(|mut row| row.int().map(AccountId)).transpose()
}

/// Returns whether an account has used up its budget of the day.
pub(crate) async fn is_used_up(
    tx: &Tx<'_>,
    account: AccountId,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    const USED_UP: &str = "
        select 1 from account_appends where account_id = $1 and used_up_day = $2 limit 1";
    Ok(tx.first(USED_UP, params![account.0, day_of(now)]).await?.is_some())
}

/// A part of what is charged to an account or a network in a day.
#[derive(Clone, Copy)]
struct OwnerPart {
    owner: i64,
    stripe: i64,
    day: i64,
}

/// Returns the day of a time, counted from 1970.
pub(crate) fn day_of(now: DateTime<Utc>) -> i64 {
    now.timestamp().div_euclid(DAY_S)
}

async fn used_on(tx: &Tx<'_>, owner: i64, day: i64) -> Result<i64, StoreError> {
    const SUM: &str = "
        select cast(coalesce(sum(bytes), 0) as bigint) from account_appends
         where account_id = $1 and day = $2";
    tx.first(SUM, params![owner, day]).await?.map_or(Ok(0), |mut row| row.int())
}

async fn add(tx: &Tx<'_>, part: OwnerPart, bytes: i64, is_used_up: bool) -> Result<(), StoreError> {
    const ADD: &str = "
        insert into account_appends (account_id, stripe, day, bytes, used_up_day)
        values ($1, $2, $3, $4, $5)
            on conflict (account_id, stripe) do update
           set bytes = excluded.bytes + case when account_appends.day = excluded.day
                                             then account_appends.bytes else 0 end,
               used_up_day = case when excluded.used_up_day > account_appends.used_up_day
                                  then excluded.used_up_day else account_appends.used_up_day end,
               day = excluded.day";
    let OwnerPart { owner, stripe, day } = part;
    let used_up_day = if is_used_up { day } else { 0 };
    tx.execute(ADD, params![owner, stripe, day, bytes, used_up_day]).await.map(drop)
}
