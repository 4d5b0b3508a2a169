//! The port of forwarded pings.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::StoreError;
use crate::ping::WeblogChange;
use crate::ping_forwarding::DuePing;

/// Pings that wait to be forwarded: a row for each target and resource.
#[async_trait]
pub trait PingTargets: Send + Sync {
    /// Queues a ping of a changed weblog to all targets, if pings are forwarded for its feed. For
    /// a weblog that nobody subscribes to, and that is known to have changed.
    async fn forward_ping(&self, weblog: &WeblogChange) -> Result<(), StoreError>;

    /// Claims up to `limit` pings that are due to the target with this key at `now`, until `until`.
    async fn claim_forwarded_pings(
        &self,
        target: &str,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<DuePing>, StoreError>;

    /// Records that a ping is to be sent again at `retry_at`, or that it is finished. If the weblog
    /// changed again meanwhile, it is due again `now`. If the claim was lost, nothing changes.
    async fn finish_forwarded_ping(
        &self,
        due: &DuePing,
        retry_at: Option<DateTime<Utc>>,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError>;

    /// Deletes the pings to targets other than these. Returns how many.
    async fn forget_other_targets(&self, known: &[String]) -> Result<u64, StoreError>;
}
