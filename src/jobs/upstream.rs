//! Upstreams: subscribes to the hubs (by WebSub) and clouds (by rssCloud) that resources advertise,
//! and handles their notifications (rule P53).
//!
//! Invariants:
//!
//! * All state is in the store: which upstream is due, the address for its notifications, the
//!   secret. After a restart, or on another node, work continues where it was.
//! * A hub always gets a secret. Its notifications are trusted only if signed with it; any other
//!   notification is a hint to poll.
//! * Requests to the hosts of upstreams, and to those that they redirect to, are limited like those to
//!   callbacks: a feed may name any host (rule S26).
//! * A failing upstream is retried at growing intervals, and nothing else changes: the resource is
//!   polled as if it had none.

mod request;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tracing::{debug, info};
use url::Url;

use crate::event_log::EventLog;
use crate::jobs::claim_renewal::{ClaimRenewal, HeldClaim};
use crate::jobs::poll::{Poller, PushedDocument};
use crate::jobs::runner::{self, HostPermit, HostPermits, Job};
use crate::metrics::Metrics;
use crate::net::{HttpClient, is_inner};
use crate::verification_limits::VerificationLimits;
use feedgate_core::event::{Event, EventKind, EventOutcome};
use feedgate_core::ping::{Ping, PingSource};
use feedgate_core::registrant::Requester;
use feedgate_core::resource::{Resource, ResourceId};
use feedgate_core::store::{DueUpstream, StoreError};
use feedgate_core::subscription::Lease;
use feedgate_core::topic;
use feedgate_core::upstream::Upstream;
use feedgate_protocol::Protocol;
use feedgate_protocol::signature;
use feedgate_store::Store;

pub use request::{UpstreamError, UpstreamRequest, check_response, request_subscription};

/// The most concurrent requests to one hub or cloud: a server that does not respond must not occupy
/// all slots.
const PER_HOST: usize = 2;
/// The shortest and the longest lease of a hub that is accepted, in seconds.
const LEASES: (u64, u64) = (60, 366 * 86_400);

/// The most gateways that a notification may have passed. Gateways that subscribe to each other for a
/// resource that changes whenever it is fetched would otherwise notify each other forever (rule
/// S11).
const MOST_HOPS: u32 = 3;

/// The operator's settings for upstreams.
#[derive(Clone, Debug)]
pub struct UpstreamSettings {
    /// The public address, below which are the addresses for notifications.
    pub public_url: Url,
    /// The shortest time between two fetches of one resource that pings caused.
    pub ping_spacing: Duration,
    /// How long this node owns a claimed upstream. The claim is renewed while the request is in progress.
    pub claim: Duration,
}

/// Subscribes to upstreams, and handles their notifications.
pub struct UpstreamClient {
    parts: Parts,
    claims: ClaimRenewal<ResourceId>,
    permits: HostPermits,
    limits: VerificationLimits,
}

/// A notification sent by an upstream.
#[derive(Debug)]
pub struct UpstreamNotification<'a> {
    /// The value of `X-Hub-Signature`; empty if there is none.
    pub signature: &'a str,
    /// `Content-Type` as received, if any.
    pub content_type: Option<String>,
    /// How many gateways the notification has passed; 0 if it does not say so.
    pub hops: u32,
    /// The body.
    pub body: Bytes,
}

/// The parts of an [`UpstreamClient`].
pub struct Parts {
    /// The store of upstreams.
    pub store: Arc<Store>,
    /// The client that sends the requests.
    pub client: HttpClient,
    /// The poller that reads the documents that hubs send.
    pub poller: Poller,
    /// The counters of requests and notifications.
    pub metrics: Metrics,
    /// The log of notifications.
    pub event_log: EventLog,
    /// The operator's settings.
    pub settings: UpstreamSettings,
}

impl UpstreamClient {
    /// Creates a client with these parts. Must be called within a runtime: claims are renewed by a task.
    pub fn new(parts: Parts) -> UpstreamClient {
        let (store, lease) = (Arc::clone(&parts.store), parts.settings.claim);
        let claims = ClaimRenewal::start(UpstreamClient::NAME, lease, move |claims, _, until| {
            let store = Arc::clone(&store);
            async move { store.renew_upstream_claims(&claims, until).await }
        });
        // No wake signal is needed: a worker that waits for a permit claims again soon.
        let permits = HostPermits::new(PER_HOST, Arc::default());
        let limits = VerificationLimits::new(Arc::default());
        UpstreamClient { parts, claims, permits, limits }
    }

