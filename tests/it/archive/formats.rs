//! Feeds of the gateway as RSS and JSON Feed.

use http::StatusCode;
use http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderName, IF_MODIFIED_SINCE,
    IF_NONE_MATCH, LAST_MODIFIED, LINK, VARY,
};
use reqwest::Response;
use serde_json::Value;

use super::{get, header};
use crate::schemas::assert_json_feed;
use crate::support::feeds::{entry_id, entry_ids, link};
use crate::support::rss_validator::assert_valid_rss;
use crate::support::server::client;
use crate::support::until;
use crate::support::world::World;

const ATOM: &str = "application/atom+xml";
const RSS: &str = "application/rss+xml";
const JSON_FEED: &str = "application/feed+json";

async fn read(url: &str, headers: &[(HeaderName, &str)]) -> Response {
    let mut request = client().get(url);
    for (name, value) in headers {
        request = request.header(name, *value);
    }
    request.send().await.unwrap()
}

/// The text of a document, which must be valid in its format.
async fn text(answer: Response) -> String {
    assert_eq!(answer.status(), StatusCode::OK);
    let (media_type, url) = (header(&answer, CONTENT_TYPE), answer.url().to_string());
    let text = answer.text().await.unwrap();
    match media_type.as_str() {
        RSS => assert_valid_rss(&url, &text),
        JSON_FEED => assert_json_feed(&text),
        other => panic!("{other} at {url}"),
    }
    text
}

async fn json(url: &str) -> Value {
    serde_json::from_str(&text(read(url, &[]).await).await).unwrap()
}

fn guids(rss: &str) -> Vec<String> {
    let parts = rss.split("<guid isPermaLink=").skip(1);
    let id = |part: &str| {
        let (_, id) = part.split_once('>').unwrap();
        id.split_once('<').unwrap().0.to_owned()
    };
    parts.map(id).collect()
}

