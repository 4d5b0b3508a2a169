//! Delivers records to callbacks: from a cursor that lags to a callback that is up to date.
//!
//! ```text
//! claim ──► wait for the host ──► compose ──► send ──► verdict ──► record
//!   in portions                      │ rendered once       │
//!                                    └ per log range       └ 2xx moves the cursor, nothing else
//! ```
//!
//! Invariants:
//!
//! * What a subscription was when it was claimed is no more than half a second old when a notification is
//!   sent; older claims are read again (`claim_checks`).
//! * Delivery is at least once, and in order per subscription: one attempt runs at a time, and it
//!   sends everything since the cursor (rule D2).
//! * The concurrent attempts of each host, and of all hosts, are limited, and slow callbacks have a part
//!   of their own, so that they delay no other, not even at the same host (rule D3).
//! * Whatever the callback responds, the subscription stays until its lease ends, its owner ends
//!   it, or the callback responds with 410 (WebSub `#content-distribution`).

mod attempt;
mod attempt_log;
mod claim_checks;
mod claims;
mod compose;
mod concurrency_limit;
mod delivery_result_batcher;
mod events;
mod host_queues;
mod hub_url;
mod message;
mod streamed_notification;
mod test_notification;
#[cfg(test)]
mod test_subscriptions;
mod verdict;

use std::collections::VecDeque;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use tracing::error;
use url::Url;

use crate::event_log::EventLog;
use crate::jobs::runner::Job;
use crate::metrics::Metrics;
use crate::net::HttpClient;
use feedgate_core::store::{DeliveryResult, StoreError};
use feedgate_core::subscription::{DueSubscription, Subscription, SubscriptionId};
use feedgate_protocol::signature::SignatureMethod;
use feedgate_store::Store;

use attempt::Attempted;
use attempt_log::{AttemptLog, SecretRemover};
use claim_checks::ClaimChecks;
use claims::DeliveryClaims;
use compose::AnonymousContents;
pub(crate) use compose::{ComposedRange, Composer, LogGap, LogRange, matching_records};
use delivery_result_batcher::{DeliveryResultBatcher, PendingRecord};
use host_queues::{DeliveryPermit, HostQueues};
pub(crate) use message::X_HOPS;
pub(crate) use streamed_notification::{StreamCallback, StreamedNotification};
pub(crate) use test_notification::{TestNotifier, TestOutcome, TestReport};
pub(in crate::jobs) use verdict::{attempt_response, result_code};

/// The most results of one task that wait to be stored while the task continues.
const MOST_UNRECORDED: usize = 64;

/// The operator's settings for deliveries.
#[derive(Clone, Debug)]
pub struct DeliverySettings {
    /// The public address, below which the hub is.
    pub public_url: Url,
    /// How long this node owns a claimed subscription; longer than any attempt.
    pub claim: Duration,
    /// Concurrent attempts.
    pub concurrency: usize,
    /// The most concurrent attempts for one host, however quickly it responds.
    pub per_host: usize,
    /// How bodies are signed.
    pub signature: SignatureMethod,
    /// How many recorded attempts are kept of each subscription; 0: none are recorded.
    pub attempts_per_subscription: usize,
}

/// Delivers records to callbacks.
pub struct Deliverer {
    client: HttpClient,
    composer: Arc<Composer>,
    claim_checks: ClaimChecks,
    results: DeliveryResultBatcher,
    attempt_log: AttemptLog,
    queues: HostQueues,
    claims: DeliveryClaims,
    metrics: Metrics,
    event_log: EventLog,
    settings: DeliverySettings,
}

impl Deliverer {
    /// Creates a job for the subscriptions in `store`. Must be called within a runtime: the results
    /// are batched by a task.
    pub fn new(
        store: Arc<Store>,
        client: HttpClient,
        metrics: Metrics,
        event_log: EventLog,
        settings: DeliverySettings,
    ) -> Deliverer {
        let ready = store.wake_signals().subscriptions;
        let anonymous = AnonymousContents::from_client(&client);
        let composer = Composer::new(Arc::clone(&store), settings.public_url.clone(), anonymous);
        let queues = HostQueues::new(settings.concurrency, settings.per_host, ready);
        Deliverer {
            composer: Arc::new(composer),
            claim_checks: ClaimChecks::start(Arc::clone(&store)),
            results: DeliveryResultBatcher::start(Arc::clone(&store)),
            attempt_log: AttemptLog::start(
                Arc::clone(&store),
                metrics.clone(),
                settings.attempts_per_subscription,
            ),
            claims: DeliveryClaims::start(store, queues.clone(), settings.claim),
            queues,
            client,
            metrics,
            event_log,
            settings,
        }
    }

