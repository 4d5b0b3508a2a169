//! Periodic maintenance, each task run by one node at a time.

mod old_rows;

use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::future::try_join_all;

use super::delivery::kept_cursors::{self, EndedLease};
use super::delivery::row::account;
use super::delivery::subscriber_counts::{CountedSubscription, count_off};
use super::engine::row::Row;
use super::engine::sql::{Value, params};
use super::engine::sqlite::WriteSize;
use super::engine::tx::Tx;
use super::resources::forget::{self, Unwatched};
use super::resources::{details, row};
use crate::{Db, Store};
use feedgate_core::account::AccountId;
use feedgate_core::status::Status;
use feedgate_core::store::{DroppedSubscription, PruneBefore, StoreError};
use feedgate_core::subscription::Format;

/// The number of rows changed in one transaction: few enough that no other transaction waits long.
const BATCH: i64 = 1_000;

/// Maintenance tasks, each of which is run by one node at a time.
impl Store {
    /// Claims the task `name`, which runs once in `every` by the clock of the database. Returns
    /// whether this node has to run it. If the node fails, the task runs at its next time.
    pub async fn claim_maintenance_task(
        &self,
        name: &str,
        now: DateTime<Utc>,
        every: Duration,
    ) -> Result<bool, StoreError> {
        const CLAIM: &str = "
            insert into maintenance_tasks (name, claimed_until) values ($1, $2)
                on conflict (name) do update set claimed_until = excluded.claimed_until
             where maintenance_tasks.claimed_until <= $3";
        let name = name.to_owned();
        let claimed = self.shared.write(move |tx| {
            Box::pin(async move { tx.execute(CLAIM, params![name, now + every, now]).await })
        });
        Ok(claimed.await? > 0)
    }

    /// Deletes a batch of subscriptions whose lease has ended, and returns them; an empty result
    /// means that none are left.
    pub async fn drop_expired(
        &self,
        now: DateTime<Utc>,
    ) -> Result<Vec<DroppedSubscription>, StoreError> {
        const EXPIRED: &str = "
            select resource_id, id from subscriptions
             where lease_until <= $1 order by lease_until limit $2";

        const END: &str = "
            delete from subscriptions
             where (resource_id, id) in (select given.resource_id, given.id from {rows})
               and lease_until <= $1
            returning resource_id, account_id, callback, protocol, failed_changes,
                      alias, format, cursor";
        self.first_some(|db| async move {
            db.write(move |tx| {
                Box::pin(async move {
                    kept_cursors::forget_cursors(tx, now).await?;
                    let (dropped, ended) =
                        drop_batch(tx, EXPIRED, END, now.timestamp_micros()).await?;
                    kept_cursors::keep_cursors(tx, ended.into_iter().zip(&dropped).collect(), now)
                        .await?;
                    Ok(dropped)
                })
            })
            .await
        })
        .await
    }

    /// Deletes a batch of rssCloud subscriptions with at least `errors` consecutive failures (seed
    /// 000: "after three consecutive errors"); an empty result means that none are left.
    pub async fn drop_failing(&self, errors: u32) -> Result<Vec<DroppedSubscription>, StoreError> {
        const FAILING: &str = "
            select resource_id, id from subscriptions
             where failed_changes >= $1 and failed_changes > 0 and protocol <> 'websub'
             order by failed_changes, id limit $2";

        const END: &str = "
            delete from subscriptions
             where (resource_id, id) in (select given.resource_id, given.id from {rows})
               and failed_changes >= $1
            returning resource_id, account_id, callback, protocol, failed_changes,
                      alias, format, cursor";
        self.first_some(|db| async move { db.drop_batch(FAILING, END, errors.into()).await }).await
    }

    /// Deletes the files, the hours and a batch of the subscriptions of accounts that were removed after `since`,
    /// and returns the subscriptions; an empty result means that none are left. There are some if an
    /// account was removed while one of its subscriptions was verified, or if removing it was
    /// interrupted.
    pub async fn drop_ownerless(
        &self,
        since: DateTime<Utc>,
    ) -> Result<Vec<DroppedSubscription>, StoreError> {
        for account in self.shared.removed_accounts(since).await? {
            self.shared.delete_files(account).await?;
            self.shared.delete_traffic(account).await?;
            let dropped = self.first_some(|db| db.drop_owned(account)).await?;
            if !dropped.is_empty() {
                return Ok(dropped);
            }
        }
        Ok(Vec::new())
    }

