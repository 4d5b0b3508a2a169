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
