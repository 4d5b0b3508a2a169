//! Polls a resource at once, for a request that waits for the result.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::{Instant, sleep};
use tracing::{debug, warn};

use crate::jobs::runner;
use crate::net::Patience;
use feedgate_core::ports::StoreError;
use feedgate_core::resource::{Resource, ResourceId};

use super::Poller;

/// How often to check whether another worker's poll of the resource has ended.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

impl Poller {
    /// Polls a resource now, due or not, and returns it as it is afterwards. The result of
    /// another worker's poll is used instead if one is running, or was recorded since the caller
    /// read `resource`.
    ///
    /// Once started, the poll runs to its end even if the caller stops waiting.
    pub async fn poll_now(&self, resource: &Resource) -> Result<Resource, StoreError> {
        let current = self.current(resource).await?;
        if current.status.last_fetch != resource.status.last_fetch {
            return Ok(current);
        }
        let now = runner::now();
        if let Some(until) = self.host_backoff_until(&current, now).await? {
            debug!(resource = current.id.0, %until, "resource not polled: requests to its host are paused");
            return Ok(current);
        }
        // The claim is made by the task that polls: if the caller stopped waiting while the claim
        // is made, no other task would know of it, and the resource could not be polled until the
        // claim ends.
        let (this, id) = (self.clone(), resource.id);
        let poll = tokio::spawn(async move { this.claim_and_poll(id, now).await });
        let has_polled = poll.await.unwrap_or_else(|err| {
            warn!(resource = resource.id.0, error = %err, "a poll panicked");
            Ok(true)
        })?;
        if !has_polled {
            self.wait_for_poll(resource).await?;
        }
        self.current(resource).await
    }

    /// Polls a resource, unless another worker is polling it. Returns whether it did.
    async fn claim_and_poll(&self, id: ResourceId, now: DateTime<Utc>) -> Result<bool, StoreError> {
        let until = now + self.settings.claim;
        let Some(due) = self.store.claim_resource(id, now, until).await? else {
            return Ok(false);
        };
        let claim = self.claims.hold_claim(due.resource.id, due.claim);
        let permit = self.permits.acquire(self.store.group(&due.resource.fetch_url));
        let polled = self.poll(&due, now, Patience::Interactive).await;
        drop((permit, claim));
        polled.map(|()| true)
    }

    /// Returns the time until which the host of a resource must not be contacted, if there is one.
    pub async fn host_backoff_until(
        &self,
        resource: &Resource,
        now: DateTime<Utc>,
    ) -> Result<Option<DateTime<Utc>>, StoreError> {
        let host = self.store.host(&self.store.group(&resource.fetch_url)).await?;
        Ok(host.cool_until.filter(|until| *until > now))
    }

    /// Returns the resource as it is in the store now.
    async fn current(&self, resource: &Resource) -> Result<Resource, StoreError> {
        let current = self.store.get(resource.id).await?;
        current.ok_or_else(|| StoreError::Corrupt(format!("resource {} vanished", resource.id)))
    }

    /// Waits until another worker's poll has been recorded, or its claim has expired.
    async fn wait_for_poll(&self, resource: &Resource) -> Result<(), StoreError> {
        let until = Instant::now() + self.settings.claim;
        while Instant::now() < until {
            if self.current(resource).await?.status.last_fetch != resource.status.last_fetch {
                break;
            }
            sleep(CHECK_INTERVAL).await;
        }
        Ok(())
    }
}
