//! Test notifications: what a callback responds to a notification that reports nothing.
//!
//! A test is no delivery: it moves no cursor, counts as no failure, and is not repeated. It has the
//! form, the headers and the signatures of a delivery, so that a receiver that accepts it accepts
//! those.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use super::compose::Composer;
use super::message::Message;
use super::{DeliverySettings, verdict};
use crate::jobs::runner;
use crate::net::HttpClient;
use feedgate_core::delivery_health::AttemptResponse;
use feedgate_core::store::StoreError;
use feedgate_core::subscription::Subscription;

/// The most concurrent test notifications of a node. They bypass the limits of hosts, which are made
/// for thousands of deliveries.
const CONCURRENCY: usize = 8;

/// Sends test notifications.
pub(crate) struct TestNotifier {
    client: HttpClient,
    composer: Arc<Composer>,
    settings: DeliverySettings,
    permits: Semaphore,
}

/// What became of a test notification.
#[derive(Clone, Debug)]
pub(crate) enum TestOutcome {
    /// The notification was sent.
    Sent(TestReport),
    /// As many test notifications are in progress as a node sends at the same time.
    Busy,
    /// The subscription receives the topic unchanged, which has not been fetched.
    NothingStored,
}

/// The result of a test notification.
#[derive(Clone, Debug)]
pub(crate) struct TestReport {
    /// Its `webhook-id`.
    pub(crate) id: String,
    /// Whether the callback accepted it.
    pub(crate) is_accepted: bool,
    /// The code of the result, as in the event log.
    pub(crate) code: &'static str,
    /// What the callback responded.
    pub(crate) response: AttemptResponse,
    /// How long that took.
    pub(crate) took: Duration,
}

impl TestNotifier {
    pub(super) fn new(
        client: HttpClient,
        composer: Arc<Composer>,
        settings: DeliverySettings,
    ) -> TestNotifier {
        TestNotifier { client, composer, settings, permits: Semaphore::new(CONCURRENCY) }
    }

    /// Sends a test notification to the callback of `subscription`.
    pub(crate) async fn send(
        &self,
        subscription: &Subscription,
    ) -> Result<TestOutcome, StoreError> {
        let Ok(_permit) = self.permits.try_acquire() else { return Ok(TestOutcome::Busy) };
        let Some(payload) = self.composer.compose_test(subscription).await? else {
            return Ok(TestOutcome::NothingStored);
        };
        let message = Message::of_test(subscription, &payload, runner::now());
        let begun = Instant::now();
        let answer = self.client.call(message.call(&self.settings)).await;
        Ok(TestOutcome::Sent(TestReport {
            id: message.id(),
            is_accepted: answer.as_ref().is_ok_and(|reply| reply.status.is_success()),
            code: verdict::result_code(&answer),
            response: verdict::attempt_response(&answer),
            took: begun.elapsed(),
        }))
    }
}
