//! UpstreamClient: subscribing where resources say that they tell of their changes, at hubs by
//! WebSub, at clouds by rssCloud, and taking what they tell (rule P53).
//!
//! What holds here:
//!
//! * All that is known stands in the store: whom to ask next, the address at which we are
//!   told, the secret. A restart or another node goes on where this one was.
//! * A hub is always given a secret. What it then sends is believed only if signed with
//!   it; anything else is a hint to poll.
//! * An upstream that fails is asked again ever later, and nothing else changes: the
//!   resource is polled as if it had none.

mod request;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use tracing::{debug, error, info};
use url::Url;

use crate::event_log::EventLog;
use crate::jobs::poll::{Poller, PushedDocument};
use crate::jobs::runner::{self, HostPermit, HostPermits, Job};
use crate::metrics::Metrics;
use crate::net::HttpClient;
use feedgate_core::event::{Event, EventKind};
use feedgate_core::ping::{Ping, PingSource};
use feedgate_core::ports::{Store, StoreError};
use feedgate_core::resource::Resource;
use feedgate_core::subscription::Lease;
use feedgate_core::topic;
use feedgate_core::upstream::Upstream;
use feedgate_protocol::Protocol;
use feedgate_protocol::signature;

pub use request::{UpstreamError, UpstreamRequest, ask, classify};

/// Longer than a request and its answer can take.
const CLAIM: Duration = Duration::from_secs(120);
/// Requests at once to one hub or cloud: one that does not answer must leave limits for others.
const PER_HOST: usize = 2;
/// The least and the most that a hub's lease is believed to last.
const LEASES: (u64, u64) = (60, 366 * 86_400);

/// What the operator decides about upstreams.
#[derive(Clone, Debug)]
pub struct UpstreamSettings {
    /// Below it are the addresses at which we are told; others must be able to reach it.
    pub public_url: Url,
    /// Between two fetches of one resource because it was told of.
    pub ping_spacing: Duration,
}

/// Asks upstreams, and takes what they tell.
pub struct UpstreamClient {
    parts: Parts,
    permits: HostPermits,
}

/// An upstream with which something is to be done, and until when it is ours.
#[derive(Debug)]
pub struct ClaimedUpstream {
    upstream: Upstream,
    claimed_until: DateTime<Utc>,
    permit: HostPermit,
}

/// What an [`UpstreamClient`] is made of.
pub struct Parts {
    /// Where upstreams are kept.
    pub store: Arc<dyn Store>,
    /// Sends the requests.
    pub client: HttpClient,
    /// Reads the documents that hubs send.
    pub poller: Poller,
    /// Counts requests and notifications.
    pub metrics: Metrics,
    /// Records notifications.
    pub event_log: EventLog,
    /// The operator's settings.
    pub settings: UpstreamSettings,
}

impl UpstreamClient {
    /// A client with these parts.
    pub fn new(parts: Parts) -> UpstreamClient {
        // No wake signal is needed: a worker that waits for a permit claims again soon.
        UpstreamClient { permits: HostPermits::new(PER_HOST, Arc::default()), parts }
    }

    /// Subscribes, renews, or leaves where nobody follows the resource any more.
    async fn attend(&self, job: ClaimedUpstream) -> Result<(), StoreError> {
        let ClaimedUpstream { mut upstream, claimed_until, permit: _permit } = job;
        let protocol = &upstream.offer.protocol;
        if upstream.subscribers == 0 {
            if *protocol == Protocol::WebSub {
                let left = self.ask(&upstream, "unsubscribe").await;
                debug!(ok = left.is_ok(), "left the hub of a resource nobody follows");
            }
            return self.parts.store.end_upstream(&upstream).await;
        }
        let asked = self.ask(&upstream, "subscribe").await;
        let result = asked.as_ref().map_or_else(UpstreamError::code, |()| "ok");
        self.parts.metrics.upstream_asked(protocol.as_str(), result);
        let now = runner::now();
        let due_at = match asked {
            // A cloud has verified us before it answers; a hub does so by and by.
            Ok(()) if protocol.is_rsscloud() => {
                upstream.confirm(Lease::RSSCLOUD.end(now));
                now + upstream.offer.renewal(Duration::from_secs(Lease::RSSCLOUD.as_secs()))
            }
            Ok(()) => now + upstream.accepted(),
            Err(why) => {
                self.report(&upstream, &why);
                let spread = 0.9 + 0.2 * runner::jitter();
                now + upstream.refused(why.is_final()).mul_f64(spread)
            }
        };
        let (upstream, claimed) = (&upstream, Some(claimed_until));
        self.parts.store.save_upstream(upstream, claimed, due_at).await.map(drop)
    }

    async fn ask(&self, upstream: &Upstream, mode: &str) -> Result<(), UpstreamError> {
        request::send(&self.parts.client, upstream, mode, &self.parts.settings.public_url).await
    }

