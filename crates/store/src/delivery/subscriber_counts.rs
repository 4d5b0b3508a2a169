//! The number of subscriptions of each resource, and of each owner that has a quota (rules S30, S44).
//!
//! The counts of owners are changed last in a transaction, in the order of their keys, so that two
//! transactions never wait for each other. Transactions about different resources seldom change the
//! same row, because each count is spread over [`STRIPES`] rows.

use std::collections::BTreeMap;

use crate::engine::row::Row;
use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
use feedgate_core::account::AccountId;
use feedgate_core::store::StoreError;
use feedgate_core::subscription::{Subscription, SubscriptionOwner};

/// The rows over which a count is spread.
pub(crate) const STRIPES: i64 = 16;

/// A subscription that begins or ends, as it is counted.
pub(crate) struct CountedSubscription {
    resource: i64,
    owner: (i64, String),
}

/// The columns of a subscription that [`CountedSubscription::read`] reads.
macro_rules! counted_columns {
    () => {
        "resource_id, account_id, callback"
    };
}
pub(crate) use counted_columns;

impl CountedSubscription {
    /// Returns the number of the resource.
    pub(crate) fn resource(&self) -> i64 {
        self.resource
    }

    /// Reads `counted_columns!`.
    pub(crate) fn read(row: &mut Row) -> Result<CountedSubscription, StoreError> {
        let (resource, account) = (row.int()?, super::row::account(row)?);
        let callback = super::row::callback(row)?;
        let owner = key(&SubscriptionOwner::new(account, &callback));
        Ok(CountedSubscription { resource, owner })
    }
}

impl From<&Subscription> for CountedSubscription {
    fn from(subscription: &Subscription) -> CountedSubscription {
        let owner = SubscriptionOwner::new(subscription.account, &subscription.callback);
        CountedSubscription { resource: subscription.id.resource.0, owner: key(&owner) }
    }
}

/// Returns the account and the host by which the count of an owner is stored.
fn key(owner: &SubscriptionOwner) -> (i64, String) {
    match owner {
        SubscriptionOwner::Account(account) => (account.0, String::new()),
        SubscriptionOwner::CallbackHost(host) => (AccountId::NOBODY.0, host.clone()),
    }
}

/// Returns the number of subscriptions of an owner.
pub(crate) async fn count_of(tx: &Tx<'_>, owner: &SubscriptionOwner) -> Result<u64, StoreError> {
    const SUM: &str = "
        select cast(coalesce(sum(subscriptions), 0) as bigint) from subscription_counts
         where account_id = $1 and host = $2";
    let (account, host) = key(owner);
    let Some(mut row) = tx.first(SUM, params![account, host]).await? else { return Ok(0) };
    Ok(u64::try_from(row.int()?).unwrap_or_default())
}

/// Adds new subscriptions to the counts of their owners. Those of their resources have been updated.
pub(crate) async fn count_begun(
    tx: &Tx<'_>,
    begun: impl Iterator<Item = CountedSubscription>,
) -> Result<(), StoreError> {
    add_to_owners(tx, begun, 1).await.map(drop)
}

/// Subtracts ended subscriptions from the counts of their resources, which are locked, and of their
/// owners.
pub(crate) async fn count_off(
    tx: &Tx<'_>,
    ended: Vec<CountedSubscription>,
) -> Result<(), StoreError> {
    const COUNT: &str = "
        update resources
           set subscribers = subscribers - given.gone
          from {rows}
         where resources.id = given.resource_id and resources.kind <> 'collection'";
    const NONE_LEFT: &str = "
        delete from subscription_counts
         where (account_id, host, stripe)
               in (select given.account_id, given.host, given.stripe from {rows})
           and subscriptions <= 0";
    let mut gone = BTreeMap::new();
    for one in &ended {
        *gone.entry(one.resource).or_insert(0) += 1;
    }
    let columns = [
        ("resource_id", Value::Ints(gone.keys().copied().collect())),
        ("gone", Value::Ints(gone.values().copied().collect())),
    ];
    tx.execute_rows(COUNT, &[], &columns).await?;
    let changed = add_to_owners(tx, ended.into_iter(), -1).await?;
    tx.execute_rows(NONE_LEFT, &[], &changed).await.map(drop)
}

/// Adds `change` to the counts of the owners for each of `counted`. Returns the keys of the rows.
async fn add_to_owners(
    tx: &Tx<'_>,
    counted: impl Iterator<Item = CountedSubscription>,
    change: i64,
) -> Result<[(&'static str, Value); 3], StoreError> {
    const ADD: &str = "
        insert into subscription_counts (account_id, host, stripe, subscriptions)
        {values account_id, host, stripe, subscriptions}
            on conflict (account_id, host, stripe) do update
           set subscriptions = subscription_counts.subscriptions + excluded.subscriptions";
    let mut changes = BTreeMap::new();
    for CountedSubscription { resource, owner: (account, host) } in counted {
        *changes.entry((account, host, resource % STRIPES)).or_insert(0) += change;
    }
    let (mut accounts, mut hosts, mut stripes) = (Vec::new(), Vec::new(), Vec::new());
    for (account, host, stripe) in changes.keys() {
        accounts.push(*account);
        hosts.push(host.clone());
        stripes.push(*stripe);
    }
    let keys = [
        ("account_id", Value::Ints(accounts)),
        ("host", Value::Texts(hosts)),
        ("stripe", Value::Ints(stripes)),
    ];
    let sums = ("subscriptions", Value::Ints(changes.into_values().collect()));
    let columns: Vec<_> = keys.iter().cloned().chain([sums]).collect();
    tx.execute_rows(ADD, &[], &columns).await?;
    Ok(keys)
}
