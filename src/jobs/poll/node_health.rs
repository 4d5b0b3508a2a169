//! What a node notices about itself: that its clock was set, that it stood still, that it is
//! cut off. None of it may be taken for something that happened to a resource.

use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::Instant;
use tracing::{info, warn};

use feedgate_core::backlog_smoothing::{ClockReading, ClockWatch};
use feedgate_core::outage_detector::{FetchOutcome, OutageChange, OutageDetector};
use feedgate_core::poll::Poll;
use feedgate_core::ports::{DueResource, StoreError};
use feedgate_core::resource::Resource;

use super::Ingest;
use super::observe::{Found, Seen};

/// The outcome of a poll that failed for no fault of its resource.
pub(super) const OWN_OUTAGE: &str = "own_outage";
/// What is said of it.
const CUT_OFF: &str = "our own network seems to be down: it is asked again soon";
/// Who failed because we were cut off is asked again after a minute, and within three.
const AGAIN_FROM_S: f64 = 60.0;
const AGAIN_WITHIN_S: f64 = 120.0;
/// What is due so much later than its period after a start was put there by a wrong clock:
/// days that a publisher wants to be left alone, at most.
const LONGEST_SKIP: TimeDelta = TimeDelta::days(8);

/// What is remembered for it.
#[derive(Debug)]
pub(super) struct Sense {
    began: Instant,
    clock: Mutex<ClockWatch>,
    fetches: Mutex<OutageDetector>,
}

impl Sense {
    /// Nothing was noticed yet.
    pub(super) fn new() -> Sense {
        Sense { began: Instant::now(), clock: Mutex::default(), fetches: Mutex::default() }
    }
}

impl Ingest {
    /// Brings the queue into order before anything is taken from it, if this node has just
    /// started or its clock was set (rules P46, P47).
    pub(super) async fn mind_the_clock(&self, now: DateTime<Utc>) -> Result<(), StoreError> {
        let look = {
            let mut clock = self.sense.clock.lock().unwrap_or_else(PoisonError::into_inner);
            clock.look(self.sense.began.elapsed(), now)
        };
        let slack = match look {
            ClockReading::Steady => return Ok(()),
            ClockReading::First => LONGEST_SKIP,
            ClockReading::Jumped => TimeDelta::zero(),
        };
        let pulled = self.store.shorten_waits(now, slack).await?;
        let released = self.store.release_backlog(now).await?;
        if look == ClockReading::Jumped {
            warn!(pulled, released, "the clock was set by more than five minutes");
        } else if released > 0 {
            info!(released, "polls that are overdue are spread over the time to come");
        }
        Ok(())
    }

    /// Takes in how a fetch ended, and says whether it failed because we are cut off
    /// (rule P32).
    pub(super) async fn is_our_fault(
        &self,
        due: &DueResource,
        seen: &Seen,
    ) -> Result<bool, StoreError> {
        let failed = match &seen.found {
            Found::Trouble(trouble) => Some(trouble.class),
            _ => None,
        };
        let fetch = FetchOutcome {
            at: seen.at + seen.took,
            host: self.store.group(&due.resource.fetch_url),
            resource: due.resource.id,
            failed,
        };
        let at = fetch.at;
        let (change, is_ours) = {
            let mut fetches = self.sense.fetches.lock().unwrap_or_else(PoisonError::into_inner);
            let change = fetches.saw(fetch);
            (change, failed.is_some_and(|class| fetches.explains(class)))
        };
        match change {
            Some(OutageChange::CutOff(failed)) => {
                self.metrics.cut_off(true);
                warn!("most fetches fail in the same way: our own network seems to be down");
                let soon = at + TimeDelta::seconds(AGAIN_WITHIN_S as i64);
                self.store.poll_soon(&failed, soon).await?;
            }
            Some(OutageChange::Back) => {
                self.metrics.cut_off(false);
                info!("fetches get through again");
            }
            None => {}
        }
        Ok(is_ours)
    }
}

/// Makes of a poll one that says nothing of its resource: nothing is counted, and it is made
/// again soon. `dice` is random in 0 to 1.
pub(super) fn hold_harmless(poll: &mut Poll, before: &Resource, dice: f64) {
    let again_s = AGAIN_FROM_S + (AGAIN_WITHIN_S * dice.clamp(0.0, 1.0));
    poll.next_fetch = poll.at + TimeDelta::milliseconds((again_s * 1_000.0) as i64);
    poll.polling = before.polling.clone();
    let last_fetch = poll.status.last_fetch;
    poll.status = before.status.clone();
    poll.status.last_fetch = last_fetch;
    poll.status.next_fetch = Some(poll.next_fetch);
    CUT_OFF.clone_into(&mut poll.status.period_reason);
    OWN_OUTAGE.clone_into(&mut poll.outcome);
}
