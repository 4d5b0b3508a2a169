//! Delivers records to callbacks: from a cursor that lags to a callback that is up to date.
//!
//! ```text
//! claim ──► compose ──► send ──► verdict ──► record
//!              │ rendered once        │
//!              └ per log range        └ 2xx moves the cursor, nothing else does
//! ```
//!
//! What always holds:
//!
//! * Delivery is at least once, and in order per subscription: one attempt runs at a time, and it
//!   sends everything since the cursor (D2).
//! * The concurrent attempts of each host, and of all hosts, are limited, so that a slow callback
//!   delays only its own host (D3).
//! * Whatever the callback responds, the subscription stays until its lease ends, its owner ends
//!   it, or the callback responds with 410 (WebSub `#content-distribution`).

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

/// The operator's settings for deliveries.
#[derive(Clone, Debug)]
pub struct DeliverySettings {
    /// The public address, below which the hub is.
    pub public_url: Url,
    /// How long this node owns a claimed subscription; longer than any attempt.
    pub claim: Duration,
    /// Concurrent attempts for one host.
    pub per_host: usize,
    /// How bodies are signed.
    pub signature: SignatureMethod,
}

/// Delivers records to callbacks.
pub struct Deliverer {
    store: Arc<dyn Store>,
    client: HttpClient,
    composer: Composer,
    results: DeliveryResultBatcher,
    permits: HostPermits,
    metrics: Metrics,
    event_log: EventLog,
    settings: DeliverySettings,
}

/// An attempt that fails sooner than this failed to connect, as when the other side closed an idle
/// connection; it is repeated immediately.
const CONNECT_FAILURE_WITHIN: Duration = Duration::from_secs(1);

impl Deliverer {
    /// A job for the subscriptions in `store`. Must be called within a runtime: the results are
    /// batched by a task.
    pub fn new(
        store: Arc<dyn Store>,
        client: HttpClient,
        metrics: Metrics,
        event_log: EventLog,
        settings: DeliverySettings,
    ) -> Deliverer {
        Deliverer {
            composer: Composer::new(Arc::clone(&store), settings.public_url.clone()),
            results: DeliveryResultBatcher::start(Arc::clone(&store)),
            permits: HostPermits::new(settings.per_host, store.wake_signals().subscriptions),
            store,
            client,
            metrics,
            event_log,
            settings,
        }
    }

    /// Makes one attempt and returns its result. An error means the store failed; the
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
            return Ok(DeliveryVerdict::Delivered.into_result(id, payload.last, status));
        }
        let call = message::call(subscription, &payload, &self.settings);
        let begun = Instant::now();
        let answer = self.call(call, begun).await;
        let took = begun.elapsed();
        let verdict = verdict::classify(subscription, &answer, runner::now(), runner::jitter());

        let result = verdict::result_code(&answer);
        self.metrics.delivered(subscription.protocol.as_str(), result, took);
        debug!(
            resource = id.resource.0,
            subscription = id.number,
            first = payload.first.0,
            last = payload.last.0,
            took_ms = took.as_millis() as u64,
            result,
            "delivery attempted"
        );
        log_health_transition(subscription, verdict, result);
        self.event_log.record(events::notified(subscription, &answer, verdict).lasting(took));
        if verdict == DeliveryVerdict::Delivered
            && let Some(at) = payload.waiting_since
            && payload.first > due.told_before
        {
            // Records of a replay have not waited for their first delivery.
            self.metrics.waited((runner::now() - at).to_std().unwrap_or_default());
        }
        Ok(verdict.into_result(id, payload.last, status))
    }

    async fn call(
        &self,
        call: CallbackRequest,
        begun: Instant,
    ) -> Result<CallbackResponse, FetchError> {
        match self.client.call(call.clone()).await {
            Err(FetchError::Unreachable { .. }) if begun.elapsed() < CONNECT_FAILURE_WITHIN => {
                self.client.call(call).await
            }
            answer => answer,
        }
    }
}

/// Logs when a callback begins to fail and when it recovers, not each attempt in between. Only its
/// host is logged, because paths and queries of callbacks carry tokens.
fn log_health_transition(
    subscription: &Subscription,
    verdict: DeliveryVerdict,
    result: &'static str,
) {
    let (resource, number) = (subscription.id.resource.0, subscription.id.number);
    let host = subscription.callback.host();
    match verdict::health_transition(subscription, verdict) {
        Some(HealthTransition::Failing(retry_at)) => warn!(
            resource,
            subscription = number,
            host,
            code = result,
            retry_at = retry_at.map(|at| at.to_rfc3339()),
            "webhook delivery failed; it will be retried"
        ),
        Some(HealthTransition::Recovered) => info!(
            resource,
            subscription = number,
            host,
            failures = subscription.failures,
            "webhook deliveries succeed again"
        ),
        Some(HealthTransition::Ended) => info!(
            resource,
            subscription = number,
            host,
            code = result,
            "the callback ended its subscription with 410"
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
        let result = self.attempt(&due).await;
        drop(permit); // the host is free as soon as it has answered
        let stored = match result {
            Ok(result) => self.results.record(result).await,
            Err(err) => Err(Arc::new(err)),
        };
        if let Err(err) = stored {
            error!(
                resource = id.resource.0,
                subscription = id.number,
                error = &*err as &dyn Error,
                "the result of a delivery was not stored; it will be delivered again"
            );
        }
    }
}

impl std::fmt::Debug for Deliverer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deliverer").field("settings", &self.settings).finish_non_exhaustive()
    }
}
