//! The newest entries as a plain feed, and which links lead there.

use http::StatusCode;
use http::header::{CONTENT_ENCODING, ETAG, IF_NONE_MATCH, LINK};

use super::{get, header};
use crate::support::feeds::{entry_id, entry_ids, link, rss};
use crate::support::server::client;
use crate::support::world::World;

impl World {
    /// The address of the plain feed.
    async fn plain_feed(&self) -> String {
        self.recent().await.replace("/recent", "")
    }
}

fn ids(numbers: &[usize]) -> Vec<String> {
    numbers.iter().map(|n| entry_id("tides", *n)).collect()
}

#[tokio::test]
async fn f5_readers_that_know_no_archives_miss_nothing_that_came_in_one_burst() {
    let world = World::with_archive().await;
    world.publish_and_wait(8).await;
    let feed = world.plain_feed().await;
    let seen = entry_ids(&get(&feed).await.text().await.unwrap());
    assert_eq!(seen, ids(&[8, 7, 6, 5, 4, 3, 2, 1]));
    world.publish_and_wait(14).await;
    let text = get(&feed).await.text().await.unwrap();
    let new: Vec<String> = entry_ids(&text).into_iter().filter(|id| !seen.contains(id)).collect();
    assert_eq!(new, ids(&[14, 13, 12, 11, 10, 9]));
    assert_eq!(link(&text, "self"), Some(feed));
    assert_eq!(link(&text, "hub"), Some(world.gateway.url("/hub")));
    assert_eq!(link(&text, "prev-archive"), None, "there is nothing older");
}

#[tokio::test]
async fn f5_readers_of_archives_go_on_from_the_plain_feed() {
    let world = World::with_archive().await;
    let feed = world.plain_feed().await;
    #[rustfmt::skip]
    let cases: [(&str, &[usize], Option<&str>); 6] = [
        ("",           &[5, 4, 3, 2, 1], None),
        ("?count=999", &[5, 4, 3, 2, 1], None),
        ("?count=3",   &[5, 4, 3],       Some("/documents/1")),
        ("?count=2",   &[5, 4],          Some("/documents/2")),
        ("?count=1",   &[5],             Some("/documents/2")),
        ("?count=0",   &[5],             Some("/documents/2")),
    ];
    for (query, want, before) in cases {
        let answer = client().get(format!("{feed}{query}")).send().await.unwrap();
        let text = answer.text().await.unwrap();
        assert_eq!(entry_ids(&text), ids(want), "{query}");
        let before = before.map(|path| format!("{feed}{path}"));
        assert_eq!(link(&text, "prev-archive"), before, "{query}");
    }

    // The newest document still grows, so it precedes nothing.
    world.publish_and_wait(6).await;
    let text = get(&format!("{feed}?count=1")).await.text().await.unwrap();
    assert_eq!((entry_ids(&text), link(&text, "prev-archive")), (ids(&[6]), None));
    let refused = get(&format!("{feed}?count=many")).await;
    assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn f5_the_plain_feed_has_each_entry_once_and_is_cached() {
    let world = World::with_archive().await;
    let feed = world.plain_feed().await;
    let first = get(&feed).await;
    let etag = header(&first, ETAG);
    let again = client().get(&feed).header(IF_NONE_MATCH, &etag).send().await.unwrap();
    assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    let packed = client().get(&feed).header("accept-encoding", "gzip").send().await.unwrap();
    assert_eq!(header(&packed, CONTENT_ENCODING), "gzip");

    let edited = rss("tides", 1..6).replace("The text of 5<", "The corrected text of 5<");
    world.publisher.put_rss("/feed", edited);
    world.gateway.post("/ping", &[("url", &world.topic), ("wait", "1")]).await;
    let changed = client().get(&feed).header(IF_NONE_MATCH, &etag).send().await.unwrap();
    assert_eq!(changed.status(), StatusCode::OK);
    let text = changed.text().await.unwrap();
    assert_eq!(entry_ids(&text), ids(&[5, 4, 3, 2, 1]), "under the id of the source");
    assert!(text.contains("The corrected text of 5") && !text.contains("The text of 5"), "{text}");
}

#[tokio::test]
async fn f5_readers_are_led_to_the_plain_feed() {
    let world = World::with_archive().await;
    let feed = world.plain_feed().await;
    let recent = get(&world.recent().await).await;
    let links = header(&recent, LINK);
    let named = format!("<{feed}>; rel=\"alternate\"; type=\"application/atom+xml\"");
    assert!(links.contains(&named), "{links}");
    let by_topic = format!("{}&count=3", world.gateway.archive_of(&world.topic));
    let by_topic = client().get(by_topic).send().await.unwrap();
    assert_eq!(by_topic.url().as_str(), format!("{feed}?count=3"));
    let (_, index) = world.gateway.get("/").await;
    assert!(index.contains(&world.gateway.url("/feeds?topic=")), "{index}");
}

#[tokio::test]
async fn f3_the_permanent_address_is_the_only_via_of_the_recent_document() {
    let world = World::with_archive().await;
    let source = world.publisher.url("/atom");
    let body = format!(
        "<feed xmlns=\"http://www.w3.org/2005/Atom\"><id>urn:x</id><title>Tides</title>\
         <link rel=\"self\" href=\"{source}\"/><updated>2026-11-01T10:00:00Z</updated>\
         <entry><id>urn:x:1</id><title>1</title><updated>2026-11-01T10:00:00Z</updated></entry>\
         </feed>"
    );
    world.publisher.put("/atom", "application/atom+xml", body);
    world.gateway.subscribe_superfeedr(&source, &world.subscriber.url("/cb"), "atom").await;
    world.gateway.open_to_anonymous(&source).await;
    let text = get(&world.gateway.archive_of(&source)).await.text().await.unwrap();
    let recent = link(&text, "self").unwrap();
    assert_eq!(text.matches("rel=\"via\"").count(), 1, "{text}");
    assert_eq!(link(&text, "via"), Some(recent.replace("/recent", "/documents/1")));
    assert_eq!(link(&text, "original"), Some(source));
}
