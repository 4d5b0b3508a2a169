//! `backfill=true` at the doors, of a whole gateway.

use http::StatusCode;
use serde_json::Value;

use super::{atom, numbered};
use crate::support::gateway::Gateway;
use crate::support::reader::Reader;
use crate::support::until;
use crate::support::world::World;

impl World {
    /// A gateway, and a publisher with an archive of the entries 1 to `newest`.
    async fn with_history(newest: usize) -> World {
        let world = World::with_tides(1, &[]).await;
        world.put_history(newest);
        world
    }

    fn put_history(&self, newest: usize) {
        let links = [("prev-archive", "/older".to_owned())];
        let put = |path: &str, text: String| self.publisher.put(path, "application/atom+xml", text);
        put("/feed", atom(&links, 6..=newest));
        put("/older", atom(&[], 1..=5));
    }
}

/// The state of the first subscription's history, once it is done.
async fn history(gateway: &Gateway) -> Value {
    let mut history = Value::Null;
    until("the history is brought in", async || {
        let (_, text) = gateway.superfeedr(&[("hub.mode", "list")]).await;
        let list: Value = serde_json::from_str(&text).unwrap();
        history = list[0]["subscription"]["backfill"].clone();
        history["state"] == "done"
    })
    .await;
    history
}

#[tokio::test(flavor = "multi_thread")]
async fn superfeedrs_subscriber_finds_the_history_in_the_archive_and_is_told_what_is_new() {
    let world = World::with_history(7).await;
    let callback = world.subscriber.url("/cb");
    let form = [
        ("hub.mode", "subscribe"),
        ("hub.topic", world.topic.as_str()),
        ("hub.callback", callback.as_str()),
        ("backfill", "true"),
    ];
    let (status, text) = world.gateway.superfeedr(&form).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{text}");
    let history = history(&world.gateway).await;
    assert_eq!((&history["pages"], &history["entries"]), (&2.into(), &7.into()));
    assert_eq!(history["ending"], "complete");

    world.publisher.fetched("/feed", 2).await;
    world.put_history(8);
    world.gateway.post("/ping", &[("url", &world.topic)]).await;
    let newest = numbered(8..=8).remove(0);
    world.subscriber.until("/cb", |told| !told.is_empty()).await;
    let told = world.subscriber.notified("/cb");
    assert!(told[0].text().contains(&newest) && !told[0].text().contains("Entry 7"));
    let mut reader = Reader::default();
    reader.catch_up(&world.gateway.archive_of(&world.topic)).await.unwrap();
    assert_eq!(reader.processed, numbered(1..=8));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hubs_subscriber_is_verified_first() {
    let world = World::with_history(7).await;
    let further = [("backfill", "true")];
    world.gateway.subscribe_websub(&world.topic, &world.subscriber.url("/cb"), &further).await;
    world.gateway.archive_holds(&world.topic, &numbered(7..=7)[0]).await;
    let mut reader = Reader::default();
    reader.catch_up(&world.gateway.archive_of(&world.topic)).await.unwrap();
    assert_eq!(reader.processed, numbered(1..=7));
}

/// What the log page tells of histories, oldest first, once one has ended in this way.
async fn told(gateway: &Gateway, outcome: &str) -> Vec<(String, String, String)> {
    let mut told = Vec::new();
    until("the end of the history is told", async || {
        let (_, text) = gateway.get("/log.json?kind=backfill").await;
        let log: Value = serde_json::from_str(&text).unwrap();
        let word = |event: &Value, name: &str| event[name].as_str().unwrap().to_owned();
        let events = log["events"].as_array().unwrap().iter().rev();
        let words = |event| (word(event, "outcome"), word(event, "code"), word(event, "detail"));
        told = events.map(words).collect();
        told.iter().any(|event| event.0 == outcome)
    })
    .await;
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_page_tells_when_a_history_begins_and_how_it_ends() {
    let begun = ("pending", "", "backfill started");
    let cases = [
        (false, ("ok", "complete", "2 documents read, 7 old entries added to the log")),
        (true, ("failed", "http_status", "1 document read, 2 old entries added to the log")),
    ];
    for (is_gone, ended) in cases {
        let world = World::with_history(7).await;
        if is_gone {
            world.publisher.fail("/older", StatusCode::GONE);
        }
        let further = [("backfill", "true")];
        world.gateway.subscribe_websub(&world.topic, &world.subscriber.url("/cb"), &further).await;
        let told = told(&world.gateway, ended.0).await;
        let told: Vec<(&str, &str, &str)> = told
            .iter()
            .map(|(outcome, code, detail)| (outcome.as_str(), code.as_str(), detail.as_str()))
            .collect();
        assert_eq!(told, [begun, ended]);
    }
}
