//! What a refused poll means for others that ask the same server, and what theirs mean for
//! it (rules P26 to P28).

use chrono::{DateTime, Utc};

use feedgate_core::host::{HostBackoff, HostRefusal};
use feedgate_core::poll::Poll;
use feedgate_core::ports::DueResource;
use feedgate_core::resource::Resource;

use super::Ingest;
use super::observe::{Found, Seen};
use feedgate_core::ports::StoreError;

/// The status word of a resource whose server refuses all of us: no fault of its own.
const BLOCKED: &str = "blocked";

impl Ingest {
    /// Keeps that the server refused this poll, if it did, and says what follows for all
    /// that it serves.
    pub(super) async fn heed(
        &self,
        due: &DueResource,
        seen: &Seen,
    ) -> Result<Option<HostBackoff>, StoreError> {
        let Found::Trouble(trouble) = &seen.found else { return Ok(None) };
        if !matches!(trouble.http_code, 401 | 403 | 429 | 503) {
            return Ok(None);
        }
        let refused = HostRefusal {
            group: self.store.group(&due.resource.fetch_url),
            resource: due.resource.id,
            at: seen.at + seen.took,
            http_code: trouble.http_code,
            retry_after_s: trouble.retry_after_s,
        };
        self.store.refuse(&refused).await
    }
}

/// Makes of a poll one that waits with all others of its server. `dice` is random in 0 to
/// 1: it spreads those that were in hand together by a tenth of the wait.
pub(super) fn wait_with_all(poll: &mut Poll, before: &Resource, verdict: &HostBackoff, dice: f64) {
    let (until, why) = &verdict.leave_alone;
    let spread = (*until - poll.at).as_seconds_f64().max(0.0) * 0.1 * dice.clamp(0.0, 1.0);
    let from = *until + chrono::TimeDelta::milliseconds((spread * 1_000.0) as i64);
    put_off(poll, from, why);
    // The server's doing, which says nothing about this resource.
    poll.polling.failures = before.polling.failures;
    if verdict.is_block {
        BLOCKED.clone_into(&mut poll.status.error);
        poll.status.http_message.clone_from(why);
    }
}

/// Puts the next fetch off until `from`, and tells why.
pub(super) fn put_off(poll: &mut Poll, from: DateTime<Utc>, why: &str) {
    if poll.next_fetch < from {
        poll.next_fetch = from;
        why.clone_into(&mut poll.status.period_reason);
    }
    poll.status.next_fetch = Some(poll.next_fetch);
}
