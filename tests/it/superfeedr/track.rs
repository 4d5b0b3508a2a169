//! Tracks: whoever subscribes to a query is sent what matches it, wherever it is published.

use http::{Method, StatusCode};
use serde_json::Value;

use super::World;
use crate::schemas::assert_notification;
use crate::support::feeds::{between, entry_id, entry_ids, rss};
use crate::support::until;

const CASES: &str = include_str!("../../../fixtures/query/cases.json");
const NOWHERE: &str = "https://push.superfeedr.com/dev/null";

impl World {
    /// The topic of a track at this gateway.
    fn track(&self, query: &str) -> String {
        let query: String = url::form_urlencoded::byte_serialize(query.as_bytes()).collect();
        self.gateway.url(&format!("/track?query={query}"))
    }

    async fn ask_hub(&self, mode: &str, topic: &str, callback: &str) -> (StatusCode, String) {
        let form = [("hub.mode", mode), ("hub.topic", topic), ("hub.callback", callback)];
        self.gateway.superfeedr(&form).await
    }

    async fn subscribe_to(&self, topic: &str, callback: &str) {
        let (status, text) = self.ask_hub("subscribe", topic, callback).await;
        assert_eq!(status, StatusCode::NO_CONTENT, "{topic}: {text}");
    }

    async fn publish_url(&self, url: &str) {
        self.gateway.post("/", &[("hub.mode", "publish"), ("hub.url", url)]).await;
    }

    /// The entries of a track, or of another topic.
    async fn entries_of(&self, topic: &str) -> String {
        let query = [("hub.mode", "retrieve"), ("hub.topic", topic), ("count", "50")];
        let got = self.ask(Method::GET, &query, &[]).await;
        assert_eq!(got.status, StatusCode::OK, "{topic}: {}", got.text);
        got.text
    }
}

/// Row Q-2.
#[tokio::test]
async fn q02_what_matches_is_sent_with_its_source() {
    let world = World::subscribed("atom").await;
    let own = world.track("\"text of 5\" -nonsense");
    let alias = "http://track.superfeedr.com/?query=%22Text%20of%205%22%20-nonsense&format=json";
    world.subscribe_to(&own, &world.subscriber.url("/own")).await;
    world.subscribe_to(alias, &world.subscriber.url("/alias")).await;
    world.put_tides(6);
    world.publish_url(&world.topic).await;

    let want = [entry_id("tides", 5)];
    world.subscriber.until("/own", |told| told.len() == 1).await;
    world.subscriber.until("/alias", |told| told.len() == 1).await;
    let atom = world.subscriber.notified("/own").remove(0);
    assert_eq!(atom.header("x-pubsubhubbub-topic"), Some(own.as_str()));
    assert_eq!(entry_ids(&atom.text().replace("<source>", "")), want, "{}", atom.text());
    let source = between(&atom.text(), "<source>", "</source>").unwrap_or_default().to_owned();
    assert!(source.contains(&world.topic), "{}", atom.text());
    let json = world.subscriber.notified("/alias").remove(0);
    assert_eq!(json.header("x-pubsubhubbub-topic"), Some(alias));
    assert_notification(&json.text());
    let json: Value = serde_json::from_str(&json.text()).unwrap();
    assert_eq!(json["items"][0]["id"], want[0]);
    assert_eq!(json["items"][0]["source"]["title"], "tides");

    assert_eq!(entry_ids(&world.entries_of(alias).await), want);
    let listed = world.ask(Method::GET, &[("hub.mode", "list")], &[]).await.json();
    let urls = listed.as_array().unwrap().iter();
    let urls: Vec<&str> =
        urls.map(|one| one["subscription"]["feed"]["url"].as_str().unwrap()).collect();
    assert_eq!(urls, [world.topic.as_str(), own.as_str(), alias]);

    let (status, _) = world.ask_hub("unsubscribe", alias, &world.subscriber.url("/alias")).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    world.gateway.comes_to_rest().await;
    assert_eq!(world.subscriber.notified("/own").len(), 1);
}

#[tokio::test]
async fn f17_tracks_that_a_search_finds_are_unsubscribed() {
    let world = World::subscribed("atom").await;
    let alias = "http://track.superfeedr.com/?query=%22new%20york%22%20-pizza";
    for topic in [&world.track("\"new york\" -pizza"), alias] {
        world.subscribe_to(topic, &world.subscriber.url("/track")).await;
    }
    let search = [("hub.mode", "unsubscribe"), ("search[endpoint][inurl]", "/track")];
    let report = world.ask(Method::POST, &search, &[]).await.json();
    assert_eq!(report["meta"]["succeeded"], report["meta"]["total"], "{report}");
    let listed = world.ask(Method::GET, &[("hub.mode", "list")], &[]).await.json();
    let urls = listed.as_array().unwrap().iter();
    let urls: Vec<&Value> = urls.map(|one| &one["subscription"]["feed"]["url"]).collect();
    assert_eq!(urls, [world.topic.as_str()]);
}

/// Row Q-2.
#[tokio::test]
async fn q02_a_track_survives_a_kill_and_gets_each_entry_once() {
    let mut world = World::subscribed("atom").await;
    let track = world.track("text");
    world.subscribe_to(&track, &world.subscriber.url("/track")).await;
    let ids = |newest: usize| (4..=newest).rev().map(|n| entry_id("tides", n)).collect::<Vec<_>>();
    for newest in [4, 5] {
        world.put_tides(newest);
        world.publish_url(&world.topic).await;
        until("the track has the entry", async || {
            entry_ids(&world.entries_of(&track).await) == ids(newest)
        })
        .await;
        world.gateway.comes_to_rest().await;
        world.gateway.kill();
        world.gateway.restart().await;
    }
    // A query that was stored before the start is still compared.
    world.put_tides(6);
    world.publish_url(&world.topic).await;
    world
        .subscriber
        .until("/track", |told| told.iter().any(|told| told.text().contains("Item 6")))
        .await;
    assert_eq!(entry_ids(&world.entries_of(&track).await), ids(6));
}

