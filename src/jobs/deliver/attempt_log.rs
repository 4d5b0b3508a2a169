//! Recording attempts to deliver, for people who investigate: the one writer that stores them.
//!
//! What holds here, whatever happens:
//!
//! * Recording never waits, and no delivery waits for it. Attempts are stored in batches, a moment
//!   after they ended, beside the results of the deliveries. A crash loses the last ones.
//! * A node records a bounded number of attempts in a second, so that a fan-out to thousands of
//!   callbacks writes little more than its results. Deliveries that are accepted as usual are left
//!   out first. `/metrics` counts what is left out.

mod attempt_record;
mod secret_remover;

pub(super) use secret_remover::SecretRemover;

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use crate::metrics::Metrics;
use feedgate_core::attempt::{AttemptVerdict, DeliveryAttempt};
use feedgate_store::Store;

pub(super) use attempt_record::EndedAttempt;

/// The most attempts that are recorded in a second: with 9 kB each, at most 2 MB.
const MOST_PER_S: u32 = 200;
/// The most in a second before attempts are left out that were accepted as usual: the other half is
/// for failures.
const MOST_ROUTINE_PER_S: u32 = MOST_PER_S / 2;
/// The most attempts that wait to be stored while the store is slow or fails.
const QUEUE: usize = 2 * MOST_PER_S as usize;
/// How long the first attempt of a batch waits for others: short for a person who watches the
/// deliveries, long for a database.
const GATHER: Duration = Duration::from_millis(200);
/// The most attempts stored in one transaction.
const BATCH: usize = 100;
/// The pause after the store failed.
const RECOVERY: Duration = Duration::from_secs(1);
/// How often a batch is tried before it is given up.
const TRIES: u32 = 3;

/// The log of attempts.
pub(super) struct AttemptLog {
    /// `None` if nothing is recorded.
    queue: Option<mpsc::Sender<DeliveryAttempt>>,
    rate: Mutex<RecordingRate>,
    metrics: Metrics,
    writer: Mutex<Option<JoinHandle<()>>>,
    stop: CancellationToken,
}

impl AttemptLog {
    /// Starts the writer, which keeps so many attempts of each subscription; with 0, nothing is
    /// recorded. Must be called within a runtime.
    pub(super) fn start(
        store: Arc<Store>,
        metrics: Metrics,
        most_of_subscription: usize,
    ) -> AttemptLog {
        let stop = CancellationToken::new();
        let (mut queue, mut task) = (None, None);
        if most_of_subscription > 0 {
            let (sender, waiting) = mpsc::channel(QUEUE);
            let (metrics, stop) = (metrics.clone(), stop.clone());
            let writer = AttemptWriter { store, metrics, most_of_subscription, stop };
            (queue, task) = (Some(sender), Some(tokio::spawn(writer.run(waiting))));
        }
        let rate = Mutex::new(RecordingRate { since: Instant::now(), recorded: 0 });
        AttemptLog { queue, rate, metrics, writer: Mutex::new(task), stop }
    }

    /// Records an attempt, without waiting.
    pub(super) fn record(&self, ended: &EndedAttempt<'_>) {
        let Some(queue) = &self.queue else { return };
        let verdict = ended.recorded_verdict();
        let is_routine = verdict == AttemptVerdict::Delivered && ended.subscription.failures == 0;
        let is_admitted = {
            let mut rate = self.rate.lock().unwrap_or_else(PoisonError::into_inner);
            rate.admit(Instant::now(), is_routine)
        };
        if !is_admitted || queue.try_send(ended.record()).is_err() {
            self.metrics.attempts_not_recorded(verdict.as_str(), 1);
        }
    }

    /// Stores what was recorded so far. Nothing is recorded afterwards.
    pub(super) async fn close(&self) {
        self.stop.cancel();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer
            && let Err(err) = writer.await
        {
            error!(error = &err as &dyn Error, "the writer of delivery attempts panicked");
        }
    }
}

/// How many attempts have been recorded in this second.
#[derive(Debug)]
struct RecordingRate {
    since: Instant,
    recorded: u32,
}

impl RecordingRate {
    /// Counts an attempt, if it may be recorded.
    fn admit(&mut self, now: Instant, is_routine: bool) -> bool {
        if now.duration_since(self.since) >= Duration::from_secs(1) {
            *self = RecordingRate { since: now, recorded: 0 };
        }
        let is_admitted = self.recorded < if is_routine { MOST_ROUTINE_PER_S } else { MOST_PER_S };
        self.recorded += u32::from(is_admitted);
        is_admitted
    }
}

/// Stores attempts in batches.
struct AttemptWriter {
    store: Arc<Store>,
    metrics: Metrics,
    most_of_subscription: usize,
    stop: CancellationToken,
}

impl AttemptWriter {
    /// Stores attempts until the log is closed or dropped.
    async fn run(self, mut waiting: mpsc::Receiver<DeliveryAttempt>) {
        let mut batch = Vec::new();
        loop {
            tokio::select! {
                biased;
                many = waiting.recv_many(&mut batch, BATCH) => {
                    if many == 0 {
                        return; // the log was dropped
                    }
                }
                () = self.stop.cancelled() => return,
            }
            self.stop.run_until_cancelled(sleep(GATHER)).await;
            while batch.len() < BATCH
                && let Ok(attempt) = waiting.try_recv()
            {
                batch.push(attempt);
            }
            self.write_batch(std::mem::take(&mut batch)).await;
        }
    }

    /// Stores a batch, or gives it up: attempts are worth less than the memory that a store which
    /// fails for long would have them take.
    async fn write_batch(&self, batch: Vec<DeliveryAttempt>) {
        for left in (0..TRIES).rev() {
            let stored = self.store.append_attempts(batch.clone(), self.most_of_subscription).await;
            let Err(err) = stored else { return };
            if left == 0 || self.stop.is_cancelled() {
                let (cause, code, attempts) = (&err as &dyn Error, err.code(), batch.len());
                warn!(error = cause, code, attempts, "delivery attempts were not recorded");
                break;
            }
            self.stop.run_until_cancelled(sleep(RECOVERY)).await;
        }
        for attempt in &batch {
            self.metrics.attempts_not_recorded(attempt.verdict.as_str(), 1);
        }
    }
}

impl std::fmt::Debug for AttemptLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AttemptLog(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routine_attempts_are_left_out_first() {
        let began = Instant::now();
        let mut rate = RecordingRate { since: began, recorded: 0 };
        let mut admitted =
            |now, is_routine| (0..1_000).filter(|_| rate.admit(now, is_routine)).count() as u32;
        assert_eq!(admitted(began, true), MOST_ROUTINE_PER_S);
        assert_eq!(admitted(began, false), MOST_PER_S - MOST_ROUTINE_PER_S);
        let next = began + Duration::from_secs(1);
        assert_eq!(admitted(next, false), MOST_PER_S);
        assert_eq!(admitted(next, true), 0);
    }
}
