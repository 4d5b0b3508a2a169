//! The one loop behind polling, delivering and verifying.
//!
//! A worker claims as many due jobs as it has free slots, runs them side by
//! side, and sleeps when there is nothing to do. It ends when told to stop:
//! jobs already begun are given time to finish, and those that do not finish
//! are found again by whoever starts next, because their claims expire.

use std::error::Error;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, SubsecRound, Utc};
use tokio::sync::{Notify, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{Instrument, error, info, info_span, warn};

use feedgate_core::ports::StoreError;

pub use crate::jobs::host_permits::{Hosts, Place};

/// The time now, to the microsecond that a store keeps.
///
/// The only place where the clock is read; it is called once where a job or a
/// request begins, and handed on.
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub fn now() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(6)
}

/// A random number in 0 to 1, for spreading what would otherwise happen all at once.
///
/// Like the clock, it is read at the edge and handed on.
pub fn dice() -> f64 {
    // Without randomness everything still works, only less evenly spread.
    f64::from(getrandom::u32().unwrap_or(u32::MAX / 2)) / f64::from(u32::MAX)
}

/// 128 random bits in hex, used once: a challenge, a token, a secret (rule S34).
pub fn nonce() -> String {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).expect("the system has random numbers, or TLS would fail too");
    hex::encode(bits)
}

/// A kind of work that waits in the store.
pub trait Work: Send + Sync + 'static {
    /// One unit of it.
    type Job: Send + 'static;

    /// What it is called in logs.
    const NAME: &'static str;

    /// Takes up to `limit` jobs that are due now.
    fn claim(
        &self,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Self::Job>, StoreError>> + Send;

    /// Does one job and records how it went. Failures are its own to handle.
    fn perform(&self, job: Self::Job) -> impl Future<Output = ()> + Send;
}

/// How hard a worker works.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Jobs in hand at once.
    pub at_once: usize,
    /// How long to sleep when nothing is due and nobody wakes us.
    pub idle: Duration,
    /// How long to wait for jobs in hand once told to stop.
    pub drain: Duration,
}

/// Works until `stop` is cancelled. `news` may be notified when work arrives.
pub async fn run<W: Work>(work: Arc<W>, pace: Pace, news: Arc<Notify>, stop: CancellationToken) {
    let slots = Arc::new(Semaphore::new(pace.at_once));
    let in_hand = TaskTracker::new();
    let mut is_well = true;
    info!(work = W::NAME, at_once = pace.at_once, "{} worker started", W::NAME);

    loop {
        tokio::select! {
            biased; // once told to stop, take nothing new
            () = stop.cancelled() => break,
            free = slots.acquire() => drop(free),
        }

        // Listen before looking, or work that arrives in between is slept through.
        let mut woken = pin!(news.notified());
        woken.as_mut().enable();

        // Only this loop takes slots, so what is free now stays free.
        let jobs = take(&*work, slots.available_permits(), &mut is_well).await;
        let idle = jobs.is_empty();

        for job in jobs {
            let Ok(slot) = Arc::clone(&slots).acquire_owned().await else {
                break;
            };
            let work = Arc::clone(&work);
            let perform = async move {
                work.perform(job).await;
                drop(slot); // also dropped, and the slot given back, if the job panics
            };
            in_hand.spawn(perform.instrument(info_span!("job", work = W::NAME)));
        }

        if idle {
            tokio::select! {
                () = stop.cancelled() => {}
                () = woken => {}
                () = sleep(pace.idle) => {}
            }
        }
    }

    in_hand.close();
    if timeout(pace.drain, in_hand.wait()).await.is_err() {
        warn!(work = W::NAME, left = in_hand.len(), "stopped before all jobs were done");
    }
    info!(work = W::NAME, "{} worker stopped", W::NAME);
}

/// Claims jobs; none while the store fails. That is told when it begins and when it is
/// over, not at every attempt in between.
async fn take<W: Work>(work: &W, limit: usize, is_well: &mut bool) -> Vec<W::Job> {
    let (jobs, well) = match work.claim(limit).await {
        Ok(jobs) => (jobs, true),
        Err(err) => {
            if *is_well {
                error!(work = W::NAME, error = &err as &dyn Error, "cannot claim {} work", W::NAME);
            }
            (Vec::new(), false)
        }
    };
    if well && !*is_well {
        info!(work = W::NAME, "can claim {} work again", W::NAME);
    }
    *is_well = well;
    jobs
}
