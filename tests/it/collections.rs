//! Collections, as their readers and subscribers find them.

use http::StatusCode;
use http::header::{CACHE_CONTROL, VARY, WWW_AUTHENTICATE};

use crate::schemas::assert_json_feed;
use crate::support::feeds::{between, entry_id, entry_ids, link, rss};
use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;
use crate::support::rss_validator::assert_valid_rss;
use crate::support::server::{ReceivedRequest, client};
use crate::support::subscriber::Subscriber;
use crate::support::until;
use crate::support::world::World;

/// Waits until a document has these entries and no others, newest first.
async fn until_it_holds(url: &str, token: Option<&str>, want: &[String]) -> String {
    let mut text = String::new();
    until(&format!("{url} has {want:?}"), async || {
        let mut ask = client().get(url);
        if let Some(token) = token {
            ask = ask.basic_auth("tester", Some(token));
        }
        text = ask.send().await.unwrap().text().await.unwrap();
        entry_ids(&text) == want
    })
    .await;
    text
}

async fn publish(publisher: &Publisher, gateway: &Gateway, name: &str, n: usize) {
    publisher.put_rss(&format!("/{name}"), rss(name, 1..n + 1));
    let url = publisher.url(&format!("/{name}"));
    gateway.post("/hub", &[("hub.mode", "publish"), ("hub.url", &url)]).await;
}

#[tokio::test]
async fn a_collection_gets_what_its_members_publish_once_and_survives_a_kill() {
    let publisher = Publisher::start().await;
    let subscriber = Subscriber::start().await;
    let database = Database::new(Kind::Sqlite).await;
    let (a, b) = (publisher.url("/a"), publisher.url("/b"));
    publisher.put_rss("/a", rss("a", 1..2));
    publisher.put_rss("/b", rss("b", 1..2));
    let signals = format!("[{{\"name\": \"news\", \"topics\": [\"{a}\", \"{b}\"]}}]");
    let settings = [
        ("FEEDGATE_COLLECTIONS", signals.as_str()),
        ("FEEDGATE_COLLECT_ALL", "on"),
        ("FEEDGATE_JOB_LEASE_S", "40"),
    ];
    let mut gateway = Gateway::start(&database, &settings).await;
    // The collection of everything contains what strangers subscribe to.
    gateway.open_to_anonymous(&a).await;
    gateway.open_to_anonymous(&b).await;
    gateway.archive_holds(&a, &entry_id("a", 1)).await;
    gateway.archive_holds(&b, &entry_id("b", 1)).await;

    let topic = gateway.url("/collections/news/recent");
    gateway.subscribe_websub(&topic, &subscriber.url("/cb"), &[]).await;
    publish(&publisher, &gateway, "a", 2).await;
    let text = until_it_holds(&topic, None, &[entry_id("a", 2)]).await;
    assert_eq!(link(&text, "self"), Some(topic.clone()));
    assert!(text.contains("<source>") && text.contains(&a), "{text}");
    let has = |id: String| {
        move |told: &[&ReceivedRequest]| {
            told.iter().any(|told| entry_ids(&told.text()).contains(&id))
        }
    };
    subscriber.until("/cb", has(entry_id("a", 2))).await;

    gateway.kill();
    gateway.restart().await;
    publish(&publisher, &gateway, "b", 2).await;
    let both = [entry_id("b", 2), entry_id("a", 2)];
    until_it_holds(&topic, None, &both).await;
    until_it_holds(&gateway.url("/all/recent"), None, &both).await;
    subscriber.until("/cb", has(entry_id("b", 2))).await;
    assert_eq!(gateway.fetch(&gateway.archive_of(&topic)).await.0, StatusCode::NOT_FOUND);
    assert_eq!(gateway.get("/collections/other/recent").await.0, StatusCode::NOT_FOUND);
    gateway.comes_to_rest().await;
}

