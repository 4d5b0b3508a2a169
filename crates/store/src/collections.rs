//! Collections: creates them, and stores which resources the operator puts into them.
//!
//! A collection never counts its subscribers. A resource without subscribers is never due, so a
//! collection is never polled.

pub(crate) mod collecting;
mod cursors;
mod definitions;
pub(crate) mod enqueue;
mod watchers;

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};

use super::engine::sql::params;
use super::engine::tx::{Tx, Wake};
use super::resources::details;
use crate::resources::ensure::ensure;
use crate::resources::row::{self, resource, resource_columns};
use crate::{Db, Store};
use collecting::{COLLECT_BATCH, COLLECT_BYTES, ClaimBounds};
use feedgate_core::collection::{Collection, CollectionKind, PendingCollection};
use feedgate_core::host_groups::HostGroups;
use feedgate_core::registrant::RegistrantNetwork;
use feedgate_core::resource::{Resource, ResourceId, ResourceKind};
use feedgate_core::status::Status;
use feedgate_core::store::StoreError;
use feedgate_core::topic::Topic;

/// Collections: resources whose logs are filled from other logs.
impl Store {
    /// Returns the collection of this scope, creating or reopening it if necessary. It takes what
    /// is appended from then on.
    pub async fn open_collection(
        &self,
        collection: &Collection,
        now: DateTime<Utc>,
    ) -> Result<Resource, StoreError> {
        if let Some(db) = self.only_cell() {
            return db.open_collection(collection, now).await;
        }
        let known = self.collection(&collection.scope).await?;
        let resource = match known {
            Some(known) => known,
            None => {
                let home = self.of_topic(collection.topic.as_str());
                let opened = home.open_collection(collection, now).await?;
                self.shared.define(collection.scope.clone(), opened.id).await?;
                let defined = self.collection(&collection.scope).await?;
                defined.ok_or_else(|| StoreError::Corrupt("a collection vanished".to_owned()))?
            }
        };
        self.shared.define(collection.scope.clone(), resource.id).await?;
        for cell in &self.cells {
            cell.copy_definition(collection.scope.clone(), resource.id).await?;
        }
        Ok(resource)
    }

    /// Returns the collection of this scope, open or not; `None` if it was never created.
    pub async fn collection(&self, scope: &CollectionKind) -> Result<Option<Resource>, StoreError> {
        if let Some(db) = self.only_cell() {
            let name = scope.kept();
            return db.read(move |tx| Box::pin(find(tx, name))).await;
        }
        match self.shared.defined(scope).await? {
            Some(id) => self.get(id).await,
            None => Ok(None),
        }
    }

    /// Makes exactly these resources the members of a collection. Each counts the collection as a
    /// subscriber, so that it is polled.
    pub async fn set_members(
        &self,
        id: ResourceId,
        topics: &[Topic],
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        for cell in &self.cells {
            let is_here = |topic: &&Topic| std::ptr::eq(self.of_topic(topic.as_str()), &**cell);
            let topics: Vec<Topic> = topics.iter().filter(is_here).cloned().collect();
            cell.set_members(id, &topics, now).await?;
        }
        Ok(())
    }

    /// Closes the collections that belong to no account, except those in `but`: they keep their
    /// records and take no more. Returns their number.
    pub async fn close_collections(
        &self,
        but: &[ResourceId],
        now: DateTime<Utc>,
    ) -> Result<u64, StoreError> {
        if self.only_cell().is_none() {
            self.each(|db| db.close_collections(but, now)).await?;
        }
        self.shared.close_collections(but, now).await
    }

    /// Claims up to `limit` cursors of collections that are behind, longest due first, until
    /// `until`. Each returns at most `feedgate_store::COLLECT_BATCH` records, and all together at most
    /// `feedgate_store::COLLECT_BYTES`, unless one record of a cell has more.
    pub async fn claim_collecting(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<PendingCollection>, StoreError> {
        let bytes = COLLECT_BYTES / self.cells.len() as u64;
        self.claim_in_turn(limit, |db, limit| async move {
            let (lease, listed) = (db.claims.lease(now, until), db.listed);
            let bounds = ClaimBounds { cursors: limit, records: COLLECT_BATCH, bytes };
            db.write(move |tx| Box::pin(collecting::claim(tx, lease, bounds, listed))).await
        })
        .await
    }

    /// Appends the claimed records to the logs of their collections, and advances the cursors.
    /// Records that were taken by another node meanwhile are left out.
    pub async fn collect(
        &self,
        taken: Vec<PendingCollection>,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        if let Some(db) = self.only_cell() {
            return db.collect(taken, now).await;
        }
        let cells = |owing: &PendingCollection| {
            (self.place_of(owing.member.id.0), self.place_of(owing.collection.0))
        };
        let mut by_cells: BTreeMap<(usize, usize), Vec<PendingCollection>> = BTreeMap::new();
        for owing in taken {
            by_cells.entry(cells(&owing)).or_default().push(owing);
        }
        for ((member, collection), taken) in by_cells {
            let (member, collection) = (&self.cells[member], &self.cells[collection]);
            if std::ptr::eq(member, collection) {
                member.collect(taken, now).await?;
            } else {
                collection.take_from_elsewhere(taken.clone(), now).await?;
                member.advance_collected(taken, now).await?;
            }
        }
        Ok(())
    }
}

impl Db {
    async fn open_collection(
        &self,
        collection: &Collection,
        now: DateTime<Utc>,
    ) -> Result<Resource, StoreError> {
        let collection = collection.clone();
        self.write(move |tx| Box::pin(open(tx, collection, now))).await
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

    async fn collect(
        &self,
        taken: Vec<PendingCollection>,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let page_limits = self.page_limits;
        self.write(move |tx| {
            Box::pin(async move { collecting::collect(tx, &page_limits, taken, now).await })
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
