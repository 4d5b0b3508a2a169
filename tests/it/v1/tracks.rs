//! Tracks: queries over the entries of all feeds.

use http::{Method, StatusCode};
use serde_json::json;

use super::path_of;
use crate::support::feeds::rss;
use crate::support::world::World;

#[tokio::test]
async fn a02_a_track_is_opened_sends_what_matches_and_is_ended() {
    let world = World::with_tides(1, &[]).await;
    world.create_subscription("/feed").await;
    let body = json!({ "query": "Item text", "callback": world.subscriber.url("/track") });
    let made = world.rest_post("/v1/tracks", body).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.json);
    assert_eq!(made.json["feed"]["kind"], "log", "{}", made.json);
    let list = world.rest_get("/v1/tracks").await.json;
    let track = &list["data"][0];
    assert_eq!((&track["id"], &track["query"]), (&made.json["feed"]["id"], &"item text".into()));
    assert!(!track["url"].as_str().unwrap().contains('#'), "{track}");
    let path = path_of("tracks", track);
    assert_eq!(world.rest_get(&path).await.json, *track);

    world.publisher.put_rss("/feed", rss("tides", 1..3));
    world.gateway.post("/", &[("hub.mode", "publish"), ("hub.url", &world.topic)]).await;
    world.subscriber.until("/track", |told| !told.is_empty()).await;
    let entries = world.rest_get(&format!("{}/entries", path_of("feeds", track))).await.json;
    assert_eq!(entries["data"][0]["item"]["title"], "Item 2", "{entries}");

    assert_eq!(world.rest(Method::DELETE, &path, None).await.status, StatusCode::NO_CONTENT);
    assert_eq!(world.rest_get(&path).await.problem(), (404, "not_found", ""));
    assert_eq!(world.rest_get("/v1/tracks").await.json["data"], json!([]));
}

#[tokio::test]
async fn a02_a_query_that_cannot_be_used_is_named() {
    let world = World::with_tides(1, &[]).await;
    let callback = world.subscriber.url("/track");
    for (body, code, field) in [
        (json!({ "callback": callback }), "missing_field", "query"),
        (json!({ "query": "-a" }), "bad_query", "query"),
        (json!({ "query": "a", "url": "https://a.test/" }), "unknown_field", "url"),
        (json!({ "query": ["a"] }), "invalid_field", "query"),
    ] {
        let reply = world.rest_post("/v1/tracks", body.clone()).await;
        assert_eq!(reply.problem(), (422, code, field), "{body}");
    }
}
