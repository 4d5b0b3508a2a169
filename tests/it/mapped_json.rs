//! JSON of other programs that the mapping of a topic reads as a feed (row S-18).

use http::StatusCode;
use serde_json::{Value, json};

use crate::store::on_both_stores;
use crate::support::gateway::Gateway;
use crate::support::postgres::Database;
use crate::support::publisher::Publisher;
use crate::support::subscriber::Subscriber;

on_both_stores!(
    s18_a_mapping_makes_entries_of_the_items_of_an_api,
    s18_a_document_that_has_no_such_items_changes_nothing,
);

const JSON: &str = "application/json";
const MAPPING: &str = "#$.data[*];title=$.name;url=$.link;id=$.id;date=$.created_at;\
    content=$.body;author=$.user.name;tags=$.labels[*]";

struct World {
    publisher: Publisher,
    subscriber: Subscriber,
    gateway: Gateway,
    _database: Database,
}

impl World {
    async fn new(database: Database) -> World {
        let gateway = Gateway::start(&database, &[]).await;
        let (publisher, subscriber) = (Publisher::start().await, Subscriber::start().await);
        World { publisher, subscriber, gateway, _database: database }
    }

    async fn publish(&self, url: &str) {
        self.gateway.post("/", &[("hub.mode", "publish"), ("hub.url", url)]).await;
    }
}

/// An answer of an API with these numbered posts, the newest first, and a count that changes nothing.
fn posts(numbers: impl DoubleEndedIterator<Item = i64>, views: i64) -> String {
    let posts = numbers.rev().map(|n| {
        let date: Value = match n % 3 {
            0 => json!(1_793_491_200 + n),
            1 => json!((1_793_491_200_i64 + n) * 1_000),
            _ => json!("2026-11-01T00:00:02Z"),
        };
        json!({
            "id": n, "name": format!("Tide {n}"), "link": format!("/posts/{n}"), "created_at": date,
            "body": "<p>High &amp; low</p>", "user": { "name": "Ada" }, "labels": ["sea", "moon"],
            "views": views,
        })
    });
    json!({ "data": posts.collect::<Vec<_>>(), "total": 7 }).to_string()
}

async fn s18_a_mapping_makes_entries_of_the_items_of_an_api(database: Database) {
    let world = World::new(database).await;
    world.publisher.put("/v1/posts", JSON, posts(1..=3, 10));
    let whole = world.publisher.url("/v1/posts");
    let topic = format!("{whole}{MAPPING}");
    for (path, format) in [("/json", "json"), ("/atom", "atom")] {
        let callback = world.subscriber.url(path);
        world.gateway.subscribe_superfeedr(&topic, &callback, format).await;
    }
    let form = [("hub.mode", "retrieve"), ("hub.topic", topic.as_str()), ("format", "json")];
    let (status, text) = world.gateway.superfeedr(&form).await;
    assert_eq!(status, StatusCode::OK, "{text}");
    let document: Value = serde_json::from_str(&text).unwrap();
    let dates: Vec<i64> = document["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["published"].as_i64().unwrap() - 1_793_491_200)
        .collect();
    assert_eq!(dates, [3, 2, 1], "seconds, RFC 3339, milliseconds: {text}");

    // The count of views is not mapped, and tells nobody anything.
    world.publisher.put("/v1/posts", JSON, posts(1..=3, 11));
    world.publish(&whole).await;
    world.publisher.fetched("/v1/posts", 2).await;
    world.publisher.put("/v1/posts", JSON, posts(1..=4, 12));
    world.publish(&whole).await;
    for path in ["/json", "/atom"] {
        world.subscriber.until(path, |told| !told.is_empty()).await;
    }
    let told = world.subscriber.notified("/json").remove(0);
    let told: Value = serde_json::from_str(&told.text()).unwrap();
    assert_eq!(told["items"].as_array().unwrap().len(), 1, "{told}");
    let item = &told["items"][0];
    assert_eq!(item["title"], "Tide 4");
    assert_eq!(item["permalinkUrl"], world.publisher.url("/posts/4"), "against the document");
    assert_eq!(item["originalId"], "4");
    assert_eq!(item["content"], "<p>High &amp; low</p>");
    assert_eq!(item["actor"]["displayName"], "Ada");
    assert_eq!(item["categories"], json!(["sea", "moon"]));
    assert!(item.get("views").is_none() && !told.to_string().contains("views"), "{told}");
    let atom = world.subscriber.notified("/atom").remove(0);
    assert_eq!(atom.header("content-type"), Some("application/atom+xml"));
    assert!(atom.text().contains(">Tide 4</title>"), "{}", atom.text());
    world.gateway.comes_to_rest().await;

    let callback = world.subscriber.url("/json");
    let bad = format!("{whole}#$.data[*];titel=$.name");
    let form = [("hub.mode", "subscribe"), ("hub.topic", &*bad), ("hub.callback", &callback)];
    let (status, text) = world.gateway.superfeedr(&form).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(text.contains("titel is no field of an entry"), "{text}");
    let port = world.subscriber.port().to_string();
    let form = [("port", &*port), ("path", "/c"), ("protocol", "http-post"), ("url1", &*bad)];
    let (_, text) = world.gateway.post("/rsscloud/pleaseNotify", &form).await;
    assert!(text.contains("titel is no field of an entry"), "{text}");
}

async fn s18_a_document_that_has_no_such_items_changes_nothing(database: Database) {
    let world = World::new(database).await;
    let whole = world.publisher.url("/v1/posts");
    world.publisher.put("/v1/posts", JSON, posts(1..=2, 1));
    let topic = format!("{whole}{MAPPING}");
    let callback = world.subscriber.url("/cb");
    world.gateway.subscribe_superfeedr(&topic, &callback, "json").await;
    world.publisher.fetched("/v1/posts", 1).await;
    let status = async || {
        let list = world.gateway.own("/?hub.mode=list&detailed=true").await;
        list["subscriptions"][0]["subscription"]["feed"]["status"]["http"].to_string()
    };
    let becomes = async |part: &str| {
        while !status().await.contains(part) {
            tokio::task::yield_now().await;
        }
    };
    #[rustfmt::skip]
    let answers = [
        ("{\"error\": \"try later\"}",        "nothing in JSON matches"),
        ("<html><p>Maintenance",              "only JSON can be mapped"),
        ("{\"data\": [{\"other\": 1}]}",      "no item in JSON has any of the fields"),
    ];
    for (answer, part) in answers {
        world.publisher.put("/v1/posts", JSON, answer);
        world.publish(&whole).await;
        becomes(part).await;
    }
    world.publisher.put("/v1/posts", JSON, "{\"data\": []}");
    world.publish(&whole).await;
    while status().await.contains("no item") {
        tokio::task::yield_now().await;
    }
    // What was published meanwhile is new, and nothing else is.
    world.publisher.put("/v1/posts", JSON, posts(1..=3, 1));
    world.publish(&whole).await;
    let is_entry = |told: &str| told.contains("\"items\":[{");
    world.subscriber.until("/cb", |told| told.iter().any(|it| is_entry(&it.text()))).await;
    world.gateway.comes_to_rest().await;
    let told = world.subscriber.notified("/cb").into_iter().map(|told| told.text());
    let told: Vec<_> = told.filter(|told| is_entry(told)).collect();
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("Tide 3") && !told[0].contains("Tide 2"), "{}", told[0]);
}
