//! The search index: filled beside the appends, and emptied when it is closed.
//!
//! The text index of the database is used: `tsvector` with GIN, and FTS5. Its "words" are the keys
//! of the entries ([`feedgate_core::query::SearchKey`]), so both databases compare the same.
//!
//! An append stores how far its log has to be indexed, in the row of `search_cursors`, which it
//! creates or extends. The index is filled by another transaction, which advances that row first:
//! of two nodes that index the same range, the second finds the row advanced. Whether the index is
//! open is a row in `database_properties`, whose value is the last resource whose older records
//! were queued, or `complete`.

pub(crate) mod filling;
mod finding;
pub(crate) mod removal;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use crate::Db;
use crate::engine::row::Row;
use crate::engine::sql::{Value, params};
use crate::engine::sqlite::WriteSize;
use crate::engine::tx::Tx;
use crate::resources::row;
use feedgate_core::ports::{SearchIndex, StoreError};
use feedgate_core::search::{IndexSearch, IndexedRange, PossibleMatches, UnindexedRange};

/// The most logs that are queued, or entries that are deleted, in one transaction.
const BATCH: i64 = 500;
/// The most keys that are added in one transaction, unless one entry has more: on SQLite, a tenth of a
/// second.
const MOST_KEYS: usize = 2_500;
/// A transaction with fewer keys is committed together with others.
const SMALL_KEYS: usize = 250;
/// The state of an index for which all logs have been queued.
const COMPLETE: &str = "complete";

#[async_trait]
impl SearchIndex for Db {
    async fn open_search_index(&self) -> Result<(), StoreError> {
        const OPEN: &str = "
            insert into database_properties (name, value) values ('search_index', '0')
                on conflict (name) do nothing";
        let opened = self.write(|tx| Box::pin(async move { tx.execute(OPEN, &[]).await }));
        opened.await.map(drop)
    }

    async fn close_search_index(&self) -> Result<(), StoreError> {
        const CLOSE: &str = "delete from database_properties where name = 'search_index'";
        let closed = self.write(|tx| Box::pin(async move { tx.execute(CLOSE, &[]).await }));
        closed.await.map(drop)
    }

    async fn clear_search_index(&self) -> Result<u64, StoreError> {
        self.write(|tx| Box::pin(clear(tx))).await
    }

    async fn queue_unindexed(&self, now: DateTime<Utc>) -> Result<bool, StoreError> {
        if state(&self.rows(STATE, &[]).await?)?.as_deref().is_none_or(|state| state == COMPLETE) {
            return Ok(false);
        }
        self.write(move |tx| Box::pin(queue_unindexed(tx, now))).await
    }

    async fn claim_unindexed(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<UnindexedRange>, StoreError> {
        self.write(move |tx| Box::pin(filling::claim(tx, now, until, limit))).await
    }

    async fn add_to_search_index(
        &self,
        ranges: Vec<IndexedRange>,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        for range in ranges {
            for part in range.into_parts(MOST_KEYS) {
                let size = match part.key_count() {
                    0..SMALL_KEYS => WriteSize::Small,
                    _ => WriteSize::Large,
                };
                self.write_sized(size, move |tx| Box::pin(filling::add(tx, part, now))).await?;
            }
        }
        Ok(())
    }

    async fn find_possible_matches(
        &self,
        search: &IndexSearch,
    ) -> Result<PossibleMatches, StoreError> {
        let search = search.clone();
        self.read(move |tx| Box::pin(async move { finding::find(tx, &search).await })).await
    }
}

const STATE: &str = "select value from database_properties where name = 'search_index'";

/// Returns the state of the index; `None` if it is closed.
fn state(rows: &[Row]) -> Result<Option<String>, StoreError> {
    rows.first().cloned().map(|mut row| row.text()).transpose()
}

/// Queues the logs of some resources from their first record. Returns whether there may be more.
async fn queue_unindexed(tx: &Tx<'_>, now: DateTime<Utc>) -> Result<bool, StoreError> {
    const NEXT: &str = "select id from resources where id > $1 order by id limit $2";
    const HEADS: &str = "
        select id, head from resources
         where id in ({ids $1}) and head > 0 and kind <> 'collection'";
    const QUEUE: &str = "
        insert into search_cursors (resource_id, cursor, upto, due_at)
        {values resource_id, cursor, upto, due_at}
            on conflict (resource_id) do update set cursor = 0";
    const SAVE: &str = "update database_properties set value = $1 where name = 'search_index'";
    let state = state(&tx.query(STATE, &[]).await?)?;
    let Some(last) = state.and_then(|state| state.parse::<i64>().ok()) else { return Ok(false) };
    let next = tx.query(NEXT, params![last, BATCH]).await?;
    let next = next.into_iter().map(|mut row| row.int()).collect::<Result<Vec<_>, StoreError>>()?;
    let Some(end) = next.last().copied() else {
        tx.execute(SAVE, params![COMPLETE]).await?;
        return Ok(false);
    };
    // An append that did not see that the index is open ends before its resource is locked.
    row::lock(tx, next.clone()).await?;
    let (mut ids, mut heads) = (Vec::new(), Vec::new());
    for mut row in tx.query(HEADS, &[Value::Ints(next)]).await? {
        ids.push(row.int()?);
        heads.push(row.int()?);
    }
    let count = ids.len();
    let columns = [
        ("resource_id", Value::Ints(ids)),
        ("cursor", Value::Ints(vec![0; count])),
        ("upto", Value::Ints(heads)),
        ("due_at", Value::Ints(vec![now.timestamp_micros(); count])),
    ];
    tx.execute_rows(QUEUE, &[], &columns).await?;
    tx.execute(SAVE, params![end.to_string()]).await?;
    Ok(true)
}

/// Deletes some entries and cursors, if the index is closed. Returns how many.
async fn clear(tx: &Tx<'_>) -> Result<u64, StoreError> {
    const CURSORS: &str = "
        delete from search_cursors
         where resource_id in (select resource_id from search_cursors
                                where resource_id > 0 order by resource_id limit $1)";
    const ENTRIES: &str = "
        delete from search_entries
         where position in (select position from search_entries
                             where position > 0 order by position limit $1)
        returning position";
    if state(&tx.query(STATE, &[]).await?)?.is_some() {
        return Ok(0);
    }
    let cursors = tx.execute(CURSORS, params![BATCH]).await?;
    let entries = tx.query(ENTRIES, params![BATCH]).await?;
    Ok(cursors + removal::remove_keys(tx, entries).await?)
}
