//! Credentials for callbacks: sent with every request to the callback and to nobody else, and never shown.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::World;
use crate::store::on_both_stores;
use crate::support::gateway::Gateway;
use crate::support::postgres::Database;
use crate::support::server::{ReceivedRequest, Server, say};
use crate::support::until;

on_both_stores!(
    credentials_are_sent_with_each_request_and_kept_until_they_are_replaced,
    credentials_that_cannot_be_sent_are_refused_by_name,
    credentials_that_a_callback_repeats_are_not_recorded,
);

/// Credentials, and the names and fingerprints of the headers that they become.
const HEADERS: &str = "X-Api-Key: k3y-0123456789\nX-Tenant: 7";
const AUTHORIZATION: &str = "Basic ann:opensesame";
const ENCODED: &str = "Basic YW5uOm9wZW5zZXNhbWU=";

async fn world(database: Database) -> World {
    let gateway = Gateway::start(&database, &[]).await;
    let world = World::on(database, gateway).await;
    world.put_tides(2);
    world
}

impl World {
    async fn change(&self, mode: &str, further: &[(&str, &str)]) -> (StatusCode, String) {
        let callback = self.subscriber.url("/cb");
        let own = [("hub.mode", mode), ("hub.topic", &*self.topic), ("hub.callback", &*callback)];
        self.gateway.superfeedr(&[&own, further].concat()).await
    }

    /// What the list shows of the headers.
    async fn listed_headers(&self) -> Value {
        let got = self.ask(Method::GET, &[("hub.mode", "list")], &[]).await;
        for secret in ["k3y-0123456789", "opensesame", "YW5uOm9wZW5zZXNhbWU"] {
            assert!(!got.text.contains(secret), "{}", got.text);
        }
        got.json()[0]["subscription"]["callbackHeaders"].clone()
    }

    async fn last_request(&self, count: usize) -> ReceivedRequest {
        self.subscriber.until("/cb", |notified| notified.len() >= count).await;
        self.subscriber.notified("/cb").remove(count - 1)
    }
}

fn credentials(request: &ReceivedRequest) -> [Option<&str>; 3] {
    ["authorization", "x-api-key", "x-tenant"].map(|name| request.header(name))
}

async fn credentials_are_sent_with_each_request_and_kept_until_they_are_replaced(
    database: Database,
) {
    let world = world(database).await;
    let given = [("callback_headers", HEADERS), ("callback_authorization", AUTHORIZATION)];
    let all = [Some(ENCODED), Some("k3y-0123456789"), Some("7")];
    let sync = ("hub.verify", "sync");
    let (status, why) = world.change("subscribe", &[&given[..], &[sync]].concat()).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{why}");
    let verification = world.subscriber.requests_to("/cb").remove(0);
    assert_eq!((&verification.method, credentials(&verification)), (&Method::GET, all));
    let want = json!({
        "authorization": "sha256:1edb0e74",
        "x-api-key": "sha256:2f414e49",
        "x-tenant": "sha256:7902699b",
    });
    assert_eq!(world.listed_headers().await, want);

    world.publish(3).await;
    let notification = world.last_request(1).await;
    assert_eq!(credentials(&notification), all);
    assert!(notification.header("webhook-id").is_some());
    let (status, why) = world.change("test", &[]).await;
    assert!(status.is_success(), "{why}");
    assert_eq!(credentials(&world.last_request(2).await), all);

    // A renewal that names none keeps them, and verifies the callback with them.
    let (status, why) = world.change("subscribe", &[sync]).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{why}");
    let renewal = world.subscriber.requests_to("/cb").pop().unwrap();
    assert_eq!((&renewal.method, credentials(&renewal)), (&Method::GET, all));
    world.publish(4).await;
    assert_eq!(credentials(&world.last_request(3).await), all);

    let bearer = [("callback_authorization", "Bearer t0ken-2")];
    let (status, why) = world.change("subscribe", &bearer).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{why}");
    world.publish(5).await;
    assert_eq!(credentials(&world.last_request(4).await), [Some("Bearer t0ken-2"), None, None]);
    let (status, why) = world.change("subscribe", &[("callback_headers", "")]).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{why}");
    assert_eq!(world.listed_headers().await, json!({}));
    world.publish(6).await;
    assert_eq!(credentials(&world.last_request(5).await), [None; 3]);

    let query = [("hub.mode", "attempts"), ("hub.topic", world.topic.as_str())];
    let mut attempts = String::new();
    until("the names are recorded", async || {
        attempts = world.ask(Method::GET, &query, &[]).await.text;
        attempts.contains("x-api-key")
    })
    .await;
    for secret in ["k3y-0123456789", "opensesame", "YW5uOm9wZW5zZXNhbWU", "t0ken-2"] {
        assert!(!attempts.contains(secret), "{attempts}");
    }
    let (status, why) = world.change("unsubscribe", &[sync]).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{why}");
}

