//! The consequences of a refused poll for other resources on the same host, and of their refusals
//! for this one (rules P26 to P28).

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use feedgate_core::host::{HostBackoff, HostRefusal};
use feedgate_core::poll::Poll;
use feedgate_core::resource::Resource;
use feedgate_core::store::{DueResource, StoreError};

use super::Poller;
use super::observation::{Found, Observation};

/// The error code of a resource whose host refuses all requests of this gateway.
const BLOCKED: &str = "blocked";

impl Poller {
    /// Reports to the store that a server refused this poll, if one did, and returns what follows for all
    /// resources of its host group. The refusal is that of the server that answered, to which redirects
    /// may have led: the one that redirected has refused nothing.
    pub(super) async fn report_refusal(
        &self,
        due: &DueResource,
        observation: &Observation,
    ) -> Result<Option<HostBackoff>, StoreError> {
        let Found::Failure(failure) = &observation.found else { return Ok(None) };
        if !matches!(failure.http_code, 401 | 403 | 429 | 503) {
            return Ok(None);
        }
        // Anybody may cause polls ahead of the plan, of all feeds of a server within one short outage.
        let requests_pause = failure.http_code == 429 || failure.retry_after_s > Some(0);
        if !requests_pause && due.resource.polling.is_ahead_of_plan(observation.at) {
            return Ok(None);
        }
        let group = self.answering_group(&due.resource, observation);
        let refused = HostRefusal {
            was_read: self.was_read_from(&due.resource, &group),
            group,
            resource: due.resource.id,
            at: observation.at + observation.took,
            http_code: failure.http_code,
            retry_after_s: failure.retry_after_s,
        };
        self.store.record_refusal(&refused).await
    }

    /// Returns whether a resource was last read from a server of this host group.
    pub(in crate::jobs) fn was_read_from(&self, resource: &Resource, group: &str) -> bool {
        let read_from = &resource.polling.validators.url;
        !read_from.is_empty() && self.store.group(read_from) == group
    }

    /// Returns the host group of the server that gave what was found.
    pub(super) fn answering_group(&self, resource: &Resource, observation: &Observation) -> String {
        let url = observation.visits.last().map_or(&resource.fetch_url, |visit| &visit.url);
        self.store.group(url)
    }

    /// Records which other host groups answered well: with a redirect, or with what was found.
    /// Returns whether the group of the resource did.
    pub(super) async fn credit_servers(
        &self,
        resource: &Resource,
        observation: &Observation,
    ) -> Result<bool, StoreError> {
        let own = self.store.group(&resource.fetch_url);
        let has_failed = matches!(observation.found, Found::Failure(_));
        let answered_last = self.answering_group(resource, observation);
        let answered_before: BTreeSet<String> =
            observation.visits.iter().map(|visit| self.store.group(&visit.url)).collect();
        let is_well = |group: &String| !has_failed || *group != answered_last;
        for group in answered_before.iter().filter(|group| **group != own && is_well(group)) {
            self.store.record_good_answer(group, observation.at + observation.took).await?;
        }
        Ok(is_well(&own))
    }
}

/// Postpones the next fetch until the backoff of the host ends. `is_redirected` states whether that host is
/// in another group, to which the resource redirects. `jitter` is random from 0 to 1:
/// it spreads polls that ran at the same time by a tenth of the wait.
pub(super) fn apply_host_backoff(
    poll: &mut Poll,
    before: &Resource,
    (backoff, is_redirected): (&HostBackoff, bool),
    jitter: f64,
) {
    let (until, reason) = &backoff.leave_alone;
    let spread = (*until - poll.at).as_seconds_f64().max(0.0) * 0.1 * jitter.clamp(0.0, 1.0);
    let from = *until + chrono::TimeDelta::milliseconds((spread * 1_000.0) as i64);
    postpone(poll, from, reason);
    if is_redirected {
        // The server that redirects is not asked in vain.
        poll.polling.left_alone_until = poll.polling.left_alone_until.max(Some(*until));
    }
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
