//! The worker loop behind every kind of background job.
//!
//! A worker claims as many due items as it has free slots, runs them concurrently, and sleeps
//! while nothing is due. When it is stopped it claims nothing more and waits for the running
//! items, but no longer than the grace period. Items that have not finished by then are not
//! lost: their claims expire, and the next worker claims them again.
//!
//! An item of a job that waits for other servers gives its slot to the next item if it takes long, and
//! moves to the slow lane of the worker ([`Job::SLOW_LANE`]). A job that knows what its items wait for decides
//! that itself ([`Job::perform_in`]).

use std::error::Error;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{Instrument, error, info, info_span, warn};

use crate::jobs::failure_log::FailureLog;
use crate::lane_slots::LaneSlots;
use feedgate_core::store::StoreError;

pub use crate::clock::{Stopwatch, now};
pub use crate::jobs::host_permits::{HostPermit, HostPermits};
pub use crate::lane_slots::LaneSlot;

/// Returns a random number from 0 to 1, for spreading work that would otherwise happen all at once.
///
/// Like the clock, randomness is read at the edge and passed on.
pub fn jitter() -> f64 {
    // Without randomness everything still works, only less evenly spread.
    f64::from(getrandom::u32().unwrap_or(u32::MAX / 2)) / f64::from(u32::MAX)
}

/// Returns 128 random bits in hex, used once: a challenge, a token, a secret (rule S34).
pub fn nonce() -> String {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).expect("the system has random numbers, or TLS would fail too");
    hex::encode(bits)
}

/// A kind of background job whose items wait in the store.
pub trait Job: Send + Sync + 'static {
    /// One claimed unit of work.
    type Item: Send + 'static;

    /// The name of the job in log messages.
    const NAME: &'static str;

    /// How long an idle worker waits between a wake signal and its claim. What is signalled meanwhile is
    /// found by that claim.
    const WAKE_DELAY: Duration = Duration::ZERO;

    /// How long the first slot that becomes free waits for others when all were taken, so that one claim fills
    /// them together.
    const GATHER: Duration = Duration::ZERO;

    /// The size of the slow lane, as a multiple of the concurrency. With 0, an item keeps its slot
    /// however long it takes.
    const SLOW_LANE: usize = 0;

    /// How long an item takes before it moves to the slow lane.
    const SLOW_AFTER: Duration = Duration::from_millis(500);

    /// Claims up to `limit` items that are due now.
    fn claim(
        &self,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Self::Item>, StoreError>> + Send;

    /// Processes one item and stores the result. If the store fails, that is logged, and the item is
    /// claimed again when its claim has expired.
    fn perform(&self, item: Self::Item) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Performs one item with its slot, which moves to the slow lane if the item takes long.
    fn perform_in(
        &self,
        slot: LaneSlot,
        item: Self::Item,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        async move { slot.during(pin!(self.perform(item))).await }
    }

    /// Returns the number of the resource, or of the row, that an item is about, for log messages.
    fn number(_item: &Self::Item) -> Option<i64> {
        None
    }

    /// Releases the items that were claimed and not begun. Called once, when nothing is claimed any
    /// more.
    fn stopped(&self) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Completes what the items left to be done in the background. Called once, after the last item
    /// has ended or the grace period is over.
    fn finished(&self) -> impl Future<Output = ()> + Send {
        async {}
    }
}

/// The limits of one worker.
#[derive(Clone, Copy, Debug)]
pub struct WorkerConfig {
    /// The most items processed at the same time, without those in the slow lane.
    pub concurrency: usize,
    /// How long to sleep when nothing is due and no wake signal arrives.
    pub idle: Duration,
    /// How long to wait for running items after the worker was stopped.
    pub shutdown_grace: Duration,
}

/// Runs `job` until `stop` is cancelled. `wake` may be notified when an item becomes due.
pub async fn run<J: Job>(
    job: Arc<J>,
    config: WorkerConfig,
    wake: Arc<Notify>,
    stop: CancellationToken,
) {
    let slow = config.concurrency * J::SLOW_LANE;
    let slots = LaneSlots::new(config.concurrency, slow, J::SLOW_AFTER);
    let running = TaskTracker::new();
    let mut claiming = FailureLog::new(format!("claiming {} jobs", J::NAME));
    info!(job = J::NAME, concurrency = config.concurrency, "{} worker started", J::NAME);

    loop {
        tokio::select! {
            biased; // after a stop, claim nothing more
            () = stop.cancelled() => break,
            () = slots.wait_for_free(J::GATHER) => {}
        }

        // Listen before claiming, or a signal sent in between would be missed.
        let mut woken = pin!(wake.notified());
        woken.as_mut().enable();

        // Only this loop takes slots, so the number of free ones cannot shrink meanwhile.
        let items = claiming.note(job.claim(slots.free_count()).await).unwrap_or_default();
        let is_idle = items.is_empty();

        for item in items {
            let Some(slot) = slots.acquire().await else {
                break;
            };
            let (job, number) = (Arc::clone(&job), J::number(&item));
            // A panic drops the slot too, so it is never lost.
            let perform = async move {
                if let Err(err) = job.perform_in(slot, item).await {
                    let error = &err as &dyn Error;
                    error!(job = J::NAME, number, error, "the result of a job was not stored");
                }
            };
            // Boxed, so that the code of a task is compiled once and not for each job.
            running.spawn(perform.instrument(info_span!("job", job = J::NAME)).boxed());
        }

        if is_idle {
            tokio::select! {
                () = stop.cancelled() => {}
                () = async { woken.await; wait_after_signal::<J>().await } => {}
                () = sleep(config.idle) => {}
            }
        }
    }

    running.close();
    let finish = async {
        job.stopped().await;
        running.wait().await;
    };
    if timeout(config.shutdown_grace, finish).await.is_err() {
        warn!(
            job = J::NAME,
            unfinished = running.len(),
            "{} worker stopped before all of its jobs finished",
            J::NAME
        );
    }
    job.finished().await;
    info!(job = J::NAME, "{} worker stopped", J::NAME);
}

/// Waits for [`Job::WAKE_DELAY`].
async fn wait_after_signal<J: Job>() {
    // A sleep takes at least a tick of the timer, which is 1 ms.
    if !J::WAKE_DELAY.is_zero() {
        sleep(J::WAKE_DELAY).await;
    }
}
