//! changes.xml, shortChanges.xml and the documents of single hours, as readers get them.

mod long;

use std::io::Read;

use chrono::{DateTime, TimeDelta, Utc};
use feedgate::jobs::runner;
use feedgate_core::ping::{HOUR, start_of_hour};
use feedgate_core::record::Seq;
use flate2::read::GzDecoder;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, ETAG, IF_MODIFIED_SINCE,
    IF_NONE_MATCH, LAST_MODIFIED, VARY,
};
use http::{HeaderMap, HeaderName, Method, StatusCode};

use crate::schemas::assert_valid;
use crate::support::feeds::{between, entry_id, rss};
use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;
use crate::support::server::client;
use crate::support::subscriber::Subscriber;
use crate::support::until;

/// What is said to this machine, which is in the operator's networks and sees more than others.
const FOREVER: &str = "private, max-age=31536000, immutable";

/// Behind a proxy on this machine, which says whom it speaks for.
const PROXIED: (&str, &str) = ("FEEDGATE_TRUSTED_PROXIES", "127.0.0.1");

/// Lists pings at these times, as if they had been received then.
async fn list(database: &Database, pings: &[(DateTime<Utc>, &str)]) {
    for (at, name) in pings {
        let micros = at.timestamp_micros();
        database
            .run(&format!(
                "insert into changes (at, source, name, url, feed_url)
                 values ({micros}, 'weblogs', '{name}', 'http://{name}.test/',
                         'http://{name}.test/rss')"
            ))
            .await;
    }
}

/// The path of the document of the hour that `at` lies in.
fn path_of(at: DateTime<Utc>) -> String {
    at.format("/%Y/%m/%d/%H.xml").to_string()
}

/// What is answered to a GET with these headers.
async fn get(
    gateway: &Gateway,
    path: &str,
    headers: &[(http::HeaderName, &str)],
) -> (StatusCode, HeaderMap, Vec<u8>) {
    let request = client().get(gateway.url(path));
    let request =
        headers.iter().fold(request, |request, (name, value)| request.header(name, *value));
    let answer = request.send().await.unwrap();
    let (status, headers) = (answer.status(), answer.headers().clone());
    (status, headers, answer.bytes().await.unwrap().to_vec())
}

/// The document of an hour that is over, once it is kept.
async fn kept(gateway: &Gateway, path: &str) -> String {
    let mut document = Vec::new();
    until("the hour is kept", async || {
        let (status, headers, text) = get(gateway, path, &[]).await;
        document = text;
        status == StatusCode::OK && headers[CACHE_CONTROL] == FOREVER
    })
    .await;
    String::from_utf8(document).unwrap()
}

/// Name and age of each line.
fn ages(document: &str) -> Vec<(String, u64)> {
    let lines = document.lines().filter(|line| line.contains("<weblog "));
    let ages = lines.map(|line| {
        let name = between(line, "name=\"", "\"").unwrap().to_owned();
        (name, between(line, "when=\"", "\"").unwrap().parse().unwrap())
    });
    ages.collect()
}

