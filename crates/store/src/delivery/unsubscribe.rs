//! Ending subscriptions at the request of the subscriber.

use crate::delivery::reading_lists;
use crate::delivery::row::number;
use crate::delivery::subscriber_counts::{CountedSubscription, count_off, counted_columns};
use crate::engine::sql::params;
use crate::engine::tx::Tx;
use feedgate_core::account::AccountId;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::StoreError;
use feedgate_core::subscription::{SubscriptionId, SubscriptionRequest};
use feedgate_core::topic::{Callback, Topic};

/// Ends the subscription to a topic with a callback, in all protocols if none is named.
pub(crate) async fn unsubscribe(
    tx: &Tx<'_>,
    account: Option<AccountId>,
    (topic, callback): (&Topic, &Callback),
    protocol: Option<&str>,
) -> Result<bool, StoreError> {
    const RESOURCE: &str = "select id from resources where topic = $1 {for update}";
    const END: &str = concat!(
        "delete from subscriptions
          where resource_id = $1 and account_id = $2 and callback = $3
            and protocol = coalesce($4, protocol) and alias = $5
         returning ",
        counted_columns!(),
        ", id, case when reading_list = $6 then 1 else 0 end"
    );
    let Some(mut row) = tx.first(RESOURCE, params![topic.as_str()]).await? else {
        return Ok(false);
    };
    let id = row.int()?;
    let alias = topic.alias().unwrap_or_default();
    let protocol = protocol.map(str::to_owned);
    let params = params![id, number(account), callback.as_str(), protocol, alias, topic.as_str()];
    let mut ended = Vec::new();
    for mut row in tx.query(END, params).await? {
        ended.push(CountedSubscription::read(&mut row)?);
        let (number, is_list) = (row.int()?, row.int()? != 0);
        if is_list {
            let ended_list = SubscriptionId { resource: ResourceId(id), number };
            reading_lists::mark_due(tx, ended_list).await?;
        }
    }
    let is_ended = !ended.is_empty();
    count_off(tx, ended).await?;
    Ok(is_ended)
}

/// Ends the subscriptions that a request replaces, as far as their topics are in this cell.
pub(crate) async fn end_replaced(
    tx: &Tx<'_>,
    request: &SubscriptionRequest,
) -> Result<(), StoreError> {
    let protocol = Some(request.protocol.as_str());
    for topic in &request.replaces {
        unsubscribe(tx, request.account, (topic, &request.callback), protocol).await?;
    }
    Ok(())
}
