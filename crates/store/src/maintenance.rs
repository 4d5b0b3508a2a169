//! Periodic maintenance, each task run by one node at a time, and the counts for `/metrics`.

mod old_rows;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::delivery::kept_cursors::{self, EndedLease};
use super::delivery::row::account;
use super::delivery::subscriber_counts::{CountedSubscription, count_off};
use super::engine::migrate;
use super::engine::row::Row;
use super::engine::sql::{Value, params};
use super::engine::sqlite::WriteSize;
use super::engine::tx::Tx;
use super::resources::forget::{self, Unwatched};
use super::resources::{details, row};
use crate::Db;
use feedgate_core::account::AccountId;
use feedgate_core::ports::{
    DroppedSubscription, Gauges, Maintenance, OldestDue, PruneBefore, StoreError,
    TransactionObserver, WakeSignals,
};
use feedgate_core::status::Status;
use feedgate_core::subscription::Format;

/// The number of rows changed in one transaction: few enough that no other transaction waits long.
const BATCH: i64 = 1_000;

#[async_trait]
impl Maintenance for Db {
    async fn claim_maintenance_task(
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
        let claimed = self.write(move |tx| {
            Box::pin(async move { tx.execute(CLAIM, params![name, now + every, now]).await })
        });
        Ok(claimed.await? > 0)
    }

    async fn drop_expired(
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
        self.write(move |tx| {
            Box::pin(async move {
                kept_cursors::forget_cursors(tx, now).await?;
                let (dropped, ended) = drop_batch(tx, EXPIRED, END, now.timestamp_micros()).await?;
                kept_cursors::keep_cursors(tx, ended.into_iter().zip(&dropped).collect(), now)
                    .await?;
                Ok(dropped)
            })
        })
        .await
    }

    async fn drop_failing(&self, errors: u32) -> Result<Vec<DroppedSubscription>, StoreError> {
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
        self.drop_batch(FAILING, END, errors.into()).await
    }

    async fn drop_ownerless(
        &self,
        since: DateTime<Utc>,
    ) -> Result<Vec<DroppedSubscription>, StoreError> {
        for account in self.removed_accounts(since).await? {
            let dropped = self.drop_owned(account).await?;
            if !dropped.is_empty() {
                return Ok(dropped);
            }
        }
        Ok(Vec::new())
    }

    async fn pause_deactivated(&self, since: DateTime<Utc>) -> Result<u64, StoreError> {
        let mut paused = 0;
        for account in self.deactivated_accounts(since).await? {
            paused += self.pause_owned(account).await?;
        }
        Ok(paused)
    }

    async fn measure(&self, before: DateTime<Utc>, now: DateTime<Utc>) -> Result<u64, StoreError> {
        let mut measured = 0;
        loop {
            let some = self.write(move |tx| Box::pin(measure(tx, before, now))).await?;
            measured += some;
            if some < BATCH as u64 {
                return Ok(measured);
            }
        }
    }

    async fn prune(&self, before: &PruneBefore) -> Result<u64, StoreError> {
        old_rows::delete(self, before).await
    }

    async fn forget_unwatched(
        &self,
        before: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<u64, StoreError> {
        while self.write(move |tx| Box::pin(forget::note(tx, now, BATCH))).await? > 0 {}
        self.forget(Unwatched::All, before, now).await
    }

    async fn forget_never_watched(
        &self,
        before: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<u64, StoreError> {
        self.forget(Unwatched::NeverWatched, before, now).await
    }

    async fn gauges(&self, now: DateTime<Utc>) -> Result<Gauges, StoreError> {
        const GAUGES: &str = "
            select (select count(*) from resources where subscribers > 0),
                   (select count(*) from resources where subscribers > 0 and failing = 1),
                   (select count(*) from subscriptions where lease_until > $1),
                   (select cast(coalesce(sum(size), 0) as bigint) from backlogs),
                   (select count(*) from intents),
                   (select min(due_at) from resources where subscribers > 0),
                   (select min(due_at) from backlogs),
                   (select min(due_at) from intents),
                   (select min(due_at) from forwarded_pings)";
        let rows = self.rows(GAUGES, params![now]).await?;
        let Some(mut row) = rows.into_iter().next() else { return Ok(Gauges::default()) };
        let (resources, failing) = (row.count()?, row.count()?);
        let (subscriptions, due) = (row.count()?, row.count()?);
        let pending_verifications = row.count()?;
        let mut age_s = || -> Result<u64, StoreError> {
            Ok(row.opt_time()?.map_or(0, |at| (now - at).num_seconds().max(0) as u64))
        };
        let oldest_due = OldestDue {
            polls_s: age_s()?,
            deliveries_s: age_s()?,
            verifications_s: age_s()?,
            forwarded_pings_s: age_s()?,
        };
        Ok(Gauges {
            resources,
            failing,
            subscriptions,
            due,
            oldest_due,
            pending_verifications,
            cells: Vec::new(),
        })
    }

    async fn size_bytes(&self) -> Result<u64, StoreError> {
        const SIZE: &str = "
            select {postgres pg_database_size(current_database())}
                   {sqlite page_count * page_size from pragma_page_count(), pragma_page_size()}";
        let rows = self.rows(SIZE, params![]).await?;
        rows.into_iter().next().map_or(Ok(0), |mut row| row.count())
    }

    fn observe_transactions(&self, observer: TransactionObserver) {
        // A store that is observed already keeps its observer.
        self.transaction_observer.set(observer).unwrap_or_default();
    }

    async fn ready(&self) -> Result<(), StoreError> {
        let known = self.schema_version;
        let checked = self.write(move |tx| Box::pin(migrate::check(tx, known))).await;
        // If the database refused this write too, the reason is known here.
        self.write_health.check(Instant::now())?;
        checked
    }

    fn wake_signals(&self) -> WakeSignals {
        self.wake_signals.clone()
    }

    async fn close(&self) {
        self.shut().await;
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

    /// Runs a statement that deletes up to `$2` rows from before `$1` until it deletes fewer than
    /// `batch`, each time in a transaction of its own. Returns how many rows it deleted.
    pub(crate) async fn delete_in_batches(
        &self,
        sql: &'static str,
        before: DateTime<Utc>,
        batch: i64,
    ) -> Result<u64, StoreError> {
        let mut deleted = 0;
        loop {
            let delete = self.write(move |tx| {
                Box::pin(async move { tx.execute(sql, params![before, batch]).await })
            });
            let some = delete.await?;
            deleted += some;
            if some < batch as u64 {
                return Ok(deleted);
            }
        }
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
pub(crate) async fn drop_owned(
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
