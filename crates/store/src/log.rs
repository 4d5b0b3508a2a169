//! Reads logs and bodies.

pub(crate) mod account_budget;
pub(crate) mod anonymous_documents;
pub(crate) mod append;
pub(crate) mod append_budget;
pub(crate) mod baseline;
pub(crate) mod before;
mod bodies;
pub(crate) mod document_parts;
pub(crate) mod entries;
pub(crate) mod fan_out;
mod first_document;
pub(crate) mod pages;
pub(crate) mod pending_fan_outs;
pub(crate) mod published_since;
mod record_places;
pub(crate) mod recording;
pub(crate) mod records;
pub(crate) mod registrants;
pub(crate) mod row;

use super::engine::row::Row;
use super::engine::sql::{Value, params};
use crate::log::row::{most, record, record_columns};
use crate::{Db, Store};
use feedgate_core::change_detection::Known;
use feedgate_core::record::{EntryKey, Record, Seq};
use feedgate_core::resource::ResourceId;
use feedgate_core::store::{EntryRange, OwedRange, StoreError};
use feedgate_feed::Body;

/// The condition that a record `r` is the current version of an entry that exists.
macro_rules! is_current {
    () => {
        "r.kind <> 'deleted'
         and not exists (select 1 from records n
                          where n.resource_id = r.resource_id and n.predecessor = r.seq)"
    };
}

/// Records between two numbers that nothing has replaced: what has been is named by what
/// replaced it.
macro_rules! current {
    ($order:literal, $last:literal) => {
        concat!(
            "select ",
            record_columns!(),
            " from records r
              where r.resource_id = $1 and r.seq > $2 and r.seq < $3 and ",
            is_current!(),
            " and r.seq ",
            $last,
            " from (select seq, sum(size) over (order by seq ",
            $order,
            " rows unbounded preceding) - size as before
                      from (select r.seq, octet_length(r.atom) as size
                              from records r
                             where r.resource_id = $1 and r.seq > $2 and r.seq < $3 and ",
            is_current!(),
            " order by r.seq ",
            $order,
            " limit $4) sizes) sums
                     where before < $5)
              order by r.seq ",
            $order,
            " limit $4"
        )
    };
}

/// Logs and bodies.
impl Store {
    /// Returns up to `limit` records after `after`, ascending.
    pub async fn read_after(
        &self,
        id: ResourceId,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        let db = self.of_number(id.0);
        const AFTER: &str = concat!(
            "select ",
            record_columns!(),
            " from records r
              where r.resource_id = $1 and r.seq > $2
              order by r.seq
              limit $3"
        );
        let rows = db.rows(AFTER, params![id.0, after.0, most(limit)]).await?;
        rows.into_iter().map(record).collect()
    }

    /// Returns the records owed to a subscription, with at least its audience, ascending.
    pub async fn owed(&self, id: ResourceId, owed: &OwedRange) -> Result<Vec<Record>, StoreError> {
        let db = self.of_number(id.0);
        const OWED: &str = concat!(
            "select ",
            record_columns!(),
            " from records r
              where r.resource_id = $1 and r.seq > $2 and r.audience >= $4
                and r.seq <= (
                    select max(seq)
                      from (select seq, sum(size) over (order by seq rows unbounded preceding)
                                        - size as before
                              from (select seq, octet_length(atom) as size
                                      from records
                                     where resource_id = $1 and seq > $2 and seq <= $3
                                       and audience >= $4
                                     order by seq limit $5) sizes) sums
                     where before < $6)
              order by r.seq
              limit $5"
        );
        let (after, upto, least) = (owed.after.0, owed.upto.0, owed.least.number());
        let params = params![id.0, after, upto, least, most(owed.limit), most(owed.max_bytes)];
        let rows = db.rows(OWED, params).await?;
        rows.into_iter().map(record).collect()
    }

