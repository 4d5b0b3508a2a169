//! Polls that were put off, because their host or its address was busy.
//!
//! A poll does not wait long for a host, because it occupies one of the slots in which polls run
//! (rule P41). It ends without a result and is repeated soon: nothing is counted as a failure, and
//! nothing of the resource changes but the time of its next poll.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tracing::debug;

use crate::jobs::runner;
use crate::net::HostBusy;
use feedgate_core::ports::{DueResource, ReleasedResource, StoreError};

use super::Poller;

/// The minimum time before a poll is repeated that had sent a request when it was put off: no
/// server is polled more often than once a minute.
const AFTER_REQUEST: Duration = Duration::from_secs(60);

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
    /// The host that was busy.
    pub(super) busy: HostBusy,
    /// Whether another host had received a request already.
    pub(super) has_begun: bool,
}

impl From<StoreError> for PollStop {
    fn from(err: StoreError) -> PollStop {
        PollStop::Store(err)
    }
}

impl PutOff {
    /// Returns when the poll is repeated. `jitter` is random from 0 to 1: it spreads polls that
    /// were put off at the same time by half of the wait.
    fn due_at(&self, now: DateTime<Utc>, jitter: f64) -> DateTime<Utc> {
        let least = if self.has_begun { AFTER_REQUEST } else { Duration::from_secs(1) };
        let wait = self.busy.retry_in.max(least).mul_f64(1.0 + 0.5 * jitter.clamp(0.0, 1.0));
        now + TimeDelta::from_std(wait).unwrap_or(TimeDelta::hours(1))
    }
}

impl Poller {
    /// Releases the resource, to be polled again soon.
    pub(super) async fn put_off(
        &self,
        due: &DueResource,
        why: PutOff,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let due_at = why.due_at(now, runner::jitter());
        let host = &why.busy.host;
        debug!(resource = due.resource.id.0, host, %due_at, "poll postponed: the host is busy");
        self.metrics.poll_put_off();
        let reason = format!("the server {host} is busy with other polls from this gateway");
        let released = ReleasedResource {
            id: due.resource.id,
            claim: due.claim,
            at: now,
            put_off: Some((due_at, reason)),
        };
        self.store.release_resource(&released).await
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
