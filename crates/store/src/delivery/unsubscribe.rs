//! Ending subscriptions at the request of the subscriber.

use crate::delivery::queue;
use crate::delivery::row::number;
use crate::delivery::subscriber_counts::{CountedSubscription, count_off, counted_columns};
use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
use feedgate_core::account::AccountId;
use feedgate_core::ports::StoreError;
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
        ", id"
    );
    let Some(mut row) = tx.first(RESOURCE, params![topic.as_str()]).await? else {
        return Ok(false);
    };
    let id = row.int()?;
    let alias = topic.alias().unwrap_or_default();
    let protocol = protocol.map(str::to_owned);
    let params = params![id, number(account), callback.as_str(), protocol, alias];
    let (mut ended, mut numbers) = (Vec::new(), Vec::new());
    for mut row in tx.query(END, params).await? {
        ended.push(CountedSubscription::read(&mut row)?);
        numbers.push(row.int()?);
    }
    let is_ended = !ended.is_empty();
    let resources = vec![id; numbers.len()];
    queue::remove(tx, &[("resource_id", Value::Ints(resources)), ("id", Value::Ints(numbers))])
        .await?;
    count_off(tx, ended).await?;
    Ok(is_ended)
}
