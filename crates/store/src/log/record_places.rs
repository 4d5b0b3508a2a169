//! When records were appended, without their contents: the newest of a log, and the revisions of an entry.

use crate::Store;
use crate::engine::row::Row;
use crate::engine::sql::params;
use crate::log::row::most;
use feedgate_core::record::{EntryKey, RecordKind, RecordPlace, Seq};
use feedgate_core::resource::ResourceId;
use feedgate_core::store::StoreError;

impl Store {
    /// Returns the newest records of a log, newest first, up to `limit`.
    pub async fn newest_records(
        &self,
        id: ResourceId,
        limit: usize,
    ) -> Result<Vec<RecordPlace>, StoreError> {
        const NEWEST: &str = "
            select seq, appended_at, kind from records
             where resource_id = $1 order by seq desc limit $2";
        let rows = self.of_number(id.0).rows(NEWEST, params![id.0, most(limit)]).await?;
        rows.into_iter().map(place).collect()
    }

    /// Returns the records with this Atom id, newest first, up to `limit`.
    pub async fn revisions(
        &self,
        id: ResourceId,
        entry_id: &str,
        limit: usize,
    ) -> Result<Vec<RecordPlace>, StoreError> {
        const REVISIONS: &str = "
            select seq, appended_at, kind from records
             where resource_id = $1 and entry_hash = $2 and entry_id = $3
             order by seq desc limit $4";
        let hash = EntryKey::from_id(entry_id).0.to_vec();
        let params = params![id.0, hash, entry_id, most(limit)];
        let rows = self.of_number(id.0).rows(REVISIONS, params).await?;
        rows.into_iter().map(place).collect()
    }
}

fn place(mut row: Row) -> Result<RecordPlace, StoreError> {
    let (seq, at) = (Seq(row.int()?), row.time()?);
    Ok(RecordPlace { seq, at, kind: row.word(RecordKind::from_word)? })
}
