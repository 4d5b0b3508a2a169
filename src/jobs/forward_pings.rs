//! Forwards pings: notifies ping targets of changed resources.
//!
//! Waiting pings are rows in the store, one for each target and resource. A ping is retried until the
//! target accepts it or `RETRY_STEPS_S` are used up. Each host receives few requests at the same
//! time, and all of them through the guarded client.

mod message;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tracing::{debug, warn};
use url::Url;

use crate::jobs::claim_renewal::{ClaimRenewal, HeldClaim};
use crate::jobs::runner::{self, HostPermit, HostPermits, Job};
use crate::metrics::Metrics;
use crate::net::{FetchError, HttpClient};
use feedgate_core::ping_forwarding::{DuePing, PingTarget};
use feedgate_core::store::StoreError;
use feedgate_core::topic;
use feedgate_store::Store;

/// The most concurrent requests to one host.
const PER_HOST: usize = 2;
/// The waits before a failed ping is retried: after the first failure, the second, and so on. Then
/// the ping is dropped, because by the next day it is outdated.
const RETRY_STEPS_S: [u64; 5] = [60, 300, 1_800, 7_200, 21_600];

/// Forwards pings to the configured targets.
pub struct PingForwarder {
    store: Arc<Store>,
    client: HttpClient,
    targets: Vec<PingTarget>,
    claims: ClaimRenewal<i64>,
    permits: HostPermits,
    metrics: Metrics,
}

/// Why a target did not accept a ping.
#[derive(Debug, thiserror::Error)]
enum ForwardError {
    /// The request failed.
    #[error(transparent)]
    HttpClient(#[from] FetchError),
    /// The response has an error status.
    #[error("the target responded with {0}")]
    Status(http::StatusCode),
    /// The response has a success status, but is not XML-RPC.
    #[error("the response of the target is not XML-RPC: {0}")]
    Protocol(String),
    /// The target refused the ping in its protocol.
    #[error("the target rejected the ping: {0}")]
    Refused(String),
}

impl ForwardError {
    /// Returns a word for logs and metrics, listed in `docs/errors.md`.
    fn code(&self) -> &'static str {
        match self {
            Self::HttpClient(err) => err.code(),
            Self::Status(_) => "target_status",
            Self::Protocol(_) => "target_protocol",
            Self::Refused(_) => "target_refused",
        }
    }
}

impl PingForwarder {
    /// Creates a forwarder from its parts, whose claims last as long as `lease`. Must be called within a
    /// runtime: claims are renewed by a task.
    pub fn new(
        store: Arc<Store>,
        client: HttpClient,
        targets: Vec<PingTarget>,
        metrics: Metrics,
        lease: Duration,
    ) -> PingForwarder {
        let renewing = Arc::clone(&store);
        let claims = ClaimRenewal::start(PingForwarder::NAME, lease, move |claims, _, until| {
            let store = Arc::clone(&renewing);
            async move { store.renew_forwarded_ping_claims(&claims, until).await }
        });
        // No wake signal is needed: a worker that waits for a permit claims again soon.
        let permits = HostPermits::new(PER_HOST, Arc::default());
        PingForwarder { store, client, targets, claims, permits, metrics }
    }
}

/// Returns when a ping is sent again after `attempts` failures; `None` for never.
fn retry_at(attempts: u32, now: DateTime<Utc>, jitter: f64) -> Option<DateTime<Utc>> {
    let step = RETRY_STEPS_S.get(attempts as usize)?;
    Some(now + Duration::from_secs(*step).mul_f64(0.8 + 0.4 * jitter))
}

/// Logs only the host of a target, because addresses of targets may contain API keys.
fn report(due: &DuePing, why: &ForwardError, retry_at: Option<DateTime<Utc>>) {
    let (host, code, feed) = (host(&due.target), why.code(), due.feed_url.as_str());
    let error = why as &dyn Error;
    match retry_at {
        // Only the first failed attempt is logged as a warning.
        Some(_) if due.attempts == 0 => {
            warn!(host, code, error, feed, "forwarding a ping failed; it will be retried");
        }
        Some(_) => debug!(host, code, error, feed, "forwarding a ping failed; it will be retried"),
        None => warn!(
            host,
            code, error, feed, "forwarding a ping failed; it was dropped after the last attempt"
        ),
    }
}

fn host(target: &str) -> String {
    let url = PingTarget::parse(target).and_then(|target| Url::parse(target.url()).ok());
    url.map(|url| topic::host(&url)).unwrap_or_default()
}

impl Job for PingForwarder {
    type Item = (DuePing, HeldClaim<i64>, HostPermit);

    const NAME: &'static str = "ping forwarding";

    async fn claim(&self, limit: usize) -> Result<Vec<Self::Item>, StoreError> {
        let mut jobs = Vec::new();
        for target in &self.targets {
            let now = runner::now();
            let until = self.claims.end_of_claim(now);
            let (name, limits) = (target.name(), self.permits.claim_limits(limit - jobs.len()));
            let host = host(&name);
            if limits.limit == 0 || limits.busy.contains(&host) {
                continue;
            }
            let most = limits.limit.min(limits.per_host);
            let due = self.store.claim_forwarded_pings(&name, now, until, most).await?;
            jobs.extend(due.into_iter().map(|due| {
                let claim = self.claims.hold_claim(due.id, due.claim, until);
                (due, claim, self.permits.acquire(host.clone()))
            }));
        }
        Ok(jobs)
    }

    /// Sends a ping, and stores the result.
    async fn perform(&self, (due, _held, _permit): Self::Item) -> Result<(), StoreError> {
        let Some(target) = self.targets.iter().find(|target| target.name() == due.target) else {
            return self.store.finish_forwarded_ping(&due, None, runner::now()).await;
        };
        let sent = message::send(&self.client, target, &due).await;
        let result = sent.as_ref().map_or_else(ForwardError::code, |()| "ok");
        self.metrics.ping_forwarded(target.means().as_str(), result);
        let now = runner::now();
        let retry_at = sent.err().and_then(|why| {
            let retry_at = retry_at(due.attempts, now, runner::jitter());
            report(&due, &why, retry_at);
            retry_at
        });
        self.store.finish_forwarded_ping(&due, retry_at, now).await
    }

    fn number((due, ..): &Self::Item) -> Option<i64> {
        Some(due.id)
    }
}

/// Deletes waiting pings to targets that are no longer configured.
pub async fn forget_other_targets(store: &Store, targets: &[PingTarget]) -> Result<(), StoreError> {
    let known: Vec<String> = targets.iter().map(PingTarget::name).collect();
    store.forget_other_targets(&known).await.map(drop)
}

impl std::fmt::Debug for PingForwarder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PingForwarder")
            .field("targets", &self.targets.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ping_is_tried_six_times_in_some_nine_hours() {
        let now = DateTime::UNIX_EPOCH;
        let waits: Vec<Option<i64>> =
            (0..6).map(|n| retry_at(n, now, 0.5).map(|at| at.timestamp())).collect();
        assert_eq!(waits, [Some(60), Some(300), Some(1_800), Some(7_200), Some(21_600), None]);
        for (jitter, want) in [(0.0, 48), (1.0, 72)] {
            assert_eq!(retry_at(0, now, jitter).map(|at| at.timestamp()), Some(want), "spread");
        }
    }
}
