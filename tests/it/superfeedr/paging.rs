//! Paging through what is stored: of one feed, of several, and what a replay sends.

use http::{Method, StatusCode};

use super::{World, ids};
use crate::support::feeds::{entry_id, entry_ids, link, rss};

/// Row P-1.
#[tokio::test]
async fn f10_a_replay_without_a_count_sends_one_entry() {
    let world = World::subscribed("json").await;
    let form = [
        ("hub.mode", "replay"),
        ("hub.topic", world.topic.as_str()),
        ("hub.callback", &world.subscriber.url("/cb")),
    ];
    assert_eq!(world.gateway.superfeedr(&form).await.0, StatusCode::NO_CONTENT);
    world.subscriber.until("/cb", |told| !told.is_empty()).await;
    let told = world.subscriber.notified("/cb").remove(0);
    let notification: serde_json::Value = serde_json::from_str(&told.text()).unwrap();
    let items = notification["items"].as_array().unwrap();
    assert_eq!(items.len(), 1, "{notification}");
    assert_eq!(items[0]["id"], entry_id("tides", 3));
}

impl World {
    /// The ids of the entries of all feeds of a callback, with further parameters.
    async fn combined(&self, further: &[(&str, &str)]) -> Vec<String> {
        let callback = self.subscriber.url("/cb");
        let query = [("hub.mode", "retrieve"), ("hub.callback", callback.as_str())];
        let got = self.ask(Method::GET, &[&query, further].concat(), &[]).await;
        assert_eq!(got.status, StatusCode::OK, "{further:?}: {}", got.text);
        entry_ids(&got.text)
    }

    /// Reads on with `before` the last entry, page by page, until there are no more.
    async fn read_back(&self, count: &str) -> Vec<String> {
        let mut read: Vec<String> = Vec::new();
        loop {
            assert!(read.len() < 100, "paging does not end: {read:?}");
            let mut further = vec![("count", count)];
            further.extend(read.last().map(|last| ("before", last.as_str())));
            let page = self.combined(&further).await;
            if page.is_empty() {
                return read;
            }
            read.extend(page);
        }
    }

    /// With a second feed at the same callback, whose entries came between those of the first.
    async fn with_two_feeds() -> World {
        let world = World::subscribed("atom").await;
        world.publisher.put_rss("/winds", rss("winds", 1..4));
        let winds = world.publisher.url("/winds");
        world.gateway.subscribe_superfeedr(&winds, &world.subscriber.url("/cb"), "atom").await;
        for n in 4..7 {
            world.publish_at("/feed", &rss("tides", 1..n + 1)).await;
            world.publish_at("/winds", &rss("winds", 1..n + 1)).await;
        }
        world
    }

    /// Publishes a feed, and waits until the gateway has fetched it.
    async fn publish_at(&self, path: &str, feed: &str) {
        self.publisher.put_rss(path, feed.to_owned());
        let form = [("url", self.publisher.url(path)), ("wait", "1".to_owned())];
        let form: Vec<(&str, &str)> = form.iter().map(|(name, it)| (*name, it.as_str())).collect();
        let (status, text) = self.gateway.post("/ping", &form).await;
        assert!(status.is_success() && text.contains("success=\"true\""), "{text}");
    }
}

