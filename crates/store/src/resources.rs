//! Watched resources: finding and creating them.

pub(crate) mod claim;
pub(crate) mod details;
pub(crate) mod ensure;
pub(crate) mod feed_headers;
pub(crate) mod find_feeds;
pub(crate) mod forget;
pub(crate) mod former_numbers;
pub(crate) mod group_queue;
mod list_counts;
mod measured;
pub(crate) mod moves;
mod named_feeds;
pub(crate) mod names;
pub(crate) mod poll_result;
pub(crate) mod poll_result_batcher;
mod polls;
pub(crate) mod release;
pub(crate) mod reschedule;
pub(crate) mod row;
pub(crate) mod schedule;
pub(crate) mod survey;
pub(crate) mod upstreams;

use chrono::{DateTime, Utc};

use super::engine::sql::{Value, params};
use super::engine::tx::Tx;
use super::log::{append_budget, registrants};
use crate::Store;
use ensure::ensure;
use feedgate_core::account::AccountId;
use feedgate_core::registrant::RegistrantNetwork;
use feedgate_core::resource::{Resource, ResourceId};
use feedgate_core::store::StoreError;
use feedgate_core::topic::Topic;
use feedgate_core::visibility::SourceNetwork;
use row::{resource, resource_columns};

/// Resources.
impl Store {
    /// Returns the resource with this topic. If there is none, it is created and due immediately.
    pub async fn ensure(&self, topic: &Topic, now: DateTime<Utc>) -> Result<Resource, StoreError> {
        self.ensure_for(topic, RegistrantNetwork::UNKNOWN, now).await
    }

    /// Returns the resource with this topic, as [`ensure`](Self::ensure) does, for a stranger in this
    /// network, who is charged for its first document if it is created.
    pub async fn ensure_for(
        &self,
        topic: &Topic,
        registrant: RegistrantNetwork,
        now: DateTime<Utc>,
    ) -> Result<Resource, StoreError> {
        let db = self.of_topic(topic.as_str());
        if let Some(known) = self.find(topic.as_str()).await? {
            return Ok(known);
        }
        let (topic, groups) = (topic.clone(), db.groups.clone());
        let ensured = db.write(move |tx| {
            Box::pin(async move { ensure(tx, &groups, (&topic, registrant), now).await })
        });
        ensured.await
    }

    /// Returns the resource with this topic.
    pub async fn find(&self, topic: &str) -> Result<Option<Resource>, StoreError> {
        let db = self.of_topic(topic);
        const FIND: &str = concat!(
            "select ",
            resource_columns!(),
            " from resources r join resource_details d on d.resource_id = r.id
             where r.topic = $1"
        );
        let topic = topic.to_owned();
        let found = db.read(|tx| Box::pin(async move { tx.first(FIND, params![topic]).await }));
        found.await?.as_mut().map(resource).transpose()
    }

    /// Returns the resource with this number, or that had it before the database was copied.
    pub async fn get(&self, id: ResourceId) -> Result<Option<Resource>, StoreError> {
        if let Some(found) = self.of_number(id.0).find_by_number(id).await? {
            return Ok(Some(found));
        }
        match self.shared.current_number(id).await? {
            Some(current) => self.of_number(current.0).find_by_number(current).await,
            None => Ok(None),
        }
    }

    /// Returns the network of the stranger who was the first to name a resource, as far as it is known.
    pub async fn registrant_of(&self, id: ResourceId) -> Result<RegistrantNetwork, StoreError> {
        self.of_number(id.0).read(move |tx| Box::pin(registrants::first_registrant(tx, id))).await
    }

    /// Returns whether an account or a collection of the operator watches a resource.
    pub async fn has_trusted_watcher(&self, id: ResourceId) -> Result<bool, StoreError> {
        self.of_number(id.0)
            .read(move |tx| Box::pin(append_budget::has_trusted_watcher(tx, id)))
            .await
    }

    /// Returns those of these resources that an account subscribes to, in any order. They are current
    /// numbers.
    pub async fn subscribed_by(
        &self,
        account: AccountId,
        ids: &[ResourceId],
    ) -> Result<Vec<ResourceId>, StoreError> {
        self.gather(
            ids,
            |id| id.0,
            |db, ids| {
                let ids = ids.iter().map(|id| id.0).collect();
                db.read(move |tx| {
                    Box::pin(async move {
                        let found = subscribed_by(tx, account, ids).await?;
                        Ok(found.into_iter().map(ResourceId).collect())
                    })
                })
            },
        )
        .await
    }

    /// Records that documents of a resource came from an address that is not public
    /// ([`SourceNetwork::Inner`](feedgate_core::visibility::SourceNetwork)).
    pub async fn note_inner(&self, id: ResourceId) -> Result<(), StoreError> {
        let db = self.of_number(id.0);
        const NOTE: &str =
            "update resources set source_network = $2 where id = $1 and source_network < $2";
        let params = params![id.0, SourceNetwork::Inner.as_number()].to_vec();
        let noted = db.write(move |tx| Box::pin(async move { tx.execute(NOTE, &params).await }));
        noted.await.map(drop)
    }

    /// Returns the earliest time of the next fetch of a resource: until then, it must wait because
    /// much was stored for its subscribers.
    pub async fn earliest_fetch(&self, id: ResourceId) -> Result<DateTime<Utc>, StoreError> {
        let db = self.of_number(id.0);
        const PAID: &str = "select appends_paid_at from resources where id = $1";
        let rows = db.rows(PAID, params![id.0]).await?;
        let paid_at = rows.into_iter().next().map(|mut row| row.time()).transpose()?;
        Ok(append_budget::earliest(paid_at.unwrap_or(DateTime::UNIX_EPOCH)))
    }
}

/// Returns the numbers of those of these resources that an account subscribes to, in any order.
pub(crate) async fn subscribed_by(
    tx: &Tx<'_>,
    account: AccountId,
    ids: Vec<i64>,
) -> Result<Vec<i64>, StoreError> {
    // `offset` keeps PostgreSQL from joining, for which it would read resources that are not named.
    const SUBSCRIBED: &str = "
        select r.id from resources r
         where r.id in ({ids $1})
           and exists (select 1 from subscriptions s
                        where s.resource_id = r.id and s.account_id = $2
                          and s.account_id <> 0
                        limit 1 offset 0)";
    let rows = tx.query(SUBSCRIBED, &[Value::Ints(ids), account.0.into()]).await?;
    rows.into_iter().map(|mut row| row.int()).collect()
}
