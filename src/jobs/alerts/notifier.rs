//! Sends messages to alert addresses.

use std::sync::Arc;
use std::time::Instant;

use chrono::{DateTime, Utc};
use tokio::sync::Semaphore;

use super::message::AlertMessage;
use crate::jobs::deliver::{TestOutcome, TestReport, attempt_response, result_code};
use crate::jobs::runner;
use crate::net::{CallbackResponse, FetchError, HttpClient};
use feedgate_core::alert::{AlertAddress, AlertAddressState, OwedAlerts};

/// The most concurrent tests of a node.
const TEST_CONCURRENCY: usize = 8;

/// Sends messages to alert addresses, by the rules of callbacks.
#[derive(Clone)]
pub(crate) struct AlertNotifier {
    client: HttpClient,
    test_permits: Arc<Semaphore>,
}

impl AlertNotifier {
    /// Returns a notifier that sends with this client.
    pub(crate) fn new(client: HttpClient) -> AlertNotifier {
        AlertNotifier { client, test_permits: Arc::new(Semaphore::new(TEST_CONCURRENCY)) }
    }

    /// Sends what is owed to an account.
    pub(super) async fn send(
        &self,
        state: &AlertAddressState,
        login: &str,
        owed: &OwedAlerts,
        now: DateTime<Utc>,
    ) -> Result<CallbackResponse, FetchError> {
        let message = AlertMessage::of_alerts(state, login, owed, now);
        self.call(&message, &state.address).await
    }

    /// Sends a message that reports nothing. It changes nothing of what is stored, and is not repeated.
    pub(crate) async fn send_test(&self, address: &AlertAddress, login: &str) -> TestOutcome {
        let Ok(_permit) = self.test_permits.try_acquire() else { return TestOutcome::Busy };
        let (message, begun) = (AlertMessage::of_test(login, runner::now()), Instant::now());
        let answer = self.call(&message, address).await;
        if let Err(FetchError::GatewayBusy(_)) = &answer {
            return TestOutcome::Busy;
        }
        TestOutcome::Sent(TestReport {
            id: message.id,
            is_accepted: answer.as_ref().is_ok_and(|reply| reply.status.is_success()),
            code: result_code(&answer),
            response: attempt_response(&answer),
            took: begun.elapsed(),
        })
    }

    async fn call(
        &self,
        message: &AlertMessage,
        address: &AlertAddress,
    ) -> Result<CallbackResponse, FetchError> {
        let client = self.client.for_callback(true, address.callback.url());
        client.call(message.call(address)).await
    }
}
