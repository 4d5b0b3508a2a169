//! What anybody may see of all that is watched: `/feeds.opml`, `/stats`, `/stats.json` and
//! `/subscriptions.json`, as those who read them at other servers find them.

mod bounds;
mod owners;
mod secrets;

use std::io::Read;

use feedgate::jobs::runner;
use flate2::read::GzDecoder;
use http::header::{
    ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG,
    HeaderName, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED,
};
use http::{HeaderMap, Method, StatusCode};
use opml::{OPML, Outline};
use scraper::{Html, Selector};
use serde_json::{Value, json};

use crate::schemas::assert_valid;
use crate::store::on_both_stores;
use crate::support::feeds::{entry_id, rss};
use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;
use crate::support::server::client;
use crate::support::subscriber::{Behavior, Subscriber};

on_both_stores!(
    the_views_tell_what_is_watched_by_whom_and_how_it_goes,
    a_gateway_that_watches_nothing_says_so,
);

const VIEWS: [&str; 4] = ["/feeds.opml", "/stats", "/stats.json", "/subscriptions.json"];

async fn json_at(gateway: &Gateway, path: &str) -> Value {
    let (status, text) = gateway.get(path).await;
    assert_eq!(status, StatusCode::OK, "{path}: {text}");
    serde_json::from_str(&text).unwrap()
}

/// The outlines of the subscription list, as a reader finds them.
async fn outlines(gateway: &Gateway, query: &str) -> Vec<Outline> {
    let (_, text) = gateway.get(&format!("/feeds.opml{query}")).await;
    assert_valid("opml.rng", &[("feeds".to_owned(), text.clone())]);
    OPML::from_str(&text).unwrap_or_else(|err| panic!("{err}:\n{text}")).body.outlines
}

/// The cells of each row of this part of the page, as text.
async fn rows(gateway: &Gateway, part: &str) -> Vec<Vec<String>> {
    let (status, text) = gateway.get("/stats").await;
    assert_eq!(status, StatusCode::OK);
    let page = Html::parse_document(&text);
    let row = Selector::parse(&format!("#{part} tr")).unwrap();
    let cell = Selector::parse("th, td").unwrap();
    let text =
        |cell: scraper::ElementRef<'_>| cell.text().collect::<String>().replace('\u{a0}', " ");
    let rows = page.select(&row);
    rows.map(|row| row.select(&cell).map(text).collect()).collect()
}

/// The list that readers import leads to what this gateway made of the feeds, unless it is to name the
/// sources.
async fn a06_feeds_are_listed_at_the_address_of_the_gateway(gateway: &Gateway, topic: &str) {
    let listed = outlines(gateway, "").await;
    let url = listed[0].xml_url.clone().unwrap();
    assert!(url.starts_with(&gateway.url("/feeds/")), "{url}");
    assert_eq!(outlines(gateway, "?urls=gateway").await, listed);
    let (status, feed) = gateway.fetch(&url).await;
    assert!(status.is_success() && feed.contains(&entry_id("tides", 2)), "{feed}");
    assert_eq!(outlines(gateway, "?urls=source").await[0].xml_url.as_deref(), Some(topic));
    let (status, text) = gateway.get("/feeds.opml?urls=theirs").await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(text.trim(), "urls must be gateway or source, not theirs.");
}

