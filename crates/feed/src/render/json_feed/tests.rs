//! What is written as JSON Feed says the same as the Atom that it was made of.

use super::*;
use crate::{Context, normalize, parse};

const URL: &str = "https://tides.test/feed";

fn context() -> Context {
    Context::new(URL.parse().unwrap())
}

/// Returns the JSON Feed of a document, made of the Atom that is stored of it.
fn json_feed(source: &str) -> Value {
    let atom = normalize(source.as_bytes(), &context()).unwrap().to_atom();
    document(&parse::parse(atom.as_bytes(), &context()).unwrap(), None)
}

#[test]
fn a03_a_podcast_has_attachments_with_their_durations() {
    let feed = json_feed(
        "<rss version='2.0' xmlns:itunes='http://www.itunes.com/dtds/podcast-1.0.dtd'><channel>\
         <title>Tides</title><link>https://tides.test/</link><description>High</description>\
         <language>en</language><itunes:image href='https://tides.test/wave.png'/>\
         <item><guid isPermaLink='false'>episode-14</guid><title>One</title>\
         <link>https://tides.test/1</link><description>&lt;p>Short&lt;/p></description>\
         <category>rain</category><pubDate>Sat, 07 Sep 2002 00:00:01 GMT</pubDate>\
         <enclosure url='https://tides.test/1.mp3' length='17' type='audio/mpeg'/>\
         <itunes:author>Ada</itunes:author><itunes:duration>1:02</itunes:duration></item>\
         </channel></rss>",
    );
    assert_eq!(feed["version"], "https://jsonfeed.org/version/1.1");
    assert_eq!(feed["home_page_url"], "https://tides.test/");
    assert_eq!(
        (&feed["icon"], &feed["language"]),
        (&json!("https://tides.test/wave.png"), &json!("en"))
    );
    assert_eq!(feed.get("authors"), None, "the source names none");
    let mut item = feed["items"][0].clone();
    let extension = item["_feedgate"].take();
    let want = json!({
        "id": "episode-14",
        "url": "https://tides.test/1",
        "title": "One",
        "content_html": "<p>Short</p>",
        "summary": "Short",
        "date_published": "2002-09-07T00:00:01Z",
        "authors": [{ "name": "Ada" }],
        "tags": ["rain"],
        "attachments": [{
            "url": "https://tides.test/1.mp3",
            "mime_type": "audio/mpeg",
            "size_in_bytes": 17,
            "duration_in_seconds": 62,
        }],
        "_feedgate": null,
    });
    assert_eq!(item, want);
    assert_eq!(extension["id"], "urn:guid:episode-14", "the id in Atom");
    assert_eq!(extension["itunes"]["duration"][0]["value"], "1:02");
}

#[test]
fn a03_what_is_read_of_the_json_feed_is_what_was_read_of_the_source() {
    let source = r#"{"version": "https://jsonfeed.org/version/1.1", "title": "Tides",
        "home_page_url": "https://tides.test/", "feed_url": "https://tides.test/feed",
        "authors": [{"name": "Ada", "url": "https://tides.test/ada"}], "language": "en",
        "hubs": [{"type": "WebSub", "url": "https://hub.test/"}],
        "items": [{"id": "1", "url": "https://tides.test/1", "external_url": "https://a.test/",
            "title": "One", "content_text": "1 < 2", "summary": "Numbers",
            "date_published": "2026-11-01T10:00:00Z", "date_modified": "2026-11-02T10:00:00Z",
            "tags": ["rain"], "attachments": [
                {"url": "https://tides.test/1.mp3", "mime_type": "audio/mpeg", "size_in_bytes": 5}]}]}"#;
    let mut written = json_feed(source);
    let source: Value = serde_json::from_str(source).unwrap();
    written.as_object_mut().unwrap().remove("_feedgate");
    written["items"][0].as_object_mut().unwrap().remove("_feedgate");
    assert_eq!(written, source);
}

#[test]
fn a03_an_item_has_contents_whatever_an_entry_lacks() {
    let feed = json_feed(
        "<feed xmlns='http://www.w3.org/2005/Atom'><id>urn:x</id><title>T</title>\
         <entry><id>urn:x:1</id><title>One</title><content type='image/png'>iVA=</content></entry>\
         <entry><id>urn:x:2</id><title type='html'/><summary>S</summary></entry></feed>",
    );
    let items = feed["items"].as_array().unwrap();
    let texts: Vec<&Value> = items.iter().map(|item| &item["content_text"]).collect();
    assert_eq!(texts, ["One", "S"]);
    assert_eq!(items[1].get("title"), None);
}

#[test]
fn a03_deleted_entries_and_the_status_are_in_the_extension() {
    let atom = "<feed xmlns='http://www.w3.org/2005/Atom' \
         xmlns:at='http://purl.org/atompub/tombstones/1.0'><id>urn:x</id><title>T</title>\
         <status xmlns='http://superfeedr.com/xmpp-pubsub-ext' feed='x'><http code='200'/></status>\
         <at:deleted-entry ref='urn:x:1' when='2026-11-01T10:00:00Z'/></feed>";
    let feed = parse::parse(atom.as_bytes(), &context()).unwrap();
    let document = document(&feed, Some((URL, StatusReport::default())));
    let deleted = json!([{ "id": "urn:x:1", "deletedAt": "2026-11-01T10:00:00Z" }]);
    assert_eq!(document["_feedgate"]["deleted"], deleted);
    assert_eq!(document["_feedgate"]["status"]["feed"], URL);
}
