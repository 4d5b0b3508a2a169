//! Pings that go on: sinks are told of changes of resources whose owners asked for it.
//!
//! What is owed stands in the store, a row for each sink and resource, and is tried again
//! until the sink has taken it or `STEPS_S` are used up. A host is asked few things at
//! once, and all requests go through the guard.

mod message;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tracing::{debug, error, warn};
use url::Url;

use crate::jobs::runner::{self, HostPermit, HostPermits, Job};
use crate::metrics::Metrics;
use crate::net::{FetchError, HttpClient};
use feedgate_core::ping_forwarding::{DuePing, PingTarget};
use feedgate_core::ports::{PingTargets, Store, StoreError};
use feedgate_core::topic;

/// Longer than two requests and their answers can take.
const CLAIM: Duration = Duration::from_secs(180);
/// Requests at once to one host.
const PER_HOST: usize = 2;
/// When a ping that was not taken is tried again, after the first failure, the second, …;
/// then it is dropped: by the next day it is no news.
const STEPS_S: [u64; 5] = [60, 300, 1_800, 7_200, 21_600];

/// Tells sinks.
pub struct PingForwarder {
    store: Arc<dyn Store>,
    fetch: HttpClient,
    sinks: Vec<PingTarget>,
    permits: HostPermits,
    metrics: Metrics,
}

/// Why a sink did not take a ping.
#[derive(Debug, thiserror::Error)]
enum NotTaken {
    /// It could not be asked.
    #[error(transparent)]
    HttpClient(#[from] FetchError),
    /// It answered, but not with success.
    #[error("the sink answered {0}")]
    Status(http::StatusCode),
    /// It answered with success, but with nothing that says whether it has taken the ping.
    #[error("the sink's answer is no XML-RPC: {0}")]
    Protocol(String),
    /// It said no in the words of its protocol.
    #[error("the sink refused: {0}")]
    Refused(String),
}

impl NotTaken {
    /// A word for logs and metrics, listed in `docs/errors.md`.
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
    /// Puts the parts together.
    pub fn new(
        store: Arc<dyn Store>,
        fetch: HttpClient,
        sinks: Vec<PingTarget>,
        metrics: Metrics,
    ) -> PingForwarder {
        // Whoever waits for a place looks again by itself soon.
        let permits = HostPermits::new(PER_HOST, Arc::default());
        PingForwarder { store, fetch, sinks, permits, metrics }
    }

    /// Tells a sink, and keeps how that ended.
    async fn tell(&self, due: &DuePing) -> Result<(), StoreError> {
        let Some(sink) = self.sinks.iter().find(|sink| sink.name() == due.sink) else {
            return self.store.finish_forwarded_ping(due, None, runner::now()).await;
        };
        let told = message::send(&self.fetch, sink, due).await;
        let result = told.as_ref().map_or_else(NotTaken::code, |()| "ok");
        self.metrics.ping_forwarded(sink.means().as_str(), result);
        let now = runner::now();
        let retry_at = told.err().and_then(|why| {
            let retry_at = retry_at(due.attempts, now, runner::jitter());
            report(due, &why, retry_at);
            retry_at
        });
        self.store.finish_forwarded_ping(due, retry_at, now).await
    }
}

/// When a sink is told again that was told in vain so often before; `None` for never.
fn retry_at(attempts: u32, now: DateTime<Utc>, jitter: f64) -> Option<DateTime<Utc>> {
    let step = STEPS_S.get(attempts as usize)?;
    Some(now + Duration::from_secs(*step).mul_f64(0.8 + 0.4 * jitter))
}

/// The host only: addresses of sinks may hold keys.
fn report(due: &DuePing, why: &NotTaken, retry_at: Option<DateTime<Utc>>) {
    let (host, code, feed) = (host(&due.sink), why.code(), due.feed_url.as_str());
    let error = why as &dyn Error;
    match retry_at {
        // Not at every attempt.
        Some(_) if due.attempts == 0 => {
            warn!(host, code, error, feed, "a ping was not taken; it is sent again");
        }
        Some(_) => debug!(host, code, error, feed, "a ping was not taken; it is sent again"),
        None => warn!(host, code, error, feed, "a ping was never taken, and is dropped"),
    }
}

fn host(sink: &str) -> String {
    let url = PingTarget::parse(sink).and_then(|sink| Url::parse(sink.url()).ok());
    url.map(|url| topic::host(&url)).unwrap_or_default()
}

impl Job for PingForwarder {
    type Item = (DuePing, HostPermit);

    const NAME: &'static str = "onward";

    async fn claim(&self, limit: usize) -> Result<Vec<Self::Item>, StoreError> {
        let now = runner::now();
        let mut jobs = Vec::new();
        for sink in &self.sinks {
            let (name, limits) = (sink.name(), self.permits.claim_limits(limit - jobs.len()));
            let host = host(&name);
            if limits.limit == 0 || limits.busy.contains(&host) {
                continue;
            }
            let most = limits.limit.min(limits.per_host);
            let due = self.store.claim_forwarded_pings(&name, now, now + CLAIM, most).await?;
            jobs.extend(due.into_iter().map(|due| (due, self.permits.acquire(host.clone()))));
        }
        Ok(jobs)
    }

    async fn perform(&self, (due, place): Self::Item) {
        let told = self.tell(&due).await;
        drop(place);
        if let Err(err) = told {
            let host = host(&due.sink);
            error!(
                host,
                error = &err as &dyn Error,
                "a ping could not be settled; it is sent again"
            );
        }
    }
}

/// Forgets what is owed to sinks that are not configured any more.
pub async fn forget_others(store: &dyn Store, sinks: &[PingTarget]) -> Result<(), StoreError> {
    let known: Vec<String> = sinks.iter().map(PingTarget::name).collect();
    PingTargets::forget_other_targets(store, &known).await.map(drop)
}

impl std::fmt::Debug for PingForwarder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PingForwarder").field("sinks", &self.sinks.len()).finish_non_exhaustive()
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
