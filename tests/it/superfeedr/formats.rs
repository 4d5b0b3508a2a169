//! Entries that are retrieved or found, as RSS and JSON Feed.

use http::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{Method, StatusCode};
use serde_json::Value;

use super::{Got, World};
use crate::schemas::assert_json_feed;
use crate::support::feeds::entry_id;
use crate::support::rss_validator::rss_faults;
use crate::support::until;

/// The ids of the items, which must be valid RSS or JSON Feed.
fn item_ids(got: &Got) -> Vec<String> {
    assert_eq!(got.status, StatusCode::OK, "{}", got.text);
    if got.header(CONTENT_TYPE) == "application/rss+xml" {
        assert_eq!(rss_faults(&got.text), [] as [String; 0], "{}", got.text);
        let parts = got.text.split("<guid isPermaLink=\"false\">").skip(1);
        return parts.map(|part| part.split_once('<').unwrap().0.to_owned()).collect();
    }
    assert_eq!(got.header(CONTENT_TYPE), "application/feed+json");
    assert_json_feed(&got.text);
    let feed: Value = serde_json::from_str(&got.text).unwrap();
    let items = feed["items"].as_array().unwrap().iter();
    items.map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a03_what_is_retrieved_can_be_rss_and_json_feed() {
    let world = World::subscribed("atom").await;
    let topic = [("hub.mode", "retrieve"), ("hub.topic", world.topic.as_str()), ("count", "2")];
    let want = [entry_id("tides", 3), entry_id("tides", 2)];
    for (word, accept) in [("rss", "application/rss+xml"), ("json-feed", "application/feed+json")] {
        let named = world.ask(Method::GET, &[&topic[..], &[("format", word)]].concat(), &[]).await;
        assert_eq!(item_ids(&named), want);
        let preferred = world.ask(Method::GET, &topic, &[("accept", accept)]).await;
        assert_eq!(item_ids(&preferred), want);
        let etag = preferred.header(ETAG);
        let held = [("accept", accept), (IF_NONE_MATCH.as_str(), etag)];
        let again = world.ask(Method::GET, &topic, &held).await;
        assert_eq!(again.status, StatusCode::NOT_MODIFIED);
        let atom = world.ask(Method::GET, &topic, &[(IF_NONE_MATCH.as_str(), etag)]).await;
        assert_eq!(atom.status, StatusCode::OK, "another document");
    }
    // Superfeedr's JSON is what it was.
    let json = world.ask(Method::GET, &[&topic[..], &[("format", "json")]].concat(), &[]).await;
    assert_eq!(json.header(CONTENT_TYPE), "application/json; charset=utf-8");
    assert_eq!(json.json()["items"][0]["id"], want[0]);

    // Several feeds, and a stream, which has the formats of notifications only.
    let callback = world.subscriber.url("/cb");
    let all = [("hub.mode", "retrieve"), ("hub.callback", callback.as_str()), ("format", "rss")];
    assert_eq!(item_ids(&world.ask(Method::GET, &all, &[]).await).len(), 3);
    let stream = [&topic[..], &[("format", "rss"), ("wait", "stream")]].concat();
    let refused = world.ask(Method::GET, &stream, &[]).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn a03_what_a_search_or_a_track_finds_can_be_rss_and_json_feed() {
    let world = World::subscribed("atom").await;
    let search = [("hub.mode", "search"), ("query", "\"text of\""), ("count", "2")];
    until("all entries are indexed", async || {
        world.ask(Method::GET, &search, &[]).await.text.contains("rel=\"next\"")
    })
    .await;
    let rss = world.ask(Method::GET, &[&search[..], &[("format", "rss")]].concat(), &[]).await;
    assert_eq!(item_ids(&rss), [entry_id("tides", 3), entry_id("tides", 2)]);
    assert!(rss.text.contains(&format!("<source url=\"{}\">", world.topic)), "{}", rss.text);
    let query = [&search[..], &[("format", "json-feed")]].concat();
    let json = world.ask(Method::GET, &query, &[]).await;
    assert_eq!(item_ids(&json).len(), 2);
    let next = json.json()["next_url"].as_str().unwrap().to_owned();
    assert!(next.contains("format=json-feed") && next.contains("before="), "{next}");

    let track = world.gateway.url("/track?query=%22text+of+4%22");
    let callback = world.subscriber.url("/track");
    let form = [("hub.mode", "subscribe"), ("hub.topic", &*track), ("hub.callback", &callback)];
    assert_eq!(world.gateway.superfeedr(&form).await.0, StatusCode::NO_CONTENT);
    world.put_tides(4);
    world.gateway.post("/", &[("hub.mode", "publish"), ("hub.url", &world.topic)]).await;
    world.subscriber.until("/track", |told| !told.is_empty()).await;
    for word in ["rss", "json-feed"] {
        let query = [("hub.mode", "retrieve"), ("hub.topic", &*track), ("format", word)];
        let found = world.ask(Method::GET, &query, &[]).await;
        assert_eq!(item_ids(&found), [entry_id("tides", 4)], "{word}");
    }
}
