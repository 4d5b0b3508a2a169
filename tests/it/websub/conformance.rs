//! What WebSub requires of a hub, and no public test suite checks.

use std::time::Duration;

use feedgate::jobs::runner;
use feedgate_core::intent::{Intent, IntentMode};
use feedgate_core::store::ClaimLimits;
use feedgate_core::subscription::SubscriptionRequest;
use feedgate_core::topic::{Callback, Topic};
use feedgate_protocol::Protocol;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use tokio::sync::watch;
use tokio::time::timeout;

use super::SYNC;
use crate::support::PATIENCE;
use crate::support::feeds::rss;
use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;
use crate::support::server::{ReceivedRequest, Server, client, say};
use crate::support::subscriber::{Behavior, is_signed};
use crate::support::world::World;

/// WebSub 5.1.2: the response depends neither on the verification nor on the topic.
#[tokio::test]
async fn a_request_is_accepted_whatever_the_callback_and_the_topic_do() {
    let world = World::with_tides(2, &[]).await;
    let behaviors =
        [Behavior::Accepting, Behavior::Refusing, Behavior::Hanging, Behavior::Failing(500)];
    for (n, behavior) in behaviors.into_iter().enumerate() {
        let path = format!("/{n}");
        world.subscriber.set(&path, behavior);
        assert_eq!(world.hub("subscribe", &path, &[]).await, StatusCode::ACCEPTED, "{behavior:?}");
        assert_eq!(
            world.hub("unsubscribe", &path, &[]).await,
            StatusCode::ACCEPTED,
            "{behavior:?}"
        );
    }
    let world = world.about("/missing");
    assert_eq!(world.hub("subscribe", "/cb", &[]).await, StatusCode::ACCEPTED);
}

/// WebSub 5.1 and 7.1: a secret has fewer than 200 bytes, and all of them count.
#[tokio::test]
async fn a_secret_of_199_bytes_signs_and_a_longer_one_is_refused() {
    let world = World::with_tides(2, &[]).await;
    let longest = "s".repeat(199);
    let status = world.hub("subscribe", "/cb", &[("hub.secret", &longest), SYNC]).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    // Bytes count, and not characters.
    for longer in ["s".repeat(200), "ß".repeat(100)] {
        let status = world.hub("subscribe", "/cb", &[("hub.secret", &longer), SYNC]).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{longer}");
    }
    world.publish_and_tell(3).await;
    world.subscriber.until("/cb", |received| received.len() == 1).await;
    assert!(is_signed(&world.subscriber.notified("/cb")[0], &longest));
}

/// WebSub 5.1.1 and 8.3: encoded characters that need no encoding are the characters themselves, and
/// the callback is requested as it was given.
#[tokio::test]
async fn encoded_characters_are_decoded_and_the_callback_is_kept() {
    let world = World::with_tides(2, &[]).await;
    let encode = |url: &str| {
        let encoded: String = url.bytes().map(|byte| format!("%{byte:02X}")).collect();
        encoded
    };
    let callback = world.subscriber.url("/cb~x?a=%2F&a=b");
    let form = format!(
        "hub.mode=subscribe&hub.verify=sync&hub.topic={}&hub.callback={}",
        encode(&world.topic),
        encode(&callback)
    );
    let request = client().post(world.gateway.url("/hub"));
    let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(form);
    assert_eq!(request.send().await.unwrap().status(), StatusCode::NO_CONTENT);
    world.publish_and_tell(3).await;
    world.subscriber.until("/cb~x", |received| received.len() == 1).await;
    let received = world.subscriber.notified("/cb~x").remove(0);
    let own = [("a", "/"), ("a", "b")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(received.query, own, "the query of the callback, and nothing of it in the body");
    assert_eq!(received.text(), rss("tides", 1..4));
}

/// WebSub 5.2: a request that cannot be verified in the end is denied.
#[tokio::test]
async fn a_callback_that_stays_out_of_order_is_sent_a_denial() {
    let publisher = Publisher::start().await;
    publisher.put_rss("/feed", rss("tides", 1..3));
    let requests: watch::Sender<Vec<ReceivedRequest>> = watch::Sender::default();
    let received = requests.clone();
    let server = Server::start(move |request| {
        received.send_modify(|requests| requests.push(request));
        async move { say(StatusCode::SERVICE_UNAVAILABLE, "") }
    })
    .await;
    let database = Database::new(Kind::Sqlite).await;
    let topic = publisher.url("/feed");
    after_four_attempts(&database, &topic, &server.url("/cb")).await;
    let _gateway = Gateway::start(&database, &[]).await;

    let mut requests = requests.subscribe();
    let is_denial = |request: &ReceivedRequest| request.query("hub.mode") == Some("denied");
    let denied = requests.wait_for(|requests| requests.iter().any(is_denial));
    let denied = timeout(PATIENCE, denied).await.expect("a denial").unwrap();
    let modes: Vec<_> = denied.iter().map(|request| request.query("hub.mode")).collect();
    assert_eq!(modes, [Some("subscribe"), Some("denied")], "the fifth attempt and the denial");
    assert_eq!(denied[1].query("hub.topic"), Some(topic.as_str()));
    assert!(denied[1].query("hub.reason").is_some_and(|reason| !reason.is_empty()));
}

/// Stores a request that could not be verified four times, and is due.
async fn after_four_attempts(database: &Database, topic: &str, callback: &str) {
    let request = SubscriptionRequest::new(
        Topic::parse(topic).unwrap(),
        Callback::parse(callback).unwrap(),
        Protocol::WebSub,
    );
    let mode = IntentMode::Subscribe;
    let intent = Intent::new(mode, request);
    let store = database.open().await;
    let at = runner::now() - Duration::from_secs(3_600);
    store.enqueue_intent(&intent, at).await.unwrap();
    for _ in 0..4 {
        let limits = ClaimLimits { limit: 1, per_host: 1, busy: Vec::new() };
        let due = store.claim_intents(at, at + Duration::from_secs(60), &limits).await.unwrap();
        store.retry_intent(&due[0], at).await.unwrap();
    }
    store.close().await;
}
