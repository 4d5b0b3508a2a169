//! Processing of pings.
//!
//! A ping is only a hint: the resource is fetched before subscribers are notified. Pings for
//! resources without subscriptions are stored for changes.xml only.

use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use tokio::time::{sleep, timeout};

use super::{CallerNetworks, SubscriptionRefusal, SubscriptionService, events};
use crate::jobs::poll::{PolledNow, PushedDocument};
use crate::jobs::runner;
use crate::net::{FetchError, FetchRequest, Fetched};
use feedgate_core::event::EventOutcome;
use feedgate_core::ping::Ping;
use feedgate_core::poll::Validators;
use feedgate_core::resource::Resource;
use feedgate_core::store::StoreError;
use feedgate_core::topic::Topic;

/// The maximum time that a publisher waits until its resource has been fetched; WordPress gives up
/// after three seconds.
const PATIENCE: Duration = Duration::from_millis(2_500);

impl SubscriptionService {
    /// Stores a ping and makes the resources that it names due. No resource is fetched sooner than
    /// `spacing` after its last fetch (rule S29). Returns the number of resources.
    ///
    /// A ping that names no valid topic is not stored, because anybody may send anything, of any
    /// length.
    pub async fn ping(&self, ping: &Ping, spacing: Duration) -> Result<usize, StoreError> {
        self.metrics.pinged(ping.source.as_str());
        if let Err(why) = Topic::parse(ping.url.as_str()) {
            let (outcome, why) = (EventOutcome::Refused, why.to_string());
            self.event_log.record(events::ping_refused(ping, outcome, "bad_url", &why));
            return Ok(0);
        }
        let named = self.store.receive(ping, spacing).await?;
        self.event_log.record(events::pinged(ping, named));
        Ok(named)
    }

    /// Delivers the entries of a document that came with a ping, if its publisher has signed it.
    /// Unsigned content is not used: anybody could have sent it. The ping is stored by
    /// [`ping`](Self::ping); the fetch that follows finds what a document alone does not say.
    pub async fn publish_content(
        &self,
        ping: &Ping,
        content: &str,
        is_signed: bool,
    ) -> Result<(), StoreError> {
        if !is_signed {
            let why = "hub.content is not used: hub.signature is not that of the publisher";
            let refused = EventOutcome::Refused;
            self.event_log.record(events::ping_refused(ping, refused, "bad_signature", why));
            return Ok(());
        }
        let Ok(topic) = Topic::parse(ping.url.as_str()) else { return Ok(()) };
        let known = self.store.find(topic.as_str()).await?;
        let Some(resource) = known.filter(|resource| resource.subscribers > 0) else {
            return Ok(());
        };
        let body = Bytes::copy_from_slice(content.as_bytes());
        let pushed = PushedDocument { content_type: None, body };
        let new = self.ingest.push(&resource, pushed, ping.at).await?;
        self.event_log.record(events::content_published(ping, new));
        Ok(())
    }

    /// Processes a ping like [`ping`](Self::ping), and waits until its resource has been fetched if
    /// that has subscriptions.
    pub async fn ping_and_fetch(&self, ping: &Ping, spacing: Duration) -> Result<(), StoreError> {
        let known = match Topic::parse(ping.url.as_str()) {
            Ok(topic) => self.store.find(topic.as_str()).await?,
            Err(_) => None,
        };
        self.ping(ping, spacing).await?;
        if let Some(resource) = known.filter(|resource| resource.subscribers > 0) {
            self.can_fetch_after(&resource, ping, spacing).await?;
        }
        Ok(())
    }