#[tokio::test]
async fn s48_what_an_account_subscribes_to_is_shown_to_it_alone() {
    let world = World::with_tides(1, &[]).await;
    let (gateway, recent) = (&world.gateway, world.gateway.url("/accounts/tester/recent"));
    let anonymous = client().get(&recent).send().await.unwrap();
    assert_eq!(anonymous.status(), StatusCode::UNAUTHORIZED);
    assert!(anonymous.headers().contains_key(WWW_AUTHENTICATE));
    let ask = |url: String| client().get(url).basic_auth("tester", Some("s3cret")).send();
    let other = ask(gateway.url("/accounts/admin/recent")).await.unwrap();
    assert_eq!(other.status(), StatusCode::FORBIDDEN);

    let callback = world.subscriber.url("/cb");
    gateway.subscribe_superfeedr(&world.topic, &callback, "atom").await;
    let mine = ask(recent.clone()).await.unwrap();
    assert_eq!(mine.status(), StatusCode::OK);
    assert!(mine.headers()[CACHE_CONTROL].to_str().unwrap().starts_with("private"));
    assert!(mine.headers()[VARY].to_str().unwrap().contains("Authorization"));
    world.put_tides(2);
    gateway.post("/", &[("hub.mode", "publish"), ("hub.url", &world.topic)]).await;
    until_it_holds(&recent, Some("s3cret"), &[entry_id("tides", 2)]).await;
    for id in 1..4 {
        let (_, text) = gateway.get(&format!("/feeds/{id}/recent")).await;
        assert!(!text.contains("accounts"), "the archive shows under a number: {text}");
    }
}

#[tokio::test]
async fn a03_a_collection_has_a_plain_feed_in_every_format() {
    let publisher = Publisher::start().await;
    let subscriber = Subscriber::start().await;
    let database = Database::new(Kind::Sqlite).await;
    let (a, b) = (publisher.url("/a"), publisher.url("/b"));
    for feed in ["/a", "/b"] {
        publisher.put_rss(feed, rss("tides", 1..2));
    }
    let signals = format!("[{{\"name\": \"news\", \"topics\": [\"{a}\", \"{b}\"]}}]");
    let settings = [
        ("FEEDGATE_COLLECTIONS", &*signals),
        ("FEEDGATE_COLLECT_ALL", "on"),
        ("FEEDGATE_PAGE_RECORDS", "1"),
    ];
    let gateway = Gateway::start(&database, &settings).await;
    for topic in [&a, &b] {
        gateway.open_to_anonymous(topic).await;
        gateway.archive_holds(topic, &entry_id("tides", 1)).await;
    }
    let plain = gateway.url("/collections/news.rss");
    gateway.subscribe_websub(&plain, &subscriber.url("/rss"), &[]).await;
    // Both feeds have an entry with the same id, which is another entry.
    for feed in ["a", "b"] {
        publisher.put_rss(&format!("/{feed}"), rss("tides", 1..3));
        gateway
            .post("/ping", &[("url", &*publisher.url(&format!("/{feed}"))), ("wait", "1")])
            .await;
    }
    let mut text = String::new();
    until("the collection has both", async || {
        text = gateway.fetch(&plain).await.1;
        text.matches("<item>").count() == 2
    })
    .await;
    assert_valid_rss(&plain, &text);
    let json = gateway.fetch(&gateway.url("/collections/news?format=json-feed")).await.1;
    assert_json_feed(&json);
    assert_eq!(json.matches("\"date_published\"").count(), 2, "{json}");
    for path in ["/all", "/all.atom", "/all.rss", "/all.json", "/collections/news"] {
        let (status, text) = gateway.fetch(&gateway.url(path)).await;
        assert_eq!(status, StatusCode::OK, "{path}");
        assert!(text.contains(&entry_id("tides", 2)), "{path}: {text}");
    }
    let own =
        client().get(gateway.url("/accounts/tester.rss")).basic_auth("tester", Some("s3cret"));
    assert_eq!(own.send().await.unwrap().status(), StatusCode::OK);
    let (status, _) = gateway.fetch(&gateway.url("/accounts/tester.rss")).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);

    // What is pushed has the ids that the feed shows.
    let items = |told: &str| told.matches("<item>").count();
    let has_both = move |told: &[&ReceivedRequest]| {
        told.iter().map(|told| items(&told.text())).sum::<usize>() == 2
    };
    subscriber.until("/rss", has_both).await;
    for told in subscriber.notified("/rss") {
        assert_eq!(told.header("content-type"), Some("application/rss+xml"));
        let pushed = told.text();
        for item in pushed.split("<item>").skip(1) {
            let guid = between(item, "<guid", "</guid>").unwrap();
            assert!(text.contains(guid), "{guid} in {text}");
        }
    }
}
