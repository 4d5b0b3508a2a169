//! Test notifications: what a callback responds to a notification that reports nothing.
//!
//! A test is no delivery: it moves no cursor, counts as no failure, and is not repeated. It has the
//! form, the headers and the signatures of a delivery, so that a receiver that accepts it accepts
//! those.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use super::attempt::without_credentials;
use super::compose::Composer;
use super::message::Message;
use super::{DeliverySettings, verdict};
use crate::jobs::runner;
use crate::net::{FetchError, HttpClient};
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
    /// As many test notifications are in progress as a node sends at the same time, or this gateway is busy
    /// otherwise.
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
        let client = super::client_for(&self.client, subscription);
        let answer = client.call(message.call(&self.settings)).await;
        let answer = answer.map(|reply| without_credentials(reply, subscription));
        if let Err(FetchError::GatewayBusy(_)) = &answer {
            return Ok(TestOutcome::Busy);
        }
        Ok(TestOutcome::Sent(TestReport {
            id: message.id(),
            is_accepted: answer.as_ref().is_ok_and(|reply| reply.status.is_success()),
            code: verdict::result_code(&answer),
            response: verdict::attempt_response(&answer),
            took: begun.elapsed(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::net::IpAddr;

    use async_trait::async_trait;
    use tokio::net::TcpListener;
    use url::Url;

    use super::super::compose::tests::composer;
    use super::super::test_subscriptions::subscription;
    use super::*;
    use crate::net::{Lookup, NetworkSettings};
    use feedgate_core::topic::Callback;
    use feedgate_protocol::signature::SignatureMethod;

    /// A resolver to which all names lead to this machine.
    #[derive(Debug)]
    struct Inside;

    #[async_trait]
    impl Lookup for Inside {
        async fn lookup(&self, _name: &str) -> io::Result<Vec<IpAddr>> {
            Ok(vec![IpAddr::from([127, 0, 0, 1])])
        }
    }

    #[tokio::test]
    async fn h04_a_test_notification_leads_where_deliveries_lead() {
        let folder = tempfile::tempdir().unwrap();
        let (composer, resource) = composer(folder.path()).await;
        let client = NetworkSettings {
            user_agent: "feedgate/0.0 (+https://gateway.test/".to_owned(),
            allow_topics: Vec::new(),
            allow_callbacks: vec!["127.0.0.1/32".parse().unwrap()],
            fetch_timeout: Duration::from_secs(30),
            callback_timeout: Duration::from_secs(10),
            body_limit_bytes: 1_000_000,
            host_spacing: Duration::ZERO,
            fetch_concurrency: 4,
            document_memory_bytes: 1 << 30,
        };
        let client = HttpClient::with_lookup(client, Arc::new(Inside));
        let settings = DeliverySettings {
            public_url: Url::parse("https://gateway.test/").unwrap(),
            claim: Duration::from_secs(60),
            concurrency: 1,
            per_host: 1,
            signature: SignatureMethod::default(),
            attempts_per_subscription: 0,
        };
        let notifier = TestNotifier::new(client, composer, settings);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let callback = Callback::parse(format!("http://looks.public.test:{port}/")).unwrap();
        let mut subscription = Subscription { callback, ..subscription() };
        subscription.id.resource = resource;
        let TestOutcome::Sent(report) = notifier.send(&subscription).await.unwrap() else {
            panic!("a test notification is sent");
        };
        assert_eq!(report.code, "forbidden_address");
        assert!(listener.into_std().unwrap().accept().is_err(), "nobody has connected");
    }
}
