//! Streams that do not send all that their clients are owed, and say so: fault H17.

use serde_json::{Value, json};

use super::streams::{EVENTS, Opened};
use super::{World, ids};
use crate::store::on_both_stores;
use crate::support::feeds::{entry_id, rss};
use crate::support::gateway::Gateway;
use crate::support::postgres::Database;
use crate::support::until;

on_both_stores!(
    h17_resuming_before_what_was_dropped_is_told_of_the_gap,
    h17_what_was_subscribed_to_meanwhile_begins_where_its_webhook_does,
    h17_a_topic_subscribed_to_during_the_stream_begins_where_its_webhook_does,
    h17_a_position_of_another_log_is_told_of_what_may_be_missing,
);

/// The parameters of a stream of the topic as documents.
const DOCUMENTS: (&str, &str) = ("wait", "stream");

impl World {
    /// One on `database` whose archive has two entries a document, with `items` of the feed, and a
    /// subscription to it.
    async fn with_short_documents(database: Database, items: usize) -> World {
        let gateway = Gateway::start(&database, &[("FEEDGATE_PAGE_RECORDS", "2")]).await;
        let world = World::on(database, gateway).await;
        world.put_tides(items);
        let callback = world.subscriber.url("/cb");
        world.gateway.subscribe_superfeedr(&world.topic, &callback, "json").await;
        world.gateway.archive_holds(&world.topic, &entry_id("tides", items)).await;
        world
    }

    /// Publishes items up to `last`, one after the other, so that each is a record of its own.
    async fn publish_each(&self, from: usize, last: usize) {
        for item in from..=last {
            self.publish(item).await;
            self.gateway.archive_holds(&self.topic, &entry_id("tides", item)).await;
        }
    }
}

impl Opened {
    async fn gap(&mut self) -> (String, Value) {
        let (id, data) = self.event_of("gap").await;
        (id, serde_json::from_str(&data).unwrap())
    }
}

async fn h17_resuming_before_what_was_dropped_is_told_of_the_gap(database: Database) {
    let world = World::with_short_documents(database, 1).await;
    let mut stream = world.open(&[], &[EVENTS]).await;
    let (id, entries) = stream.json_event().await;
    assert_eq!(entries, ids(&[1]));
    drop(stream);
    world.publish_each(2, 6).await;
    world.gateway.comes_to_rest().await;

    let store = world.database.open().await;
    let resource = store.find(&world.topic).await.unwrap().unwrap().id;
    let keep_one = [("FEEDGATE_ARCHIVE_RETENTION_PAGES", "1")];
    let _other = Gateway::start(&world.database, &keep_one).await;
    until("the others are dropped", async || store.oldest_page(resource).await.unwrap() == 3).await;

    let want = json!({ "topic": world.topic, "from": 2, "to": 4, "reason": "not_stored" });
    let resumed = ("last-event-id", id.as_str());
    let mut stream = world.open(&[], &[EVENTS, resumed]).await;
    let (behind, gap) = stream.gap().await;
    assert_eq!(gap, want);
    assert_eq!(behind, format!("{resource}.4"));
    assert_eq!(stream.json_event().await, (format!("{resource}.6"), ids(&[6, 5])));
    let mut stream = world.open(&[], &[EVENTS, ("last-event-id", &behind)]).await;
    assert_eq!(stream.json_event().await.1, ids(&[6, 5]), "a gap is told once");

    let mut all = world.open_query(&[], &[EVENTS, resumed]).await;
    assert_eq!(all.gap().await.1, want, "of all feeds of the account");
    let mut documents = world.open(&[DOCUMENTS, ("format", "json")], &[resumed]).await;
    let document: Value = serde_json::from_str(&documents.until("\n").await).unwrap();
    assert_eq!(document, json!({ "gap": want, "items": [] }));
    let mut documents = world.open(&[DOCUMENTS], &[resumed]).await;
    let document = documents.until("</feed>\n").await;
    let element = "<gap xmlns=\"urn:feedgate:streams\" from=\"2\" to=\"4\" reason=\"not_stored\"/>";
    assert!(document.contains(element) && !document.contains("<entry"), "{document}");
}

/// A client that was away while it subscribed gets what its webhook got.
async fn h17_what_was_subscribed_to_meanwhile_begins_where_its_webhook_does(database: Database) {
    let world = World::with_short_documents(database, 1).await;
    let mut stream = world.open_query(&[], &[EVENTS]).await;
    let (id, _) = stream.json_event().await;
    drop(stream);
    let more = world.subscribe_to_more().await;
    let mut stream = world.open_query(&[], &[EVENTS, ("last-event-id", &id)]).await;
    assert_eq!(stream.json_event().await.1, more);
}

/// A stream notices within a minute that its client has subscribed to another topic.
async fn h17_a_topic_subscribed_to_during_the_stream_begins_where_its_webhook_does(
    database: Database,
) {
    let world = World::with_short_documents(database, 1).await;
    let mut stream = world.open_query(&[], &[EVENTS]).await;
    stream.json_event().await;
    let more = world.subscribe_to_more().await;
    assert_eq!(stream.json_event().await.1, more);
}

impl World {
    /// Subscribes to another feed, which publishes an entry that is delivered. Returns its id.
    async fn subscribe_to_more(&self) -> Vec<String> {
        self.publisher.put_rss("/more", rss("more", 1..2));
        let (more, callback) = (self.publisher.url("/more"), self.subscriber.url("/more"));
        self.gateway.subscribe_superfeedr(&more, &callback, "json").await;
        self.gateway.archive_holds(&more, &entry_id("more", 1)).await;
        self.publisher.put_rss("/more", rss("more", 1..3));
        self.gateway.post("/ping", &[("url", &more)]).await;
        self.subscriber.until("/more", |notified| !notified.is_empty()).await;
        self.gateway.comes_to_rest().await;
        vec![entry_id("more", 2)]
    }
}

async fn h17_a_position_of_another_log_is_told_of_what_may_be_missing(database: Database) {
    let world = World::with_short_documents(database, 1).await;
    world.publish_each(2, 3).await;
    let store = world.database.open().await;
    let resource = store.find(&world.topic).await.unwrap().unwrap().id;

    let beyond = format!("{resource}.99");
    let mut stream = world.open(&[], &[EVENTS, ("last-event-id", &beyond)]).await;
    let (id, gap) = stream.gap().await;
    assert_eq!((&gap["topic"], &gap["to"]), (&json!(world.topic), &json!(3)));
    assert_eq!(gap["reason"], "unknown_position");
    assert_eq!(id, format!("{resource}.3"));
    world.publish_each(4, 4).await;
    assert_eq!(stream.json_event().await.1, ids(&[4]), "it goes on behind the gap");

    let deleted = format!("{}.5,{resource}.4", resource.0 + 77);
    let mut stream = world.open_query(&[], &[EVENTS, ("last-event-id", &deleted)]).await;
    let (id, gap) = stream.gap().await;
    assert_eq!(
        (&gap["from"], &gap["to"], &gap["reason"]),
        (&json!(6), &json!(null), &json!("deleted"))
    );
    assert_eq!(id, format!("{resource}.4"), "it is told once");

    let mut stream = world.open(&[], &[EVENTS, ("last-event-id", "of another server")]).await;
    assert_eq!(stream.gap().await.1["reason"], "unknown_position");
    assert_eq!(stream.json_event().await.1, ids(&[4, 3, 2, 1]), "and then the newest entries");
}
