//! Polls that were put off, because their host or its address was busy, or this gateway had no memory
//! for their document.
//!
//! A poll does not wait long for either, because it occupies one of the slots in which polls run
//! (rule P41). It ends without a result and is repeated soon: nothing is counted as a failure, and
//! nothing of the resource changes but the time of its next poll.

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use tracing::debug;
use url::Url;

use crate::document_budget::GatewayBusy;
use crate::jobs::runner;
use crate::net::{HostBusy, HttpClient, Patience};
use feedgate_core::store::{DueResource, ReleasedResource, StoreError};
use feedgate_core::topic;

use super::{PollEnd, Poller};

/// The minimum time before a poll is repeated that had sent a request when it was put off: no
/// server is polled more often than once a minute.
const AFTER_REQUEST: Duration = Duration::from_secs(60);

/// The minimum time before a first fetch is tried again: hundreds may wait for the same network, and
/// what the network can take in the meantime is not lost.
const FIRST_FETCH_AGAIN: Duration = Duration::from_secs(30);

/// After how long the disk space is checked again for a resource that waits: each check is a write.
const DISK_CHECK_AGAIN: Duration = Duration::from_secs(600);

/// The reason why a poll ended without an observation.
#[derive(Debug)]
pub(super) enum PollStop {
    /// The store failed.
    Store(StoreError),
    /// The poll was put off.
    PutOff(PutOff),
}

/// A poll that was put off.
#[derive(Debug)]
pub(super) struct PutOff {
    /// What was busy.
    pub(super) busy: Busy,
    /// Whether another host had received a request already.
    pub(super) has_begun: bool,
}

/// What a poll could not wait for.
#[derive(Debug)]
pub(super) enum Busy {
    /// The host.
    Host(HostBusy),
    /// This gateway.
    Gateway(GatewayBusy),
    /// The disk has little space left.
    Disk,
    /// The server requested that the resource is not fetched before this time.
    LeftAlone(DateTime<Utc>),
    /// The store takes the document later.
    Store { until: DateTime<Utc>, reason: &'static str },
    /// A server to which the resource redirects is not contacted before this time.
    Paused { host: String, until: DateTime<Utc> },
}

impl Busy {
    fn retry_in(&self, now: DateTime<Utc>) -> Duration {
        match self {
            Busy::LeftAlone(until) | Busy::Store { until, .. } | Busy::Paused { until, .. } => {
                (*until - now).to_std().unwrap_or_default()
            }
            Busy::Host(busy) => busy.retry_in,
            Busy::Gateway(busy) => busy.retry_in,
            Busy::Disk => DISK_CHECK_AGAIN,
        }
    }

    /// Returns the reason, for the status of the resource.
    fn reason(&self) -> String {
        match self {
            Busy::Paused { host, until } => {
                let (name, until) = (host_name(host), rfc3339(*until));
                format!(
                    "the server {name}, to which this address redirects, requested a pause of all \
                     requests until {until}"
                )
            }
            Busy::LeftAlone(until) => {
                let until = rfc3339(*until);
                format!("the server requested a pause until {until}")
            }
            Busy::Store { reason, .. } => (*reason).to_owned(),
            Busy::Host(busy) => {
                format!("the server {} is busy with other polls from this gateway", busy.host)
            }
            Busy::Gateway(_) => "this gateway is busy with other documents".to_owned(),
            Busy::Disk => "this gateway has little disk space left".to_owned(),
        }
    }

    /// Returns until when a server is not contacted to which the resource redirects. Its own server, which
    /// has sent the redirect, is not asked again before that either.
    fn paused_until(&self) -> Option<DateTime<Utc>> {
        match self {
            Busy::Paused { until, .. } => Some(*until),
            _ => None,
        }
    }