    /// Returns the current entries, newest first, without those that were replaced by an update or
    /// deleted.
    pub async fn read_current(
        &self,
        id: ResourceId,
        span: &EntryRange,
    ) -> Result<Vec<Record>, StoreError> {
        let db = self.of_number(id.0);
        const OLDEST: &str = current!("asc", "<= (select max(seq)");
        const NEWEST: &str = current!("desc", ">= (select min(seq)");
        let after = span.after.map_or(0, |seq| seq.0);
        let before = span.before.map_or(i64::MAX, |seq| seq.0);
        let sql = if span.after.is_some() { OLDEST } else { NEWEST };
        let max_bytes = most(span.max_bytes.unwrap_or(usize::MAX));
        let params = params![id.0, after, before, most(span.limit), max_bytes];
        let rows = db.rows(sql, params).await?;
        let mut records: Vec<Record> =
            rows.into_iter().map(record).collect::<Result<_, StoreError>>()?;
        if span.after.is_some() {
            records.reverse();
        }
        Ok(records)
    }

    /// Returns the numbers of the newest records of these logs, in any order; logs that do not
    /// exist are left out.
    pub async fn heads(&self, ids: &[ResourceId]) -> Result<Vec<(ResourceId, Seq)>, StoreError> {
        const HEADS: &str = "select id, head from resources where id in ({ids $1})";
        let heads = self.gather(
            ids,
            |id| id.0,
            |db, ids| async move {
                let ids = Value::Ints(ids.iter().map(|id| id.0).collect());
                let rows = db.rows(HEADS, &[ids]).await?;
                rows.into_iter()
                    .map(|mut row| Ok((ResourceId(row.int()?), Seq(row.int()?))))
                    .collect()
            },
        );
        heads.await
    }

    /// Returns the known entries with these keys. The append classifies again; this call only
    /// avoids rendering known entries.
    pub async fn known(&self, id: ResourceId, keys: &[EntryKey]) -> Result<Known, StoreError> {
        let db = self.of_number(id.0);
        let keys = keys.to_vec();
        db.read(move |tx| Box::pin(entries::known(tx, id, keys))).await
    }

    /// Returns the number of the newest record with this Atom id.
    pub async fn find_seq(
        &self,
        id: ResourceId,
        entry_id: &str,
    ) -> Result<Option<Seq>, StoreError> {
        let db = self.of_number(id.0);
        const SEQ_OF: &str = "
            select seq
              from records
             where resource_id = $1 and entry_hash = $2 and entry_id = $3
             order by seq desc
             limit 1";
        let hash = EntryKey::from_id(entry_id).0.to_vec();
        let rows = db.rows(SEQ_OF, params![id.0, hash, entry_id]).await?;
        rows.into_iter().next().map(|mut row| row.int().map(Seq)).transpose()
    }

    /// Returns the newest body and its version.
    pub async fn body(&self, id: ResourceId) -> Result<Option<(i64, Body)>, StoreError> {
        let db = self.of_number(id.0);
        const BODY: &str = "
            select version, content_type, bytes from bodies where resource_id = $1";
        let rows = db.rows(BODY, params![id.0]).await?;
        let Some(mut row) = rows.into_iter().next() else { return Ok(None) };
        let version = row.int()?;
        Ok(Some((version, Body { content_type: row.opt_text()?, bytes: row.blob()? })))
    }
}

impl Db {
    /// Returns the rows of a statement that only reads.
    pub(super) async fn rows(
        &self,
        sql: &'static str,
        params: &[Value],
    ) -> Result<Vec<Row>, StoreError> {
        let params = params.to_vec();
        self.read(move |tx| Box::pin(async move { tx.query(sql, &params).await })).await
    }

    /// Returns the count that is all that a statement reads; 0 if it finds no row.
    pub(super) async fn count(
        &self,
        sql: &'static str,
        params: &[Value],
    ) -> Result<u64, StoreError> {
        let rows = self.rows(sql, params).await?;
        rows.into_iter().next().map_or(Ok(0), |mut row| row.count())
    }
}
