//! What happens when somebody says that a resource changed.
//!
//! A ping is a hint, never the news itself: the resource is read before anybody is
//! told. Pings for resources nobody watches are kept for changes.xml only.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::timeout;

use super::{SubscriptionRefusal, SubscriptionService, events};
use crate::net::FetchRequest;
use feedgate_core::event::EventOutcome;
use feedgate_core::ping::Ping;
use feedgate_core::poll::Validators;
use feedgate_core::ports::StoreError;
use feedgate_core::resource::Resource;
use feedgate_core::topic::Topic;

/// How long a pinging publisher is kept waiting while its resource is read; WordPress
/// gives up after three seconds.
const PATIENCE: Duration = Duration::from_millis(2_500);

impl SubscriptionService {
    /// Keeps a ping and makes what it names due. None is fetched sooner than `spacing`
    /// after it was last fetched (rule S29). Returns how many resources that is.
    ///
    /// What is no address of ours to poll names nothing, and is not kept: strangers may
    /// send anything, of any length.
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

    /// Like [`ping`](Self::ping), but sees whether the resource can be read, which is
    /// what rssCloud's REST interface tells its callers.
    pub async fn ping_readable(
        &self,
        ping: &Ping,
        spacing: Duration,
    ) -> Result<(), SubscriptionRefusal> {
        let unreadable = || SubscriptionRefusal::Unreadable(ping.url.clone());
        let Ok(topic) = Topic::parse(ping.url.as_str()) else {
            self.ping(ping, spacing).await?; // which says so
            return Err(unreadable());
        };
        let known = self.store.find(topic.as_str()).await?;
        let is_readable = match known.filter(|resource| resource.subscribers > 0) {
            Some(resource) => {
                self.ping(ping, spacing).await?;
                self.is_readable(&resource, ping.at, spacing).await?
            }
            None => {
                let is_readable = self.can_fetch(&topic).await;
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

    /// Whether a watched resource can be read; taken for granted if that takes long to
    /// tell. One that was read a moment ago is not read again.
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
            Ok(polled) => Ok(!polled?.status.is_failing()),
            Err(_) => Ok(true),
        }
    }

    /// Whether something that nobody watches can be fetched; taken for granted if that
    /// takes long to tell. Strangers can name any address here, so few are fetched at
    /// once.
    async fn can_fetch(&self, topic: &Topic) -> bool {
        let Ok(_place) = self.probes.try_acquire() else { return true };
        let (url, validators) = (topic.fetch_url(), Validators::default());
        let ask = FetchRequest {
            url: url.as_str(),
            validators: &validators,
            subscribers: 0,
            feed_id: None,
        };
        let fetched = timeout(PATIENCE, self.fetch.get(ask)).await;
        fetched.map_or(true, |fetched| fetched.result.is_ok())
    }
}
