//! Collections: the definitions are in the shared schema, with a copy in each cell for the appends
//! there; the log of a collection is in the cell of its topic.
//!
//! Records that a collection takes from another cell need two transactions: the first appends them
//! in the cell of the collection and stores how far it has taken them, the second moves the cursor
//! in the cell of the resource. If the second does not happen, the next attempt takes only what
//! comes after.

use chrono::{DateTime, Utc};

use crate::Db;
use crate::collections::collecting;
use crate::engine::sql::params;
use feedgate_core::collection::{CollectionKind, PendingCollection};
use feedgate_core::resource::ResourceId;
use feedgate_core::store::StoreError;

impl Db {
    /// Stores the definition of a collection, unless there is one with this name. One that is
    /// closed is opened.
    pub(super) async fn define(
        &self,
        scope: CollectionKind,
        id: ResourceId,
    ) -> Result<(), StoreError> {
        const DEFINE: &str = "
            insert into collections (resource_id, name, account_id) values ($1, $2, $3)
                on conflict (name) do update set is_open = 1 where collections.is_open = 0";
        self.save_definition(DEFINE, scope, id).await
    }

    /// Stores the definition of a collection as it is in the shared schema.
    pub(super) async fn copy_definition(
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

    pub(super) async fn save_definition(
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
    pub(super) async fn defined(
        &self,
        scope: &CollectionKind,
    ) -> Result<Option<ResourceId>, StoreError> {
        const FIND: &str = "select resource_id from collections where name = $1";
        let rows = self.rows(FIND, params![scope.kept()]).await?;
        rows.into_iter().next().map(|mut row| row.int().map(ResourceId)).transpose()
    }

    pub(super) async fn take_from_elsewhere(
        &self,
        taken: Vec<PendingCollection>,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let page_limits = self.page_limits;
        self.write(move |tx| {
            Box::pin(
                async move { collecting::take_in_once(tx, &page_limits, None, taken, now).await },
            )
        })
        .await
    }

    pub(super) async fn advance_collected(
        &self,
        taken: Vec<PendingCollection>,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        self.write(move |tx| Box::pin(collecting::advance(tx, taken, now))).await
    }
}
