//! What notifications of an account's subscriptions bring: headers, JSON documents, and pings.

use http::StatusCode;
use serde_json::{Value, json};

use super::World;
use crate::support::subscriber::Behavior;

/// Rows N-5 and N-12.
#[tokio::test]
async fn only_a_retry_says_how_many_attempts_failed() {
    let world = World::subscribed("json").await;
    world.subscriber.set("/cb", Behavior::Failing(500));
    world.publish(4).await;
    world.until_delivery_is("failing").await;
    world.subscriber.set("/cb", Behavior::Accepting);
    let callback = world.subscriber.url("/cb");
    let retry = [("hub.mode", "retry"), ("hub.topic", &world.topic), ("hub.callback", &callback)];
    assert_eq!(world.gateway.superfeedr(&retry).await.0, StatusCode::NO_CONTENT);
    world.until_delivery_is("ok").await;
    world.publish(5).await;
    world.subscriber.until("/cb", |received| received.len() >= 3).await;
    let notifications = world.subscriber.notified("/cb");
    let retried = notifications.iter().map(|one| one.header("x-superfeedr-retried"));
    let (first, rest) = (retried.clone().next().unwrap(), retried.skip(1).collect::<Vec<_>>());
    assert_eq!(first, None);
    assert!(rest[0].is_some_and(|count| count.parse::<u32>().unwrap() >= 1), "{rest:?}");
    assert_eq!(rest.last(), Some(&None), "the next notification is no retry");
}

/// Row N-6.
#[tokio::test]
async fn a_notification_says_when_its_subscription_ends() {
    let world = World::subscribed("json").await;
    world.gateway.subscribe_websub(&world.topic, &world.subscriber.url("/open"), &[]).await;
    world.publish(4).await;
    for path in ["/cb", "/open"] {
        world.subscriber.until(path, |received| received.len() == 1).await;
    }
    let ends = world.until_delivery_is("ok").await["leaseUntil"].as_i64().unwrap();
    let notification = world.subscriber.notified("/cb").remove(0);
    let header = "x-superfeedr-pubsubhubbub-expire";
    assert_eq!(notification.header(header), Some(ends.to_string().as_str()));
    assert_eq!(world.subscriber.notified("/open")[0].header(header), None);
}

/// Row N-9.
#[tokio::test]
async fn a_notification_names_the_gateway() {
    let world = World::subscribed("json").await;
    world.publish(4).await;
    world.subscriber.until("/cb", |received| received.len() == 1).await;
    let notification = world.subscriber.notified("/cb").remove(0);
    let agent = notification.header("user-agent").unwrap();
    assert!(agent.starts_with("feedgate/"), "{agent}");
}

/// Row N-15.
#[tokio::test]
async fn a_json_document_is_sent_whole_and_a_json_feed_as_entries() {
    let world = World::subscribed("json").await;
    let document = |text: &str| json!({ "tide": text }).to_string();
    let feed = |ids: &[&str]| {
        let items: Vec<Value> =
            ids.iter().map(|id| json!({ "id": id, "content_text": "Text" })).collect();
        let version = "https://jsonfeed.org/version/1.1";
        json!({ "version": version, "title": "Tides", "items": items }).to_string()
    };
    world.publisher.put("/data", "application/json", document("high"));
    world.publisher.put("/items", "application/feed+json", feed(&["one"]));
    for (path, format) in [("/data", ""), ("/items", "json")] {
        let topic = world.publisher.url(path);
        world.gateway.subscribe_superfeedr(&topic, &world.subscriber.url(path), format).await;
    }
    world.publisher.fetched("/data", 1).await;
    world.publisher.fetched("/items", 1).await;
    world.publisher.put("/data", "application/json", document("low"));
    world.publisher.put("/items", "application/feed+json", feed(&["two", "one"]));
    for path in ["/data", "/items"] {
        let publish = [("hub.mode", "publish"), ("hub.url", &world.publisher.url(path))];
        assert_eq!(world.gateway.post("/", &publish).await.0, StatusCode::NO_CONTENT);
        world.subscriber.until(path, |received| received.len() == 1).await;
    }
    let whole = world.subscriber.notified("/data").remove(0);
    assert_eq!(whole.text(), document("low"));
    assert_eq!(whole.header("content-type"), Some("application/json"));
    let entries = world.subscriber.notified("/items").remove(0).text();
    let entries: Value = serde_json::from_str(&entries).unwrap();
    let items = entries["items"].as_array().unwrap();
    assert_eq!(items.len(), 1, "{entries}");
    assert!(items[0]["id"].as_str().unwrap().contains("two"), "{entries}");
}

/// Row P-6.
#[tokio::test]
async fn a_ping_for_a_page_makes_its_feed_due() {
    let world = World::subscribed("json").await;
    world.put_tides(4);
    let params: String = ["Tides", "https://tides.test/"]
        .map(|text| format!("<param><value>{text}</value></param>"))
        .concat();
    let call = format!(
        "<?xml version=\"1.0\"?><methodCall><methodName>weblogUpdates.ping</methodName>\
         <params>{params}</params></methodCall>"
    );
    let request = crate::support::server::client().post(world.gateway.url("/rpc"));
    let response = request.header("content-type", "text/xml").body(call).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    world.subscriber.until("/cb", |received| received.len() == 1).await;
}
