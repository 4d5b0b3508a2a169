//! From a cursor that lags to a callback that knows.
//!
//! ```text
//! claim ──► compose ──► send ──► verdict ──► settle
//!              │ rendered once        │
//!              └ per log range        └ 2xx moves the cursor, nothing else does
//! ```
//!
//! What holds here:
//!
//! * Delivery is at least once, and in order per subscription: one attempt is in hand
//!   at a time, and it brings everything since the cursor (rule D2).
//! * A host has only so many attempts in hand, and all of them together only so many,
//!   so that a slow callback delays its own host and nobody else (rule D3).
//! * Whatever the callback answers, the subscription stays until its lease ends, its
//!   owner ends it, or it says 410 (WebSub `#content-distribution`).

mod compose;
mod delivery_result_batcher;
mod events;
mod hub_url;
mod message;
mod verdict;

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::{debug, error, info, warn};
use url::Url;

use crate::event_log::EventLog;
use crate::jobs::runner::{self, HostPermit, HostPermits, Job};
use crate::metrics::Metrics;
use crate::net::{CallbackRequest, CallbackResponse, FetchError, HttpClient};
use feedgate_core::ports::{DeliveryResult, Store, StoreError};
use feedgate_core::subscription::{DueSubscription, Subscription};
use feedgate_protocol::signature::SignatureMethod;

use compose::{Composer, StatusInclusion};
use delivery_result_batcher::DeliveryResultBatcher;
use verdict::{DeliveryVerdict, HealthTransition};

/// What the operator decides about deliveries.
#[derive(Clone, Debug)]
pub struct DeliverySettings {
    /// The address others know us by: where the hub is.
    pub public_url: Url,
    /// How long a claimed subscription belongs to this node; longer than any attempt.
    pub claim: Duration,
    /// Attempts in hand at once for one host.
    pub per_host: usize,
    /// How bodies are signed.
    pub signature: SignatureMethod,
}

/// Brings records to callbacks.
pub struct Deliverer {
    store: Arc<dyn Store>,
    fetch: HttpClient,
    composer: Composer,
    results: DeliveryResultBatcher,
    permits: HostPermits,
    metrics: Metrics,
    event_log: EventLog,
    settings: DeliverySettings,
}

/// An attempt that fails sooner than this failed to connect, as when the other side
/// closed a connection that was kept open; it is made again at once.
const AT_ONCE: Duration = Duration::from_secs(1);

impl Deliverer {
    /// A worker on the subscriptions in `store`. Must be called within a runtime: what
    /// settles deliveries runs beside it.
    pub fn new(
        store: Arc<dyn Store>,
        fetch: HttpClient,
        metrics: Metrics,
        event_log: EventLog,
        settings: DeliverySettings,
    ) -> Deliverer {
        Deliverer {
            composer: Composer::new(Arc::clone(&store), settings.public_url.clone()),
            results: DeliveryResultBatcher::start(Arc::clone(&store)),
            permits: HostPermits::new(settings.per_host, store.news().subscriptions),
            store,
            fetch,
            metrics,
            event_log,
            settings,
        }
    }

    /// Makes one attempt and says how it ended. An error means the store failed; the
    /// subscription is found again when its claim ends.
    async fn attempt(&self, due: &DueSubscription) -> Result<DeliveryResult, StoreError> {
        let subscription = &due.subscription;
        let id = subscription.id;
        let Some(payload) = self.composer.compose(due).await? else {
            let (cursor, status) = (due.owed, due.status);
            return Ok(DeliveryResult::Delivered { id, cursor, status });
        };
        let status = match payload.status {
            StatusInclusion::None => subscription.status_told,
            StatusInclusion::WithEntries(rendered) | StatusInclusion::Only(rendered) => rendered,
        };
        if subscription.callback.is_null_device() {
            return Ok(DeliveryVerdict::Told.settled(id, payload.last, status));
        }
        let call = message::call(subscription, &payload, &self.settings);
        let begun = Instant::now();
        let answer = self.call(call, begun).await;
        let took = begun.elapsed();
        let verdict = verdict::classify(subscription, &answer, runner::now(), runner::jitter());

        let result = verdict::word(&answer);
        self.metrics.delivered(subscription.protocol.as_str(), result, took);
        debug!(
            resource = id.resource.0,
            subscription = id.number,
            first = payload.first.0,
            last = payload.last.0,
            took_ms = took.as_millis() as u64,
            result,
            "delivered"
        );
        tell(subscription, verdict, result);
        self.event_log.record(events::notified(subscription, &answer, verdict).lasting(took));
        if verdict == DeliveryVerdict::Told
            && let Some(at) = payload.waiting_since
            && payload.first > due.told_before
        {
            // What a replay brings again has not waited for us.
            self.metrics.waited((runner::now() - at).to_std().unwrap_or_default());
        }
        Ok(verdict.settled(id, payload.last, status))
    }

    async fn call(
        &self,
        call: CallbackRequest,
        begun: Instant,
    ) -> Result<CallbackResponse, FetchError> {
        match self.fetch.call(call.clone()).await {
            Err(FetchError::Unreachable { .. }) if begun.elapsed() < AT_ONCE => {
                self.fetch.call(call).await
            }
            answer => answer,
        }
    }
}

/// Logs where a callback begins to fail and where it is back; nothing in between. Its
/// host only: paths and queries of callbacks carry tokens.
fn tell(subscription: &Subscription, verdict: DeliveryVerdict, result: &'static str) {
    let (resource, number) = (subscription.id.resource.0, subscription.id.number);
    let host = subscription.callback.host();
    match verdict::turn(subscription, verdict) {
        Some(HealthTransition::Began(again_at)) => warn!(
            resource,
            subscription = number,
            host,
            code = result,
            again_at = again_at.map(|at| at.to_rfc3339()),
            "a callback has begun to fail; its deliveries are made again"
        ),
        Some(HealthTransition::Back) => info!(
            resource,
            subscription = number,
            host,
            failures = subscription.failures,
            "a callback takes deliveries again"
        ),
        Some(HealthTransition::Ended) => info!(
            resource,
            subscription = number,
            host,
            code = result,
            "a callback has ended its subscription"
        ),
        None => {}
    }
}

impl Job for Deliverer {
    type Item = (DueSubscription, HostPermit);

    const NAME: &'static str = "deliver";

    async fn claim(&self, limit: usize) -> Result<Vec<Self::Item>, StoreError> {
        let now = runner::now();
        let limits = self.permits.claim_limits(limit);
        let due = self.store.claim_subscriptions(now, now + self.settings.claim, &limits).await?;
        let taken = due.into_iter().map(|due| {
            let permit = self.permits.acquire(due.subscription.callback.host());
            (due, permit)
        });
        Ok(taken.collect())
    }

    async fn perform(&self, (due, permit): Self::Item) {
        let id = due.subscription.id;
        let settled = self.attempt(&due).await;
        drop(permit); // the host is free as soon as it has answered
        let kept = match settled {
            Ok(settled) => self.results.settle(settled).await,
            Err(err) => Err(Arc::new(err)),
        };
        if let Err(err) = kept {
            error!(
                resource = id.resource.0,
                subscription = id.number,
                error = &*err as &dyn Error,
                "a delivery could not be kept; it will be made again"
            );
        }
    }
}

impl std::fmt::Debug for Deliverer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deliverer").field("settings", &self.settings).finish_non_exhaustive()
    }
}
