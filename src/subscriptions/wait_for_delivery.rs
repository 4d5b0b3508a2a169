//! Waiting until the subscribers of a resource have been notified after a ping.
//!
//! The response to a ping usually does not wait for deliveries, because the slowest subscriber
//! would delay it. A client that asks for it waits here, for a limited time, while the jobs do the
//! work. Another node may be doing it, so progress is read from the store.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use super::{CallerNetworks, SubscriptionRefusal, SubscriptionService};
use crate::jobs::runner;
use feedgate_core::ping::Ping;
use feedgate_core::resource::Resource;
use feedgate_core::store::{LogNumbers, StoreError};
use feedgate_core::topic::Topic;

/// The maximum number of waiting clients. Further ones are answered at once.
pub(super) const WAITING: usize = 32;
/// The first and the longest interval between two checks of the progress.
const LOOKS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(250));

impl SubscriptionService {
    /// Processes a ping and waits, for `patience` at most, until each affected subscriber has had
    /// one delivery attempt. Returns the number of notified subscribers. Failed deliveries are
    /// retried later, without waiting for them.
    pub async fn ping_and_wait(
        &self,
        ping: &Ping,
        (spacing, patience): (Duration, Duration),
        networks: CallerNetworks,
    ) -> Result<u64, SubscriptionRefusal> {
        let until = Instant::now() + patience;
        let known = match Topic::parse(ping.url.as_str()) {
            Ok(topic) => self.store.find(topic.as_str()).await?,
            Err(_) => None,
        };
        let place = self.waiting.try_acquire().ok();
        let Some((resource, _place)) = known.filter(|held| held.subscribers > 0).zip(place) else {
            return self.ping_readable(ping, spacing, networks).await.map(|()| 0);
        };
        self.ping(ping, spacing).await?;
        match timeout_at(until, self.polled_after(&resource, ping, spacing)).await {
            Ok(polled) if polled.as_ref().is_ok_and(|held| held.status.is_failing()) => {
                return Err(SubscriptionRefusal::Unreadable(ping.url.clone()));
            }
            Ok(polled) => polled.map(drop)?,
            Err(_) => {}
        }
        let told = self.told(&resource, until).await?;
        // Whoever pings learns no more of what belongs to accounts than that the feed can be read.
        Ok(if resource.is_readable() { told } else { 0 })
    }

    /// Waits until the resource has been polled after the ping, and returns its state after the
    /// poll.
    async fn polled_after(
        &self,
        resource: &Resource,
        ping: &Ping,
        spacing: Duration,
    ) -> Result<Resource, StoreError> {
        let (mut held, mut pause) = (resource.clone(), LOOKS.0);
        while held.status.last_fetch.is_none_or(|at| at < ping.at) {
            let is_time = |at| at + spacing <= runner::now();
            if held.status.last_fetch.is_none_or(is_time) {
                held = self.ingest.poll_now(&held).await?.resource;
            } else if let Some(now) = self.store.get(resource.id).await? {
                held = now;
            }
            sleep(pause).await;
            // The interval grows, because the server may be one that must not be contacted now.
            pause = (pause * 2).min(LOOKS.1);
        }
        Ok(held)
    }

    /// Returns the number of subscribers notified of records after `before`, once none is pending
    /// or the time is over.
    async fn told(&self, before: &Resource, until: Instant) -> Result<u64, StoreError> {
        let numbers = LogNumbers { head: before.head, body_version: before.body_version };
        let mut pause = LOOKS.0;
        loop {
            let telling = self.store.delivery_progress(before.id, numbers, runner::now()).await?;
            if telling.waiting == 0 || Instant::now() + pause >= until {
                return Ok(telling.told);
            }
            sleep(pause).await;
            pause = (pause * 2).min(LOOKS.1);
        }
    }
}