    /// Not at every attempt; hosts only, because addresses carry tokens.
    fn report(&self, upstream: &Upstream, why: &UpstreamError) {
        if upstream.failures == 0 {
            let host = Url::parse(&upstream.offer.endpoint).map(|url| topic::host(&url));
            info!(
                resource = upstream.resource.0,
                host = host.unwrap_or_default(),
                code = why.code(),
                error = why as &dyn Error,
                "an upstream does not tell us; its resource is polled as before"
            );
        }
    }

    /// The upstream that tells us at the address with this token, and its resource; `None`
    /// where nobody is told any more, which is to end it.
    pub async fn known(&self, token: &str) -> Result<Option<(Upstream, Resource)>, StoreError> {
        let Some(upstream) = self.parts.store.upstream(token).await? else { return Ok(None) };
        let resource = self.parts.store.get(upstream.resource).await?;
        match resource.filter(|held| held.subscribers > 0) {
            Some(resource) => Ok(Some((upstream, resource))),
            None => {
                // What it is told now ends it there, so it must not be relied on here.
                self.parts.store.end_upstream(&upstream).await?;
                Ok(None)
            }
        }
    }

    /// A hub verifies that we asked: whether we did, for this topic. If so, it holds for
    /// `lease_s` from now.
    pub async fn agree(
        &self,
        mut upstream: Upstream,
        topic: &str,
        lease_s: Option<u64>,
    ) -> Result<bool, StoreError> {
        if topic != upstream.offer.topic || !upstream.state.is_asking() {
            return Ok(false);
        }
        let lease = lease_s.unwrap_or(Lease::WEBSUB.as_secs()).clamp(LEASES.0, LEASES.1);
        let lease = Duration::from_secs(lease);
        let now = runner::now();
        upstream.confirm(now + lease);
        let renewal = now + upstream.offer.renewal(lease);
        self.parts.store.save_upstream(&upstream, None, renewal).await
    }

    /// A hub says that it will not tell us (WebSub `#subscription-validation`).
    pub async fn denied(&self, mut upstream: Upstream) -> Result<(), StoreError> {
        let due_at = runner::now() + upstream.refused(true);
        self.parts.store.save_upstream(&upstream, None, due_at).await.map(drop)
    }

    /// An upstream tells of a change. What a hub sent and signed is taken as it is, unless
    /// it comes sooner after the last than a ping may; everything is polled besides,
    /// because a push may hold less than the document.
    pub async fn told(
        &self,
        upstream: &Upstream,
        resource: &Resource,
        (signature, content_type, body): (&str, Option<String>, Bytes),
    ) -> Result<(), StoreError> {
        let now = runner::now();
        let protocol = upstream.offer.protocol.as_str();
        let is_signed = upstream.offer.protocol == Protocol::WebSub
            && signature::holds(signature, upstream.secret.expose(), &body);
        let spacing = self.parts.settings.ping_spacing;
        let is_due = self.parts.store.record_upstream_push(upstream, spacing, now).await?;
        if is_signed && is_due {
            let pushed = PushedDocument { content_type, body };
            let new = self.parts.poller.push(resource, pushed, now).await?;
            debug!(resource = resource.id.0, new, "an upstream sent what is new");
        }
        let result = if is_signed && is_due { "signed" } else { "hint" };
        self.parts.metrics.record_upstream_push(protocol, result);
        let ping = Ping {
            at: now,
            source: PingSource::Upstream,
            name: String::new(),
            url: resource.topic.as_str().to_owned(),
            feed_url: None,
        };
        self.parts.store.receive(&ping, spacing).await?;
        let event =
            Event::new(EventKind::Ping, now).via(ping.source.as_str()).about_feed(&ping.url);
        self.parts
            .event_log
            .record(event.saying(&format!("from the upstream by {protocol}, {result}")));
        Ok(())
    }
}

impl Job for UpstreamClient {
    type Item = ClaimedUpstream;

    const NAME: &'static str = "upstream";

    async fn claim(&self, limit: usize) -> Result<Vec<ClaimedUpstream>, StoreError> {
        let now = runner::now();
        let claimed_until = now + CLAIM;
        let due = self
            .parts
            .store
            .claim_upstreams(now, claimed_until, &self.permits.claim_limits(limit))
            .await?;
        let jobs = due.into_iter().map(|upstream| {
            let permit = self.permits.acquire(upstream.offer.host());
            ClaimedUpstream { upstream, claimed_until, permit }
        });
        Ok(jobs.collect())
    }

    async fn perform(&self, job: ClaimedUpstream) {
        let resource = job.upstream.resource.0;
        if let Err(err) = self.attend(job).await {
            error!(resource, error = &err as &dyn Error, "an upstream could not be settled");
        }
    }
}

impl std::fmt::Debug for UpstreamClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UpstreamClient")
            .field("settings", &self.parts.settings)
            .finish_non_exhaustive()
    }
}
