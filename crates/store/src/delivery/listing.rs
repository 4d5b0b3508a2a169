//! Listing subscriptions in pages.

use futures_util::future::BoxFuture;

use crate::Db;
use crate::delivery::row::{health, subscription};
use crate::engine::row::Row;
use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
use crate::log::row::most;
use crate::resources::row::resource;
use feedgate_core::record::Seq;
use feedgate_core::store::{ListedSubscription, StoreError, SubscriptionFilter, SubscriptionRange};
use feedgate_core::subscription::SubscriptionId;

/// The columns of a listed subscription `s` to a resource `r` with the details `d`, as
/// [`read_listed`] reads them. Of a subscription from before `begun_after` was stored, its cursor is what is known.
macro_rules! listed_columns {
    () => {
        concat!(
            $crate::delivery::row::subscription_columns!(),
            ", ",
            $crate::resources::row::resource_columns!(),
            ", ",
            $crate::delivery::row::health_columns!(),
            ", coalesce(s.begun_after, case when s.format = 'raw' then r.head else s.cursor end)"
        )
    };
}
pub(super) use listed_columns;

/// The most subscriptions that a list counts after its offset: a client that reads on sees the
/// total grow, and no list costs more than this however many subscriptions there are.
const MOST_COUNTED: i64 = 10_000;

/// Returns a page of the subscriptions that a filter selects, and how many there are.
pub(crate) async fn list(
    tx: &Tx<'_>,
    filter: SubscriptionFilter,
) -> Result<(Vec<ListedSubscription>, u64), StoreError> {
    let total = count_listed(tx, &filter).await?;
    Ok((list_page(tx, filter).await?, total))
}

/// Returns the number of subscriptions that a filter selects, up to the number after its offset
/// that is counted.
pub(crate) async fn count_listed(
    tx: &Tx<'_>,
    filter: &SubscriptionFilter,
) -> Result<u64, StoreError> {
    let Some((conditions, mut params)) = select(tx, filter).await? else { return Ok(0) };
    params.push(most_counted(filter).into());
    let limit = params.len();
    let count = format!(
        "select count(*)
           from (select 1 from subscriptions s {conditions} limit ${limit}) counted"
    );
    let counted = tx.first(&count, &params).await?;
    counted.map_or(Ok(0), |mut row| row.count())
}

/// Returns the greatest number that a list counts.
pub(crate) fn most_counted(filter: &SubscriptionFilter) -> i64 {
    most(filter.offset).saturating_add(MOST_COUNTED)
}

/// Returns a page of the subscriptions that a filter selects, in the order of their numbers.
pub(crate) async fn list_page(
    tx: &Tx<'_>,
    filter: SubscriptionFilter,
) -> Result<Vec<ListedSubscription>, StoreError> {
    const COLUMNS: &str = listed_columns!();
    let Some((conditions, mut params)) = select(tx, &filter).await? else {
        return Ok(Vec::new());
    };
    let (limit, offset) = (params.len() + 1, params.len() + 2);
    // Rows before the page are skipped in the index, before anything is joined to them.
    let page = format!(
        "select {COLUMNS}
           from (select s.resource_id, s.id
                   from subscriptions s
                   {conditions}
                  order by s.id limit ${limit} offset ${offset}) page
           join subscriptions s on s.resource_id = page.resource_id and s.id = page.id
           join resources r on r.id = s.resource_id
           join resource_details d on d.resource_id = r.id"
    );
    params.extend([most(filter.limit).into(), most(filter.offset).into()]);
    let rows = tx.query(&page, &params).await?;
    let mut listed =
        rows.into_iter().map(|mut row| read_listed(&mut row)).collect::<Result<Vec<_>, _>>()?;
    listed.sort_unstable_by_key(|listed| listed.subscription.id.number);
    Ok(listed)
}

