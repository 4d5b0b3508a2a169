//! The open WebSub hub, from the request to the notification.

mod conformance;
mod taken_over;
mod validation;

use feedgate_protocol::signature;
use http::{Method, StatusCode};

use crate::support::feeds::rss;
use crate::support::server::client;
use crate::support::subscriber::{Behavior, is_signed};
use crate::support::world::World;

impl World {
    async fn hub(&self, mode: &str, callback: &str, further: &[(&str, &str)]) -> StatusCode {
        let callback = self.subscriber.url(callback);
        let form = [("hub.mode", mode), ("hub.topic", &self.topic), ("hub.callback", &callback)];
        self.gateway.post("/hub", &[&form, further].concat()).await.0
    }

    /// Publishes item `n`, and says so.
    async fn publish_and_tell(&self, n: usize) {
        self.put_tides(n);
        let form = [("hub.mode", "publish"), ("hub.url", &self.topic)];
        assert_eq!(self.gateway.post("/hub", &form).await.0, StatusCode::NO_CONTENT);
    }
}

const SYNC: (&str, &str) = ("hub.verify", "sync");

/// WebSub 5.1.1 and 5.3.
#[tokio::test]
async fn a_callback_is_asked_exactly_what_the_specification_says() {
    let world = World::with_tides(2, &[]).await;
    let further = [("hub.verify_token", "to ken"), ("hub.secret", "s")];
    let status = world.hub("subscribe", "/cb?hub.mode=mine&x=%20a", &further).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    world.subscriber.verified("/cb", 1).await;

    let request = world.subscriber.requests_to("/cb").remove(0);
    assert_eq!(request.method, Method::GET);
    let challenge = request.query("hub.challenge").unwrap();
    assert!(challenge.len() == 32 && challenge.bytes().all(|b| b.is_ascii_hexdigit()));
    let names: Vec<&str> = request.query.iter().map(|(name, _)| name.as_str()).collect();
    let own = ["hub.mode", "x"];
    let ours = ["hub.mode", "hub.topic", "hub.challenge", "hub.lease_seconds", "hub.verify_token"];
    assert_eq!(names, [&own[..], &ours[..]].concat(), "the callback's own query comes first");
    assert_eq!(request.query[0].1, "mine", "names that overlap are not overwritten");
    assert_eq!(request.query[2].1, "subscribe");
    assert_eq!(request.query("hub.topic"), Some(world.topic.as_str()));
    assert_eq!(request.query("hub.lease_seconds"), Some("864000"));
    assert_eq!(request.query("hub.verify_token"), Some("to ken"));
}

/// WebSub 5.3.1 and 8.2.
#[tokio::test]
async fn leases_are_granted_within_bounds_and_challenges_are_used_once() {
    let world = World::with_tides(2, &[]).await;
    let cases = [("60", "300"), ("3600", "3600"), ("99999999999999999999999", "864000")];
    for (request, _) in cases {
        assert!(
            world
                .hub("subscribe", "/cb", &[("hub.lease_seconds", request), SYNC])
                .await
                .is_success()
        );
    }
    let request = world.subscriber.requests_to("/cb");
    let granted: Vec<_> =
        request.iter().filter_map(|request| request.query("hub.lease_seconds")).collect();
    assert_eq!(granted, cases.map(|(_, granted)| granted));
    let mut challenges: Vec<_> =
        request.iter().map(|request| request.query("hub.challenge")).collect();
    challenges.sort_unstable();
    challenges.dedup();
    assert_eq!(challenges.len(), cases.len());
}

/// WebSub 3.1, 7 and 7.1.
#[tokio::test]
async fn a_subscriber_is_sent_the_topic_as_it_is_and_signed() {
    let world = World::with_tides(2, &[]).await;
    assert!(
        world.hub("subscribe", "/cb?id=7", &[("hub.secret", "s3cret"), SYNC]).await.is_success()
    );
    world.publish_and_tell(3).await;
    world.subscriber.until("/cb", |told| !told.is_empty()).await;
    let told = world.subscriber.notified("/cb").remove(0);
    assert_eq!(told.text(), rss("tides", 1..4));
    assert_eq!(told.header("content-type"), Some("application/rss+xml"));
    assert_eq!(told.query("id"), Some("7"));
    assert!(is_signed(&told, "s3cret"));
    let hub = world.gateway.url("/hub");
    let link = format!("<{hub}>; rel=\"hub\", <{}>; rel=\"self\"", world.topic);
    assert_eq!(told.header("link"), Some(link.as_str()));
}

