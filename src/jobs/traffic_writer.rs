//! Stores once a minute what this node has counted, so that charts show what all nodes did.
//!
//! Counting writes nothing: each minute is a few rows, however much happened in it. A node that is killed loses the
//! counts of the minute in progress; one that is stopped stores them.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::jobs::failure_log::FailureLog;
use crate::jobs::runner::{self, Stopwatch};
use crate::metrics::Metrics;
use feedgate_core::store::StoreError;
use feedgate_store::Store;

/// The time between two writes.
const INTERVAL: Duration = Duration::from_secs(60);

/// Stores what a node has counted.
#[derive(Clone)]
pub struct TrafficWriter {
    store: Arc<Store>,
    metrics: Metrics,
}

impl TrafficWriter {
    /// Creates the writer of what `metrics` count.
    pub fn new(store: Arc<Store>, metrics: Metrics) -> TrafficWriter {
        TrafficWriter { store, metrics }
    }

    /// Stores each minute when it is over, until `stop` is cancelled.
    pub async fn run(self, stop: CancellationToken) {
        let mut failures = FailureLog::new("storing what this node has counted");
        let mut since = Stopwatch::start();
        while stop.run_until_cancelled(sleep(rest_of_minute(runner::now()))).await.is_some() {
            let now = runner::now();
            // Most of what was counted happened before the minute that has just begun.
            let half = since.elapsed().min(INTERVAL) / 2;
            since = Stopwatch::start();
            let noted = self.note_ages(now).await;
            failures.note(self.write(now - half).await.and(noted));
        }
    }

    /// Stores what was counted since the last write, as of the minute of `at`. What is counted of the gateway is
    /// counted again if that fails; what is counted of feeds, hosts and accounts is lost.
    pub async fn write(&self, at: DateTime<Utc>) -> Result<(), StoreError> {
        let batch = self.metrics.traffic().take_counted();
        if batch.total.is_empty() {
            return Ok(());
        }
        let stored = self.store.add_gateway_traffic(&batch.total, at).await;
        if stored.is_err() {
            self.metrics.traffic().count_again(&batch.total);
        }
        stored?;
        self.store.add_subject_traffic(batch, at).await
    }

    /// Stores what was counted since the last write, once nothing more can happen.
    pub async fn close(&self) {
        if let Err(err) = self.write(runner::now()).await {
            warn!(error = &err as &dyn Error, "the last counts of this node were not stored");
        }
    }

    async fn note_ages(&self, now: DateTime<Utc>) -> Result<(), StoreError> {
        let ages = self.store.queue_ages(now).await?;
        self.metrics.traffic().note_ages(ages);
        Ok(())
    }
}

/// Returns the time until the next minute of the clock begins.
fn rest_of_minute(now: DateTime<Utc>) -> Duration {
    let passed = TimeDelta::microseconds(now.timestamp_micros().rem_euclid(60_000_000));
    (TimeDelta::minutes(1) - passed).to_std().unwrap_or(INTERVAL)
}

impl std::fmt::Debug for TrafficWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TrafficWriter(..)")
    }
}
