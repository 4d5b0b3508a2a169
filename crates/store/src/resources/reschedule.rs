//! Rescheduling due resources after an unusual event: a standstill, or a network outage on this side.

use chrono::{DateTime, Utc};

use crate::engine::row::Row;
use crate::engine::sql::{Value, params};
use crate::engine::tx::{Tx, Wake};
use crate::resources::row;
use crate::{Db, Store};
use feedgate_core::backlog_smoothing::{self, Overdue};
use feedgate_core::resource::ResourceId;
use feedgate_core::store::StoreError;

/// The most resources rescheduled at once: the rest stays overdue, and comes after them.
const MOST: i64 = 1_000_000;
/// The number of rows changed in one transaction: few enough that no other transaction waits long.
const BATCH: usize = 1_000;

/// Changes the due times of resources after unusual events.
impl Store {
    /// Spreads overdue polls over time, if there is a backlog (P46). Returns the number of
    /// resources that were rescheduled.
    pub async fn release_backlog(&self, now: DateTime<Utc>) -> Result<u64, StoreError> {
        self.sum(|db| async move {
            let found = db.read(move |tx| Box::pin(overdue(tx, now))).await?;
            let (overdue, per_day) = found;
            let released = backlog_smoothing::release(overdue, per_day, now);
            for batch in released.chunks(BATCH) {
                let batch = batch.to_vec();
                db.write(move |tx| Box::pin(async move { put_at(tx, &batch, now).await })).await?;
            }
            Ok(released.len() as u64)
        })
        .await
    }

    /// Makes those of `ids` due at `at` that would be polled later. Returns their number.
    pub async fn poll_soon(
        &self,
        ids: &[ResourceId],
        at: DateTime<Utc>,
    ) -> Result<u64, StoreError> {
        let mut rescheduled = 0;
        for (db, ids) in self.by_cell(ids.to_vec(), |id| id.0) {
            rescheduled += db.poll_soon(&ids, at).await?;
        }
        Ok(rescheduled)
    }
}

impl Db {
    async fn poll_soon(&self, ids: &[ResourceId], at: DateTime<Utc>) -> Result<u64, StoreError> {
        const RESCHEDULE_NOW: &str = "
            update resources
               set due_at = $1, next_fetch = $1
             where id in ({ids $2}) and claimed_until is null and due_at > $1";
        let ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
        let rescheduled = self.write(move |tx| {
            Box::pin(async move {
                row::lock(tx, ids.clone()).await?;
                let rescheduled =
                    tx.execute(RESCHEDULE_NOW, &[Value::from(at), Value::Ints(ids)]).await?;
                tx.wake(Wake::Resources);
                Ok(rescheduled)
            })
        });
        rescheduled.await
    }
}

/// Returns the overdue resources, if they are more than a few, and the normal number of polls a
/// day.
async fn overdue(tx: &Tx<'_>, now: DateTime<Utc>) -> Result<(Vec<Overdue>, f64), StoreError> {
    const MANY: &str = "
        select count(*)
          from (select 1 from resources where subscribers > 0 and due_at <= $1 limit $2) few";
    // A resource that was never polled counts with an interval of an hour.
    const NORMAL: &str = "
        select cast(coalesce(sum(86400 / case when period_s > 0 then period_s else 3600 end), 0)
                    as bigint)
          from resources where subscribers > 0";
    const OVERDUE: &str = "
        select id, due_at, period_s, subscribers, pinged
          from resources
         where subscribers > 0 and due_at <= $1
           and (claimed_until is null or claimed_until <= $1)
         order by due_at
         limit $2";
    let few = backlog_smoothing::FEW as i64 + 1;
    let many = tx.first(MANY, params![now, few]).await?;
    if many.map_or(Ok(0), |mut row| row.int())? < few {
        return Ok((Vec::new(), 0.0));
    }
    let normal = tx.first(NORMAL, &[]).await?;
    let per_day = normal.map_or(Ok(0), |mut row| row.int())? as f64;
    let rows = tx.query(OVERDUE, params![now, MOST]).await?;
    let overdue = rows.into_iter().map(|mut row| read(&mut row));
    Ok((overdue.collect::<Result<_, _>>()?, per_day))
}

fn read(row: &mut Row) -> Result<Overdue, StoreError> {
    Ok(Overdue {
        id: ResourceId(row.int()?),
        due_at: row.time()?,
        period_s: row.small()?,
        subscribers: row.small()?,
        pinged: row.int()? == 1,
    })
}

/// Sets the due time of each resource, unless another node has claimed it meanwhile.
async fn put_at(
    tx: &Tx<'_>,
    times: &[(ResourceId, DateTime<Utc>)],
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    const PUT: &str = "
        update resources
           set due_at = {given at}
          {from rows}
         where resources.id = {given id} and due_at <= $1
           and (claimed_until is null or claimed_until <= $1)";
    let ids: Vec<i64> = times.iter().map(|(id, _)| id.0).collect();
    row::lock(tx, ids.clone()).await?;
    let columns = [
        ("id", Value::Ints(ids)),
        ("at", Value::Ints(times.iter().map(|(_, at)| at.timestamp_micros()).collect())),
    ];
    tx.execute_rows(PUT, params![now], &columns).await.map(drop)
}