    /// Counts requests together with the verifications that `limits` are for.
    pub(crate) fn with_limits(self, limits: VerificationLimits) -> UpstreamClient {
        UpstreamClient { limits, ..self }
    }

    /// Subscribes, renews, or unsubscribes if the resource has no subscribers left.
    async fn process(&self, due: DueUpstream) -> Result<(), StoreError> {
        let DueUpstream { mut upstream, claim } = due;
        let client = self.client_for(upstream.resource).await?;
        let requester = self.requester_of(upstream.resource).await?;
        let protocol = &upstream.offer.protocol;
        if upstream.subscribers == 0 {
            if *protocol == Protocol::WebSub {
                let unsubscribed =
                    self.request((&client, requester), &upstream, "unsubscribe").await;
                debug!(
                    ok = unsubscribed.is_ok(),
                    "unsubscribed from the hub of a resource without subscribers"
                );
            }
            return self.parts.store.end_upstream(&upstream, Some(claim)).await;
        }
        let requested = self.request((&client, requester), &upstream, "subscribe").await;
        let spread = 0.9 + 0.2 * runner::jitter();
        if let Err(UpstreamError::Busy(wait)) = requested {
            let due_at = runner::now() + wait.mul_f64(spread);
            return self.parts.store.save_upstream(&upstream, Some(claim), due_at).await.map(drop);
        }
        let result = requested.as_ref().map_or_else(UpstreamError::code, |()| "ok");
        self.parts.metrics.upstream_requested(protocol.as_str(), result);
        let now = runner::now();
        let due_at = match requested {
            // A cloud verifies the callback before it responds; a hub does so later.
            Ok(()) if protocol.is_rsscloud() => {
                upstream.confirm(Lease::RSSCLOUD.end(now));
                now + upstream.offer.renewal(Duration::from_secs(Lease::RSSCLOUD.as_secs()))
            }
            Ok(()) => now + upstream.accepted(),
            Err(why) => {
                self.report(&upstream, &why);
                now + upstream.refused(why.is_final()).mul_f64(spread)
            }
        };
        self.parts.store.save_upstream(&upstream, Some(claim), due_at).await.map(drop)
    }

    async fn request(
        &self,
        (client, requester): (&HttpClient, Requester),
        upstream: &Upstream,
        mode: &str,
    ) -> Result<(), UpstreamError> {
        let public_url = &self.parts.settings.public_url;
        request::send(client, upstream, mode, public_url, (&self.limits, requester)).await
    }

    /// Returns who is charged for the requests of a resource: the gateway if an account watches it, so that
    /// strangers, whose feeds may name any hub, use up none of its permits.
    async fn requester_of(&self, id: ResourceId) -> Result<Requester, StoreError> {
        let store = &self.parts.store;
        match store.has_trusted_watcher(id).await? {
            true => Ok(Requester::GATEWAY),
            false => Ok(Requester::new(None, store.registrant_of(id).await?)),
        }
    }

    /// Returns the client for the upstream of a resource. Anybody may have a public topic that names
    /// any hub, so that only a topic in a private network may name a hub there.
    async fn client_for(&self, resource: ResourceId) -> Result<HttpClient, StoreError> {
        let resource = self.parts.store.get(resource).await?;
        let is_inner = resource.is_some_and(|resource| is_inner(&resource.topic.fetch_url()));
        Ok(match is_inner {
            true => self.parts.client.clone(),
            false => self.parts.client.public_callbacks_only(),
        })
    }

    /// Logs the first failure only, and only the host, because addresses carry tokens.
    fn report(&self, upstream: &Upstream, why: &UpstreamError) {
        if upstream.failures == 0 {
            let host = Url::parse(&upstream.offer.endpoint).map(|url| topic::host(&url));
            info!(
                resource = upstream.resource.0,
                host = host.unwrap_or_default(),
                code = why.code(),
                error = why as &dyn Error,
                "subscribing to an upstream failed; its resource is polled as before"
            );
        }
    }

    /// Returns the upstream that sends notifications to the address with this token, and its
    /// resource; `None` if it is unknown or the resource has no subscribers left, which ends it.
    pub async fn find(&self, token: &str) -> Result<Option<(Upstream, Resource)>, StoreError> {
        let Some(upstream) = self.parts.store.upstream(token).await? else { return Ok(None) };
        let resource = self.parts.store.get(upstream.resource).await?;
        match resource.filter(|held| held.subscribers > 0) {
            Some(resource) => Ok(Some((upstream, resource))),
            None => {
                // The response to this request ends the subscription at the upstream.
                self.parts.store.end_upstream(&upstream, None).await?;
                Ok(None)
            }
        }
    }

