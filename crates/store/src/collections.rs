//! Collections: creates them, and stores which resources the operator puts into them.
//!
//! A collection never counts its subscribers. A resource without subscribers is never due, so a
//! collection is never polled.

pub(crate) mod collecting;
pub(crate) mod enqueue;
mod watchers;

use std::collections::HashMap;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::engine::sql::params;
use super::engine::tx::{Tx, Wake};
use super::resources::details;
use crate::Db;
use crate::resources::ensure::ensure;
use crate::resources::row::{self, resource, resource_columns};
use collecting::COLLECT_BATCH;
use feedgate_core::collection::{Collection, CollectionKind, PendingCollection};
use feedgate_core::host_groups::HostGroups;
use feedgate_core::ports::{Collections, StoreError};
use feedgate_core::registrant::RegistrantNetwork;
use feedgate_core::resource::{Resource, ResourceId, ResourceKind};
use feedgate_core::status::Status;
use feedgate_core::topic::Topic;

#[async_trait]
impl Collections for Db {
    async fn open_collection(
        &self,
        collection: &Collection,
        now: DateTime<Utc>,
    ) -> Result<Resource, StoreError> {
        let collection = collection.clone();
        self.write(move |tx| Box::pin(open(tx, collection, now))).await
    }

    async fn collection(&self, scope: &CollectionKind) -> Result<Option<Resource>, StoreError> {
        let name = scope.kept();
        self.read(move |tx| Box::pin(find(tx, name))).await
    }

    async fn set_members(
        &self,
        id: ResourceId,
        topics: &[Topic],
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        const HELD: &str = "
            select r.topic, r.id
              from collection_members m
              join resources r on r.id = m.resource_id
             where m.collection_id = $1";
        let mut held = HashMap::new();
        for mut row in self.rows(HELD, params![id.0]).await? {
            held.insert(row.text()?, row.int()?);
        }
        for topic in topics {
            if held.remove(topic.as_str()).is_none() {
                let (topic, groups) = (topic.clone(), self.groups.clone());
                let joined = self.write(move |tx| {
                    Box::pin(async move { join(tx, &groups, id, topic, now).await })
                });
                joined.await?;
            }
        }
        for member in held.into_values() {
            self.write(move |tx| Box::pin(leave(tx, id, member))).await?;
        }
        Ok(())
    }

    async fn close_collections(
        &self,
        but: &[ResourceId],
        now: DateTime<Utc>,
    ) -> Result<u64, StoreError> {
        // The cursors of tracks have a collection that stays open.
        const OPEN: &str = "
            select resource_id from collections
             where is_open = 1 and account_id = 0 and name <> 'track'";
        const CLOSE: &str = "update collections set is_open = 0 where resource_id = $1";
        let mut closed = 0;
        for mut row in self.rows(OPEN, &[]).await? {
            let id = ResourceId(row.int()?);
            if !but.contains(&id) {
                let close = self.write(move |tx| {
                    Box::pin(async move { tx.execute(CLOSE, params![id.0]).await })
                });
                closed += close.await?;
                self.set_members(id, &[], now).await?;
            }
        }
        Ok(closed)
    }

    async fn claim_collecting(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<PendingCollection>, StoreError> {
        let (most, listed) = ((limit, COLLECT_BATCH), self.listed);
        self.write(move |tx| Box::pin(collecting::claim(tx, now, until, most, listed))).await
    }

    async fn collect(
        &self,
        taken: Vec<PendingCollection>,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let cut = self.cut;
        self.write(move |tx| {
            Box::pin(async move { collecting::collect(tx, &cut, taken, now).await })
        })
        .await
    }
}

async fn find(tx: &Tx<'_>, name: String) -> Result<Option<Resource>, StoreError> {
    const FIND: &str = concat!(
        "select ",
        resource_columns!(),
        " from collections c
          join resources r on r.id = c.resource_id
          join resource_details d on d.resource_id = r.id
         where c.name = $1"
    );
    tx.first(FIND, params![name]).await?.as_mut().map(resource).transpose()
}

async fn open(
    tx: &Tx<'_>,
    collection: Collection,
    now: DateTime<Utc>,
) -> Result<Resource, StoreError> {
    // A resource that already has this topic becomes the collection.
    const MAKE: &str = "
        insert into resources (topic, fetch_url, host, kind, next_fetch, due_at, measured_at)
        values ($1, $1, '', $2, $3, $3, $3)
            on conflict (topic) do update
           set kind = excluded.kind, subscribers = 0, poll_times = ''
        returning id";
    const NAME: &str = "
        insert into collections (resource_id, name, account_id) values ($1, $2, $3)
            on conflict (name) do nothing";
    const OPEN: &str = "update collections set is_open = 1 where name = $1 and is_open = 0";
    let name = collection.scope.kept();
    tx.execute(OPEN, params![name.as_str()]).await?;
    if let Some(found) = find(tx, name.clone()).await? {
        return Ok(found);
    }
    let status = Status { http_code: 200, title: collection.title, ..Status::new(now) };
    let params = params![collection.topic.as_str(), ResourceKind::Collection.as_str(), now];
    let made = tx.first(MAKE, params).await?;
    let id = made.map_or(Ok(0), |mut row| row.int())?;
    details::make(tx, id, &status).await?;
    let account = collection.scope.account().map_or(0, |account| account.0);
    if tx.execute(NAME, params![id, name.as_str(), account]).await? == 0 {
        // Another node has created the collection at the same time, with a topic of its own.
        const UNKNOW: &str = "
            delete from resource_details
             where resource_id = $1
               and not exists (select 1 from collections where resource_id = $1)";
        const UNMAKE: &str = "
            delete from resources
             where id = $1 and not exists (select 1 from collections where resource_id = $1)";
        tx.execute(UNKNOW, params![id]).await?;
        tx.execute(UNMAKE, params![id]).await?;
    }
    let found = find(tx, name).await?;
    found.ok_or_else(|| StoreError::Corrupt("a collection vanished".to_owned()))
}

/// Puts a resource into a collection, for which the resource is polled from now on.
async fn join(
    tx: &Tx<'_>,
    groups: &HostGroups,
    id: ResourceId,
    topic: Topic,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    const JOIN: &str = "
        insert into collection_members (resource_id, collection_id) values ($1, $2)
            on conflict (resource_id, collection_id) do nothing";
    const COUNT: &str = "
        update resources
           set subscribers = subscribers + 1, unwatched_since = null, was_watched = 1
         where id = $1";
    let member = ensure(tx, groups, (&topic, RegistrantNetwork::UNKNOWN), now).await?.id.0;
    if tx.execute(JOIN, params![member, id.0]).await? > 0 {
        tx.execute(COUNT, params![member]).await?;
        tx.wake(Wake::Resources);
    }
    Ok(())
}

async fn leave(tx: &Tx<'_>, id: ResourceId, member: i64) -> Result<(), StoreError> {
    const LEAVE: &str =
        "delete from collection_members where resource_id = $1 and collection_id = $2";
    const COUNT: &str = "update resources set subscribers = subscribers - 1 where id = $1";
    row::lock(tx, vec![member]).await?;
    if tx.execute(LEAVE, params![member, id.0]).await? > 0 {
        tx.execute(COUNT, params![member]).await?;
    }
    Ok(())
}
