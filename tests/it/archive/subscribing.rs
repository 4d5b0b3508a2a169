//! Subscriptions to the addresses of archives.

use http::{Method, StatusCode};

use crate::schemas::assert_json_feed;
use crate::support::feeds::{between, entry_id, entry_ids, rss};
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
async fn a_filter_that_cannot_be_used_in_the_address_of_a_feed_is_refused() {
    let world = World::with_archive().await;
    let feed = world.recent().await.replace("/recent", "");
    let (bad, callback) = (format!("{feed}?filter=-tides"), world.subscriber.url("/cb"));
    let form =
        |topic| [("hub.mode", "subscribe"), ("hub.topic", topic), ("hub.callback", &callback)];
    let (status, why) = world.gateway.post("/hub", &form(&bad)).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{why}");
    assert!(why.contains("The filter in hub.topic cannot be used"), "{why}");
    let (status, why) = world.gateway.superfeedr(&form(&bad)).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{why}");
    assert!(why.contains("The filter cannot be used"), "{why}");
    let (status, why) = world.gateway.superfeedr(&form(&format!("{feed}?filter="))).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "without a filter: {why}");
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

/// The id of the feed, and those of its entries.
fn identity(atom: &str) -> (String, Vec<String>) {
    let id = |text: &str| between(text, "<id>", "</id>").unwrap_or_default().to_owned();
    let (head, entries) = atom.split_once("<entry").unwrap_or((atom, ""));
    (id(head), entries.split("<entry").map(id).collect())
}

#[tokio::test]
async fn a05_what_is_pushed_for_an_address_of_ours_has_the_ids_that_it_has_there() {
    let world = World::with_archive().await;
    let recent = world.recent().await;
    let plain = recent.replace("/recent", "");
    let topics = [
        ("/recent", recent.clone()),
        ("/plain", plain.clone()),
        ("/document", format!("{plain}/documents/1")),
        ("/source", world.topic.clone()),
        ("/rss", format!("{recent}.rss")),
        ("/json", format!("{plain}.json")),
    ];
    for (path, topic) in &topics {
        let callback = world.subscriber.url(path);
        let form = [
            ("hub.mode", "subscribe"),
            ("hub.topic", topic.as_str()),
            ("hub.callback", &callback),
            ("updates", "true"),
        ];
        assert_eq!(world.gateway.superfeedr(&form).await.0, StatusCode::NO_CONTENT, "{topic}");
    }
    let edited = rss("tides", 1..7).replace("The text of 5<", "The corrected text of 5<");
    world.publisher.put_rss("/feed", edited);
    world.gateway.post("/ping", &[("url", &world.topic), ("wait", "1")]).await;
    let mut told = std::collections::HashMap::new();
    for (path, _) in &topics {
        world.subscriber.until(path, |told| !told.is_empty()).await;
        told.insert(*path, world.subscriber.notified(path).remove(0));
    }

    let mut displayed = Vec::new();
    for url in [&recent, &recent.replace("recent", "documents/3")] {
        let (feed, mut ids) = identity(&world.gateway.fetch(url).await.1);
        assert!(feed.starts_with("urn:uuid:"), "{feed}");
        displayed.append(&mut ids);
    }
    displayed.dedup();
    let (feed, of_recent) = identity(&told["/recent"].text());
    assert_eq!(feed, identity(&world.gateway.fetch(&recent).await.1).0);
    assert!(of_recent.contains(&entry_id("tides", 6)), "{of_recent:?}");
    assert!(of_recent.iter().any(|id| id.starts_with("urn:uuid:")), "the update: {of_recent:?}");
    assert!(of_recent.iter().all(|id| displayed.contains(id)), "{of_recent:?} of {displayed:?}");
    assert_eq!(identity(&told["/document"].text()), (feed.clone(), of_recent.clone()));

    let new = [entry_id("tides", 6), entry_id("tides", 5)];
    let (of_plain, mut ids) = identity(&told["/plain"].text());
    let (newest, _) = identity(&world.gateway.fetch(&plain).await.1);
    ids.sort_by(|one, other| other.cmp(one));
    assert_eq!((of_plain, ids), (newest, new.to_vec()));
    let (source, mut ids) = identity(&told["/source"].text());
    ids.sort_by(|one, other| other.cmp(one));
    assert_eq!((source, ids), (world.topic.clone(), new.to_vec()), "as before");

    assert_rss_has_ids(&told["/rss"], &feed, &of_recent);
    let json = &told["/json"];
    assert_eq!(json.header("content-type"), Some("application/feed+json"));
    assert_json_feed(&json.text());
    let value: serde_json::Value = serde_json::from_str(&json.text()).unwrap();
    assert_eq!(value["_feedgate"]["id"], feed);
    assert_eq!(value["feed_url"], format!("{plain}.json"));
    assert_eq!(value["items"].as_array().unwrap().len(), 2);
}

fn assert_rss_has_ids(told: &ReceivedRequest, feed: &str, entries: &[String]) {
    assert_eq!(told.header("content-type"), Some("application/rss+xml"));
    let text = told.text();
    assert!(entries.iter().all(|id| text.contains(&format!(">{id}</guid>"))), "{text}");
    assert!(text.contains(&format!("<atom:id>{feed}</atom:id>")), "{text}");
}

#[tokio::test]
async fn a05_a_collection_has_one_identity_by_push_and_by_get() {
    let world = World::with_tides(1, &[("FEEDGATE_COLLECT_ALL", "on")]).await;
    let recent = world.gateway.url("/all/recent");
    world.gateway.open_to_anonymous(&world.topic).await;
    world.gateway.subscribe_websub(&recent, &world.subscriber.url("/all"), &[]).await;
    world.publisher.put_rss("/feed", rss("tides", 1..3));
    world.gateway.post("/hub", &[("hub.mode", "publish"), ("hub.url", &world.topic)]).await;
    world.subscriber.until("/all", has(2)).await;
    let told = world.subscriber.notified("/all").remove(0);
    let (_, displayed) = world.gateway.fetch(&recent).await;
    assert_eq!(identity(&told.text()), identity(&displayed));
    let (status, rss) = world.gateway.fetch(&format!("{recent}.rss")).await;
    assert_eq!(status, StatusCode::OK);
    assert!(rss.contains(&format!("<source url=\"{}\">tides</source>", world.topic)), "{rss}");
}