    fn gateway(&self, now: DateTime<Utc>) -> Option<GatewayBusy> {
        match self {
            Busy::Host(_) | Busy::LeftAlone(_) | Busy::Paused { .. } => None,
            Busy::Gateway(busy) => Some(*busy),
            Busy::Disk => Some(GatewayBusy { retry_in: DISK_CHECK_AGAIN }),
            Busy::Store { .. } => Some(GatewayBusy { retry_in: self.retry_in(now) }),
        }
    }
}

/// Returns the name of a host, without the usual ports.
fn host_name(host: &str) -> &str {
    host.trim_end_matches(":443").trim_end_matches(":80")
}

fn rfc3339(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

impl From<StoreError> for PollStop {
    fn from(err: StoreError) -> PollStop {
        PollStop::Store(err)
    }
}

impl PutOff {
    /// Returns the end of a poll that had sent a request when this gateway was busy.
    pub(super) fn begun(busy: GatewayBusy) -> PutOff {
        PutOff { busy: Busy::Gateway(busy), has_begun: true }
    }

    /// Returns the end of a poll that had sent no request when this gateway was busy.
    pub(super) fn unbegun(busy: GatewayBusy) -> PutOff {
        PutOff { busy: Busy::Gateway(busy), has_begun: false }
    }

    /// Returns when the poll is repeated. `jitter` is random from 0 to 1: it spreads polls that
    /// were put off at the same time by half of the wait.
    fn due_at(&self, now: DateTime<Utc>, jitter: f64) -> DateTime<Utc> {
        let least = if self.has_begun { AFTER_REQUEST } else { Duration::from_secs(1) };
        let wait = self.busy.retry_in(now).max(least).mul_f64(1.0 + 0.5 * jitter.clamp(0.0, 1.0));
        match &self.busy {
            Busy::LeftAlone(until) => now.max(*until),
            // What the budget of a day suffices for is spread by the store.
            Busy::Store { until, .. } => *until + TimeDelta::seconds((60.0 * jitter) as i64),
            // Those that wait for the same server do not all return at once.
            Busy::Paused { until, .. } => {
                let wait = (*until - now).max(TimeDelta::zero());
                now + wait + wait * (100.0 * jitter.clamp(0.0, 1.0)) as i32 / 1_000
            }
            _ => now + TimeDelta::from_std(wait).unwrap_or(TimeDelta::hours(1)),
        }
    }
}

impl Poller {
    /// Puts off the first fetch of a resource by `client` if too many others were requested from its
    /// network (rule S26). Whoever starts a first fetch for a request has counted it.
    pub(super) async fn admit_first_fetch(
        client: &HttpClient,
        due: &DueResource,
        patience: Patience,
    ) -> Result<(), PollStop> {
        let is_first = due.resource.status.last_fetch.is_none();
        let url = Url::parse(&due.resource.fetch_url).ok();
        let Some(url) = url.filter(|_| is_first && patience == Patience::Background) else {
            return Ok(());
        };
        let admitted = client.admit_first_fetch(&url).await;
        admitted.map_err(|retry_in| {
            let retry_in = retry_in.max(FIRST_FETCH_AGAIN);
            let busy = Busy::Host(HostBusy { host: topic::host(&url), retry_in });
            PollStop::PutOff(PutOff { busy, has_begun: false })
        })
    }

    /// Releases the resource, to be polled again soon.
    pub(super) async fn put_off(
        &self,
        due: &DueResource,
        why: PutOff,
        now: DateTime<Utc>,
    ) -> Result<PollEnd, StoreError> {
        let due_at = why.due_at(now, runner::jitter());
        let reason = why.busy.reason();
        debug!(resource = due.resource.id.0, %due_at, "poll postponed: {reason}");
        self.metrics.poll_put_off();
        let released = ReleasedResource {
            put_off: Some((due_at, reason)),
            left_alone_until: why.busy.paused_until(),
            ..ReleasedResource::unchanged(due, now)
        };
        self.store.release_resource(&released).await?;
        Ok(PollEnd::PutOff(why.busy.gateway(now)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p41_a_poll_that_was_put_off_is_repeated_when_its_host_may_be_free() {
        let now = DateTime::UNIX_EPOCH;
        let wait = |retry_s, has_begun, jitter| {
            let retry_in = Duration::from_secs(retry_s);
            let busy = HostBusy { host: "a.test:80".to_owned(), retry_in };
            let busy = Busy::Host(busy);
            (PutOff { busy, has_begun }.due_at(now, jitter) - now).num_seconds()
        };
        let cases = [
            ("when the host may be free", wait(7, false, 0.0), 7),
            ("spread", wait(10, false, 1.0), 15),
            ("never at once", wait(0, false, 0.0), 1),
            ("a minute after a request", wait(7, true, 0.0), 60),
            ("or later", wait(90, true, 0.0), 90),
        ];
        for (why, seconds, want) in cases {
            assert_eq!(seconds, want, "{why}");
        }
    }
}
