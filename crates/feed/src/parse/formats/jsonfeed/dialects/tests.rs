//! Tests of documents in other dialects.

use url::Url;

use crate::context::Context;
use crate::model::{Content, Entry, FeedFormat};
use crate::parse::parse;

/// The format of a document, and its only entry.
fn read(text: &str) -> (FeedFormat, Entry) {
    let context = Context::new(Url::parse("https://tides.test/outbox").unwrap());
    let mut feed = parse(text.as_bytes(), &context).unwrap();
    assert_eq!(feed.entries.len(), 1, "{feed:?}");
    (feed.format, feed.entries.remove(0))
}

fn content(entry: &Entry) -> &str {
    let Some(Content::Text(text)) = &entry.content else { panic!("no content") };
    &text.value
}

#[test]
fn n13_rss_in_json_is_read() {
    let (format, entry) = read(
        r##"{"rss": {"version": "2.0", "channel": {"title": "Tides", "link": "https://tides.test/",
        "item": {"title": "Ebb", "link": "https://tides.test/1", "description": "<p>low</p>",
        "guid": {"isPermaLink": "false", "#value": "e1"}, "pubDate": "Sun, 01 Nov 2026 02:03:04 GMT",
        "category": [{"#value": "sea"}], "enclosure": {"url": "https://tides.test/1.mp3", "type": "audio/mpeg", "length": "9"}}}}}"##,
    );
    assert_eq!(
        (format, entry.id.as_str(), content(&entry)),
        (FeedFormat::RssInJson, "e1", "<p>low</p>")
    );
    assert_eq!((entry.links.len(), entry.categories[0].term.as_str()), (2, "sea"));
    assert_eq!(entry.links[1].mime.as_deref(), Some("audio/mpeg"));
    assert_eq!(entry.published.unwrap().timestamp(), 1_793_498_584);
}

#[test]
fn n13_activities_are_read_by_their_objects() {
    let (format, entry) = read(
        r##"{"@context": "https://www.w3.org/ns/activitystreams", "type": "OrderedCollectionPage",
        "orderedItems": [{"id": "https://tides.test/a/1", "type": "Create", "actor": "https://tides.test/@ada",
        "published": "2026-11-01T02:03:04Z", "object": {"id": "https://tides.test/n/1", "type": "Note",
        "content": "<p>low</p>", "url": [{"type": "Link", "href": "https://tides.test/@ada/1"}],
        "attachment": [{"url": "https://tides.test/1.png", "mediaType": "image/png"}],
        "tag": [{"type": "Hashtag", "name": "#sea"}, {"type": "Mention", "name": "@bob"}]}}, "https://tides.test/a/2"]}"##,
    );
    assert_eq!(
        (format, entry.id.as_str()),
        (FeedFormat::ActivityStreams2, "https://tides.test/n/1")
    );
    assert_eq!(
        (content(&entry), entry.links[0].href.as_str()),
        ("<p>low</p>", "https://tides.test/@ada/1")
    );
    assert_eq!(entry.authors[0].uri.as_deref(), Some("https://tides.test/@ada"));
    assert_eq!((entry.categories.len(), entry.links.len()), (1, 2));
    assert!(entry.published.is_some());
}

#[test]
fn n13_activities_of_2011_are_read() {
    let (format, entry) = read(
        r#"{"items": [{"published": "2026-11-01T02:03:04Z", "verb": "post", "title": "Ada posted",
        "actor": {"objectType": "person", "displayName": "Ada", "url": "https://tides.test/ada"},
        "object": {"id": "tag:tides.test,2026:1", "objectType": "note", "content": "low", "url": "https://tides.test/1"}}]}"#,
    );
    assert_eq!(
        (format, entry.id.as_str()),
        (FeedFormat::ActivityStreams1, "tag:tides.test,2026:1")
    );
    assert_eq!((content(&entry), entry.authors[0].name.as_str()), ("low", "Ada"));
}

#[test]
fn n13_what_superfeedr_sends_is_read() {
    let (format, entry) = read(
        r#"{"status": {"code": 200, "feed": "https://tides.test/feed"}, "title": "Tides",
        "items": [{"id": "e1", "title": "Ebb", "published": 1793498584, "permalinkUrl": "https://tides.test/1",
        "actor": {"displayName": "Ada", "permalinkUrl": "https://tides.test/ada"}, "categories": ["sea"],
        "standardLinks": {"enclosure": [{"href": "https://tides.test/1.mp3", "type": "audio/mpeg"}]}}]}"#,
    );
    assert_eq!((format, entry.id.as_str()), (FeedFormat::SuperfeedrJson, "e1"));
    assert_eq!(entry.published.unwrap().timestamp(), 1_793_498_584);
    assert_eq!((entry.links.len(), entry.authors[0].name.as_str()), (2, "Ada"));
}

#[test]
fn n13_collections_without_objects_are_no_feeds() {
    let context = Context::new(Url::parse("https://tides.test/outbox").unwrap());
    for text in [
        r#"{"type": "OrderedCollection", "totalItems": 3, "first": "https://tides.test/outbox?page=1"}"#,
        r#"{"type": "Collection", "items": ["https://tides.test/1"]}"#,
        r#"{"rss": {"channel": "x"}}"#,
    ] {
        assert!(parse(text.as_bytes(), &context).is_err(), "{text}");
    }
}

#[test]
fn n13_a_list_without_entries_is_an_empty_feed() {
    let context = Context::new(Url::parse("https://tides.test/outbox").unwrap());
    #[rustfmt::skip]
    let cases = [
        (FeedFormat::ActivityStreams2, r#"{"type": "OrderedCollectionPage", "orderedItems": []}"#),
        (FeedFormat::ActivityStreams2, r#"{"type": "OrderedCollection", "first": {"orderedItems": []}}"#),
        (FeedFormat::RssInJson,        r#"{"rss": {"channel": {"title": "x"}}}"#),
        (FeedFormat::RssInJson,        r#"{"rss": {"channel": {"title": "x", "item": []}}}"#),
        (FeedFormat::JsonFeed11,       r#"{"title": "Alerts", "items": []}"#),
    ];
    for (format, text) in cases {
        let feed = parse(text.as_bytes(), &context).unwrap();
        assert_eq!((feed.format, feed.entries.len()), (format, 0), "{text}");
    }
}
