//! What is kept: reading logs and bodies.

use async_trait::async_trait;

use super::db::Db;
use super::sql::{Row, Value, params};
use super::{Log, StoreError, append};
use crate::domain::poll::Body;
use crate::domain::record::{EntryKey, Record, Seq};
use crate::domain::resource::ResourceId;

#[async_trait]
impl Log for Db {
    async fn read_after(
        &self,
        id: ResourceId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        const AFTER: &str = "
            select seq, at, entry_id, atom
              from records
             where resource_id = $1 and seq > $2
             order by seq
             limit $3";
        let rows = self.rows(AFTER, params![id.0, after.0, most(limit)]).await?;
        rows.into_iter().map(record).collect()
    }

    async fn read_before(
        &self,
        id: ResourceId,
        before: Option<Seq>,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        const BEFORE: &str = "
            select seq, at, entry_id, atom
              from records
             where resource_id = $1 and seq < $2
             order by seq desc
             limit $3";
        let before = before.map_or(i64::MAX, |seq| seq.0);
        let rows = self.rows(BEFORE, params![id.0, before, most(limit)]).await?;
        rows.into_iter().map(record).collect()
    }

    async fn unknown(
        &self,
        id: ResourceId,
        keys: &[EntryKey],
    ) -> Result<Vec<EntryKey>, StoreError> {
        let asked = keys.to_vec();
        let known =
            self.read(move |tx| Box::pin(async move { append::known(tx, id, asked.iter()).await }));
        let known = known.await?;
        Ok(keys.iter().filter(|key| !known.contains(key.0.as_slice())).copied().collect())
    }

    async fn seq_of(&self, id: ResourceId, entry_id: &str) -> Result<Option<Seq>, StoreError> {
        const SEQ_OF: &str = "
            select seq
              from records
             where resource_id = $1 and entry_hash = $2 and entry_id = $3
             order by seq desc
             limit 1";
        let hash = EntryKey::of(entry_id).0.to_vec();
        let rows = self.rows(SEQ_OF, params![id.0, hash, entry_id]).await?;
        rows.into_iter().next().map(|mut row| row.int().map(Seq)).transpose()
    }

    async fn body(&self, id: ResourceId) -> Result<Option<(i64, Body)>, StoreError> {
        const BODY: &str = "
            select version, content_type, bytes from bodies where resource_id = $1";
        let rows = self.rows(BODY, params![id.0]).await?;
        let Some(mut row) = rows.into_iter().next() else { return Ok(None) };
        let version = row.int()?;
        Ok(Some((version, Body { content_type: row.opt_text()?, bytes: row.blob()? })))
    }
}

impl Db {
    /// The rows of a statement that only reads.
    pub(super) async fn rows(
        &self,
        sql: &'static str,
        params: &[Value],
    ) -> Result<Vec<Row>, StoreError> {
        let params = params.to_vec();
        self.read(move |tx| Box::pin(async move { tx.query(sql, &params).await })).await
    }
}

/// A limit as the databases take it.
pub(super) fn most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

fn record(mut row: Row) -> Result<Record, StoreError> {
    Ok(Record { seq: Seq(row.int()?), at: row.time()?, entry_id: row.text()?, atom: row.text()? })
}
