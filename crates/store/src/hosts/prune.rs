//! Deleting the host groups that are no longer used.
//!
//! No index finds them: nearly every poll writes the row of a group, and would have to update the
//! index. So the table is read once, in the order of its key, a batch in each transaction.

use chrono::{DateTime, Utc};

use crate::Db;
use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
use feedgate_core::store::StoreError;

/// The number of groups that one transaction reads: few enough that no other waits long.
const BATCH: i64 = 1_000;

/// Deletes the groups that were last used before `before`, in the order of their names. Returns how
/// many.
pub(crate) async fn prune(db: &Db, before: DateTime<Utc>) -> Result<u64, StoreError> {
    let (mut deleted, mut after) = (0, String::new());
    loop {
        let from = after.clone();
        let batch = db.write(move |tx| Box::pin(prune_batch(tx, before, from)));
        let (some, last) = batch.await?;
        deleted += some;
        match last {
            Some(last) => after = last,
            None => return Ok(deleted),
        }
    }
}

/// Deletes those of the next [`BATCH`] groups after `after` that are old. Returns how many, and the
/// last of the batch; `None` if there are no more.
async fn prune_batch(
    tx: &Tx<'_>,
    before: DateTime<Utc>,
    after: String,
) -> Result<(u64, Option<String>), StoreError> {
    const NEXT: &str = "select host from hosts where host > $1 order by host limit $2";
    // A learned pause has shrunk to nothing by then (rule P28).
    const DELETE: &str = "
        delete from hosts
         where host in (select host from hosts
                         where host in ({texts $2})
                           and next_fetch_at < $1
                           and (backoff_until is null or backoff_until < $1)
                           and (last_backoff_at is null or last_backoff_at < $1)
                           and (last_success_at is null or last_success_at < $1)
                           {skip locked})";
    let next = tx.query(NEXT, params![after, BATCH]).await?;
    let next = next.into_iter().map(|mut row| row.text());
    let next = next.collect::<Result<Vec<_>, StoreError>>()?;
    let last = next.last().cloned();
    let deleted = tx.execute(DELETE, &[before.into(), Value::Texts(next)]).await?;
    Ok((deleted, last))
}
