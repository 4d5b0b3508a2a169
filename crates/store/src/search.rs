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

use chrono::{DateTime, Utc};

use crate::Store;
use crate::engine::row::Row;
use crate::engine::sql::{Value, params};
use crate::engine::sqlite::WriteSize;
use crate::engine::tx::Tx;
use crate::resources::row;
use feedgate_core::search::{IndexSearch, IndexedRange, PossibleMatches, UnindexedRange};
use feedgate_core::store::StoreError;

/// The most logs that are queued, or entries that are deleted, in one transaction.
const BATCH: i64 = 500;
/// The most keys that are added in one transaction, unless one entry has more: on SQLite, a tenth of a
/// second.
const MOST_KEYS: usize = 2_500;
/// A transaction with fewer keys is committed together with others.
const SMALL_KEYS: usize = 250;
/// The state of an index for which all logs have been queued.
const COMPLETE: &str = "complete";

/// The search index: the keys of the stored entries, which a job adds after the appends.
impl Store {
    /// Opens the index: from then on, appends queue their records for it.
    pub async fn open_search_index(&self) -> Result<(), StoreError> {
        const OPEN: &str = "
            insert into database_properties (name, value) values ('search_index', '0')
                on conflict (name) do nothing";
        let opened =
            self.each(|db| db.write(|tx| Box::pin(async move { tx.execute(OPEN, &[]).await })));
        opened.await.map(drop)
    }

    /// Closes the index: appends queue nothing any more.
    pub async fn close_search_index(&self) -> Result<(), StoreError> {
        const CLOSE: &str = "delete from database_properties where name = 'search_index'";
        let closed =
            self.each(|db| db.write(|tx| Box::pin(async move { tx.execute(CLOSE, &[]).await })));
        closed.await.map(drop)
    }

    /// Deletes a batch of what a closed index contains. Returns how many rows; 0 means that it is
    /// empty, or open.
    pub async fn clear_search_index(&self) -> Result<u64, StoreError> {
        self.sum(|db| db.write(|tx| Box::pin(clear(tx)))).await
    }

    /// Queues, for an index that was opened, a batch of the logs that were stored before. Returns
    /// whether there may be more.
    pub async fn queue_unindexed(&self, now: DateTime<Utc>) -> Result<bool, StoreError> {
        let queued = self.each(|db| async move {
            if state(&db.rows(STATE, &[]).await?)?.as_deref().is_none_or(|state| state == COMPLETE)
            {
                return Ok(false);
            }
            db.write(move |tx| Box::pin(queue_unindexed(tx, now))).await
        });
        Ok(queued.await?.into_iter().any(|is_more| is_more))
    }

    /// Claims the queued records of up to `limit` resources, longest due first, until `until`; at
    /// most `feedgate_store::INDEX_BATCH` of each.
    pub async fn claim_unindexed(
        &self,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<UnindexedRange>, StoreError> {
        self.claim_in_turn(limit, |db, limit| async move {
            let lease = db.claims.lease(now, until);
            db.write(move |tx| Box::pin(filling::claim(tx, lease, limit))).await
        })
        .await
    }

    /// Adds the entries of claimed ranges to the index, each once, and removes what they replace.
    /// Ranges that were added by another node meanwhile are left out.
    pub async fn add_to_search_index(
        &self,
        ranges: Vec<IndexedRange>,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        for (db, ranges) in self.by_cell(ranges, |range| range.resource.0) {
            for part in ranges.into_iter().flat_map(|range| range.into_parts(MOST_KEYS)) {
                let size = match part.key_count() {
                    0..SMALL_KEYS => WriteSize::Small,
                    _ => WriteSize::Large,
                };
                db.write_sized(size, move |tx| Box::pin(filling::add(tx, part, now))).await?;
            }
        }
        Ok(())
    }

    /// Returns the newest entries that have the keys of a search. The number of rows that are read
    /// is bounded, so there may be fewer than the limit although there are more: the result says
    /// where to continue.
    pub async fn find_possible_matches(
        &self,
        search: &IndexSearch,
    ) -> Result<PossibleMatches, StoreError> {
        let found = self.each(|db| {
            let search = search.clone();
            db.read(move |tx| Box::pin(async move { finding::find(tx, &search).await }))
        });
        let mut found = found.await?;
        if found.len() == 1 {
            return Ok(found.remove(0));
        }
        // Before this position, a cell may have entries that it has not returned.
        let mut continues_before = found.iter().filter_map(|found| found.continues_before).max();
        let mut entries: Vec<_> = found.into_iter().flat_map(|found| found.entries).collect();
        entries.retain(|entry| continues_before.is_none_or(|before| entry.position >= before));
        entries.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.position));
        if entries.len() > search.limit {
            entries.truncate(search.limit);
            continues_before = entries.last().map(|entry| entry.position);
        }
        Ok(PossibleMatches { entries, continues_before })
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