    /// Processes a ping like [`ping_and_fetch`](Self::ping_and_fetch), but checks whether the resource
    /// can be read, as rssCloud's REST interface reports to its callers.
    pub async fn ping_readable(
        &self,
        ping: &Ping,
        spacing: Duration,
        networks: CallerNetworks,
    ) -> Result<(), SubscriptionRefusal> {
        let unreadable = || SubscriptionRefusal::Unreadable(ping.url.clone());
        let Ok(topic) = Topic::parse(ping.url.as_str()) else {
            self.ping(ping, spacing).await?; // records the ping
            return Err(unreadable());
        };
        let known = self.store.find(topic.as_str()).await?;
        let is_readable = match known {
            Some(resource) if resource.subscribers > 0 => {
                self.ping(ping, spacing).await?;
                self.can_fetch_after(&resource, ping, spacing).await?
            }
            Some(resource) if resource.polling.left_alone_after(ping.at).is_some() => false,
            _ => {
                let is_readable = self.can_fetch(&topic, networks).await;
                if is_readable {
                    self.ping(ping, spacing).await?;
                }
                is_readable
            }
        };
        if is_readable {
            return Ok(());
        }
        let why = unreadable();
        let (outcome, words) = (EventOutcome::Failed, why.to_string());
        self.event_log.record(events::ping_refused(ping, outcome, why.code(), &words));
        Err(why)
    }

    /// Fetches a resource with subscriptions after a ping, `spacing` after its last fetch at the
    /// earliest, and returns whether it could be read; `true` if that takes too long.
    async fn can_fetch_after(
        &self,
        resource: &Resource,
        ping: &Ping,
        spacing: Duration,
    ) -> Result<bool, StoreError> {
        match timeout(PATIENCE, self.polled_since(resource, ping.at, spacing)).await {
            Ok(polled) => {
                let PolledNow { resource, busy } = polled?;
                Ok(busy.is_some() || !resource.status.is_failing())
            }
            Err(_) => Ok(true),
        }
    }

    /// Returns a resource after a poll that began at `since` or later, or as it is if it must not be
    /// polled now.
    async fn polled_since(
        &self,
        resource: &Resource,
        since: DateTime<Utc>,
        spacing: Duration,
    ) -> Result<PolledNow, StoreError> {
        let mut polled = PolledNow::idle(resource.clone());
        while polled.resource.status.last_fetch.is_none_or(|at| at < since) {
            let last_fetch = polled.resource.status.last_fetch;
            let pause = last_fetch.map(|at| at + spacing - runner::now());
            let pause = pause.and_then(|pause| pause.to_std().ok()).unwrap_or_default();
            if pause > PATIENCE {
                break;
            }
            sleep(pause).await;
            polled = self.ingest.poll_now(&polled.resource).await?;
            if polled.resource.status.last_fetch == last_fetch {
                break;
            }
        }
        Ok(polled)
    }

    /// Returns whether a resource with subscriptions can be read; `true` if that takes too long to
    /// find out. A resource that was fetched a moment ago is not fetched again.
    pub(super) async fn is_readable(
        &self,
        resource: &Resource,
        now: DateTime<Utc>,
        spacing: Duration,
    ) -> Result<bool, StoreError> {
        if resource.status.last_fetch.is_some_and(|at| at + spacing > now) {
            return Ok(!resource.status.is_failing());
        }
        match timeout(PATIENCE, self.ingest.poll_now(resource)).await {
            Ok(polled) => {
                let PolledNow { resource, busy } = polled?;
                Ok(busy.is_some() || !resource.status.is_failing())
            }
            Err(_) => Ok(true),
        }
    }

    /// Returns whether a resource without subscriptions can be fetched; `true` if that takes too
    /// long to find out. Anybody can name any address, so few are fetched at once, and
    /// few from one network.
    async fn can_fetch(&self, topic: &Topic, networks: CallerNetworks) -> bool {
        if self.check_topic_network(topic, networks).await.is_err() {
            return false;
        }
        let Ok(_place) = self.probes.try_acquire() else { return true };
        let (url, validators) = (topic.fetch_url(), Validators::default());
        let ask = FetchRequest {
            url: url.as_str(),
            validators: &validators,
            subscribers: 0,
            feed_id: None,
        };
        // A name that looks public may lead inside a private network.
        let client = match networks.includes(&url) {
            true => self.fetch.clone(),
            false => self.fetch.public_topics_only(),
        };
        if client.admit_first_fetch(&url).await.is_err() {
            return true;
        }
        let fetched = timeout(PATIENCE, client.get(ask)).await;
        let is_fetchable = |fetched: Fetched| {
            use FetchError::{GatewayBusy, HostPaused};
            matches!(fetched.result, Ok(_) | Err(GatewayBusy(_) | HostPaused { .. }))
        };
        fetched.map_or(true, is_fetchable)
    }
}
