//! How many feeds and subscriptions the lists have. No more than [`ListCounts::MOST`] rows are counted.

use futures_util::try_join;

use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
use crate::resources::find_feeds::owned_ids;
use crate::resources::subscribed_by;
use crate::{Db, Store};
use feedgate_core::account::AccountId;
use feedgate_core::store::{ListCounts, StoreError};
use feedgate_core::subscription::SubscriptionOwner;

const MOST: i64 = ListCounts::MOST.cast_signed();

/// How long the lists are.
impl Store {
    /// Counts the feeds and subscriptions of an account, or all.
    pub async fn list_counts(&self, account: Option<AccountId>) -> Result<ListCounts, StoreError> {
        let few_of = self.account_with_few(account).await?;
        let counts = self.each(|db| db.list_counts(account, few_of)).await?;
        let owned = match account {
            Some(account) => Some(self.count_owned(&SubscriptionOwner::Account(account)).await?),
            None => None,
        };
        let sum = |all: ListCounts, cell: ListCounts| ListCounts {
            feeds: all.feeds + cell.feeds,
            failing_feeds: all.failing_feeds + cell.failing_feeds,
            subscriptions: all.subscriptions + cell.subscriptions,
            failing_subscriptions: all.failing_subscriptions + cell.failing_subscriptions,
        };
        let all = counts.into_iter().fold(ListCounts::default(), sum);
        Ok(ListCounts { subscriptions: owned.unwrap_or(all.subscriptions), ..all })
    }
}

impl Db {
    async fn list_counts(
        &self,
        account: Option<AccountId>,
        few_of: Option<AccountId>,
    ) -> Result<ListCounts, StoreError> {
        self.read(move |tx| {
            Box::pin(async move {
                let ((feeds, failing_feeds), subscriptions) = try_join!(
                    async {
                        match (account, few_of) {
                            (_, Some(account)) => count_few(tx, account).await,
                            (Some(account), None) => count_feeds_of(tx, account).await,
                            (None, None) => count_feeds(tx).await,
                        }
                    },
                    count_subscriptions(tx, account)
                )?;
                let (subscriptions, failing_subscriptions) = subscriptions;
                Ok(ListCounts { feeds, failing_feeds, subscriptions, failing_subscriptions })
            })
        })
        .await
    }
}

/// Returns the count that a statement reads.
async fn count(tx: &Tx<'_>, sql: &'static str, params: &[Value]) -> Result<u64, StoreError> {
    tx.first(sql, params).await?.map_or(Ok(0), |mut row| row.count())
}

/// Returns the two counts that a statement reads.
async fn counts(
    tx: &Tx<'_>,
    sql: &'static str,
    params: &[Value],
) -> Result<(u64, u64), StoreError> {
    let Some(mut row) = tx.first(sql, params).await? else { return Ok((0, 0)) };
    Ok((row.count()?, row.count()?))
}

/// Counts the feeds, and those that fail. Collections are no feeds, but are counted if there are many.
async fn count_feeds(tx: &Tx<'_>) -> Result<(u64, u64), StoreError> {
    const FEEDS: &str = "
        select count(*), count(case when kind <> 'collection' then 1 end)
          from (select kind from resources
                 where subscribers > 0 order by due_at, id limit $1) counted";
    let failing = failing(tx).await?.len() as u64;
    let (all, feeds) = counts(tx, FEEDS, params![MOST]).await?;
    Ok((if all == ListCounts::MOST { all } else { feeds }, failing))
}

/// Counts the feeds of an account with few subscriptions.
async fn count_few(tx: &Tx<'_>, account: AccountId) -> Result<(u64, u64), StoreError> {
    const FEEDS: &str = "
        select count(*), count(case when failing = 1 then 1 end) from resources
         where id in ({ids $1}) and kind <> 'collection'";
    counts(tx, FEEDS, &[Value::Ints(owned_ids(tx, account).await?)]).await
}

/// Counts the feeds of an account with many subscriptions.
async fn count_feeds_of(tx: &Tx<'_>, account: AccountId) -> Result<(u64, u64), StoreError> {
    const FEEDS: &str = "
        select count(*)
          from (select distinct resource_id from subscriptions
                 where account_id = $1 and account_id <> 0
                 order by resource_id limit $2) counted";
    let failing = subscribed_by(tx, account, failing(tx).await?).await?;
    Ok((count(tx, FEEDS, params![account.0, MOST]).await?, failing.len() as u64))
}

/// Returns the numbers of the feeds that fail.
async fn failing(tx: &Tx<'_>) -> Result<Vec<i64>, StoreError> {
    const FAILING: &str = "
        select id from resources {sqlite indexed by resources_failing}
         where failing = 1 and subscribers > 0 order by id limit $1";
    let rows = tx.query(FAILING, params![MOST]).await?;
    rows.into_iter().map(|mut row| row.int()).collect()
}

/// Counts the subscriptions, and those that fail.
async fn count_subscriptions(
    tx: &Tx<'_>,
    account: Option<AccountId>,
) -> Result<(u64, u64), StoreError> {
    const ALL: &str = "
        select count(*) from (select 1 from subscriptions
                               where account_id >= $1 and account_id <= $2
                               order by account_id, id limit $3) counted";
    const FAILING: &str = "
        select count(*) from (select 1 from subscriptions {sqlite indexed by subscriptions_failing}
                               where failures > 0 and paused_at is null
                                 and account_id >= $1 and account_id <= $2
                               order by account_id, id limit $3) counted";
    let (first, last) = account.map_or((0, i64::MAX), |account| (account.0, account.0));
    let range = params![first, last, MOST];
    Ok((count(tx, ALL, range).await?, count(tx, FAILING, range).await?))
}