async fn credentials_that_cannot_be_sent_are_refused_by_name(database: Database) {
    let world = world(database).await;
    #[rustfmt::skip]
    let cases = [
        (("callback_headers", "Host: a.test"),           "(host cannot be chosen.)"),
        (("callback_headers", "X-Hub-Signature: sha1=0"), "(x-hub-signature cannot be chosen.)"),
        (("callback_headers", "s3cret"),                 "(each line must be a header, written NAME: VALUE.)"),
        (("callback_headers", "X-Key: s3cret\n\nx-key: s3cret"), "(x-key is given twice.)"),
        (("callback_authorization", "s3cret"),           "(the authorization must be Bearer TOKEN, Basic LOGIN:PASSWORD or SCHEME CREDENTIALS.)"),
    ];
    for (parameter, want) in cases {
        let (status, why) = world.change("subscribe", &[parameter]).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{why}");
        assert!(why.contains(want) && !why.contains("s3cret"), "{why}");
    }
    let callback = world.subscriber.url("/cb");
    let form = [
        ("hub.mode", "subscribe"),
        ("hub.topic", world.topic.as_str()),
        ("hub.callback", callback.as_str()),
        ("callback_authorization", "Bearer t0ken"),
    ];
    let (status, why) = world.gateway.post("/hub", &form).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{why}");
    assert!(why.contains("callback_authorization has no effect here"), "{why}");
}

async fn credentials_that_a_callback_repeats_are_not_recorded(database: Database) {
    let world = world(database).await;
    // An error page with all that the request had, also in the forms in which a program reads it.
    let echo = Server::start(|request: ReceivedRequest| async move {
        let text = |name| request.header(name).unwrap_or_default();
        let (authorization, cookie) = (text("authorization"), text("cookie"));
        let unpadded = authorization.trim_end_matches('=');
        let body = format!("{authorization}\n{unpadded}\n{cookie}\nopensesame s3ssion csrf-t0ken");
        let mut reply = say(StatusCode::IM_A_TEAPOT, body);
        reply.headers_mut().insert("x-echo", unpadded.parse().unwrap());
        reply
    })
    .await;
    let headers = "Cookie: sid=s3ssion; csrf=\"csrf-t0ken\"";
    let (callback, topic) = (echo.url("/cb"), world.topic.as_str());
    let form = [
        ("hub.mode", "subscribe"),
        ("hub.topic", topic),
        ("hub.callback", &callback),
        ("callback_headers", headers),
        ("callback_authorization", AUTHORIZATION),
    ];
    let (status, why) = world.gateway.superfeedr(&form).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{why}");
    world.publish(3).await;
    let mut displayed = String::new();
    until("the attempt is recorded", async || {
        let attempts = [("hub.mode", "attempts"), ("hub.topic", topic)];
        displayed = world.ask(Method::GET, &attempts, &[]).await.text;
        displayed.contains("418")
    })
    .await;
    displayed += &world.ask(Method::GET, &[("hub.mode", "list")], &[]).await.text;
    displayed += &world.gateway.get("/log.json").await.1;
    for secret in ["YW5uOm9wZW5zZXNhbWU", "opensesame", "s3ssion", "csrf-t0ken"] {
        assert!(!displayed.contains(secret), "{secret}: {displayed}");
    }
}
