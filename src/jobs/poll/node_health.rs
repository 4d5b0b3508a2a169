//! Problems that a node detects in itself: it was suspended, or its network is down. None of these may be
//! mistaken for a failure of a resource.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::Instant;
use tracing::{info, warn};

use feedgate_core::backlog_smoothing::{ClockComparison, ClockWatch};
use feedgate_core::outage_detector::{FetchOutcome, OutageChange, OutageDetector};
use feedgate_core::resource::Resource;
use feedgate_core::schedule::FailureClass;
use feedgate_core::store::{DueResource, StoreError};

use super::Poller;
use super::observation::{Found, Observation};
use super::report::PollReport;

/// The outcome of a poll that failed because of this node's network, not its resource.
const NODE_OFFLINE: &str = "node_offline";
/// The reason for the poll period, shown in the status.
const NETWORK_DOWN: &str =
    "the network of this node seems to be down; the resource is polled again soon";
/// A poll that failed because of this node's network is repeated after one minute, and within
/// three.
const RETRY_FROM_S: f64 = 60.0;
const RETRY_WITHIN_S: f64 = 120.0;

/// The state of this node.
#[derive(Debug)]
pub(super) struct NodeHealth {
    started: Instant,
    clock: Mutex<ClockWatch>,
    fetches: Mutex<OutageDetector>,
}

impl NodeHealth {
    /// Creates the state of a node about which nothing is known yet.
    pub(super) fn new() -> NodeHealth {
        NodeHealth { started: Instant::now(), clock: Mutex::default(), fetches: Mutex::default() }
    }
}

impl Poller {
    /// Spreads overdue polls before anything is claimed, if this node has just started or was suspended
    /// (rule P46).
    pub(super) async fn check_standstill(&self, now: DateTime<Utc>) -> Result<(), StoreError> {
        let check = {
            let mut clock = self.health.clock.lock().unwrap_or_else(PoisonError::into_inner);
            clock.check(self.health.started.elapsed(), now)
        };
        if check == ClockComparison::Steady {
            return Ok(());
        }
        let smoothed = self.store.release_backlog(now).await?;
        if smoothed > 0 {
            info!(smoothed, "overdue polls were spread over the coming minutes");
        }
        Ok(())
    }

    /// Adds the result of a fetch to the outage detector. Returns whether the fetch failed because
    /// the network of this node is down (rule P32).
    pub(super) async fn is_network_outage(
        &self,
        due: &DueResource,
        observation: &Observation,
    ) -> Result<bool, StoreError> {
        let failed = match &observation.found {
            Found::Failure(failure) => Some(failure.class),
            _ => None,
        };
        let at = observation.at + observation.took;
        let hosts = self.visited_hosts(observation, failed);
        let was_read = !due.resource.polling.validators.url.is_empty();
        let (changes, is_outage) = {
            let mut fetches = self.health.fetches.lock().unwrap_or_else(PoisonError::into_inner);
            let outcomes = hosts.into_iter().map(|(host, failed)| {
                let resource = due.resource.id;
                FetchOutcome { at, host, resource, was_read, failed }
            });
            let changes: Vec<_> = outcomes.filter_map(|fetch| fetches.saw(fetch)).collect();
            (changes, failed.is_some_and(|class| fetches.explains(class)))
        };
        for change in changes {
            self.handle_outage_change(change, at).await?;
        }
        Ok(is_outage)
    }

    /// Returns the host groups that were asked, and how the last request to each failed. Only the last of
    /// all requests can have failed: those before it were answered with redirects.
    fn visited_hosts(
        &self,
        observation: &Observation,
        failed: Option<FailureClass>,
    ) -> BTreeMap<String, Option<FailureClass>> {
        let last = observation.visits.len().saturating_sub(1);
        let visits = observation.visits.iter().enumerate();
        visits
            .map(|(at, visit)| (self.store.group(&visit.url), failed.filter(|_| at == last)))
            .collect()
    }

    async fn handle_outage_change(
        &self,
        change: OutageChange,
        at: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        match change {
            OutageChange::CutOff(failed) => {
                self.metrics.network_outage(true);
                warn!("network outage: most fetches of this node fail in the same way");
                let soon = at + TimeDelta::seconds(RETRY_WITHIN_S as i64);
                self.store.poll_soon(&failed, soon).await?;
            }
            OutageChange::Back => {
                self.metrics.network_outage(false);
                info!("network outage ended: fetches succeed again");
            }
        }
        Ok(())
    }
}

/// Turns a poll that failed because of this node's network into one without information about its
/// resource: no failure is counted, and the poll is repeated soon. `jitter` is random from 0 to 1.
pub(super) fn ignore_failure(report: &mut PollReport, before: &Resource, jitter: f64) {
    report.outcome = NODE_OFFLINE;
    let poll = &mut report.poll;
    let retry_s = RETRY_FROM_S + (RETRY_WITHIN_S * jitter.clamp(0.0, 1.0));
    poll.next_fetch = poll.at + TimeDelta::milliseconds((retry_s * 1_000.0) as i64);
    poll.polling = before.polling.clone();
    let last_fetch = poll.status.last_fetch;
    poll.status = before.status.clone();
    poll.status.last_fetch = last_fetch;
    poll.status.next_fetch = Some(poll.next_fetch);
    NETWORK_DOWN.clone_into(&mut poll.status.period_reason);
}