    /// Pauses the subscriptions of accounts that were deactivated after `since`. There are some if an
    /// account was deactivated while one of its subscriptions was verified. Returns their number.
    pub async fn pause_deactivated(&self, since: DateTime<Utc>) -> Result<u64, StoreError> {
        let mut paused = 0;
        for account in self.shared.deactivated_accounts(since).await? {
            paused += self.sum(|db| db.pause_owned(account)).await?;
        }
        Ok(paused)
    }

    /// Updates velocity and counts of resources last measured before `before`. Returns their
    /// number.
    pub async fn measure(
        &self,
        before: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<u64, StoreError> {
        self.sum(|db| async move {
            let mut measured = 0;
            loop {
                let some = db.write(move |tx| Box::pin(measure(tx, before, now))).await?;
                measured += some;
                if some < BATCH as u64 {
                    return Ok(measured);
                }
            }
        })
        .await
    }

    /// Deletes rows that have reached the end of their retention, a bounded number in each
    /// transaction. Returns how many.
    pub async fn prune(&self, before: &PruneBefore) -> Result<u64, StoreError> {
        let pruned = self.databases().map(|db| old_rows::delete(db, before));
        Ok(try_join_all(pruned).await?.into_iter().sum())
    }

    /// Deletes resources that have had no subscription since `before`, with everything stored for
    /// them, and marks resources that are without subscription at `now` for the first time. Returns
    /// the number of deleted resources (S44).
    pub async fn forget_unwatched(
        &self,
        before: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<u64, StoreError> {
        self.sum(|db| async move {
            while db.write(move |tx| Box::pin(forget::note(tx, now, BATCH))).await? > 0 {}
            db.forget(Unwatched::All, before, now).await
        })
        .await
    }

    /// Deletes resources that were created at `before` or earlier, have never had a subscriber, and
    /// are not being polled at `now`. Returns how many.
    pub async fn forget_never_watched(
        &self,
        before: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<u64, StoreError> {
        self.sum(|db| db.forget(Unwatched::NeverWatched, before, now)).await
    }
}

impl Db {
    /// Drops unwatched resources, a few in each transaction. Returns how many.
    async fn forget(
        &self,
        which: Unwatched,
        before: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<u64, StoreError> {
        let mut dropped = 0;
        loop {
            let forget = self.write_sized(WriteSize::Large, move |tx| {
                Box::pin(forget::forget(tx, which, before, now))
            });
            match forget.await? {
                None => {}
                Some(0) => return Ok(dropped),
                Some(some) => dropped += some,
            }
        }
    }

    /// Runs a statement that deletes up to `$2` rows within the bound `$1` until it deletes fewer than
    /// `batch`, each time in a transaction of its own. Returns how many rows it deleted.
    pub(crate) async fn delete_in_batches(
        &self,
        sql: &'static str,
        bound: impl Into<Value>,
        batch: i64,
    ) -> Result<u64, StoreError> {
        let (params, mut deleted) = ([bound.into(), batch.into()], 0);
        loop {
            let params = params.clone();
            let delete =
                self.write(move |tx| Box::pin(async move { tx.execute(sql, &params).await }));
            let some = delete.await?;
            deleted += some;
            if some < batch as u64 {
                return Ok(deleted);
            }
        }
    }

    /// Deletes the oldest rows of those that are more than `most`, as [`Db::delete_in_batches`] does with those that
    /// are older than a time. `nth` returns the time of the row that comes after the `$1` newest. It reads that
    /// many rows of an index, and so is run by itself, where no transaction waits for it.
    pub(crate) async fn delete_beyond(
        &self,
        (nth, old): (&'static str, &'static str),
        most: i64,
        batch: i64,
    ) -> Result<u64, StoreError> {
        let Some(mut row) = self.rows(nth, params![most]).await?.into_iter().next() else {
            return Ok(0);
        };
        self.delete_in_batches(old, row.int()? + 1, batch).await
    }

    /// Ends up to [`BATCH`] subscriptions of an account, and returns them.
    pub(crate) async fn drop_owned(
        &self,
        account: AccountId,
    ) -> Result<Vec<DroppedSubscription>, StoreError> {
        self.write(move |tx| Box::pin(drop_owned(tx, account))).await
    }

    /// Ends up to [`BATCH`] subscriptions that `find` returns, if `end` still selects them once
    /// their resources are locked. Both statements take `bound` as `$1`.
    async fn drop_batch(
        &self,
        find: &'static str,
        end: &'static str,
        bound: i64,
    ) -> Result<Vec<DroppedSubscription>, StoreError> {
        let dropped = self.write(move |tx| Box::pin(drop_batch(tx, find, end, bound)));
        Ok(dropped.await?.0)
    }
}

/// Ends up to [`BATCH`] subscriptions of an account, and returns them.
async fn drop_owned(
    tx: &Tx<'_>,
    account: AccountId,
) -> Result<Vec<DroppedSubscription>, StoreError> {
    const OWNED: &str = "
        select resource_id, id from subscriptions
         where account_id = $1 order by id limit $2";
    // No index is of a sum, so that the rows are found by their keys.
    const END: &str = "
        delete from subscriptions
         where (resource_id, id) in (select given.resource_id, given.id from {rows})
           and account_id + 0 = $1
        returning resource_id, account_id, callback, protocol, failed_changes,
                      alias, format, cursor";
    Ok(drop_batch(tx, OWNED, END, account.0).await?.0)
}

/// Ends subscriptions as [`Db::drop_batch`] does. Returns also where each of them stood.
async fn drop_batch(
    tx: &Tx<'_>,
    find: &'static str,
    end: &'static str,
    bound: i64,
) -> Result<(Vec<DroppedSubscription>, Vec<EndedLease>), StoreError> {
    const TOPICS: &str = "select id, topic from resources where id in ({ids $1})";
    let (mut on, mut ids) = (Vec::new(), Vec::new());
    for mut row in tx.query(find, params![bound, BATCH]).await? {
        on.push(row.int()?);
        ids.push(row.int()?);
    }
    row::lock(tx, on.clone()).await?;
    let mut topics = HashMap::new();
    for mut row in tx.query(TOPICS, &[Value::Ints(on.clone())]).await? {
        topics.insert(row.int()?, row.text()?);
    }
    let columns = [("resource_id", Value::Ints(on)), ("id", Value::Ints(ids))];
    let (mut gone, mut dropped, mut ended) = (Vec::new(), Vec::new(), Vec::new());
    for mut row in tx.query_rows(end, params![bound], &columns).await? {
        gone.push(CountedSubscription::read(&mut row.clone())?);
        let resource = row.int()?;
        dropped.push(DroppedSubscription {
            account: account(&mut row)?,
            topic: topics.get(&resource).cloned().unwrap_or_default(),
            callback: row.text()?,
            protocol: row.text()?,
            errors: row.small()?,
        });
        ended.push(EndedLease {
            resource,
            alias: row.text()?,
            format: row.word(Format::from_word)?,
            cursor: row.int()?,
        });
    }
    count_off(tx, gone).await?;
    Ok((dropped, ended))
}

/// Ends the maintenance cycle of up to [`BATCH`] resources: the number of entries that a resource
/// gained in the cycle is its velocity.
async fn measure(
    tx: &Tx<'_>,
    before: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<u64, StoreError> {
    const NEXT: &str = "
        select id from resources where measured_at < $1 order by measured_at limit $2";
    const READ: &str = "
        select resource_id, status from resource_details
         where resource_id in ({ids $1}) order by resource_id";
    const KEEP: &str = "
        update resource_details set status = {given status}
          {from rows}
         where resource_details.resource_id = {given id}";
    const MEASURED: &str = "update resources set measured_at = $1 where id in ({ids $2})";
    let next = tx.query(NEXT, params![before, BATCH]).await?;
    let next = next.into_iter().map(|mut row| row.int());
    let next = next.collect::<Result<Vec<_>, StoreError>>()?;
    row::lock(tx, next.clone()).await?;

    let (mut ids, mut texts) = (Vec::new(), Vec::new());
    for mut row in tx.query(READ, &[Value::Ints(next.clone())]).await? {
        let (id, status) = read_status(&mut row)?;
        ids.push(id);
        texts.push(details::json(&Status {
            velocity: status.entries_count_since_last_maintenance,
            entries_count_since_last_maintenance: 0,
            last_maintenance_at: now,
            ..status
        }));
    }
    let columns = [("id", Value::Ints(ids)), ("status", Value::Texts(texts))];
    tx.execute_rows(KEEP, &[], &columns).await?;
    tx.execute(MEASURED, &[Value::from(now), Value::Ints(next)]).await
}

fn read_status(row: &mut Row) -> Result<(i64, Status), StoreError> {
    Ok((row.int()?, row.json()?))
}
