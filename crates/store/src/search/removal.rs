//! Removes entries from the search index, with the records that they were found by.

use crate::engine::row::Row;
use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
use feedgate_core::store::StoreError;

/// Removes the entries of these resources.
pub(crate) async fn remove_resources(tx: &Tx<'_>, ids: &[i64]) -> Result<(), StoreError> {
    for id in ids {
        remove_old(tx, *id, i64::MAX).await?;
    }
    Ok(())
}

/// Removes the entries of a resource whose records are numbered up to `upto`.
pub(crate) async fn remove_old(tx: &Tx<'_>, id: i64, upto: i64) -> Result<(), StoreError> {
    const OLD: &str = "
        delete from search_entries where resource_id = $1 and seq <= $2 returning position";
    let removed = tx.query(OLD, params![id, upto]).await?;
    remove_keys(tx, removed).await.map(drop)
}

/// Removes these entries of a resource.
pub(crate) async fn remove_entries(tx: &Tx<'_>, id: i64, seqs: Vec<i64>) -> Result<(), StoreError> {
    const THESE: &str = "
        delete from search_entries
         where resource_id = $1 and seq in ({ids $2})
        returning position";
    if seqs.is_empty() {
        return Ok(());
    }
    let removed = tx.query(THESE, &[Value::Int(id), Value::Ints(seqs)]).await?;
    remove_keys(tx, removed).await.map(drop)
}

/// Removes the keys of entries whose positions are in `rows`. Returns how many.
pub(super) async fn remove_keys(tx: &Tx<'_>, rows: Vec<Row>) -> Result<u64, StoreError> {
    const KEYS: &str = "delete from search_index where rowid in ({ids $1})";
    if rows.is_empty() {
        return Ok(0);
    }
    let positions = rows.into_iter().map(|mut row| row.int());
    let positions = positions.collect::<Result<Vec<_>, StoreError>>()?;
    let count = positions.len() as u64;
    tx.execute(KEYS, &[Value::Ints(positions)]).await?;
    Ok(count)
}