fn item_ids(feed: &Value) -> Vec<String> {
    let items = feed["items"].as_array().unwrap();
    items.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

fn ids(numbers: &[usize]) -> Vec<String> {
    numbers.iter().map(|n| entry_id("tides", *n)).collect()
}

#[tokio::test]
async fn a03_every_feed_is_rss_and_json_feed_by_the_end_of_its_address() {
    let world = World::with_archive().await;
    let recent = world.recent().await;
    let feed = recent.replace("/recent", "");
    let all = ids(&[5, 4, 3, 2, 1]);

    let rss = text(read(&format!("{feed}.rss"), &[]).await).await;
    assert_eq!(guids(&rss), all);
    let hub = format!("<atom:link rel=\"hub\" href=\"{}\"/>", world.gateway.url("/hub"));
    assert!(rss.contains(&hub), "{rss}");
    let json_feed = json(&format!("{feed}.json")).await;
    assert_eq!(item_ids(&json_feed), all);
    assert_eq!(json_feed["feed_url"], format!("{feed}.json"));
    assert_eq!(json_feed["hubs"][0]["url"], world.gateway.url("/hub"));
    let atom = get(&feed).await.text().await.unwrap();
    let named = read(&format!("{feed}.atom"), &[]).await;
    assert_eq!(header(&named, CONTENT_TYPE), ATOM);
    assert_eq!(named.text().await.unwrap(), atom, "the same document");

    // The documents of the archive, page by page.
    let rss = text(read(&format!("{recent}.rss"), &[]).await).await;
    assert_eq!(guids(&rss), ids(&[5]));
    let mut next = Some(format!("{recent}.json"));
    let mut found = Vec::new();
    while let Some(url) = next {
        let page = json(&url).await;
        found.extend(item_ids(&page));
        next = page["next_url"].as_str().map(str::to_owned);
    }
    assert_eq!(found, all);
    let status = &json(&format!("{recent}.json")).await["_feedgate"]["status"];
    assert_eq!(status["feed"], world.topic);
    let chain = text(read(&format!("{feed}/documents/1.rss"), &[]).await).await;
    assert!(chain.contains(&format!("href=\"{feed}/documents/2.rss\"")), "{chain}");

    for path in [".xml", ".rss/recent", "/recent.rss.json", "/documents/9.rss"] {
        let answer = read(&format!("{feed}{path}"), &[]).await;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn a03_accept_and_format_choose_the_format_and_who_accepts_all_gets_atom() {
    let world = World::with_archive().await;
    let feed = world.recent().await.replace("/recent", "");
    #[rustfmt::skip]
    let cases = [
        ("",                 "*/*",                          ATOM),
        ("",                 "application/rss+xml, */*",     ATOM),
        ("",                 "application/rss+xml",          RSS),
        ("",                 "application/feed+json, application/atom+xml;q=0.9", JSON_FEED),
        ("?format=rss",      "*/*",                          RSS),
        ("?format=json-feed", "application/atom+xml",        JSON_FEED),
        ("?format=atom",     "application/rss+xml",          ATOM),
    ];
    for (query, accept, want) in cases {
        let answer = read(&format!("{feed}{query}"), &[(ACCEPT, accept)]).await;
        assert_eq!(header(&answer, CONTENT_TYPE), want, "{query} {accept}");
        assert_eq!(header(&answer, VARY), "Accept, Accept-Encoding");
    }
    let archived = format!("{feed}/documents/1");
    for (accept, want) in [(ATOM, ATOM), (RSS, RSS), (ATOM, ATOM), (JSON_FEED, JSON_FEED)] {
        let answer = read(&archived, &[(ACCEPT, accept)]).await;
        assert_eq!(header(&answer, CONTENT_TYPE), want, "also where documents are cached");
    }
    let refused = read(&format!("{feed}?format=csv"), &[]).await;
    assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
    let reason = refused.text().await.unwrap();
    assert_eq!(reason.trim(), "format must be atom, rss or json-feed, not csv.");
    // A browser that names the format is sent the document.
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    let answer = read(&format!("{feed}.json"), &[(ACCEPT, browser)]).await;
    assert_eq!(header(&answer, CONTENT_TYPE), JSON_FEED);

    let by_topic = format!("{}&format=rss&count=3", world.gateway.archive_of(&world.topic));
    assert_eq!(read(&by_topic, &[]).await.url().as_str(), format!("{feed}.rss?count=3"));
    let links = header(&get(&feed).await, LINK);
    for (extension, media_type) in [(".rss", RSS), (".json", JSON_FEED)] {
        let named = format!("<{feed}{extension}>; rel=\"alternate\"; type=\"{media_type}\"");
        assert!(links.contains(&named), "{links}");
    }
}

#[tokio::test]
async fn a03_other_formats_are_cached_compressed_and_revalidated_as_atom_is() {
    let world = World::with_archive().await;
    let feed = world.recent().await.replace("/recent", "");
    let mut tags = Vec::new();
    for url in [feed.clone(), format!("{feed}.rss"), format!("{feed}.json")] {
        let plain = read(&url, &[]).await;
        let packed = read(&url, &[("accept-encoding".parse().unwrap(), "gzip")]).await;
        assert_eq!(header(&packed, CONTENT_ENCODING), "gzip", "{url}");
        let brief = "public, max-age=15, stale-while-revalidate=30, stale-if-error=86400";
        assert_eq!(header(&plain, CACHE_CONTROL), brief);
        let etag = header(&plain, ETAG);
        let again = read(&url, &[(IF_NONE_MATCH, &etag)]).await;
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        tags.extend([etag, header(&packed, ETAG)]);
    }
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), 6, "{tags:?}");
    // Only the bytes of documents in Atom never change.
    let archived = read(&format!("{feed}/documents/1.rss"), &[]).await;
    assert_eq!(header(&archived, CACHE_CONTROL), "public, no-cache");
}

#[tokio::test]
async fn a03_a_filter_leaves_out_entries_of_the_plain_feed() {
    let world = World::with_archive().await;
    let feed = world.recent().await.replace("/recent", "");
    let query = "?filter=%22text+of+4%22+%7C+%22text+of+2%22";
    let rss = text(read(&format!("{feed}.rss{query}"), &[]).await).await;
    assert_eq!(guids(&rss), ids(&[4, 2]));
    assert!(!rss.contains("prev-archive"), "older documents are not filtered: {rss}");
    let limited = json(&format!("{feed}.json?count=1&filter=%22text+of%22")).await;
    assert_eq!(item_ids(&limited), ids(&[5]));
    let atom = get(&format!("{feed}{query}")).await.text().await.unwrap();
    assert_eq!(entry_ids(&atom), ids(&[4, 2]));
    let other = get(&format!("{feed}?filter=nothing")).await.text().await.unwrap();
    assert_eq!(entry_ids(&other), [] as [String; 0]);
    for path in ["?filter=-tides", "/recent?filter=tides"] {
        let refused = read(&format!("{feed}{path}"), &[]).await;
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST, "{path}");
    }

    // Who subscribes to it is sent what it shows.
    let topic = format!("{feed}.rss{query}").replace("text+of+2", "text+of+7");
    let topic = link_of_self(&text(read(&topic, &[]).await).await);
    world.gateway.subscribe_websub(&topic, &world.subscriber.url("/rss"), &[]).await;
    world.publish_and_wait(7).await;
    world.subscriber.until("/rss", |told| !told.is_empty()).await;
    let told = world.subscriber.notified("/rss").remove(0);
    assert_eq!(told.header("content-type"), Some(RSS));
    assert_eq!(guids(&told.text()), ids(&[7]));
}

/// The address in `rel="self"` of RSS.
fn link_of_self(rss: &str) -> String {
    let (_, rest) =
        rss.split_once("<atom:link rel=\"self\" type=\"application/rss+xml\" href=\"").unwrap();
    rest.split_once('"').unwrap().0.replace("&amp;", "&")
}

#[tokio::test]
async fn a07_the_plain_feed_says_when_it_changed_and_answers_to_dates() {
    let world = World::with_archive().await;
    let feed = world.recent().await.replace("/recent", "");
    for url in [feed.clone(), format!("{feed}.rss")] {
        let mut modified = String::new();
        // A date is certain once the second is over.
        until("the feed has a date", async || {
            modified = header(&read(&url, &[]).await, LAST_MODIFIED);
            !modified.is_empty()
        })
        .await;
        let again = read(&url, &[(IF_MODIFIED_SINCE, &modified)]).await;
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(header(&again, LAST_MODIFIED), modified);
        let earlier = "Sat, 07 Sep 2002 00:00:01 GMT";
        assert_eq!(read(&url, &[(IF_MODIFIED_SINCE, earlier)]).await.status(), StatusCode::OK);
        let etag = (IF_NONE_MATCH, "\"x\"");
        let both = read(&url, &[(IF_MODIFIED_SINCE, &modified), etag]).await;
        assert_eq!(both.status(), StatusCode::OK, "a tag says more than a date");
    }
    let before = header(&read(&feed, &[]).await, LAST_MODIFIED);
    world.publish_and_wait(6).await;
    let changed = read(&feed, &[(IF_MODIFIED_SINCE, &before)]).await;
    assert_eq!(changed.status(), StatusCode::OK);
    assert_eq!(link(&changed.text().await.unwrap(), "self"), Some(feed));
}
