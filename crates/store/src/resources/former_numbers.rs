//! Resources by their numbers, also by those from before the database was copied
//! (`copy/numbering.rs`): archives are published under the number.

use crate::Db;
use crate::engine::sql::params;
use crate::engine::tx::Tx;
use crate::resources::row::{resource, resource_columns};
use feedgate_core::resource::{Resource, ResourceId};
use feedgate_core::store::StoreError;

impl Db {
    /// Returns the resource that has this number.
    pub(crate) async fn find_by_number(
        &self,
        id: ResourceId,
    ) -> Result<Option<Resource>, StoreError> {
        self.read(move |tx| Box::pin(find(tx, id))).await
    }

    /// Returns the present number of the resource that had this number before.
    pub(crate) async fn current_number(
        &self,
        id: ResourceId,
    ) -> Result<Option<ResourceId>, StoreError> {
        const CURRENT: &str = "select resource_id from former_numbers where former_id = $1";
        let rows = self.rows(CURRENT, params![id.0]).await?;
        rows.into_iter().next().map(|mut row| row.int().map(ResourceId)).transpose()
    }
}

async fn find(tx: &Tx<'_>, id: ResourceId) -> Result<Option<Resource>, StoreError> {
    const GET: &str = concat!(
        "select ",
        resource_columns!(),
        " from resources r join resource_details d on d.resource_id = r.id
         where r.id = $1"
    );
    tx.first(GET, params![id.0]).await?.as_mut().map(resource).transpose()
}
