//! One attempt to deliver to one callback.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::{debug, info, warn};

use super::attempt_log::{EndedAttempt, SecretRemover};
use super::compose::{OwedContent, Payload, StatusInclusion};
use super::concurrency_limit::Attempt;
use super::message::Message;
use super::verdict::{self, DeliveryVerdict, HealthTransition};
use super::{Deliverer, events};
use crate::jobs::runner;
use crate::net::{CallbackRequest, CallbackResponse, FetchError, HttpClient};
use feedgate_core::delivery_health::AttemptResponse;
use feedgate_core::store::{DeliveryOutcome, StoreError};
use feedgate_core::subscription::{DueSubscription, Subscription};
use feedgate_core::traffic::{CountedDelivery, DeliveryClass};

/// An attempt that fails sooner than this failed to connect, as when the other side closed an idle
/// connection; it is repeated immediately.
const CONNECT_FAILURE_WITHIN: Duration = Duration::from_secs(1);

/// The result of an attempt.
#[derive(Clone, Debug)]
pub(super) struct Attempted {
    pub(super) outcome: DeliveryOutcome,
    /// What the callback responded; `None` if nothing was sent.
    pub(super) response: Option<AttemptResponse>,
    /// How the host responded; `None` if nothing was sent.
    pub(super) attempt: Option<Attempt>,
}

impl Deliverer {
    /// Makes one attempt and returns its result; `None` if the delivery may not be sent any more, or
    /// was not sent because this gateway is busy. An error means the store failed.
    pub(super) async fn attempt(
        &self,
        due: &DueSubscription,
    ) -> Result<Option<Attempted>, Arc<StoreError>> {
        let subscription = &due.subscription;
        let id = subscription.id;
        let payload = match self.composer.compose(due).await.map_err(Arc::new)? {
            OwedContent::Payload(payload) => payload,
            OwedContent::Nothing(cursor) => {
                let outcome = DeliveryOutcome::Delivered { cursor, status: due.status };
                return Ok(Some(Attempted { outcome, response: None, attempt: None }));
            }
        };
        let status = match payload.status {
            StatusInclusion::None => subscription.status_told,
            StatusInclusion::WithEntries(rendered) | StatusInclusion::Only(rendered) => rendered,
        };
        if subscription.callback.is_null_device() {
            let outcome = DeliveryOutcome::Delivered { cursor: payload.last, status };
            return Ok(Some(Attempted { outcome, response: None, attempt: None }));
        }
        if !self.claim_checks.may_send(due).await? {
            return Ok(None);
        }
        let message = Message::of_delivery(due, &payload, runner::now());
        let request = message.call(&self.settings);
        let (at, begun) = (runner::now(), Instant::now());
        let client = super::client_for(&self.client, subscription);
        let answer = call(&client, &request, begun).await;
        let answer = answer.map(|reply| without_credentials(reply, subscription));
        if let Err(FetchError::GatewayBusy(_)) = &answer {
            self.claims.release_unsent(due).await.map_err(Arc::new)?;
            return Ok(None);
        }
        let took = begun.elapsed();
        let verdict = verdict::classify(subscription, &answer, runner::now(), runner::jitter);

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
        let (payload, request, answer) = (&payload, &request, &answer);
        let ended = EndedAttempt { subscription, payload, request, answer, verdict, at, took };
        self.attempt_log.record(&ended);
        self.count_attempt(due, payload, (verdict, result));
        let outcome = verdict.into_outcome(payload.last, status);
        let attempt = Attempt { response: verdict::host_response(answer), begun, took };
        let response = Some(verdict::attempt_response(answer));
        Ok(Some(Attempted { outcome, response, attempt: Some(attempt) }))
    }

    /// Counts an attempt for the charts, and measures how long the oldest record of an accepted payload has waited.
    /// Records of a replay have not waited for their first delivery.
    fn count_attempt(
        &self,
        due: &DueSubscription,
        payload: &Payload,
        (verdict, result): (DeliveryVerdict, &'static str),
    ) {
        let is_first = verdict == DeliveryVerdict::Delivered && payload.first > due.told_before;
        let delay = payload.waiting_since.filter(|_| is_first);
        let delay = delay.map(|at| (runner::now() - at).to_std().unwrap_or_default());
        delay.into_iter().for_each(|delay| self.metrics.waited(delay));
        self.metrics.traffic().delivered(&CountedDelivery {
            feed: due.subscription.id.resource,
            host: &due.subscription.callback.host(),
            account: due.subscription.account,
            class: DeliveryClass::from_result(result),
            delay,
        });
    }
}

/// Returns a response whose body does not repeat the credentials that the callback was sent: the beginning of
/// one that refuses is shown to the owner, and to the operator.
pub(super) fn without_credentials(
    mut reply: CallbackResponse,
    subscription: &Subscription,
) -> CallbackResponse {
    if !reply.status.is_success() && !subscription.headers.is_empty() {
        let secrets = SecretRemover::for_subscription(subscription);
        reply.body = secrets.remove_from_bytes(&reply.body).into();
    }
    reply
}

async fn call(
    client: &HttpClient,
    request: &CallbackRequest,
    begun: Instant,
) -> Result<CallbackResponse, FetchError> {
    match client.call(request.clone()).await {
        Err(FetchError::Unreachable { .. }) if begun.elapsed() < CONNECT_FAILURE_WITHIN => {
            client.call(request.clone()).await
        }
        answer => answer,
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
    let host = || subscription.callback.host();
    match verdict::health_transition(subscription, verdict) {
        Some(HealthTransition::Failing(retry_at)) => warn!(
            resource,
            subscription = number,
            host = host(),
            code = result,
            retry_at = retry_at.map(|at| at.to_rfc3339()),
            "webhook delivery failed; it will be retried"
        ),
        Some(HealthTransition::Recovered) => info!(
            resource,
            subscription = number,
            host = host(),
            failures = subscription.failures,
            "webhook deliveries succeed again"
        ),
        Some(HealthTransition::Suspended) => warn!(
            resource,
            subscription = number,
            host = host(),
            code = result,
            failures = subscription.failures + 1,
            "webhook deliveries have failed for a month and are suspended"
        ),
        Some(HealthTransition::Ended) => info!(
            resource,
            subscription = number,
            host = host(),
            code = result,
            "the callback ended its subscription with 410"
        ),
        None => {}
    }
}
