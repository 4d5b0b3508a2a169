//! The consequences of a refused poll for other resources on the same host, and of their refusals
//! for this one (rules P26 to P28).

use chrono::{DateTime, Utc};

use feedgate_core::host::{HostBackoff, HostRefusal};
use feedgate_core::poll::Poll;
use feedgate_core::ports::{DueResource, StoreError};
use feedgate_core::resource::Resource;

use super::Poller;
use super::observation::{Found, Observation};

/// The error code of a resource whose host refuses all requests of this gateway.
const BLOCKED: &str = "blocked";

impl Poller {
    /// Reports to the store that the host refused this poll, if it did, and returns what follows
    /// for all resources of the host.
    pub(super) async fn report_refusal(
        &self,
        due: &DueResource,
        observation: &Observation,
    ) -> Result<Option<HostBackoff>, StoreError> {
        let Found::Failure(failure) = &observation.found else { return Ok(None) };
        if !matches!(failure.http_code, 401 | 403 | 429 | 503) {
            return Ok(None);
        }
        let refused = HostRefusal {
            group: self.store.group(&due.resource.fetch_url),
            resource: due.resource.id,
            at: observation.at + observation.took,
            http_code: failure.http_code,
            retry_after_s: failure.retry_after_s,
        };
        self.store.refuse(&refused).await
    }
}

/// Postpones the next fetch until the backoff of the host ends. `jitter` is random from 0 to 1:
/// it spreads polls that ran at the same time by a tenth of the wait.
pub(super) fn apply_host_backoff(
    poll: &mut Poll,
    before: &Resource,
    backoff: &HostBackoff,
    jitter: f64,
) {
    let (until, reason) = &backoff.leave_alone;
    let spread = (*until - poll.at).as_seconds_f64().max(0.0) * 0.1 * jitter.clamp(0.0, 1.0);
    let from = *until + chrono::TimeDelta::milliseconds((spread * 1_000.0) as i64);
    postpone(poll, from, reason);
    // The refusal concerns the host, and is no sign of a failure of this resource.
    poll.polling.failures = before.polling.failures;
    if backoff.is_block {
        BLOCKED.clone_into(&mut poll.status.error);
        poll.status.http_message.clone_from(reason);
    }
}

/// Postpones the next fetch until `from`, with the reason in the status.
fn postpone(poll: &mut Poll, from: DateTime<Utc>, reason: &str) {
    if poll.next_fetch < from {
        poll.next_fetch = from;
        reason.clone_into(&mut poll.status.period_reason);
    }
    poll.status.next_fetch = Some(poll.next_fetch);
}
