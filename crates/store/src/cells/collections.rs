//! Collections: the definitions are in the shared schema, with a copy in each cell for the appends
//! there; the log of a collection is in the cell of its topic.
//!
//! Records that a collection takes from another cell need two transactions: the first appends them
//! in the cell of the collection and stores how far it has taken them, the second moves the cursor
//! in the cell of the resource. If the second does not happen, the next attempt takes only what
//! comes after.

use std::collections::BTreeMap;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use crate::Db;
use crate::cells::Cells;
use crate::cells::claiming::CellClaims;
use crate::cells::numbers::cell_of_number;
use crate::collections::collecting;
use crate::engine::sql::params;
use feedgate_core::collection::{Collection, CollectionKind, PendingCollection};
use feedgate_core::ports::{Collections, Resources, StoreError};
use feedgate_core::resource::{Resource, ResourceId};
use feedgate_core::topic::Topic;

#[async_trait]
impl Collections for Cells {
    async fn open_collection(
        &self,
        collection: &Collection,
        now: DateTime<Utc>,
    ) -> Result<Resource, StoreError> {
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

    async fn collection(&self, scope: &CollectionKind) -> Result<Option<Resource>, StoreError> {
        match self.shared.defined(scope).await? {
            Some(id) => self.get(id).await,
            None => Ok(None),
        }
    }

    async fn set_members(
        &self,
        id: ResourceId,
        topics: &[Topic],
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        for cell in &self.cells {
            let is_here = |topic: &&Topic| std::ptr::eq(self.of_topic(topic.as_str()), cell);
            let topics: Vec<Topic> = topics.iter().filter(is_here).cloned().collect();
            cell.set_members(id, &topics, now).await?;
        }
        Ok(())
    }

    async fn close_collections(
        &self,
        but: &[ResourceId],
        now: DateTime<Utc>,
    ) -> Result<u64, StoreError> {
        for cell in &self.cells {
            cell.close_collections(but, now).await?;
        }
        self.shared.close_collections(but, now).await
    }

    async fn claim_collecting(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<PendingCollection>, StoreError> {
        let mut claims = CellClaims::new(limit);
        for cell in self.in_turn() {
            if claims.left() == 0 {
                break;
            }
            claims.add(cell.claim_collecting(now, until, claims.left()).await);
        }
        claims.finish()
    }

    async fn collect(
        &self,
        taken: Vec<PendingCollection>,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let cells = |owing: &PendingCollection| {
            (cell_of_number(owing.member.id.0), cell_of_number(owing.collection.0))
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
    /// Stores the definition of a collection, unless there is one with this name. One that is
    /// closed is opened.
    async fn define(&self, scope: CollectionKind, id: ResourceId) -> Result<(), StoreError> {
        const DEFINE: &str = "
            insert into collections (resource_id, name, account_id) values ($1, $2, $3)
                on conflict (name) do update set is_open = 1 where collections.is_open = 0";
        self.save_definition(DEFINE, scope, id).await
    }

    /// Stores the definition of a collection as it is in the shared schema.
    async fn copy_definition(
        &self,
        scope: CollectionKind,
        id: ResourceId,
    ) -> Result<(), StoreError> {
        const COPY: &str = "
            insert into collections (resource_id, name, account_id) values ($1, $2, $3)
                on conflict (name) do update
               set is_open = 1, resource_id = excluded.resource_id
             where collections.is_open = 0 or collections.resource_id <> excluded.resource_id";
        self.save_definition(COPY, scope, id).await
    }

    async fn save_definition(
        &self,
        sql: &'static str,
        scope: CollectionKind,
        id: ResourceId,
    ) -> Result<(), StoreError> {
        let account = scope.account().map_or(0, |account| account.0);
        let params = params![id.0, scope.kept(), account].to_vec();
        let defined = self.write(move |tx| Box::pin(async move { tx.execute(sql, &params).await }));
        defined.await.map(drop)
    }

    /// Returns the resource of a collection whose definition is here.
    async fn defined(&self, scope: &CollectionKind) -> Result<Option<ResourceId>, StoreError> {
        const FIND: &str = "select resource_id from collections where name = $1";
        let rows = self.rows(FIND, params![scope.kept()]).await?;
        rows.into_iter().next().map(|mut row| row.int().map(ResourceId)).transpose()
    }

    async fn take_from_elsewhere(
        &self,
        taken: Vec<PendingCollection>,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let cut = self.cut;
        self.write(move |tx| {
            Box::pin(async move { collecting::take_in_once(tx, &cut, None, taken, now).await })
        })
        .await
    }

    async fn advance_collected(
        &self,
        taken: Vec<PendingCollection>,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        self.write(move |tx| Box::pin(collecting::advance(tx, taken, now))).await
    }
}
