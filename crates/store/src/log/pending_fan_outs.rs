//! Fan-outs that are too large for the transaction of their append.
//!
//! An append marks a bounded number of subscriptions due and stores how far it came; a job marks the
//! rest, chunk by chunk. What always holds:
//!
//! * The place is stored in the transaction of the append, so a crash loses no notification.
//! * A chunk marks whoever is behind the log as it stands then, so marking a chunk twice does no harm.
//! * A pass over the subscriptions ends before the next one begins: an append during a pass marks nobody and
//!   is followed by another pass. Otherwise, with changes faster than a pass, the first subscribers would be
//!   notified of each and the last ones of none.
//! * A chunk reads a bounded number of rows, whether or not they are behind.

use chrono::{DateTime, Utc};
use foldhash::HashSet;

use crate::Store;
use crate::delivery::backlogs::{Marks, mark, marked_columns};
use crate::delivery::owed::is_ready;
use crate::engine::sql::{Value, params};
use crate::engine::tx::{Tx, Wake};
use crate::resources::row;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::StoreError;

/// The subscriptions of one resource that are looked at in one transaction: some 10 ms of work, for
/// which the results of deliveries wait.
pub(crate) const CHUNK: i64 = 2_000;
/// The subscriptions that the append to a large resource looks at: enough to deliver while the rest is
/// marked. With 500 instead of [`CHUNK`], the first of 5,000 notifications left after 33 ms instead of 46
/// on PostgreSQL.
const FIRST_CHUNK: i64 = 500;

/// Fan-outs that an append has begun and a job completes.
impl Store {
    /// Returns up to `limit` resources with subscriptions that are still to be marked due, the one
    /// that was advanced longest ago first.
    pub async fn pending_fan_outs(&self, limit: usize) -> Result<Vec<ResourceId>, StoreError> {
        const PENDING: &str = "select resource_id from fan_outs order by advanced_at limit $1";
        self.claim_in_turn(limit, |db, limit| async move {
            let rows = db.rows(PENDING, params![limit as i64]).await?;
            rows.into_iter().map(|mut row| row.int().map(ResourceId)).collect()
        })
        .await
    }

    /// Marks the next subscriptions of `resource` due. Several nodes may do so at the same time.
    pub async fn continue_fan_out(
        &self,
        resource: ResourceId,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        self.of_number(resource.0)
            .write(move |tx| Box::pin(continue_fan_out(tx, resource, now)))
            .await
    }
}

/// Returns whether a resource with so many subscribers has more than one transaction marks.
pub(crate) fn is_large(subscribers: u32) -> bool {
    i64::from(subscribers) > CHUNK
}

/// Marks the first subscriptions due that are behind the log, and stores that the rest follows. While a pass
/// is under way, stores that another one follows. The resource is locked.
pub(crate) async fn begin_fan_out(
    tx: &Tx<'_>,
    id: ResourceId,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    const BEGIN: &str = "
        insert into fan_outs (resource_id, next_id, advanced_at) values ($1, $2, $3)";
    if !repeat_passes(tx, &[id.0]).await?.is_empty() {
        return Ok(());
    }
    if let Some(next_id) = mark_chunk(tx, id, i64::MIN, FIRST_CHUNK, now).await? {
        tx.execute(BEGIN, params![id.0, next_id, now]).await?;
        tx.wake(Wake::FanOuts);
    }
    Ok(())
}

/// Stores that another pass follows those that are under way for these resources, which are locked in share
/// mode at least. Returns the resources of which one is.
pub(crate) async fn repeat_passes(
    tx: &Tx<'_>,
    resources: &[i64],
) -> Result<HashSet<i64>, StoreError> {
    const REPEAT: &str = "
        update fan_outs set is_repeated = 1 where resource_id in ({ids $1}) returning resource_id";
    let rows = tx.query(REPEAT, &[Value::Ints(resources.to_vec())]).await?;
    rows.into_iter().map(|mut row| row.int()).collect()
}

async fn continue_fan_out(
    tx: &Tx<'_>,
    id: ResourceId,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    const PLACE: &str = "select next_id from fan_outs where resource_id = $1 {for update}";
    const ADVANCE: &str = "
        update fan_outs set next_id = $2, advanced_at = $3 where resource_id = $1";
    const REPEAT: &str = "
        update fan_outs set next_id = $2, is_repeated = 0, advanced_at = $3
         where resource_id = $1 and is_repeated = 1";
    const END: &str = "delete from fan_outs where resource_id = $1";
    // An append waits, but claims and results of deliveries do not.
    row::lock_shared(tx, vec![id.0]).await?;
    let Some(mut place) = tx.first(PLACE, params![id.0]).await? else { return Ok(()) };
    if let Some(next_id) = mark_chunk(tx, id, place.int()?, CHUNK, now).await? {
        return tx.execute(ADVANCE, params![id.0, next_id, now]).await.map(drop);
    }
    match tx.execute(REPEAT, params![id.0, i64::MIN, now]).await? {
        0 => tx.execute(END, params![id.0]).await.map(drop),
        _ => Ok(()),
    }
}

/// Marks those of the next `limit` subscriptions with an id greater than `after` due that are behind
/// the log. Returns the last id of the chunk; `None` if there are no more.
async fn mark_chunk(
    tx: &Tx<'_>,
    id: ResourceId,
    after: i64,
    limit: i64,
    now: DateTime<Utc>,
) -> Result<Option<i64>, StoreError> {
    const READ: &str = concat!(
        "select s.id, case when ",
        is_ready!("$2"),
        "                  then 1 else 0 end, ",
        marked_columns!(),
        " from subscriptions s join resources r on r.id = s.resource_id
          where s.resource_id = $1 and s.id > $3
          order by s.id limit $4"
    );
    let params = params![id.0, now, after, limit];
    tx.join_by_keys().await?;
    let mut marks = Marks::default();
    let (mut count, mut last) = (0, after);
    for mut row in tx.query(READ, params).await? {
        (count, last) = (count + 1, row.int()?);
        if row.int()? == 1 {
            marks.add(&mut row)?;
        }
    }
    tx.plan_as_usual().await?;
    mark(tx, marks, now).await?;
    Ok((count == limit).then_some(last))
}
