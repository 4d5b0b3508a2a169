//! Requests that are repeated with an `Idempotency-Key`.

use std::sync::Arc;

use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::RestReply;
use crate::support::gateway::TOKEN;
use crate::support::server::{ReceivedRequest, Server, client, say};
use crate::support::until;
use crate::support::world::World;

impl World {
    async fn post_once(&self, key: &str, path: &str, body: &Value) -> RestReply {
        let request = client().request(Method::POST, self.gateway.url(path)).bearer_auth(TOKEN);
        let request = request.header("content-type", "application/json");
        self.read_reply(request.header("idempotency-key", key).body(body.to_string())).await
    }
}

#[tokio::test]
async fn a02_a_request_that_is_repeated_is_carried_out_once() {
    let world = World::with_tides(3, &[]).await;
    let body = json!({ "url": world.topic, "callback": world.subscriber.url("/cb") });
    let first = world.post_once("one", "/v1/subscriptions", &body).await;
    assert_eq!(first.status, StatusCode::CREATED, "{}", first.json);
    let again = world.post_once("one", "/v1/subscriptions", &body).await;
    assert_eq!((again.status, &again.json), (StatusCode::CREATED, &first.json));
    assert_eq!(again.header("location"), first.header("location"));
    assert_eq!(
        (first.header("idempotency-replayed"), again.header("idempotency-replayed")),
        ("", "true")
    );
    let with_another = world.post_once("two", "/v1/subscriptions", &body).await;
    assert_eq!(with_another.status, StatusCode::OK, "it is carried out again");

    let other = json!({ "url": world.topic, "callback": world.subscriber.url("/other") });
    let refused = world.post_once("one", "/v1/subscriptions", &other).await;
    assert_eq!(refused.problem(), (422, "idempotency_key_used", "Idempotency-Key"));
    let replay = format!("/v1/subscriptions/{}/replay", first.json["id"].as_str().unwrap());
    for _ in 0..3 {
        let replayed = world.post_once("three", &replay, &json!({})).await;
        assert_eq!(replayed.status, StatusCode::ACCEPTED, "{}", replayed.json);
    }
    world.subscriber.until("/cb", |told| !told.is_empty()).await;
    world.gateway.comes_to_rest().await;
    assert_eq!(world.subscriber.notified("/cb").len(), 1);
    let long = "k".repeat(256);
    let refused = world.post_once(&long, "/v1/subscriptions", &body).await;
    assert_eq!(refused.problem(), (422, "invalid_parameter", "Idempotency-Key"));
}

#[tokio::test]
async fn a02_a_request_that_was_rejected_may_be_corrected() {
    let world = World::with_tides(1, &[]).await;
    let wrong = json!({ "url": world.topic, "callback": "nonsense" });
    let refused = world.post_once("one", "/v1/subscriptions", &wrong).await;
    assert_eq!(refused.problem(), (422, "bad_callback", "callback"));
    let body = json!({ "url": world.topic, "callback": world.subscriber.url("/cb") });
    let made = world.post_once("one", "/v1/subscriptions", &body).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.json);
}

#[tokio::test]
async fn a02_of_two_at_the_same_time_one_is_carried_out() {
    let world = World::with_tides(1, &[]).await;
    let body = json!({ "name": "once", "scopes": ["list"] });
    let calls = (0..8).map(|_| world.post_once("one", "/v1/tokens", &body));
    let replies = futures_util::future::join_all(calls).await;
    for reply in &replies {
        let is_waiting = reply.problem() == (409, "request_in_progress", "");
        assert!(is_waiting || reply.status == StatusCode::CREATED, "{}", reply.json);
    }
    let with_token = replies.iter().filter(|reply| reply.json["token"].is_string()).count();
    assert_eq!(with_token, 1, "the token is shown once");
    let listed = world.rest_get("/v1/tokens").await.json;
    let named = listed["data"].as_array().unwrap().iter().filter(|token| token["name"] == "once");
    assert_eq!(named.count(), 1, "{listed}");
}

#[tokio::test]
async fn a02_a_request_is_carried_out_although_its_client_closes_the_connection() {
    let world = World::with_tides(1, &[]).await;
    let (requested, agrees) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let signals = (Arc::clone(&requested), Arc::clone(&agrees));
    let callback = Server::start(move |request: ReceivedRequest| {
        let (requested, agrees) = signals.clone();
        async move {
            requested.notify_one();
            agrees.notified().await;
            say(StatusCode::OK, request.query("hub.challenge").unwrap_or_default().to_owned())
        }
    })
    .await;
    let body = json!({ "url": world.topic, "callback": callback.url("/cb"), "verify": "sync" });
    let call = || world.post_once("one", "/v1/subscriptions", &body);
    tokio::select! {
        reply = call() => panic!("the callback has not agreed: {}", reply.json),
        () = requested.notified() => {}
    }
    assert_eq!(call().await.problem(), (409, "request_in_progress", ""));
    agrees.notify_one();
    let mut reply = call().await;
    until("the request is answered", async || {
        reply = call().await;
        reply.status != StatusCode::CONFLICT
    })
    .await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.json);
    assert_eq!(reply.header("idempotency-replayed"), "true");
}