    /// Returns what sends test notifications, with the settings of deliveries.
    pub(crate) fn test_notifier(&self) -> TestNotifier {
        TestNotifier::new(self.client.clone(), self.composer(), self.settings.clone())
    }

    /// Returns what composes the notifications.
    pub(crate) fn composer(&self) -> Arc<Composer> {
        Arc::clone(&self.composer)
    }
}

/// Returns the body of a request without the secrets of its subscription, for people who copy it.
pub(crate) fn without_secrets(subscription: &Subscription, body: &[u8]) -> Vec<u8> {
    SecretRemover::for_subscription(subscription).remove_from_bytes(body)
}

/// Returns the client for requests to the callback of a subscription.
fn client_for(client: &HttpClient, subscription: &Subscription) -> HttpClient {
    match subscription.account {
        Some(_) => client.for_callback(true, subscription.callback.url()),
        None => client
            .for_delivery(subscription.registrant)
            .for_callback(false, subscription.callback.url()),
    }
}

impl Job for Deliverer {
    type Item = (DueSubscription, DeliveryPermit);

    const NAME: &'static str = "deliver";

    /// As in the queues, which decide what is slow.
    const SLOW_LANE: usize = 1;
    const SLOW_AFTER: Duration = concurrency_limit::SLOW_AFTER;

    async fn claim(&self, limit: usize) -> Result<Vec<Self::Item>, StoreError> {
        let filled = self.claims.fill().await;
        let started = self.queues.start(limit);
        if started.is_empty() {
            filled?;
        }
        Ok(started)
    }

    /// Delivers, and continues with the deliveries that wait for the same host.
    async fn perform(&self, first: Self::Item) -> Result<(), StoreError> {
        let (mut next, mut recording) = (Some(first), VecDeque::new());
        while let Some((due, mut permit)) = next.take() {
            let id = due.subscription.id;
            match permit.watch(self.attempt(&due)).await {
                // The notification was not sent, and its claim is released.
                Ok(None) => {}
                Ok(Some(Attempted { outcome, response, attempt })) => {
                    // The host is free as soon as it has responded.
                    next = attempt.and_then(|attempt| permit.finish(&attempt));
                    let result = DeliveryResult::new(&due, outcome, response);
                    recording.push_back((id, self.results.submit(result).await));
                }
                Err(err) => {
                    log_not_stored(id, &err);
                    self.claims.release_failed(&due).await;
                }
            }
            // The oldest result has been stored by now, unless the store is slow. To wait for all of them
            // would leave the permit unused for as long as a batch of results takes.
            if recording.len() >= MOST_UNRECORDED
                && let Some((id, oldest)) = recording.pop_front()
            {
                await_recorded(id, oldest).await;
            }
        }
        for (id, result) in recording {
            await_recorded(id, result).await;
        }
        Ok(())
    }

    async fn stopped(&self) {
        self.claims.release_waiting().await;
    }

    async fn finished(&self) {
        self.attempt_log.close().await;
    }
}

/// Waits until a result is stored, so that a worker that has finished leaves nothing behind.
async fn await_recorded(id: SubscriptionId, result: PendingRecord) {
    if let Err(err) = result.stored().await {
        log_not_stored(id, &err);
    }
}

fn log_not_stored(id: SubscriptionId, err: &StoreError) {
    error!(
        resource = id.resource.0,
        subscription = id.number,
        error = err as &dyn Error,
        "the result of a delivery was not stored; it will be delivered again"
    );
}

impl std::fmt::Debug for Deliverer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deliverer").field("settings", &self.settings).finish_non_exhaustive()
    }
}