#[tokio::test]
async fn q02_what_is_private_is_not_tracked() {
    let world = World::subscribed("atom").await;
    let private = world.publisher.url("/private?token=opensesame");
    world.publisher.put_rss("/private", rss("mine", 1..2));
    world.subscribe_to(&private, &world.subscriber.url("/private")).await;
    let track = world.track("text");
    world.subscribe_to(&track, &world.subscriber.url("/track")).await;
    world.publisher.put_rss("/private", rss("mine", 1..3));
    world.publish_url(&private).await;
    world.subscriber.until("/private", |told| told.len() == 1).await;
    world.put_tides(4);
    world.publish_url(&world.topic).await;
    world.subscriber.until("/track", |told| told.len() == 1).await;
    assert_eq!(entry_ids(&world.entries_of(&track).await), [entry_id("tides", 4)]);
}

#[tokio::test]
async fn q02_the_open_hub_serves_tracks_too() {
    let world = World::subscribed("atom").await;
    let track = world.track("text");
    world.gateway.open_to_anonymous(&world.topic).await;
    let callback = world.subscriber.url("/reader");
    world.gateway.subscribe_websub(&track, &callback, &[]).await;
    world.put_tides(4);
    world.publish_url(&world.topic).await;
    world.subscriber.until("/reader", |told| told.len() == 1).await;
    let told = world.subscriber.notified("/reader").remove(0);
    assert_eq!(entry_ids(&told.text()), [entry_id("tides", 4)]);
}

/// Row Q-3.
#[tokio::test]
async fn q03_a_bad_query_is_rejected_with_its_reason() {
    let world = World::subscribed("atom").await;
    let cases: Value = serde_json::from_str(CASES).unwrap();
    for case in cases["errors"].as_array().unwrap() {
        let topic = world.track(case["query"].as_str().unwrap());
        let reason = case["reason"].as_str().unwrap();
        let (status, text) = world.ask_hub("subscribe", &topic, NOWHERE).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{topic}: {text}");
        assert!(text.contains(reason), "{topic}: {text}");
    }
    let topic = format!("{}&format=xml", world.track("apple"));
    let (status, text) = world.ask_hub("subscribe", &topic, NOWHERE).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(text.contains("the format of a track is atom or json, not xml"), "{text}");
    let topic = world.track("-apple");
    let form = [("hub.mode", "subscribe"), ("hub.topic", &topic), ("hub.callback", NOWHERE)];
    let (status, text) = world.gateway.post("/hub", &form).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{text}");
}

/// Flags that depend on the host or the ranks of the feed, or on a language that is detected.
const OF_FEEDS: [&str; 5] = ["language:", "popularity:", "porn:", "bozo:", "site:example.net"];
/// The entries of the shared cases that differ in nothing else.
const PUBLISHED: [&str; 4] = ["apple", "aapl", "paris", "tokyo"];

/// Row Q-3.
#[tokio::test]
async fn q03_a_track_and_a_search_have_the_entries_that_their_query_describes() {
    let world = World::subscribed("atom").await;
    let cases: Value = serde_json::from_str(CASES).unwrap();
    let queries = cases["matches"].as_array().unwrap().iter().filter(|case| {
        let query = case["query"].as_str().unwrap();
        !OF_FEEDS.iter().any(|flag| query.contains(flag))
    });
    let queries: Vec<&Value> = queries.collect();
    for case in &queries {
        world.subscribe_to(&world.track(case["query"].as_str().unwrap()), NOWHERE).await;
    }
    let feed = |items: &str| {
        format!("<rss version='2.0'><channel><title>f</title>{items}</channel></rss>")
    };
    let item = |name: &str| cases["entries"][name]["item"].as_str().unwrap();
    for name in PUBLISHED {
        let path = format!("/{name}");
        world.publisher.put_rss(&path, feed(""));
        world.subscribe_to(&world.publisher.url(&path), NOWHERE).await;
        world.publisher.put_rss(&path, feed(item(name)));
        world.publish_url(&world.publisher.url(&path)).await;
    }
    for attempt in ["it arrives", "nothing else arrives"] {
        for case in &queries {
            let query = case["query"].as_str().unwrap();
            let want = case["entries"].as_array().unwrap().iter();
            let mut want: Vec<&str> = want.map(|name| name.as_str().unwrap()).collect();
            want.retain(|name| PUBLISHED.contains(name));
            until(&format!("{attempt}: {query}"), async || {
                let link = |name: &str| between(item(name), "<link>", "</link>").unwrap();
                let names = |entries: String| {
                    let is_here =
                        |name: &&str| entries.contains(&format!("<id>{}</id>", link(name)));
                    let mut found: Vec<&str> = PUBLISHED.into_iter().filter(is_here).collect();
                    found.sort_unstable();
                    found
                };
                let search = [("hub.mode", "search"), ("query", query), ("count", "50")];
                names(world.entries_of(&world.track(query)).await) == want
                    && names(world.ask(Method::GET, &search, &[]).await.text) == want
            })
            .await;
        }
    }
}