/// Rows.
#[tokio::test]
async fn f11_several_feeds_are_paged_through_to_their_end() {
    let world = World::with_two_feeds().await;
    let all = world.combined(&[("count", "50")]).await;
    assert_eq!(all.len(), 12, "{all:?}");
    let latest =
        [("winds", 6), ("tides", 6), ("winds", 5), ("tides", 5), ("winds", 4), ("tides", 4)];
    assert_eq!(all[..6], latest.map(|(feed, n)| entry_id(feed, n)));
    for count in ["1", "2", "5", "12"] {
        assert_eq!(world.read_back(count).await, all, "{count} at a time");
    }
    let after = world.combined(&[("count", "50"), ("after", &all[4])]).await;
    assert_eq!(after, all[..4], "strictly newer");
    let oldest = world.combined(&[("count", "1"), ("after", &all[4])]).await;
    assert_eq!(oldest, all[3..4], "the oldest of them first, as with one feed");
    let between = [("count", "50"), ("before", all[1].as_str()), ("after", all[5].as_str())];
    assert_eq!(world.combined(&between).await, all[2..5]);
    let callback = world.subscriber.url("/cb");
    let unknown =
        [("hub.mode", "retrieve"), ("hub.callback", callback.as_str()), ("before", "tag:nowhere")];
    let got = world.ask(Method::GET, &unknown, &[]).await;
    assert_eq!(got.status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn f11_an_entry_of_two_feeds_stops_no_paging() {
    let world = World::with_two_feeds().await;
    world.publisher.put_rss("/copy", rss("tides", 1..2));
    let copy = world.publisher.url("/copy");
    world.gateway.subscribe_superfeedr(&copy, &world.subscriber.url("/cb"), "atom").await;
    world.publish_at("/copy", &rss("tides", 1..7)).await;
    let all = world.combined(&[("count", "50")]).await;
    for count in ["1", "3", "7"] {
        let read = world.read_back(count).await;
        let missing: Vec<_> = all.iter().filter(|id| !read.contains(id)).collect();
        assert!(
            missing.is_empty(),
            "{count} at a time: {missing:?} of {all:?} are not in {read:?}"
        );
    }
}

#[tokio::test]
async fn h13_several_feeds_are_retrieved_in_answers_of_bounded_size() {
    const MIB: usize = 1 << 20;
    let world = World::subscribed("atom").await;
    let callback = world.subscriber.url("/cb");
    for feed in ["a", "b", "c"] {
        let path = format!("/{feed}");
        let text = format!("<description>{}The text", "long ".repeat(MIB / 5));
        let long = rss(feed, 1..5).replace("<description>The text", &text);
        world.publisher.put_rss(&path, rss(feed, 1..1));
        world.gateway.subscribe_superfeedr(&world.publisher.url(&path), &callback, "atom").await;
        world.publish_at(&path, &long).await;
    }
    let query = [("hub.mode", "retrieve"), ("hub.callback", callback.as_str()), ("count", "50")];
    let got = world.ask(Method::GET, &query, &[]).await;
    assert!(got.text.len() < 7 * MIB, "{} MiB", got.text.len() / MIB);
    let mut read = world.read_back("50").await;
    let page = entry_ids(&got.text);
    assert_eq!(read[..page.len()], page);
    let oldest = read.last().unwrap().clone();
    let newer = world.combined(&[("count", "50"), ("after", &oldest)]).await;
    assert!((1..8).contains(&newer.len()), "{newer:?}");
    assert_eq!(newer, read[read.len() - 1 - newer.len()..read.len() - 1], "the oldest of them");
    read.sort();
    read.dedup();
    assert_eq!(read.len(), 3 + 3 * 4, "{read:?}");
}

#[tokio::test]
async fn f12_a_retrieved_document_names_its_own_address() {
    let world = World::subscribed("atom").await;
    let callback = world.subscriber.url("/cb");
    let by_topic = [("hub.mode", "retrieve"), ("hub.topic", world.topic.as_str()), ("count", "2")];
    let by_callback = [("hub.mode", "retrieve"), ("hub.callback", callback.as_str())];
    for query in [&by_topic[..], &by_callback[..]] {
        let mut url = url::Url::parse(&world.gateway.url("/")).unwrap();
        url.query_pairs_mut().extend_pairs(query);
        let got = world.ask(Method::GET, query, &[]).await;
        assert_eq!(link(&got.text, "self").as_deref(), Some(url.as_str()));

        let as_json = world.ask(Method::GET, &[query, &[("format", "json")]].concat(), &[]).await;
        let own = as_json.json()["standardLinks"]["self"][0]["href"].take();
        assert_eq!(own, format!("{url}&format=json"));
    }

    // A document in the response to a subscription has an address, too.
    let form = [
        ("hub.mode", "subscribe"),
        ("hub.topic", world.topic.as_str()),
        ("hub.callback", &callback),
        ("hub.secret", "sesame"),
        ("retrieve", "true"),
    ];
    let (_, text) = world.gateway.superfeedr(&form).await;
    let own = link(&text, "self").unwrap();
    assert!(own.starts_with(&world.gateway.url("/?hub.mode=retrieve&hub.topic=")), "{own}");
    assert!(!own.contains("callback") && !own.contains("sesame"), "{own}");
    let again = url::Url::parse(&own).unwrap();
    let query: Vec<(String, String)> = again.query_pairs().into_owned().collect();
    let query: Vec<(&str, &str)> = query.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    assert_eq!(entry_ids(&world.ask(Method::GET, &query, &[]).await.text), ids(&[3, 2, 1]));
}
