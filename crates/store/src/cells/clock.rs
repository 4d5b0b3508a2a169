//! The clock: that of the shared schema decides, and the due times of the cells move before its own.

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::try_join_all;

use crate::cells::Cells;
use feedgate_core::ports::{ClockMark, ClockReading, DatabaseClock, StoreError};

#[async_trait]
impl DatabaseClock for Cells {
    async fn read_clock(&self, machine_time: DateTime<Utc>) -> Result<ClockReading, StoreError> {
        self.shared.read_clock(machine_time).await
    }

    async fn record_clock(&self, mark: &ClockMark) -> Result<(), StoreError> {
        self.shared.record_clock(mark).await
    }

    async fn record_clock_set(&self, generation: i64, by: TimeDelta) -> Result<(), StoreError> {
        self.shared.record_clock_set(generation, by).await
    }

    async fn move_due_times(&self, generation: i64, by: TimeDelta) -> Result<(), StoreError> {
        try_join_all(self.cells.iter().map(|cell| cell.move_due_times(generation, by))).await?;
        self.shared.move_due_times(generation, by).await
    }

    fn move_times_in_memory(&self, by: TimeDelta) {
        self.cells.iter().for_each(|cell| cell.move_times_in_memory(by));
    }
}
