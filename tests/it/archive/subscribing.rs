//! Subscriptions to the addresses of archives.

use http::{Method, StatusCode};

use crate::support::feeds::{entry_id, entry_ids, rss};
use crate::support::server::ReceivedRequest;
use crate::support::world::World;

/// Whether one of the notifications has the entry `n` of the feed `tides`.
fn has(n: usize) -> impl FnMut(&[&ReceivedRequest]) -> bool {
    move |told| told.iter().any(|told| entry_ids(&told.text()).contains(&entry_id("tides", n)))
}

#[tokio::test]
async fn f2_who_subscribes_to_an_archive_is_notified_with_the_subscribers_of_its_log() {
    let world = World::with_archive().await;
    let recent = world.recent().await;
    let home = recent.replace("/recent", "");
    let addresses = [
        ("/recent", recent.clone()),
        ("/plain", home.clone()),
        ("/document", format!("{home}/documents/1")),
    ];
    for (path, address) in &addresses {
        world.gateway.subscribe_websub(address, &world.subscriber.url(path), &[]).await;
        let verification = world.subscriber.requests_to(path).remove(0);
        assert_eq!(verification.method, Method::GET);
        assert_eq!(verification.query("hub.topic"), Some(address.as_str()));
    }
    let fetches = world.publisher.fetches("/feed").len();
    world.publish_and_wait(6).await;
    for (path, address) in &addresses {
        world.subscriber.until(path, has(6)).await;
        let told = world.subscriber.notified(path).remove(0);
        assert_eq!(entry_ids(&told.text()), [entry_id("tides", 6)], "{path}");
        assert_eq!(told.header("content-type"), Some("application/atom+xml"));
        assert_eq!(told.header("x-pubsubhubbub-topic"), Some(address.as_str()));
        let own = format!("<{address}>; rel=\"self\"");
        assert!(told.header("link").unwrap().contains(&own), "{told:?}");
    }
    assert_eq!(world.publisher.fetches("/feed").len(), fetches + 1, "one fetch for all of them");
    let (_, list) = world.gateway.get("/feeds.opml").await;
    assert_eq!(list.matches("xmlUrl=").count(), 1, "no archive is listed as a feed: {list}");

    // Each address is a subscription of its own, even with the same callback.
    let cb = world.subscriber.url("/plain");
    world.gateway.subscribe_websub(&recent, &cb, &[]).await;
    let unsubscribe = [
        ("hub.mode", "unsubscribe"),
        ("hub.topic", home.as_str()),
        ("hub.callback", &cb),
        ("hub.verify", "sync"),
    ];
    let (status, text) = world.gateway.post("/hub", &unsubscribe).await;
    assert!(status.is_success(), "{text}");
    world.publish_and_wait(7).await;
    world.subscriber.until("/plain", has(7)).await;
    world.gateway.comes_to_rest().await;
    let told = world.subscriber.notified("/plain");
    let topics: Vec<_> = told.iter().map(|told| told.header("x-pubsubhubbub-topic")).collect();
    assert_eq!(topics, [Some(home.as_str()), Some(recent.as_str())]);
}

#[tokio::test]
async fn f2_an_account_can_list_retrieve_and_replay_what_it_subscribed_to_as_an_archive() {
    let world = World::with_archive().await;
    let (recent, callback) = (world.recent().await, world.subscriber.url("/mine"));
    world.gateway.subscribe_superfeedr(&recent, &callback, "json").await;
    let list = world.gateway.own(&format!("/?hub.mode=list&hub.callback={callback}")).await;
    assert_eq!(list[0]["subscription"]["feed"]["url"], recent, "{list}");
    let found = world.gateway.own(&format!("/?hub.mode=list&hub.topic={recent}")).await;
    assert!(found.to_string().contains(&callback), "{found}");
    let query = format!("/?hub.mode=retrieve&format=json&hub.topic={recent}");
    let retrieved = world.gateway.own(&query).await;
    assert_eq!(retrieved["items"].as_array().unwrap().len(), 5);
    let mut form =
        vec![("hub.mode", "replay"), ("hub.topic", recent.as_str()), ("hub.callback", &callback)];
    assert_eq!(world.gateway.superfeedr(&form).await.0, StatusCode::NO_CONTENT);
    world.subscriber.until("/mine", has(5)).await;
    let told = world.subscriber.notified("/mine").remove(0);
    let notification: serde_json::Value = serde_json::from_str(&told.text()).unwrap();
    assert_eq!(notification["status"]["feed"], recent, "the topic that the subscriber knows");
    form[0].1 = "unsubscribe";
    assert_eq!(world.gateway.superfeedr(&form).await.0, StatusCode::NO_CONTENT);
    let list = world.gateway.own("/?hub.mode=list").await;
    assert_eq!(list.as_array().unwrap().len(), 1, "that of the topic remains: {list}");
}

#[tokio::test]
async fn f2_a_document_of_a_collection_is_its_log() {
    let world = World::with_tides(1, &[("FEEDGATE_COLLECT_ALL", "on")]).await;
    let document = world.gateway.url("/all/documents/1");
    world.gateway.open_to_anonymous(&world.topic).await;
    world.gateway.subscribe_websub(&document, &world.subscriber.url("/all"), &[]).await;
    world.publisher.put_rss("/feed", rss("tides", 1..3));
    world.gateway.post("/hub", &[("hub.mode", "publish"), ("hub.url", &world.topic)]).await;
    world.subscriber.until("/all", has(2)).await;
    let told = world.subscriber.notified("/all").remove(0);
    assert_eq!(told.header("x-pubsubhubbub-topic"), Some(document.as_str()));
}
