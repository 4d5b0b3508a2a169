//! Permits to verify the callbacks of a subscription request (rule S26).

use std::time::Duration;

use super::host_limits::VerificationPermit;
use super::{NotVerified, SubscriptionRefusal, SubscriptionService};
use feedgate_core::ports::{StoreError, SubscriptionFilter};
use feedgate_core::topic::{Callback, Topic};

impl SubscriptionService {
    /// Returns a permit to verify a callback, or after how long one may be free if its host has too
    /// many verifications (rule S26). A callback that is subscribed already has agreed before, and
    /// needs no permit.
    pub(super) async fn visit(
        &self,
        topic: &Topic,
        callback: &Callback,
    ) -> Result<Result<VerificationPermit, Duration>, StoreError> {
        if self.fetch.resolves_to_inner(&callback.url()).await {
            return Ok(Ok(VerificationPermit::free()));
        }
        if let Some(visit) = self.hosts.try_visit(callback) {
            return Ok(Ok(visit));
        }
        match self.is_subscriber(topic, callback).await? {
            true => Ok(Ok(VerificationPermit::free())),
            false => Ok(self.hosts.wait(callback).await),
        }
    }

    /// Refuses a verification that would be refused for the failures of others at the same host,
    /// before anything else is done for it.
    pub(super) async fn check_failures(
        &self,
        topic: &Topic,
        callback: &Callback,
    ) -> Result<(), SubscriptionRefusal> {
        let Some(retry_after) = self.hosts.retry_after(callback) else { return Ok(()) };
        if self.is_subscriber(topic, callback).await? {
            return Ok(());
        }
        Err(NotVerified::RateLimited { retry_after }.into())
    }

    async fn is_subscriber(&self, topic: &Topic, callback: &Callback) -> Result<bool, StoreError> {
        let filter = SubscriptionFilter {
            topic: Some(topic.as_str().to_owned()),
            callback: Some(callback.as_str().to_owned()),
            limit: 1,
            ..SubscriptionFilter::default()
        };
        Ok(self.store.list(&filter).await?.1 > 0)
    }
}