#[tokio::test]
async fn the_document_of_an_hour_never_changes_once_the_hour_is_over() {
    let database = Database::new(Kind::Sqlite).await;
    let hour = start_of_hour(runner::now() - TimeDelta::hours(30));
    let end = hour + HOUR;
    list(&database, &[(hour, "first"), (end - TimeDelta::seconds(90), "last")]).await;
    list(&database, &[(end, "next"), (hour - TimeDelta::microseconds(1), "before")]).await;
    let path = path_of(hour);
    let mut gateway = Gateway::start(&database, &[]).await;
    let document = kept(&gateway, &path).await;
    assert_eq!(ages(&document), [("last".to_owned(), 1), ("first".to_owned(), 60)]);
    let updated = end.format("%a, %d %b %Y %H:%M:%S GMT").to_string();
    assert_eq!(between(&document, "updated=\"", "\""), Some(updated.as_str()));
    assert_valid("changes.rng", &[("hour".to_owned(), document.clone())]);
    let seconds = kept(&gateway, &format!("{path}?when=seconds")).await;
    assert_eq!(ages(&seconds), [("last".to_owned(), 90), ("first".to_owned(), 3_600)]);

    // The next is kept as well, or whoever starts again finds it in another's hands.
    kept(&gateway, &path_of(end)).await;

    // Another setting, a line that comes late, names that are others now.
    gateway.kill();
    list(&database, &[(hour + TimeDelta::minutes(5), "late")]).await;
    database.run("update changes set name = 'other'").await;
    drop(gateway);
    let settings = [("FEEDGATE_CHANGES_WHEN_UNIT", "seconds"), ("FEEDGATE_PING_RETENTION_H", "2")];
    let gateway = Gateway::start(&database, &settings).await;
    assert_eq!(kept(&gateway, &path).await, document);
    database.run("delete from changes").await;
    assert_eq!(kept(&gateway, &path).await, document, "the lines themselves are forgotten");
    assert_eq!(ages(&kept(&gateway, &path_of(end)).await)[0].0, "next");
    let (status, headers, _) = get(&gateway, &path, &[]).await;
    assert_eq!(status, StatusCode::OK);
    let etag = headers[ETAG].to_str().unwrap();
    let (again, ..) = get(&gateway, &path, &[(IF_NONE_MATCH, etag)]).await;
    assert_eq!(again, StatusCode::NOT_MODIFIED);
}

