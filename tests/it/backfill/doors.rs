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
