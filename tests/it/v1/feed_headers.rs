//! Headers and cookies for a feed, in the REST API.

use feedgate_core::callback_headers::CallbackHeaders;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::path_of;
use crate::support::world::World;

const COOKIE: &str = "session=k3y-0123456789";

impl World {
    /// Subscribes with these headers for the feed; the subscription, as it is read.
    async fn subscribe_with(&self, headers: &Value, status: StatusCode) -> Value {
        let callback = self.subscriber.url("/cb");
        let mut body = json!({ "url": self.topic, "callback": callback });
        body.as_object_mut().unwrap().extend(headers.as_object().unwrap().clone());
        let made = self.rest_post("/v1/subscriptions", body).await;
        assert_eq!(made.status, status, "{}", made.json);
        self.rest_get(&path_of("subscriptions", &made.json)).await.json
    }
}

#[tokio::test]
async fn a36_a_feed_with_headers_is_one_of_its_account() {
    let world = World::with_tides(2, &[]).await;
    let headers =
        json!({ "feedHeaders": { "Cookie": COOKIE }, "feedAuthorization": "Bearer t0ken" });
    let made = world.subscribe_with(&headers, StatusCode::CREATED).await;
    let sent = CallbackHeaders::parse(&format!("cookie: {COOKIE}"), "Bearer t0ken").unwrap();
    assert_eq!(made["feedHeaders"], sent.fingerprints().collect::<Value>());
    let topic = json!(world.topic);
    assert_eq!((&made["url"], &made["feed"]["url"]), (&topic, &topic));
    let feed = path_of("feeds", &made["feed"]);
    let entries = world.rest_get(&format!("{feed}/entries")).await.json;
    assert_eq!(entries["data"].as_array().unwrap().len(), 2);
    for text in [made.to_string(), entries.to_string()] {
        assert!(!text.contains("k3y") && !text.contains("feedgate-headers-"), "{text}");
    }

    // Another account that knows all about it reads nothing.
    let ben = world.create_token("ben", "subscribe list retrieve").await;
    let own =
        world.database.texts("select topic from resources where topic like '%headers%'").await;
    let id = made["feed"]["id"].as_str().unwrap();
    for path in [&*feed, &format!("{feed}/entries"), &format!("/v1/entries/{id}-1")] {
        let reply = world.rest_as(&ben, Method::GET, path, None).await;
        assert_eq!(reply.status, StatusCode::NOT_FOUND, "{path}");
    }
    for url in [own[0].clone(), world.gateway.url(&format!("/feeds/{id}"))] {
        let body = Some(json!({ "url": url, "callback": world.subscriber.url("/ben") }));
        let reply = world.rest_as(&ben, Method::POST, "/v1/subscriptions", body).await;
        assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY, "{url}: {}", reply.json);
    }
    for path in [format!("/feeds/{id}"), format!("/feeds?topic={}", own[0])] {
        assert!(world.gateway.get(&path).await.0.is_client_error(), "{path}");
    }

    // A renewal keeps them, and null ends them.
    let renewed = world.subscribe_with(&json!({ "follow": false }), StatusCode::OK).await;
    assert_eq!((&renewed["id"], &renewed["feedHeaders"]), (&made["id"], &made["feedHeaders"]));
    let ended = world.subscribe_with(&json!({ "feedHeaders": null }), StatusCode::OK).await;
    assert!(ended["feed"]["id"] != made["feed"]["id"] && ended.get("feedHeaders").is_none());
}

#[tokio::test]
async fn a36_headers_for_a_feed_that_cannot_be_used_are_refused_by_name() {
    let world = World::with_tides(1, &[]).await;
    #[rustfmt::skip]
    let cases = [
        (json!({ "feedHeaders": { "host": "a.test" } }),       "bad_feed_headers", "feedHeaders"),
        (json!({ "feedHeaders": { "range": "bytes=0-9" } }),   "bad_feed_headers", "feedHeaders"),
        (json!({ "feedHeaders": { "user-agent": "me" } }),     "bad_feed_headers", "feedHeaders"),
        (json!({ "feedHeaders": { "cookie": "a\r\nb: c" } }),  "bad_feed_headers", "feedHeaders"),
        (json!({ "feedHeaders": "cookie: a" }),                "invalid_field",    "feedHeaders"),
        (json!({ "feedAuthorization": "t0ken" }),              "bad_feed_headers", "feedAuthorization"),
    ];
    for (body, code, field) in cases {
        let mut whole = body.clone();
        whole["url"] = json!(world.topic);
        let refused = world.rest_post("/v1/subscriptions", whole).await;
        assert_eq!(refused.problem(), (422, code, field), "{body}");
    }
    let track = json!({ "query": "tide", "feedHeaders": { "cookie": "a" } });
    let refused = world.rest_post("/v1/tracks", track).await;
    assert_eq!(refused.problem(), (422, "unknown_field", "feedHeaders"));
    assert!(world.publisher.fetches("/feed").is_empty());
}
