//! The store as a whole: its gauges and size, whether it works, its signals and its end.

use std::time::Instant;

use chrono::{DateTime, Utc};
use futures_util::future::{join_all, try_join_all};

use crate::engine::migrate;
use crate::engine::sql::params;
use crate::{Db, Store};
use feedgate_core::store::{
    CellQueues, Gauges, OldestDue, StoreError, TransactionObserver, WakeSignals,
};

/// The store as a whole.
impl Store {
    /// Returns the gauges of `/metrics` at `now`.
    pub async fn gauges(&self, now: DateTime<Utc>) -> Result<Gauges, StoreError> {
        if let Some(db) = self.only_cell() {
            return db.gauges(now).await;
        }
        let gauges = self.each(|db| db.gauges(now)).await?;
        let queues = |cell: &Gauges| CellQueues { due: cell.due, oldest_due: cell.oldest_due };
        let cells = gauges.iter().map(queues).collect();
        let all = Gauges { cells, ..Gauges::default() };
        Ok(gauges.into_iter().fold(all, |all, cell| Gauges {
            resources: all.resources + cell.resources,
            failing: all.failing + cell.failing,
            subscriptions: all.subscriptions + cell.subscriptions,
            due: all.due + cell.due,
            oldest_due: all.oldest_due.max(cell.oldest_due),
            pending_verifications: all.pending_verifications + cell.pending_verifications,
            cells: all.cells,
        }))
    }

    /// Returns the size of the database in bytes: of the file of SQLite without its write-ahead log,
    /// or of the whole database on the PostgreSQL server that this node is connected to.
    pub async fn size_bytes(&self) -> Result<u64, StoreError> {
        // All cells are in one database.
        const SIZE: &str = "
            select {postgres pg_database_size(current_database())}
                   {sqlite page_count * page_size from pragma_page_count(), pragma_page_size()}";
        self.shared.count(SIZE, params![]).await
    }

    /// Calls `observer` with every transaction that ends from now on. Only the first call of this
    /// function has an effect.
    pub fn observe_transactions(&self, observer: TransactionObserver) {
        for db in self.databases() {
            // A store that is observed already keeps its observer.
            db.transaction_observer.set(observer.clone()).unwrap_or_default();
        }
    }

    /// Checks that the store accepts writes and has the schema of this version.
    pub async fn ready(&self) -> Result<(), StoreError> {
        try_join_all(self.databases().map(|db| db.ready())).await.map(drop)
    }

    /// Returns the signals that wake the workers.
    pub fn wake_signals(&self) -> WakeSignals {
        self.shared.wake_signals.clone()
    }

    /// Finishes pending writes and closes the store, which cannot be used afterwards.
    pub async fn close(&self) {
        // The last results of polls in the cells give hosts back in the shared database.
        join_all(self.cells.iter().map(|cell| cell.shut())).await;
        if self.only_cell().is_none() {
            self.shared.shut().await;
        }
    }
}

impl Db {
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

    async fn ready(&self) -> Result<(), StoreError> {
        let known = self.schema_version;
        let checked = self.write(move |tx| Box::pin(migrate::check(tx, known))).await;
        // If the database refused this write too, the reason is known here.
        self.write_health.check(Instant::now())?;
        checked
    }
}