    /// Confirms a subscription that a hub verifies, with a lease of `lease_s` from now. Returns
    /// whether this gateway requested it, for this topic.
    pub async fn confirm(
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

    /// Records that a hub denied the subscription (WebSub `#subscription-validation`).
    pub async fn denied(&self, mut upstream: Upstream) -> Result<(), StoreError> {
        let due_at = runner::now() + upstream.refused(true);
        self.parts.store.save_upstream(&upstream, None, due_at).await.map(drop)
    }

    /// Records that a notification was not used, because it has passed too many gateways.
    fn refuse_hops(&self, upstream: &Upstream, resource: &Resource, hops: u32) {
        let words = format!("not used: the notification has passed {hops} gateways");
        let event = Event::new(EventKind::Ping, runner::now()).via(PingSource::Upstream.as_str());
        let event = event.about_resource(resource);
        let code = "too_many_hops";
        self.parts.event_log.record(event.ended(EventOutcome::Refused, code, &words));
        self.parts.metrics.record_upstream_push(upstream.offer.protocol.as_str(), code);
    }

    /// Handles a notification. A document that a hub sent and signed is appended unchanged, unless
    /// it arrives sooner after the last one than a ping may; the resource is polled in any case,
    /// because a push may contain less than the whole document.
    pub async fn handle_notification(
        &self,
        upstream: &Upstream,
        resource: &Resource,
        notification: UpstreamNotification<'_>,
    ) -> Result<(), StoreError> {
        let UpstreamNotification { signature, content_type, hops, body } = notification;
        let now = runner::now();
        let protocol = upstream.offer.protocol.as_str();
        if hops > MOST_HOPS {
            self.refuse_hops(upstream, resource, hops);
            return Ok(());
        }
        // Who fetches with headers of its own may get another document than the subscribers of the hub.
        let is_usable = upstream.offer.protocol == Protocol::WebSub
            && !resource.topic.has_own_headers()
            && signature::holds(signature, upstream.secret.expose(), &body);
        let spacing = self.parts.settings.ping_spacing;
        let is_due = self.parts.store.record_upstream_push(upstream, hops, spacing, now).await?;
        if is_usable && is_due {
            let pushed = PushedDocument { content_type, body };
            let new = self.parts.poller.push(resource, pushed, now).await?;
            debug!(resource = resource.id.0, new, "an upstream sent new entries");
        }
        let result = if is_usable && is_due { "signed" } else { "hint" };
        self.parts.metrics.record_upstream_push(protocol, result);
        let ping = Ping {
            at: now,
            source: PingSource::Upstream,
            name: String::new(),
            url: resource.topic.displayed().into_owned(),
            feed_url: None,
        };
        self.parts.store.receive(&ping, spacing).await?;
        let event =
            Event::new(EventKind::Ping, now).via(ping.source.as_str()).about_resource(resource);
        self.parts
            .event_log
            .record(event.saying(&format!("sent by the upstream over {protocol}, {result}")));
        Ok(())
    }
}

impl Job for UpstreamClient {
    type Item = (DueUpstream, HeldClaim<ResourceId>, HostPermit);

    const NAME: &'static str = "upstream";

    async fn claim(&self, limit: usize) -> Result<Vec<Self::Item>, StoreError> {
        let now = runner::now();
        let (limits, until) = (self.permits.claim_limits(limit), self.claims.end_of_claim(now));
        let due = self.parts.store.claim_upstreams(now, until, &limits).await?;
        let claimed = due.into_iter().map(|due| {
            let permit = self.permits.acquire(due.upstream.offer.host());
            let claim = self.claims.hold_claim(due.upstream.resource, due.claim, until);
            (due, claim, permit)
        });
        Ok(claimed.collect())
    }

    async fn perform(&self, (due, _held, _permit): Self::Item) -> Result<(), StoreError> {
        self.process(due).await
    }

    fn number((due, ..): &Self::Item) -> Option<i64> {
        Some(due.upstream.resource.0)
    }
}

impl std::fmt::Debug for UpstreamClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UpstreamClient")
            .field("settings", &self.parts.settings)
            .finish_non_exhaustive()
    }
}
