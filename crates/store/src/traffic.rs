//! What happened in the minutes and hours of the last time, of all nodes together.
//!
//! A node adds what it has counted to the rows of the minute and the hour, under their locks, so that no count of
//! another node is lost. Feeds, hosts and accounts that are gone get no rows.

mod trimming;

use std::ops::Range;

use chrono::{DateTime, Utc};
use futures_util::future::try_join_all;

use crate::engine::row::Row;
use crate::engine::sql::{Value, params};
use crate::engine::sqlite::WriteSize;
use crate::engine::tx::Tx;
use crate::{Db, Store};
use feedgate_core::account::AccountId;
use feedgate_core::store::StoreError;
use feedgate_core::traffic::{
    QueueAges, TrafficBatch, TrafficCounts, TrafficPeriod, TrafficSubject, TrafficUnit,
};

/// The most rows that are written in one transaction: few enough that no other transaction waits long.
const PORTION: usize = 256;
/// The most periods that are read: more than there are minutes in a day, or hours in a month.
const MOST_PERIODS: i64 = 1_500;

/// The statements about a table, whose key is one column and the beginning of the period.
#[derive(Clone, Copy)]
struct TrafficTable {
    /// Inserts the rows that are missing, without counts.
    insert: &'static str,
    /// Locks and reads the rows.
    find: &'static str,
    /// Stores the counts.
    update: &'static str,
    /// Reads the periods of one key.
    read: &'static str,
}

macro_rules! traffic_table {
    ($name:ident, $table:literal, $key:literal) => {
        const $name: TrafficTable = {
            const INSERT: &str = concat!(
                "insert into ",
                $table,
                " (",
                $key,
                ", at) {values key, at} on conflict do nothing"
            );
            const FIND: &str = concat!(
                "select given.n, t.counts from {rows} join ",
                $table,
                " t on t.",
                $key,
                " = given.key and t.at = given.at order by given.n {for update of t}"
            );
            const UPDATE: &str = concat!(
                "update ",
                $table,
                " set counts = {given counts} {from rows} where ",
                $table,
                ".",
                $key,
                " = {given key} and ",
                $table,
                ".at = {given at}"
            );
            const READ: &str = concat!(
                "select at, counts from ",
                $table,
                " where ",
                $key,
                " = $1 and at >= $2 and at < $3 order by at limit $4"
            );
            TrafficTable { insert: INSERT, find: FIND, update: UPDATE, read: READ }
        };
    };
}

traffic_table!(GATEWAY, "gateway_traffic", "unit_s");
traffic_table!(FEEDS, "resource_traffic", "resource_id");
traffic_table!(HOSTS, "host_traffic", "host");
traffic_table!(ACCOUNTS, "account_traffic", "account_id");

/// Rows with what is added to them, in the order of their keys.
#[derive(Clone)]
struct TrafficRows {
    keys: Value,
    /// The beginnings of the periods.
    times: Vec<i64>,
    counts: Vec<TrafficCounts>,
}

/// What happened in minutes and hours.
impl Store {
    /// Adds what one node did at `at` to the minute and the hour of the gateway.
    pub async fn add_gateway_traffic(
        &self,
        total: &TrafficCounts,
        at: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let units = [TrafficUnit::Minute, TrafficUnit::Hour];
        let beginning = |unit: TrafficUnit| unit.beginning(at).timestamp_micros();
        let rows = TrafficRows {
            keys: Value::Ints(units.map(TrafficUnit::secs).to_vec()),
            times: units.map(beginning).to_vec(),
            counts: vec![total.clone(), total.clone()],
        };
        self.shared.write(move |tx| Box::pin(add(tx, GATEWAY, rows))).await
    }

    /// Adds what one node did at `at` to the hours of feeds, hosts of callbacks and accounts.
    pub async fn add_subject_traffic(
        &self,
        batch: TrafficBatch,
        at: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let hour = TrafficUnit::Hour.beginning(at).timestamp_micros();
        let feeds: Vec<_> = batch.feeds.into_counts().map(|(feed, it)| (feed.0, it)).collect();
        let by_cell = self.by_cell(feeds, |(feed, _)| *feed).into_iter();
        try_join_all(by_cell.map(|(db, feeds)| db.add_feeds(feeds, hour))).await?;
        let accounts: Vec<_> = batch.accounts.into_counts().collect();
        for portion in accounts.chunks(PORTION) {
            let rows = portion.iter().map(|(account, counts)| (account.0, counts.clone()));
            let rows: Vec<_> = rows.collect();
            let added = self
                .shared
                .write_sized(WriteSize::Large, move |tx| Box::pin(add_accounts(tx, rows, hour)));
            added.await?;
        }
        let hosts: Vec<_> = batch.hosts.into_counts().collect();
        for portion in hosts.chunks(PORTION) {
            let (hosts, counts): (Vec<_>, Vec<_>) = portion.iter().cloned().unzip();
            let rows =
                TrafficRows { keys: Value::Texts(hosts), times: vec![hour; counts.len()], counts };
            let added =
                self.shared.write_sized(WriteSize::Large, move |tx| Box::pin(add(tx, HOSTS, rows)));
            added.await?;
        }
        Ok(())
    }

    /// Returns the periods that begin in `range` and in which something happened, in their order.
    pub async fn traffic(
        &self,
        subject: &TrafficSubject,
        range: Range<DateTime<Utc>>,
    ) -> Result<Vec<TrafficPeriod>, StoreError> {
        let (db, table, key) = match subject {
            TrafficSubject::Gateway(unit) => (&*self.shared, GATEWAY, Value::from(unit.secs())),
            TrafficSubject::Feed(id) => (self.of_number(id.0), FEEDS, id.0.into()),
            TrafficSubject::CallbackHost(host) => (&*self.shared, HOSTS, host.as_str().into()),
            TrafficSubject::Account(id) => (&*self.shared, ACCOUNTS, id.0.into()),
        };
        let params = [key, range.start.into(), range.end.into(), MOST_PERIODS.into()];
        db.rows(table.read, &params).await?.into_iter().map(period).collect()
    }