/// Returns the subscription with this number.
pub(crate) async fn listed(
    tx: &Tx<'_>,
    id: SubscriptionId,
) -> Result<Option<ListedSubscription>, StoreError> {
    const ONE: &str = concat!(
        "select ",
        listed_columns!(),
        " from subscriptions s
          join resources r on r.id = s.resource_id
          join resource_details d on d.resource_id = r.id
         where s.resource_id = $1 and s.id = $2"
    );
    let row = tx.first(ONE, params![id.resource.0, id.number]).await?;
    row.map(|mut row| read_listed(&mut row)).transpose()
}

/// Returns the subscriptions of an account in a range, in the order of their numbers.
pub(crate) async fn list_range(
    tx: &Tx<'_>,
    range: SubscriptionRange,
) -> Result<Vec<ListedSubscription>, StoreError> {
    const OF_ACCOUNT: &str = concat!(
        "select ",
        listed_columns!(),
        " from (select s.resource_id, s.id from subscriptions s
                 where s.account_id = $1 and s.id > $2
                 order by s.id limit $3) page
          join subscriptions s on s.resource_id = page.resource_id and s.id = page.id
          join resources r on r.id = s.resource_id
          join resource_details d on d.resource_id = r.id"
    );
    const OF_RESOURCE: &str = concat!(
        "select ",
        listed_columns!(),
        " from (select s.resource_id, s.id from subscriptions s
                 where s.account_id = $1 and s.account_id <> 0 and s.resource_id = $2 and s.id > $3
                 order by s.id limit $4) page
          join subscriptions s on s.resource_id = page.resource_id and s.id = page.id
          join resources r on r.id = s.resource_id
          join resource_details d on d.resource_id = r.id"
    );
    let SubscriptionRange { account, resource, after, limit } = range;
    let rows = match resource {
        None => tx.query(OF_ACCOUNT, params![account.0, after, most(limit)]).await?,
        Some(id) => tx.query(OF_RESOURCE, params![account.0, id.0, after, most(limit)]).await?,
    };
    let mut listed =
        rows.into_iter().map(|mut row| read_listed(&mut row)).collect::<Result<Vec<_>, _>>()?;
    listed.sort_unstable_by_key(|listed| listed.subscription.id.number);
    Ok(listed)
}

/// Reads `listed_columns!`.
pub(super) fn read_listed(row: &mut Row) -> Result<ListedSubscription, StoreError> {
    Ok(ListedSubscription {
        subscription: subscription(row)?,
        resource: resource(row)?,
        delivery: health(row)?,
        begun_after: Seq(row.int()?),
    })
}

/// Returns the conditions of a filter with their parameters; `None` if there is no resource with its
/// topic. Only the given conditions are in it, so that the index on them is used.
async fn select(
    tx: &Tx<'_>,
    filter: &SubscriptionFilter,
) -> Result<Option<(String, Vec<Value>)>, StoreError> {
    const RESOURCE: &str = "select id from resources where topic = $1";
    let mut resource_id = None;
    if let Some(topic) = filter.topic.as_deref() {
        let Some(mut row) = tx.first(RESOURCE, params![topic]).await? else { return Ok(None) };
        resource_id = Some(row.int()?);
    }
    let (mut conditions, mut params) = (String::new(), Vec::new());
    let wanted = [
        ("s.account_id", filter.account.map(|account| Value::from(account.0))),
        ("s.resource_id", resource_id.map(Value::from)),
        ("s.callback", filter.callback.clone().map(Value::from)),
    ];
    for (column, value) in wanted {
        let Some(value) = value else { continue };
        let word = if params.is_empty() { "where" } else { "and" };
        params.push(value);
        conditions.push_str(&format!(" {word} {column} = ${}", params.len()));
    }
    Ok(Some((conditions, params)))
}

impl Db {
    pub(crate) async fn count_listed(
        &self,
        filter: &SubscriptionFilter,
    ) -> Result<u64, StoreError> {
        let filter = filter.clone();
        self.read(move |tx| Box::pin(async move { count_listed(tx, &filter).await })).await
    }

    pub(crate) fn list_page(
        &self,
        filter: SubscriptionFilter,
    ) -> BoxFuture<'_, Result<Vec<ListedSubscription>, StoreError>> {
        Box::pin(self.read(move |tx| Box::pin(list_page(tx, filter))))
    }
}
