//! Maintenance of all cells: each task is claimed in the shared schema and run in every cell.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::future::{join_all, try_join_all};

use crate::cells::Cells;
use feedgate_core::ports::{
    CellQueues, DroppedSubscription, Gauges, Maintenance, PruneBefore, StoreError,
    TransactionObserver, WakeSignals,
};

#[async_trait]
impl Maintenance for Cells {
    async fn claim_maintenance_task(
        &self,
        name: &str,
        now: DateTime<Utc>,
        every: Duration,
    ) -> Result<bool, StoreError> {
        self.shared.claim_maintenance_task(name, now, every).await
    }

    async fn drop_expired(
        &self,
        now: DateTime<Utc>,
    ) -> Result<Vec<DroppedSubscription>, StoreError> {
        for cell in &self.cells {
            let dropped = cell.drop_expired(now).await?;
            if !dropped.is_empty() {
                return Ok(dropped);
            }
        }
        Ok(Vec::new())
    }

    async fn drop_failing(&self, errors: u32) -> Result<Vec<DroppedSubscription>, StoreError> {
        for cell in &self.cells {
            let dropped = cell.drop_failing(errors).await?;
            if !dropped.is_empty() {
                return Ok(dropped);
            }
        }
        Ok(Vec::new())
    }

    async fn drop_ownerless(
        &self,
        since: DateTime<Utc>,
    ) -> Result<Vec<DroppedSubscription>, StoreError> {
        for account in self.shared.removed_accounts(since).await? {
            for cell in &self.cells {
                let dropped = cell.drop_owned(account).await?;
                if !dropped.is_empty() {
                    return Ok(dropped);
                }
            }
        }
        Ok(Vec::new())
    }

    async fn pause_deactivated(&self, since: DateTime<Utc>) -> Result<u64, StoreError> {
        let mut paused = 0;
        for account in self.shared.deactivated_accounts(since).await? {
            let of_cells = self.cells.iter().map(|cell| cell.pause_owned(account));
            paused += try_join_all(of_cells).await?.into_iter().sum::<u64>();
        }
        Ok(paused)
    }

    async fn measure(&self, before: DateTime<Utc>, now: DateTime<Utc>) -> Result<u64, StoreError> {
        let measured = self.cells.iter().map(|cell| cell.measure(before, now));
        Ok(try_join_all(measured).await?.into_iter().sum())
    }

    async fn prune(&self, before: &PruneBefore) -> Result<u64, StoreError> {
        let all = self.cells.iter().chain([&self.shared]);
        Ok(try_join_all(all.map(|cell| cell.prune(before))).await?.into_iter().sum())
    }

    async fn forget_unwatched(
        &self,
        before: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<u64, StoreError> {
        let forgotten = self.cells.iter().map(|cell| cell.forget_unwatched(before, now));
        Ok(try_join_all(forgotten).await?.into_iter().sum())
    }

    async fn forget_never_watched(
        &self,
        before: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<u64, StoreError> {
        let forgotten = self.cells.iter().map(|cell| cell.forget_never_watched(before, now));
        Ok(try_join_all(forgotten).await?.into_iter().sum())
    }

    async fn gauges(&self, now: DateTime<Utc>) -> Result<Gauges, StoreError> {
        let gauges = try_join_all(self.cells.iter().map(|cell| cell.gauges(now))).await?;
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

    async fn size_bytes(&self) -> Result<u64, StoreError> {
        self.shared.size_bytes().await // all cells are in one database
    }

    fn observe_transactions(&self, observer: TransactionObserver) {
        for db in self.cells.iter().chain([&self.shared]) {
            db.observe_transactions(observer.clone());
        }
    }

    async fn ready(&self) -> Result<(), StoreError> {
        let all = self.cells.iter().chain([&self.shared]);
        try_join_all(all.map(|cell| cell.ready())).await.map(drop)
    }

    fn wake_signals(&self) -> WakeSignals {
        self.shared.wake_signals()
    }

    async fn close(&self) {
        join_all(self.cells.iter().map(|cell| cell.close())).await;
        self.shared.close().await;
    }
}
