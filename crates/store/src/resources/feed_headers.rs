//! The headers that an account has sent to the server of a feed: its credentials.
//!
//! A resource with headers is watched by the subscriptions of one account only: no request names its topic
//! ([`Topic::with_own_headers`]). The headers belong to the resource, so that they can be replaced while its log
//! goes on. They are deleted when nobody watches it any more; whoever subscribes later makes another resource.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::Store;
use crate::changes::pings;
use crate::delivery::row::headers;
use crate::engine::envelope::RowIdentity;
use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
use crate::resources::ensure::ensure;
use feedgate_core::callback_headers::CallbackHeaders;
use feedgate_core::registrant::RegistrantNetwork;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::StoreError;
use feedgate_core::topic::Topic;

/// The column with the headers.
pub(crate) const HEADERS: &str = "feed_headers.header_secret";

/// Returns what identifies the row of a resource.
pub(crate) fn identity(topic: &Topic) -> RowIdentity {
    RowIdentity::new(&[topic.as_str()])
}

/// The headers for feeds.
impl Store {
    /// Stores the headers for a resource, which is created if there is none, in place of those before. A
    /// resource that was fetched with others becomes due.
    pub async fn store_feed_headers(
        &self,
        topic: &Topic,
        chosen: &CallbackHeaders,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        const STORE: &str = "
            insert into feed_headers (resource_id, header_secret) values ($1, $2)
                on conflict (resource_id) do update set header_secret = excluded.header_secret";
        let db = self.of_topic(topic.as_str());
        let (topic, chosen, groups) = (topic.clone(), chosen.clone(), db.groups.clone());
        let stored = db.write(move |tx| {
            Box::pin(async move {
                let named = (&topic, RegistrantNetwork::UNKNOWN);
                let resource = ensure(tx, &groups, named, now).await?;
                if read(tx, resource.id, &topic).await?.as_ref() == Some(&chosen) {
                    return Ok(());
                }
                let sealed = tx.seal(HEADERS, &identity(&topic), Some(&chosen.expose()))?;
                tx.execute(STORE, params![resource.id.0, sealed]).await?;
                match resource.status.last_fetch {
                    Some(_) => {
                        pings::mark_pinged(tx, vec![resource.id.0], now, Duration::ZERO).await
                    }
                    None => Ok(()),
                }
            })
        });
        stored.await
    }

    /// Returns the headers for the resource with this topic; `None` without a look if it has none of its own.
    pub async fn feed_headers(
        &self,
        id: ResourceId,
        topic: &Topic,
    ) -> Result<Option<CallbackHeaders>, StoreError> {
        if !topic.has_own_headers() {
            return Ok(None);
        }
        let topic = topic.clone();
        self.of_number(id.0)
            .read(move |tx| Box::pin(async move { read(tx, id, &topic).await }))
            .await
    }
}

async fn read(
    tx: &Tx<'_>,
    id: ResourceId,
    topic: &Topic,
) -> Result<Option<CallbackHeaders>, StoreError> {
    const HELD: &str = "select header_secret from feed_headers where resource_id = $1";
    let Some(mut row) = tx.first(HELD, params![id.0]).await? else { return Ok(None) };
    headers(&mut row, HEADERS, || identity(topic))
}

/// Deletes the headers for those of these locked resources that nobody watches any more. A resource that was
/// never watched may wait for the verification of its first subscription; it is deleted if there is none.
pub(crate) async fn delete_unwatched(tx: &Tx<'_>, resources: Vec<i64>) -> Result<(), StoreError> {
    const DELETE: &str = "
        delete from feed_headers
         where resource_id in ({ids $1})
           and exists (select 1 from resources r
                        where r.id = resource_id and r.subscribers = 0 and r.was_watched = 1)";
    tx.execute(DELETE, &[Value::Ints(resources)]).await.map(drop)
}
