//! What is recorded of attempts to deliver.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use feedgate::jobs::runner;
use feedgate::metrics::TextFormat;
use feedgate_core::attempt::{
    AttemptVerdict, DeliveryAttempt, PayloadContent, RecordedResponse, StoredAttempt,
};
use feedgate_core::record::Seq;
use feedgate_core::store::AttemptRange;
use feedgate_core::subscription::SubscriptionId;
use feedgate_core::topic::Topic;
use feedgate_store::Store;
use http::{HeaderValue, StatusCode};

use super::{Node, secret, told};
use crate::store::{on_both_stores, on_one_store};
use crate::support::postgres::Database;
use crate::support::server::{Server, say};
use crate::support::subscriber::Subscriber;

on_both_stores!(a_failed_attempt_and_its_retry_are_recorded_without_secrets);

on_one_store!(
    a_fan_out_is_delivered_whether_its_attempts_are_recorded_or_not,
    without_room_for_attempts_none_are_recorded,
);

async fn attempts(store: &Arc<Store>, id: SubscriptionId) -> Vec<StoredAttempt> {
    store.attempts(id, AttemptRange { before: None, limit: 1_000 }).await.unwrap()
}

/// A callback that rejects its first notification, and repeats secrets whenever it responds.
async fn talkative_callback() -> Server {
    let is_first = AtomicBool::new(true);
    Server::start(move |request| {
        let is_first = is_first.swap(false, Ordering::SeqCst);
        let status = if is_first { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK };
        let topic = request.header("x-pubsubhubbub-topic").unwrap_or_default().to_owned();
        let mut answer = say(status, format!("key=opensesame {topic} {}", "x".repeat(9_000)));
        let headers = answer.headers_mut();
        headers.insert("x-request-id", HeaderValue::from_static("7"));
        headers.insert("x-key", HeaderValue::from_static("opensesame"));
        headers.insert("set-cookie", HeaderValue::from_static("session=c00kie"));
        async move { answer }
    })
    .await
}

async fn a_failed_attempt_and_its_retry_are_recorded_without_secrets(database: Database) {
    let node = Node::start(&database).await;
    let server = talkative_callback().await;
    let callback = server.url("/in");
    let subscribe = node.subscribe(&callback, |request| {
        request.topic = Topic::parse("https://ada:feedpass@tides.test/feed").unwrap();
        request.signing.secret = secret();
    });
    let id = subscribe.await.id;
    node.append(id.resource, 1..=3).await;
    node.until(&callback, |held| held.is_some_and(|held| held.failures == 1)).await;
    assert!(node.store.retry_delivery(id, runner::now()).await.unwrap());
    node.until(&callback, told(3)).await;
    node.stop().await;

    let store = database.open().await;
    let recorded = attempts(&store, id).await;
    let [retry, first] = recorded.as_slice() else { panic!("{recorded:?}") };
    let (retry, first) = (&retry.attempt, &first.attempt);
    assert_eq!((first.verdict, first.code.as_str()), (AttemptVerdict::Failed, "http_5xx"));
    assert!(first.next_attempt_at.is_some_and(|next| next > first.at), "{first:?}");
    assert_eq!((retry.verdict, retry.code.as_str()), (AttemptVerdict::Delivered, "ok"));
    assert_eq!(retry.next_attempt_at, None);
    for (attempt, status) in [(first, 500), (retry, 200)] {
        check_request(attempt);
        check_response(attempt.response.as_ref().unwrap(), status);
        let text = everything_in(attempt);
        for secret in ["opensesame", "feedpass", "c00kie"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
    store.close().await;
}

fn check_request(attempt: &DeliveryAttempt) {
    let request = &attempt.request;
    assert_eq!(request.content, PayloadContent::Entries);
    assert_eq!((request.first, request.last, request.entries), (Seq(1), Seq(3), 3));
    assert!(request.body_bytes > 0 && request.content_type == "application/atom+xml");
    let value = |name: &str| {
        let found = request.headers.iter().find(|header| header.name == name);
        found.map(|header| header.value.as_str()).unwrap_or_default()
    };
    assert_eq!(value("x-feedgate-seq"), "1-3");
    assert!(value("x-hub-signature").starts_with("sha256="), "{request:?}");
    assert!(value("x-pubsubhubbub-callback").ends_with("/in"), "{request:?}");
    assert!(attempt.error.is_empty());
}

fn check_response(response: &RecordedResponse, status: u16) {
    assert_eq!(response.status, status);
    assert!(!response.is_public, "the tests are on a private address");
    assert!(
        response.body.starts_with("key=… https://…tides.test/feed xxx".as_bytes()),
        "{response:?}"
    );
    assert_eq!(response.body.len(), 4_096);
    let value = |name: &str| {
        let found = response.headers.iter().find(|header| header.name == name);
        found.map(|header| header.value.as_str())
    };
    assert_eq!(value("x-request-id"), Some("7"));
    assert_eq!((value("x-key"), value("set-cookie")), (Some("…"), Some("…")));
}

/// All texts of an attempt.
fn everything_in(attempt: &DeliveryAttempt) -> String {
    let body = attempt.response.as_ref().map(|response| String::from_utf8_lossy(&response.body));
    format!("{attempt:?} {}", body.unwrap_or_default())
}

async fn a_fan_out_is_delivered_whether_its_attempts_are_recorded_or_not(database: Database) {
    const SUBSCRIBERS: usize = 300;
    let node = Node::start(&database).await;
    let subscriber = Subscriber::start().await;
    let mut ids = Vec::new();
    for n in 0..SUBSCRIBERS {
        ids.push(node.subscribe(&subscriber.url(&format!("/{n}")), |_| {}).await.id);
    }
    node.append(ids[0].resource, 1..=1).await;
    for n in 0..SUBSCRIBERS {
        node.until(&subscriber.url(&format!("/{n}")), told(1)).await;
    }
    let metrics = node.metrics.clone();
    node.stop().await;

    let store = database.open().await;
    let mut recorded = 0;
    for id in ids {
        recorded += attempts(&store, id).await.len();
    }
    let left_out = "feedgate_unrecorded_attempts_total{verdict=\"delivered\"} ";
    let text = metrics.encode(&Default::default(), TextFormat::OpenMetrics);
    let left_out = text.lines().find_map(|line| line.strip_prefix(left_out));
    let left_out: usize = left_out.map_or(0, |count| count.parse().unwrap());
    assert_eq!(recorded + left_out, SUBSCRIBERS, "each is recorded once, or counted");
    assert!(recorded >= 100, "the first are recorded: {recorded}");
    store.close().await;
}

async fn without_room_for_attempts_none_are_recorded(database: Database) {
    let node = Node::with_settings(&database, |settings| settings.attempts_per_subscription = 0);
    let node = node.await;
    let subscriber = Subscriber::start().await;
    let callback = subscriber.url("/in");
    let id = node.subscribe(&callback, |_| {}).await.id;
    node.append(id.resource, 1..=1).await;
    node.until(&callback, told(1)).await;
    node.stop().await;
    let store = database.open().await;
    assert_eq!(attempts(&store, id).await, []);
    store.close().await;
}
