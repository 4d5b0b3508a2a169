//! Fan-outs of appends to resources with many subscriptions.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::StoreError;
use crate::resource::ResourceId;

/// Fan-outs that an append has begun and a job completes.
#[async_trait]
pub trait FanOuts: Send + Sync {
    /// Returns up to `limit` resources with subscriptions that are still to be marked due, the one
    /// that was advanced longest ago first.
    async fn pending_fan_outs(&self, limit: usize) -> Result<Vec<ResourceId>, StoreError>;

    /// Marks the next subscriptions of `resource` due. Several nodes may do so at the same time.
    async fn continue_fan_out(
        &self,
        resource: ResourceId,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError>;
}
