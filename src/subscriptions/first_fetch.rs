//! The first fetch of a resource, before its first subscription.

use std::time::Duration;

use chrono::{DateTime, Utc};
use feedgate_core::backfill;
use feedgate_core::intent::Intent;
use feedgate_core::ports::StoreError;
use feedgate_core::resource::{Resource, ResourceKind};
use feedgate_core::topic::Topic;
use tokio::time::timeout;
use tracing::debug;

use super::SubscriptionService;

/// The maximum time that a subscriber waits for the first fetch of a resource. A slower resource is
/// fetched later like any other.
const FIRST_LOOK: Duration = Duration::from_secs(10);

impl SubscriptionService {
    /// Fetches the resource of an intent, unless it is fetched already. If its history was
    /// requested, the current entries follow the history and are fetched after it.
    pub(super) async fn look_for(
        &self,
        intent: &Intent,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let topic = &intent.request.topic;
        if intent.backfill && backfill::is_unread(&self.store.ensure(topic, now).await?) {
            return Ok(());
        }
        self.ensure_read(topic, now).await.map(drop)
    }

    /// Returns whether a resource has not been fetched yet because its history is loaded first.
    pub(super) async fn awaits_history(&self, resource: &Resource) -> Result<bool, StoreError> {
        if !backfill::is_unread(resource) {
            return Ok(false);
        }
        let found = self.store.backfills(&[resource.id]).await?;
        Ok(found.iter().any(|backfill| backfill.holds && backfill.ended_at.is_none()))
    }

    /// Ensures that the resource is stored, and fetches it unless it has subscriptions already.
    pub(super) async fn ensure_read(
        &self,
        topic: &Topic,
        now: DateTime<Utc>,
    ) -> Result<Resource, StoreError> {
        let resource = self.store.ensure(topic, now).await?;
        let is_watched = resource.subscribers > 0 && resource.status.last_fetch.is_some();
        if is_watched || resource.kind == ResourceKind::Collection {
            return Ok(resource);
        }
        if self.awaits_history(&resource).await? {
            return Ok(resource);
        }
        match timeout(FIRST_LOOK, self.ingest.poll_now(&resource)).await {
            Ok(polled) => polled,
            Err(_) => {
                debug!(
                    resource = resource.id.0,
                    "the first fetch of a resource timed out; it is fetched later"
                );
                Ok(resource)
            }
        }
    }
}
