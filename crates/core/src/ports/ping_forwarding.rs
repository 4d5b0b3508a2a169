//! What may be asked of the pings that go on to sinks.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::StoreError;
use crate::ping::WeblogChange;
use crate::ping_forwarding::DuePing;

/// PingTargets that have to be told of changes, a row for each sink and resource.
#[async_trait]
pub trait PingTargets: Send + Sync {
    /// Has all sinks told that a weblog changed, if the owner of its feed asked for it: one
    /// that nobody here watches, and that is known to have changed.
    async fn forward_ping(&self, weblog: &WeblogChange) -> Result<(), StoreError>;

    /// Takes up to `limit` pings that are due to the sink of this name at `now`, and hides
    /// them until `until`.
    async fn claim_forwarded_pings(
        &self,
        sink: &str,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<DuePing>, StoreError>;

    /// Keeps that a ping is to be sent again then, or that it is done with. If there was
    /// another change meanwhile, it is due again `now`.
    async fn finish_forwarded_ping(
        &self,
        due: &DuePing,
        retry_at: Option<DateTime<Utc>>,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError>;

    /// Forgets what is owed to other sinks than those of these names. Returns how much.
    async fn forget_other_targets(&self, known: &[String]) -> Result<u64, StoreError>;
}
