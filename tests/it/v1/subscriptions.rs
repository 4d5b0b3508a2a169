//! Reading, changing and ending subscriptions, and what is done with their deliveries.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::path_of;
use crate::support::feeds::{entry_id, rss};
use crate::support::subscriber::Behavior;
use crate::support::until;
use crate::support::world::World;

impl World {
    async fn subscription(&self, path: &str) -> Value {
        let reply = self.rest_get(path).await;
        assert_eq!(reply.status, StatusCode::OK, "{}", reply.json);
        reply.json
    }

    /// Publishes the first `items` items, and reports it.
    async fn report_tides(&self, items: usize) {
        self.publisher.put_rss("/feed", rss("tides", 1..items + 1));
        self.gateway.post("/", &[("hub.mode", "publish"), ("hub.url", &self.topic)]).await;
    }
}

#[tokio::test]
async fn a02_a_subscription_is_read_changed_and_ended() {
    let world = World::with_tides(1, &[]).await;
    let made = world.create_subscription("/cb").await;
    let path = path_of("subscriptions", &made);
    let mut displayed = made.clone();
    displayed.as_object_mut().unwrap().remove("found");
    assert_eq!(world.subscription(&path).await, displayed);

    let options = json!({
        "format": "atom", "updates": "always", "statuses": "always", "sanitize": true,
        "filter": "tide", "digest": true, "secret": "opensesame", "signature": "sha256",
    });
    let changed = world.rest(Method::PATCH, &path, Some(options)).await;
    assert_eq!(changed.status, StatusCode::OK, "{}", changed.json);
    for (name, want) in [
        ("format", json!("atom")),
        ("updates", json!("always")),
        ("statuses", json!("always")),
        ("sanitize", json!(true)),
        ("filter", json!("tide")),
        ("digest", json!(true)),
        ("signature", json!("sha256")),
        ("id", made["id"].clone()),
        ("createdAt", made["createdAt"].clone()),
    ] {
        assert_eq!(changed.json[name], want, "{name}: {}", changed.json);
    }
    assert!(changed.json["secretFingerprint"].is_string(), "{}", changed.json);
    let less = json!({ "filter": null, "digest": false });
    let less = world.rest(Method::PATCH, &path, Some(less)).await.json;
    assert!(less.get("filter").is_none() && less["digest"] == false, "{less}");
    assert_eq!(
        (&less["format"], &less["sanitize"]),
        (&"atom".into(), &true.into()),
        "the rest stays"
    );
    let wrong = world.rest(Method::PATCH, &path, Some(json!({ "url": "https://a.test/" }))).await;
    assert_eq!(wrong.problem(), (422, "unknown_field", "url"));

    assert_eq!(world.rest(Method::DELETE, &path, None).await.status, StatusCode::NO_CONTENT);
    for method in [Method::GET, Method::PATCH, Method::DELETE] {
        let gone = world.rest(method, &path, None).await;
        assert_eq!(gone.problem(), (404, "no_subscription", ""));
    }
}

#[tokio::test]
async fn a02_a_callback_is_sent_the_credentials_of_its_subscription() {
    let world = World::with_tides(1, &[]).await;
    let body = json!({
        "url": world.topic,
        "callback": world.subscriber.url("/cb"),
        "callbackHeaders": { "X-Api-Key": "k3y-0123456789" },
        "callbackAuthorization": "Basic ann:opensesame",
    });
    let made = world.rest_post("/v1/subscriptions", body).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.json);
    let fingerprints =
        json!({ "authorization": "sha256:1edb0e74", "x-api-key": "sha256:2f414e49" });
    assert_eq!(made.json["callbackHeaders"], fingerprints);
    assert!(!made.json.to_string().contains("opensesame"), "{}", made.json);
    let path = path_of("subscriptions", &made.json);
    let sent = async |count: usize| {
        world.report_tides(1 + count).await;
        world.subscriber.until("/cb", |told| told.len() == count).await;
        let told = world.subscriber.notified("/cb").remove(count - 1);
        ["authorization", "x-api-key", "x-tenant"]
            .map(|name| told.header(name).unwrap_or_default().to_owned())
    };
    assert_eq!(sent(1).await, ["Basic YW5uOm9wZW5zZXNhbWU=", "k3y-0123456789", ""]);
    #[rustfmt::skip]
    let changes = [
        (json!({ "digest": false }),                        ["Basic YW5uOm9wZW5zZXNhbWU=", "k3y-0123456789", ""]),
        (json!({ "callbackAuthorization": "Bearer t0ken" }), ["Bearer t0ken", "k3y-0123456789", ""]),
        (json!({ "callbackHeaders": { "x-tenant": "7" } }), ["Bearer t0ken", "", "7"]),
        (json!({ "callbackAuthorization": null }),          ["", "", "7"]),
        (json!({ "callbackHeaders": null }),                ["", "", ""]),
    ];
    for (count, (change, want)) in (2..).zip(changes) {
        let changed = world.rest(Method::PATCH, &path, Some(change.clone())).await;
        assert_eq!(changed.status, StatusCode::OK, "{}", changed.json);
        assert_eq!(sent(count).await, want, "{change}");
    }
    #[rustfmt::skip]
    let refused = [
        (json!({ "callbackHeaders": { "host": "a.test" } }), "bad_callback_headers", "callbackHeaders"),
        (json!({ "callbackHeaders": { "x-a": "1\nx-b: 2" } }), "bad_callback_headers", "callbackHeaders"),
        (json!({ "callbackHeaders": "x-a: 1" }),             "invalid_field",        "callbackHeaders"),
        (json!({ "callbackAuthorization": "t0ken" }),        "bad_callback_headers", "callbackAuthorization"),
    ];
    for (change, code, field) in refused {
        let refused = world.rest(Method::PATCH, &path, Some(change.clone())).await;
        assert_eq!(refused.problem(), (422, code, field), "{change}: {}", refused.json);
    }
}