async fn the_views_tell_what_is_watched_by_whom_and_how_it_goes(database: Database) {
    let gateway = Gateway::start(&database, &[]).await;
    let (publisher, subscriber) = (Publisher::start().await, Subscriber::start().await);
    publisher.put_rss("/feed", rss("tides", 1..2));
    publisher.put_rss("/other", rss("waves", 1..2));
    let (topic, other) = (publisher.url("/feed"), publisher.url("/other"));
    gateway.subscribe_superfeedr(&topic, &subscriber.url("/account"), "atom").await;
    gateway.archive_holds(&topic, &entry_id("tides", 1)).await;
    gateway.subscribe_rsscloud("http-post", &topic, &subscriber, "/plain").await;
    gateway.subscribe_rsscloud("soap", &other, &subscriber, "/soap").await;
    gateway.subscribe_websub(&topic, &subscriber.url("/web"), &[("hub.secret", "s3cret")]).await;
    subscriber.set("/web", Behavior::Failing(500));
    let before = subscriber.notified("/plain").len();
    publisher.put_rss("/feed", rss("tides", 1..3));
    gateway.post("/ping", &[("url", &topic)]).await;
    subscriber.until("/plain", |told| told.len() > before).await;
    for (protocol, result) in [("http-post", "ok"), ("websub", "ok"), ("websub", "http_5xx")] {
        let count =
            format!("feedgate_deliveries_total{{protocol=\"{protocol}\",result=\"{result}\"}} 1");
        gateway.measures(&count).await;
    }

    let seen = outlines(&gateway, "?urls=source").await;
    let seen: Vec<_> = seen
        .iter()
        .map(|line| (line.text.as_str(), line.r#type.as_deref(), line.xml_url.as_deref()))
        .collect();
    let want =
        [("tides", Some("rss"), Some(topic.as_str())), ("waves", Some("rss"), Some(&*other))];
    assert_eq!(seen, want);
    a06_feeds_are_listed_at_the_address_of_the_gateway(&gateway, &topic).await;

    stats_agree(&json_at(&gateway, "/stats.json").await, &topic);
    let numbers = rows(&gateway, "numbers").await;
    for (name, want) in [
        ("Subscriptions by rssCloud over SOAP", "1"),
        ("Subscriptions whose last delivery failed", "1"),
        ("Hosts of subscribers", "1"),
    ] {
        assert!(numbers.contains(&vec![name.to_owned(), want.to_owned()]), "{name}: {numbers:?}");
    }
    let (_, page) = gateway.get("/stats").await;
    for tile in [
        "Feeds with subscribers<b>2</b>",
        "Subscriptions<b>4</b><small>1 of accounts</small>",
        "Pings in the last hour<b>1</b>",
        "Accepted deliveries by this node<b>2</b>",
    ] {
        assert!(page.contains(tile), "{tile}: {page}");
    }
    let feeds = rows(&gateway, "feeds").await;
    assert_eq!((&*feeds[0][0], &*feeds[0][2], feeds.len()), ("tides", "3", 2));

    listing_agrees(&json_at(&gateway, "/subscriptions.json").await, &topic);
}

fn stats_agree(stats: &Value, topic: &str) {
    let numbers = [
        ("feedsWithSubscribers", 2),
        ("feedsChangedLastWindow", 2),
        ("feedsChangedLast7Days", 2),
        ("windowDays", 7),
        ("feedsFailing", 0),
        ("uniqueAggregators", 1),
        ("totalActiveSubscriptions", 4),
        ("openSubscriptions", 3),
        ("accountSubscriptions", 1),
        ("failingSubscriptions", 1),
    ];
    for (name, want) in numbers {
        assert_eq!(stats[name], want, "{name}: {stats:#}");
    }
    let protocols =
        json!({ "http-post": 1, "https-post": 0, "xml-rpc": 0, "soap": 1, "websub": 2 });
    assert_eq!(stats["protocolBreakdown"], protocols);
    assert_eq!(stats["pings"], json!({ "lastHour": 1, "total": 1 }));
    assert_eq!(stats["node"]["deliveries"]["ok"], 2);
    assert!(stats["node"]["deliveries"]["failed"].as_u64() >= Some(1));
    let top = &stats["topFeeds"][0];
    assert_eq!((&top["url"], &top["feedTitle"]), (&json!(topic), &json!("tides")));
    assert_eq!(top["subscriberCount"], 3);
    assert!(is_moment(&top["whenLastUpdate"]) && is_moment(&stats["generatedAt"]));
    assert_eq!(stats["moreFeeds"], json!([]));
}

fn listing_agrees(listing: &Value, topic: &str) {
    assert_eq!((&listing["version"], &listing["next"]), (&json!(2), &Value::Null));
    let feed = &listing["feeds"][topic];
    assert_eq!(feed["subscriberCount"], 3);
    let resource = &feed["resource"];
    assert_eq!((&resource["url"], &resource["feed"]["title"]), (&json!(topic), &json!("tides")));
    assert!(is_moment(&resource["whenLastCheck"]) && is_moment(&resource["whenLastUpdate"]));
    let open = feed["subscriptions"].as_array().unwrap();
    let open = open.iter().map(|one| one["protocol"].as_str().unwrap()).collect::<Vec<_>>();
    assert_eq!(open, ["http-post", "websub"], "an account's is its owner's");
    for one in feed["subscriptions"].as_array().unwrap() {
        let is_web = one["protocol"] == "websub";
        assert_eq!(one["ctConsecutiveErrors"], u8::from(is_web));
        assert_eq!(is_moment(&one["failingSince"]), is_web);
        assert!(is_moment(&one["whenCreated"]) && is_moment(&one["whenExpires"]));
        let lease = if is_web { json!({ "leaseSeconds": 864_000 }) } else { Value::Null };
        assert_eq!(one["details"], lease, "row A10");
    }
}

fn is_moment(value: &Value) -> bool {
    value.as_str().is_some_and(|text| chrono::DateTime::parse_from_rfc3339(text).is_ok())
}

async fn a_gateway_that_watches_nothing_says_so(database: Database) {
    let gateway = Gateway::start(&database, &[]).await;
    let [line] = &*outlines(&gateway, "?urls=source").await else {
        panic!("a body has at least one outline")
    };
    assert_eq!((line.text.as_str(), &line.xml_url), ("No feeds are listed yet.", &None));
    let stats = json_at(&gateway, "/stats.json").await;
    assert_eq!((&stats["totalActiveSubscriptions"], &stats["topFeeds"]), (&json!(0), &json!([])));
    assert!(rows(&gateway, "feeds").await[0][0].starts_with("No feeds are listed yet."));
    let listing = json_at(&gateway, "/subscriptions.json").await;
    assert_eq!(listing, json!({ "version": 2, "next": null, "feeds": {} }));
}

/// What is answered to a request with these headers.
async fn ask(
    gateway: &Gateway,
    (method, path): (Method, &str),
    headers: &[(HeaderName, &str)],
) -> (StatusCode, HeaderMap, Vec<u8>) {
    let request = client().request(method, gateway.url(path));
    let request =
        headers.iter().fold(request, |request, (name, value)| request.header(name, *value));
    let answer = request.send().await.unwrap();
    let (status, headers) = (answer.status(), answer.headers().clone());
    (status, headers, answer.bytes().await.unwrap().to_vec())
}

#[tokio::test]
async fn who_has_a_view_is_told_so_and_who_can_is_sent_it_compressed() {
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[]).await;
    let types = [
        "text/x-opml; charset=utf-8",
        "text/html; charset=utf-8",
        "application/json; charset=utf-8",
        "application/json; charset=utf-8",
    ];
    for (path, media_type) in VIEWS.into_iter().zip(types) {
        let (status, headers, text) = ask(&gateway, (Method::GET, path), &[]).await;
        assert_eq!((status, headers[CONTENT_TYPE].to_str().unwrap()), (StatusCode::OK, media_type));
        // The tests ask from where the operator does, and may be shown more than others.
        assert_eq!(headers[CACHE_CONTROL], "private, max-age=60");
        let etag = headers[ETAG].to_str().unwrap();
        let modified = headers[LAST_MODIFIED].to_str().unwrap();
        let held = [(IF_NONE_MATCH, etag), (IF_MODIFIED_SINCE, modified)];
        for held in &held {
            let (status, again, body) =
                ask(&gateway, (Method::GET, path), std::slice::from_ref(held)).await;
            assert_eq!((status, body.len()), (StatusCode::NOT_MODIFIED, 0), "{path}: {held:?}");
            assert_eq!(again[ETAG], etag);
        }
        let (status, ..) = ask(&gateway, (Method::GET, path), &[(IF_NONE_MATCH, "\"x\"")]).await;
        assert_eq!(status, StatusCode::OK);

        let (_, head, body) = ask(&gateway, (Method::HEAD, path), &[]).await;
        assert_eq!((&head[ETAG], body.len()), (&headers[ETAG], 0));
        assert_eq!(head[CONTENT_LENGTH], text.len().to_string(), "{path}");

        let gzip = [(ACCEPT_ENCODING, "gzip")];
        let (_, headers, zipped) = ask(&gateway, (Method::GET, path), &gzip).await;
        assert_eq!(headers[CONTENT_ENCODING], "gzip");
        let mut unzipped = Vec::new();
        GzDecoder::new(&*zipped).read_to_end(&mut unzipped).unwrap();
        assert_eq!(unzipped, text);

        let (status, headers, _) = ask(&gateway, (Method::POST, path), &[]).await;
        assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(headers[ALLOW], "GET, HEAD, OPTIONS");
    }
}

#[tokio::test]
async fn an_operator_can_switch_the_views_off() {
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[]).await;
    let front = gateway.get("/").await.1;
    for path in VIEWS.into_iter().chain(["/log.json", "/viewLog"]) {
        assert!(front.contains(&gateway.url(path)), "{path} is not told of:\n{front}");
    }
    drop(gateway);
    let gateway = Gateway::start(&database, &[("FEEDGATE_PUBLIC_VIEWS", "off")]).await;
    let front = gateway.get("/").await.1;
    for path in VIEWS {
        let (status, why) = gateway.get(path).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        assert!(why.contains("FEEDGATE_PUBLIC_VIEWS"), "{why}");
        assert!(!front.contains(path), "{path} is told of");
    }
    assert!(front.contains("/log.json"));
}

/// Watches a topic, past all doors, and leaves it alone for a day.
async fn watch(database: &Database, topic: &str, title: &str) {
    let due = (runner::now() + chrono::TimeDelta::days(1)).timestamp_micros();
    let status = json!({ "title": title }).to_string().replace('\'', "''");
    database
        .run(&format!(
            "insert into resources (topic, fetch_url, host, kind, subscribers, next_fetch, due_at,
                                    measured_at, period_s, source_network)
             values ('{topic}', '{topic}', '', 'feed', 1, {due}, {due}, {due}, 86400, 1);
             insert into resource_details (resource_id, status, polling)
             select id, '{status}', '{{}}' from resources where topic = '{topic}'"
        ))
        .await;
}
