//! Deleting minutes and hours that are too old, and the oldest hours of those that are too many.
//!
//! Periods that are dated in the future, from before the clock of the database was set back, stay until they are old:
//! what happens in them is added to them.

use chrono::{DateTime, Utc};

use crate::log::row::most;
use crate::{Db, Store};
use feedgate_core::store::StoreError;
use feedgate_core::traffic::{HOURS_RETENTION, MINUTES_RETENTION, SUBJECT_RETENTION, TrafficUnit};

/// The number of rows deleted in one transaction: few enough that no other transaction waits long.
const BATCH: i64 = 1_000;

/// The statements that delete old hours, and that find the newest of those that are too many.
macro_rules! trim {
    ($old:ident, $nth:ident, $table:literal, $key:literal) => {
        const $old: &str = concat!(
            "delete from ",
            $table,
            " where (",
            $key,
            ", at) in (select ",
            $key,
            ", at from ",
            $table,
            " where at < $1 order by at limit $2)"
        );
        const $nth: &str =
            concat!("select at from ", $table, " order by at desc limit 1 offset $1");
    };
}

trim!(OLD_OF_FEEDS, NTH_OF_FEEDS, "resource_traffic", "resource_id");
trim!(OLD_OF_HOSTS, NTH_OF_HOSTS, "host_traffic", "host");
trim!(OLD_OF_ACCOUNTS, NTH_OF_ACCOUNTS, "account_traffic", "account_id");

impl Store {
    /// Deletes minutes and hours that are too old or too many at `now`, a bounded number in each transaction, and
    /// keeps `most` hours of feeds, of hosts and of accounts. Returns how many were deleted.
    pub async fn trim_traffic(&self, now: DateTime<Utc>, most: usize) -> Result<u64, StoreError> {
        // Feeds are spread evenly over the cells.
        let of_cell = most.div_ceil(self.cells.len());
        let mut deleted =
            self.sum(|db| db.trim_subjects((OLD_OF_FEEDS, NTH_OF_FEEDS), now, of_cell)).await?;
        let units =
            [(TrafficUnit::Minute, MINUTES_RETENTION), (TrafficUnit::Hour, HOURS_RETENTION)];
        for (unit, retention) in units {
            deleted += self.shared.trim_gateway(unit, now - retention).await?;
        }
        for statements in [(OLD_OF_HOSTS, NTH_OF_HOSTS), (OLD_OF_ACCOUNTS, NTH_OF_ACCOUNTS)] {
            deleted += self.shared.trim_subjects(statements, now, most).await?;
        }
        Ok(deleted)
    }
}

impl Db {
    async fn trim_gateway(
        &self,
        unit: TrafficUnit,
        before: DateTime<Utc>,
    ) -> Result<u64, StoreError> {
        const OLD: &str = "
            delete from gateway_traffic
             where (unit_s, at) in (select unit_s, at from gateway_traffic
                                     where unit_s = $1 and at < $2 order by at limit $3)";
        let params = [unit.secs().into(), before.into(), BATCH.into()];
        self.write(move |tx| Box::pin(async move { tx.execute(OLD, &params).await })).await
    }

    async fn trim_subjects(
        &self,
        (old, nth): (&'static str, &'static str),
        now: DateTime<Utc>,
        most_rows: usize,
    ) -> Result<u64, StoreError> {
        let deleted = self.delete_in_batches(old, now - SUBJECT_RETENTION, BATCH).await?;
        Ok(deleted + self.delete_beyond((nth, old), most(most_rows), BATCH).await?)
    }
}