/// WebSub 7.1.1.
#[tokio::test]
async fn a11_each_subscription_chooses_its_hash_at_the_hub_and_at_superfeedrs_address() {
    let world = World::with_tides(2, &[]).await;
    let secret = ("hub.secret", "s3cret");
    for (path, further) in
        [("/new", &[secret, SYNC][..]), ("/chosen", &[secret, ("signature", "sha512"), SYNC])]
    {
        assert!(world.hub("subscribe", path, further).await.is_success());
    }
    let callback = world.subscriber.url("/own");
    let form = [
        ("hub.mode", "subscribe"),
        ("hub.topic", &world.topic),
        ("hub.callback", &callback),
        ("signature", "sha384"),
        secret,
    ];
    let (status, text) = world.gateway.superfeedr(&form).await;
    assert!(status.is_success(), "{text}");
    world.publish_and_tell(3).await;
    for (path, method) in [("/new", "sha256="), ("/chosen", "sha512="), ("/own", "sha384=")] {
        world.subscriber.until(path, |told| !told.is_empty()).await;
        let told = world.subscriber.notified(path).remove(0);
        let signature = told.header("x-hub-signature").unwrap();
        assert!(signature.starts_with(method), "{path} {signature}");
        assert!(signature::holds(signature, "s3cret", &told.body), "{path} {signature}");
    }
}

/// WebSub 5.1 and 5.3.1.
#[tokio::test]
async fn what_a_callback_refuses_changes_nothing() {
    let world = World::with_tides(2, &[]).await;
    assert!(world.hub("subscribe", "/cb", &[("hub.secret", "old"), SYNC]).await.is_success());
    world.subscriber.set("/cb", Behavior::Refusing);
    let status = world.hub("subscribe", "/cb", &[("hub.secret", "new"), SYNC]).await;
    assert_eq!(status, StatusCode::CONFLICT);
    let status = world.hub("unsubscribe", "/cb", &[SYNC]).await;
    assert_eq!(status, StatusCode::CONFLICT);

    world.subscriber.set("/cb", Behavior::Accepting);
    world.publish_and_tell(3).await;
    world.subscriber.until("/cb", |told| !told.is_empty()).await;
    assert!(is_signed(&world.subscriber.notified("/cb")[0], "old"));
}

/// WebSub 3.1 and 5.1.
#[tokio::test]
async fn a_renewal_replaces_the_secret_and_does_not_drop_it() {
    let world = World::with_tides(2, &[]).await;
    for (n, secret) in [(3, Some("one")), (4, Some("two")), (5, None)] {
        let further: Vec<_> =
            secret.map(|secret| ("hub.secret", secret)).into_iter().chain([SYNC]).collect();
        assert!(world.hub("subscribe", "/cb", &further).await.is_success());
        world.publish_and_tell(n).await;
        world.subscriber.until("/cb", |told| told.len() == n - 2).await;
        let told = world.subscriber.notified("/cb").pop().unwrap();
        assert!(is_signed(&told, secret.unwrap_or("two")), "{n}");
    }
}

/// WebSub 3.1 and 5.3.
#[tokio::test]
async fn who_has_unsubscribed_is_told_no_more() {
    let world = World::with_tides(2, &[]).await;
    for callback in ["/stays", "/goes"] {
        assert!(world.hub("subscribe", callback, &[SYNC]).await.is_success());
    }
    // Clients send one form for both, and what concerns only subscriptions is ignored.
    let secret = "s".repeat(300);
    let unused = [SYNC, ("hub.lease_seconds", "-1"), ("hub.secret", secret.as_str())];
    assert!(world.hub("unsubscribe", "/goes", &unused).await.is_success());
    let request = world.subscriber.requests_to("/goes").pop().unwrap();
    assert_eq!(request.query("hub.mode"), Some("unsubscribe"));
    assert_eq!(request.query("hub.lease_seconds"), None);

    world.publish_and_tell(3).await;
    world.subscriber.until("/stays", |told| !told.is_empty()).await;
    assert_eq!(world.subscriber.notified("/goes").len(), 0);
}

#[tokio::test]
async fn a_body_without_a_length_is_counted_while_it_is_read() {
    let world = World::with_tides(2, &[]).await;
    let send = |bytes: usize| {
        let chunk = Ok::<_, std::io::Error>(vec![b'x'; bytes]);
        let body = reqwest::Body::wrap_stream(futures_util::stream::iter([chunk]));
        client().post(world.gateway.url("/hub")).body(body).send()
    };
    assert_eq!(send(2 << 20).await.unwrap().status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(send(10).await.unwrap().status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a12_the_hub_takes_a_multipart_form() {
    let world = World::with_tides(2, &[]).await;
    let callback = world.subscriber.url("/cb");
    let fields = [
        ("hub.mode", "subscribe"),
        ("hub.topic", &world.topic),
        ("hub.callback", &callback),
        ("hub.verify", "sync"),
    ];
    let parts = fields.map(|(name, value)| {
        format!("--cut\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    });
    let request = client().post(world.gateway.url("/hub"));
    let request = request.header("content-type", "multipart/form-data; boundary=cut");
    let response = request.body(parts.concat() + "--cut--\r\n").send().await.unwrap();
    assert_eq!(response.status(), StatusCode::NO_CONTENT);
    assert_eq!(world.subscriber.requests_to("/cb").len(), 1);
}
