//! The accounts that subscribe to a resource which nobody else may find: their own tracks receive its
//! records.

use crate::engine::sql::params;
use crate::engine::tx::Tx;
use feedgate_core::account::AccountId;
use feedgate_core::store::StoreError;

/// The most accounts of one resource.
const MOST_ACCOUNTS: i64 = 1_000;

/// Returns the accounts that subscribe to a resource, a bounded number of them.
pub(crate) async fn accounts(tx: &Tx<'_>, resource: i64) -> Result<Vec<AccountId>, StoreError> {
    // One step of the index for each account, however many subscriptions it has.
    const WATCHERS: &str = "
        with recursive watchers (account_id) as (
            select min(account_id) from subscriptions
             where resource_id = $1 and account_id <> 0 and account_id > 0
            union all
            select (select min(s.account_id) from subscriptions s
                     where s.resource_id = $1 and s.account_id <> 0
                       and s.account_id > w.account_id)
              from watchers w
             where w.account_id is not null)
        select account_id from watchers where account_id is not null limit $2";
    let rows = tx.query(WATCHERS, params![resource, MOST_ACCOUNTS]).await?;
    rows.into_iter().map(|mut row| row.int().map(AccountId)).collect()
}