#[tokio::test]
async fn there_is_a_document_for_every_hour_since_the_first_and_for_no_other() {
    let database = Database::new(Kind::Sqlite).await;
    let now = runner::now();
    let first = now - TimeDelta::hours(5);
    list(&database, &[(first, "first")]).await;
    let gateway = Gateway::start(&database, &[]).await;
    kept(&gateway, &path_of(first)).await;
    assert_eq!(ages(&kept(&gateway, &path_of(first + HOUR)).await), [], "nobody pinged");
    let (status, headers, text) = get(&gateway, &path_of(runner::now()), &[]).await;
    assert_eq!(
        (status, &headers[CACHE_CONTROL]),
        (StatusCode::OK, &"private, max-age=60".parse().unwrap())
    );
    assert_valid("changes.rng", &[("now".to_owned(), String::from_utf8(text).unwrap())]);
    let none = [path_of(first - HOUR), path_of(now + HOUR * 2), "/2026/02/30/00.xml".to_owned()];
    for path in none {
        assert_eq!(gateway.get(&path).await.0, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn changes_are_told_in_either_unit_and_for_as_long_as_is_asked() {
    let database = Database::new(Kind::Sqlite).await;
    let settings = [("FEEDGATE_CHANGES_WHEN_UNIT", "seconds")];
    let gateway = Gateway::start(&database, &settings).await;
    let ago = |seconds| runner::now() - TimeDelta::seconds(seconds);
    list(&database, &[(ago(3_000), "old"), (ago(600), "young"), (ago(100), "new")]).await;
    #[rustfmt::skip]
    let cases: [(&str, &[&str], u64); 6] = [
        ("/changes.xml",                       &["new", "young", "old"], 3_000),
        ("/changes.xml?when=minutes",          &["new", "young", "old"], 50),
        ("/changes.xml?last=700&when=minutes", &["new", "young"],        10),
        ("/shortChanges.xml",                  &["new"],                 100),
        ("/shortChanges.xml?last=9999",        &["new"],                 100),
        ("/changes.xml?last=0",                &[],                      0),
    ];
    for (path, names, oldest) in cases {
        let (_, text) = gateway.get(path).await;
        let ages = ages(&text);
        assert_eq!(ages.iter().map(|(name, _)| name).collect::<Vec<_>>(), names, "{path}");
        let age = ages.last().map_or(0, |(_, age)| *age);
        // The machine may be slow; a minute it is not.
        assert!((oldest..oldest + 60).contains(&age), "{path}: {age}");
    }
}

#[tokio::test]
async fn a_reader_who_has_it_is_told_so_and_one_who_can_is_sent_it_compressed() {
    let database = Database::new(Kind::Sqlite).await;
    list(&database, &[(runner::now(), "tides")]).await;
    let gateway = Gateway::start(&database, &[]).await;
    let (status, headers, text) = get(&gateway, "/changes.xml", &[]).await;
    assert_eq!(
        (status, &headers[VARY]),
        (StatusCode::OK, &"Accept, Accept-Encoding, Origin".parse().unwrap())
    );
    let (etag, modified) =
        (headers[ETAG].to_str().unwrap(), headers[LAST_MODIFIED].to_str().unwrap());
    #[rustfmt::skip]
    let cases = [
        ("the same",              [(IF_NONE_MATCH, etag), (IF_MODIFIED_SINCE, "x")],     StatusCode::NOT_MODIFIED),
        ("as young",              [(IF_MODIFIED_SINCE, modified), (VARY, "")],           StatusCode::NOT_MODIFIED),
        ("another, though young", [(IF_NONE_MATCH, "\"x\""), (IF_MODIFIED_SINCE, modified)], StatusCode::OK),
        ("older",                 [(IF_MODIFIED_SINCE, "Sat, 13 Jan 2007 19:08:00 GMT"), (VARY, "")], StatusCode::OK),
    ];
    for (why, headers, want) in cases {
        let (status, headers, body) = get(&gateway, "/changes.xml", &headers).await;
        assert_eq!((status, body.is_empty()), (want, want == StatusCode::NOT_MODIFIED), "{why}");
        assert_eq!(headers[ETAG], etag, "one printing for all: {why}");
    }
    let (_, headers, zipped) = get(&gateway, "/changes.xml", &[(ACCEPT_ENCODING, "gzip")]).await;
    assert_eq!(headers[CONTENT_ENCODING], "gzip");
    let mut unzipped = Vec::new();
    GzDecoder::new(&*zipped).read_to_end(&mut unzipped).unwrap();
    assert_eq!(unzipped, text);

    let head = client().request(Method::HEAD, gateway.url("/changes.xml")).send().await.unwrap();
    assert_eq!(head.headers()[CONTENT_LENGTH], text.len().to_string());

    list(&database, &[(runner::now(), "waves")]).await;
    let (status, ..) = get(&gateway, "/changes.xml", &[(IF_NONE_MATCH, etag)]).await;
    assert_eq!(status, StatusCode::OK, "a new line is seen at once");
}

#[tokio::test]
async fn an_hour_is_printed_for_who_has_not_got_it_and_once_for_all() {
    let database = Database::new(Kind::Sqlite).await;
    let hour = start_of_hour(runner::now() - TimeDelta::hours(30));
    list(&database, &[(hour, "first")]).await;
    let gateway = Gateway::start(&database, &[]).await;
    let path = path_of(hour);
    let document = kept(&gateway, &path).await;
    let (_, headers, _) = get(&gateway, &path, &[]).await;
    // What it says cannot be read any more.
    database.run("delete from change_hour_parts").await;
    assert_eq!(get(&gateway, &path, &[]).await.2, document.as_bytes(), "printed for all");
    let unprinted = format!("{path}?when=seconds");
    let head = client().request(Method::HEAD, gateway.url(&unprinted)).send().await.unwrap();
    assert_eq!((head.status(), head.headers().get(CONTENT_LENGTH)), (StatusCode::OK, None));
    let etag = head.headers()[ETAG].to_str().unwrap();
    assert_ne!(etag, headers[ETAG]);
    let (status, ..) = get(&gateway, &unprinted, &[(IF_NONE_MATCH, etag)]).await;
    assert_eq!(status, StatusCode::NOT_MODIFIED);
    assert_eq!(gateway.get(&unprinted).await.0, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn the_documents_agree_with_the_log() {
    const FEEDS: usize = 4;
    let publisher = Publisher::start().await;
    let subscriber = Subscriber::start().await;
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[]).await;
    let began = runner::now();
    for n in 0..FEEDS {
        let (path, back) = (format!("/feed/{n}"), format!("/cb/{n}"));
        publisher.put_rss(&path, rss(&format!("tides{n}"), 1..3));
        let (topic, callback) = (publisher.url(&path), subscriber.url(&back));
        gateway.subscribe_superfeedr(&topic, &callback, "atom").await;
        gateway.open_to_anonymous(&topic).await;
        gateway.archive_holds(&topic, &entry_id(&format!("tides{n}"), 2)).await;
        // Of half of them a ping tells, the others are due.
        publisher.put_rss(&path, rss(&format!("tides{n}"), 1..4));
        if n % 2 == 0 {
            let form = [("hub.mode", "publish"), ("hub.url", topic.as_str())];
            assert_eq!(gateway.post("/hub", &form).await.0, StatusCode::NO_CONTENT);
        } else {
            let due =
                format!("update resources set due_at = 1, next_fetch = 1 where topic = '{topic}'");
            database.run(&due).await;
        }
        subscriber.until(&back, |told| !told.is_empty()).await;
    }
    let store = database.open().await;
    let mut want = Vec::new();
    for n in 0..FEEDS {
        let topic = publisher.url(&format!("/feed/{n}"));
        let resource = store.find(&topic).await.unwrap().unwrap();
        let records = store.read_after(resource.id, Seq::NONE, 9).await.unwrap();
        assert_eq!(records.len(), 3, "two that were there, and one that came: {topic}");
        want.push(topic);
    }
    // The hour may have turned meanwhile.
    let hours = [path_of(began), path_of(runner::now())];
    let hours = if hours[0] == hours[1] { &hours[..1] } else { &hours[..] };
    let mut by_hour = String::new();
    for path in hours.iter().rev() {
        by_hour.push_str(&gateway.get(path).await.1);
    }
    let documents = [
        ("changes", gateway.get("/changes.xml").await.1),
        ("short", gateway.get("/shortChanges.xml").await.1),
        ("hour", by_hour),
    ];
    for (name, document) in documents {
        if hours.len() == 1 || name != "hour" {
            assert_valid("changes.rng", &[(name.to_owned(), document.clone())]);
        }
        let lines = document.lines().filter_map(|line| between(line, "rssUrl=\"", "\""));
        let mut listed: Vec<&str> = lines.collect();
        listed.sort_unstable();
        if hours.len() == 2 {
            listed.dedup(); // what was seen in an hour that is over stays listed there
        }
        assert_eq!(listed, want, "{name}: {document}");
        let ages: Vec<u64> = ages(&document).into_iter().map(|(_, age)| age).collect();
        assert!(hours.len() == 2 || ages.is_sorted(), "newest first: {ages:?}");
    }
}

#[tokio::test]
async fn t11_weblogs_at_inner_addresses_are_listed_for_the_operator_only() {
    const ANONYMOUS: (HeaderName, &str) = (HeaderName::from_static("x-forwarded-for"), "192.0.2.7");
    let database = Database::new(Kind::Sqlite).await;
    let now = runner::now();
    let an_hour_ago = now - TimeDelta::hours(3);
    list(&database, &[(now, "tides"), (an_hour_ago, "tides")]).await;
    for at in [now, an_hour_ago] {
        let at = at.timestamp_micros();
        for (url, feed) in [
            ("http://10.0.0.7/", "null"),
            ("http://intranet/", "null"),
            ("http://open.test/", "'http://printer.local/rss'"),
        ] {
            let row = format!("({at}, 'weblogs', 'inner', '{url}', {feed})");
            let columns = "(at, source, name, url, feed_url)";
            database.run(&format!("insert into changes {columns} values {row}")).await;
        }
    }
    let gateway = Gateway::start(&database, &[PROXIED]).await;
    let hour = path_of(an_hour_ago);
    kept(&gateway, &hour).await;
    for (path, age) in [("/changes.xml", "max-age=60"), (&hour, "max-age=31536000, immutable")] {
        let (_, own, inside) = get(&gateway, path, &[]).await;
        let (_, headers, outside) = get(&gateway, path, &[ANONYMOUS]).await;
        let (inside, outside) = (String::from_utf8(inside), String::from_utf8(outside));
        assert_eq!(inside.unwrap().matches("<weblog ").count(), 4, "{path}");
        let outside = outside.unwrap();
        assert_eq!(outside.matches("<weblog ").count(), 1, "{path}: {outside}");
        assert!(outside.contains("http://tides.test/"), "{path}: {outside}");
        assert_ne!(headers[ETAG], own[ETAG], "{path}");
        assert_eq!(headers[CACHE_CONTROL], format!("public, {age}"), "{path}");
        assert_eq!(headers[VARY], "Accept, Accept-Encoding", "{path}");
    }
}