    /// Returns how long the first items of the queues have been due at `now`.
    pub async fn queue_ages(&self, now: DateTime<Utc>) -> Result<QueueAges, StoreError> {
        let ages = self.each(|db| db.queue_ages(now)).await?.into_iter();
        Ok(ages.fold(QueueAges::default(), |all, cell| QueueAges {
            polls_s: all.polls_s.max(cell.polls_s),
            deliveries_s: all.deliveries_s.max(cell.deliveries_s),
        }))
    }
}

impl Db {
    async fn add_feeds(
        &self,
        feeds: Vec<(i64, TrafficCounts)>,
        hour: i64,
    ) -> Result<(), StoreError> {
        for portion in feeds.chunks(PORTION) {
            let portion = portion.to_vec();
            let added = self
                .write_sized(WriteSize::Large, move |tx| Box::pin(add_feeds(tx, portion, hour)));
            added.await?;
        }
        Ok(())
    }

    async fn queue_ages(&self, now: DateTime<Utc>) -> Result<QueueAges, StoreError> {
        const OLDEST: &str = "
            select (select due_at from resources where subscribers > 0 order by due_at limit 1),
                   (select due_at from backlogs order by due_at limit 1)";
        let rows = self.rows(OLDEST, &[]).await?;
        let Some(mut row) = rows.into_iter().next() else { return Ok(QueueAges::default()) };
        let mut age_s = || -> Result<u64, StoreError> {
            Ok(row.opt_time()?.map_or(0, |at| (now - at).num_seconds().max(0).unsigned_abs()))
        };
        Ok(QueueAges { polls_s: age_s()?, deliveries_s: age_s()? })
    }

    /// Deletes what is stored of an account that was removed.
    pub(crate) async fn delete_traffic(&self, account: AccountId) -> Result<(), StoreError> {
        const DELETE: &str = "delete from account_traffic where account_id = $1";
        let delete = self
            .write(move |tx| Box::pin(async move { tx.execute(DELETE, params![account.0]).await }));
        delete.await.map(drop)
    }
}

/// Adds to the hours of the feeds that exist.
async fn add_feeds(
    tx: &Tx<'_>,
    feeds: Vec<(i64, TrafficCounts)>,
    hour: i64,
) -> Result<(), StoreError> {
    // Without the lock, a feed that is deleted now would make the whole transaction fail.
    const EXISTING: &str =
        "select id from resources where id in ({ids $1}) order by id {for key share}";
    let rows = existing(tx, EXISTING, feeds, hour).await?;
    add(tx, FEEDS, rows).await
}

/// Adds to the hours of the accounts that were not removed.
async fn add_accounts(
    tx: &Tx<'_>,
    accounts: Vec<(i64, TrafficCounts)>,
    hour: i64,
) -> Result<(), StoreError> {
    // Without the lock, an account that is removed now would leave its hours behind.
    const EXISTING: &str = "
        select id from accounts
         where id in ({ids $1}) and removed_at is null order by id {for share}";
    let rows = existing(tx, EXISTING, accounts, hour).await?;
    add(tx, ACCOUNTS, rows).await
}

/// Returns the rows of those whose numbers `find` returns.
async fn existing(
    tx: &Tx<'_>,
    find: &str,
    mut subjects: Vec<(i64, TrafficCounts)>,
    hour: i64,
) -> Result<TrafficRows, StoreError> {
    let ids = Value::Ints(subjects.iter().map(|(id, _)| *id).collect());
    let found = tx.query(find, &[ids]).await?.into_iter().map(|mut row| row.int());
    let found = found.collect::<Result<Vec<_>, StoreError>>()?;
    subjects.retain(|(id, _)| found.binary_search(id).is_ok());
    let (ids, counts): (Vec<_>, Vec<_>) = subjects.into_iter().unzip();
    Ok(TrafficRows { keys: Value::Ints(ids), times: vec![hour; counts.len()], counts })
}

/// Adds counts to the rows of a table, and creates those that are missing.
async fn add(tx: &Tx<'_>, table: TrafficTable, rows: TrafficRows) -> Result<(), StoreError> {
    let TrafficRows { keys, times, mut counts } = rows;
    let places = Value::Ints((0..).take(counts.len()).collect());
    let mut columns = vec![("n", places), ("key", keys), ("at", Value::Ints(times))];
    tx.join_by_keys().await?;
    tx.execute_rows(table.insert, &[], &columns).await?;
    for mut row in tx.query_rows(table.find, &[], &columns).await? {
        let place = row.small()? as usize;
        if let Some(counts) = counts.get_mut(place) {
            counts.add(&read_counts(&mut row)?);
        }
    }
    let encoded = counts.iter().map(TrafficCounts::encode).collect();
    columns.push(("counts", Value::Blobs(encoded)));
    tx.execute_rows(table.update, &[], &columns).await.map(drop)
}

fn period(mut row: Row) -> Result<TrafficPeriod, StoreError> {
    Ok(TrafficPeriod { at: row.time()?, counts: read_counts(&mut row)? })
}

fn read_counts(row: &mut Row) -> Result<TrafficCounts, StoreError> {
    let bytes = row.blob()?;
    TrafficCounts::decode(&bytes)
        .ok_or_else(|| StoreError::Corrupt("these bytes are no counts of traffic".to_owned()))
}