#[tokio::test]
async fn a02_a_paused_subscription_is_sent_nothing_until_it_is_resumed() {
    let world = World::with_tides(3, &[]).await;
    let path = path_of("subscriptions", &world.create_subscription("/cb").await);
    let paused = world.rest(Method::PATCH, &path, Some(json!({ "paused": true }))).await;
    assert_eq!((paused.status, &paused.json["state"]), (StatusCode::OK, &"paused".into()));
    assert!(paused.json["delivery"]["pausedSince"].is_string(), "{}", paused.json);
    world.report_tides(4).await;
    until("the entry is stored", async || world.subscription(&path).await["delivery"]["lag"] == 1)
        .await;
    for action in ["retry", "replay"] {
        let reply = world.rest_post(&format!("{path}/{action}"), json!({})).await;
        assert_eq!(reply.problem(), (409, "paused", ""), "{action}");
    }
    assert_eq!(world.subscriber.notified("/cb").len(), 0);
    let resumed = world.rest(Method::PATCH, &path, Some(json!({ "paused": false }))).await;
    assert_ne!(resumed.json["state"], "paused");
    world.subscriber.until("/cb", |told| told.len() == 1).await;
}

#[tokio::test]
async fn a02_entries_are_replayed_and_failed_deliveries_retried() {
    let world = World::with_tides(3, &[]).await;
    let path = path_of("subscriptions", &world.create_subscription("/cb").await);
    let replayed = world.rest_post(&format!("{path}/replay"), json!({ "count": 2 })).await;
    assert_eq!(replayed.status, StatusCode::ACCEPTED, "{}", replayed.json);
    world.subscriber.until("/cb", |told| !told.is_empty()).await;
    let told: Value = serde_json::from_str(&world.subscriber.notified("/cb")[0].text()).unwrap();
    let ids: Vec<_> = told["items"].as_array().unwrap().iter().map(|item| &item["id"]).collect();
    assert_eq!(ids, [entry_id("tides", 3).as_str(), entry_id("tides", 2).as_str()]);
    let wrong = world.rest_post(&format!("{path}/replay"), json!({ "count": 51 })).await;
    assert_eq!(wrong.problem(), (422, "invalid_field", "count"));

    world.gateway.comes_to_rest().await;
    let nothing = world.rest_post(&format!("{path}/retry"), json!({})).await;
    assert_eq!(nothing.problem(), (409, "nothing_to_retry", ""));
    world.subscriber.set("/cb", Behavior::Failing(503));
    world.report_tides(4).await;
    until("it fails", async || world.subscription(&path).await["state"] == "failing").await;
    let failing = world.rest_get("/v1/subscriptions?state=failing").await.json;
    assert_eq!(failing["data"].as_array().unwrap().len(), 1, "{failing}");
    let delivery = &failing["data"][0]["delivery"];
    assert_eq!(delivery["lastAttempt"]["status"], 503, "{delivery}");
    assert!(delivery["nextAttemptAt"].is_string(), "{delivery}");
    world.subscriber.set("/cb", Behavior::Accepting);
    let retried = world.rest(Method::POST, &format!("{path}/retry"), None).await;
    assert_eq!(retried.status, StatusCode::ACCEPTED, "{}", retried.json);
    until("it is delivered", async || world.subscription(&path).await["state"] == "ok").await;
}

#[tokio::test]
async fn a02_a_test_tells_what_the_callback_responds() {
    let world = World::with_tides(1, &[]).await;
    let path = path_of("subscriptions", &world.create_subscription("/cb").await);
    let report = world.rest_post(&format!("{path}/test"), json!({})).await;
    assert_eq!(report.status, StatusCode::OK, "{}", report.json);
    assert_eq!((&report.json["delivered"], &report.json["status"]), (&true.into(), &200.into()));
    let told = world.subscriber.notified("/cb").remove(0);
    assert_eq!(told.header("webhook-id"), report.json["webhookId"].as_str());
}
