//! What is no feed, and parts of it: what counts as a change of it, and what is kept.

use chrono::{DateTime, TimeDelta, Utc};
use feedgate::jobs::runner;
use feedgate::net::Patience;
use feedgate_core::claim::ClaimToken;
use feedgate_core::poll::Trigger;
use feedgate_core::record::Seq;
use feedgate_core::resource::{Resource, ResourceKind};
use feedgate_core::store::DueResource;
use feedgate_core::subscription::Format;

use super::{Bench, on_both_stores, on_one_store};
use crate::support::feeds::rss;
use crate::support::postgres::Database;

on_both_stores!(
    a_part_that_is_not_there_is_a_status_and_no_storm,
    who_waits_for_a_part_is_told_when_it_appears,
);

on_one_store!(
    n12_a_part_of_a_page_is_news_when_it_says_something_else,
    n12_json_is_compared_by_its_values,
    parts_of_one_document_are_fetched_as_often_as_one,
    p50_a_feed_is_one_whatever_its_label,
    p52_a_page_tells_its_feeds_and_one_in_the_place_of_a_feed_tells_nothing,
    an_anchor_behind_the_address_of_a_feed_is_no_part,
);

const HTML: &str = "text/html; charset=utf-8";

/// A page that is never twice the same around what `entries` holds.
fn page(nonce: usize, entries: &str) -> String {
    format!(
        "<!doctype html><meta name=csrf-token content=t{nonce}><!-- {nonce} --><p>{nonce} readers\
         <script nonce=n{nonce}>now={nonce}</script><main>{entries}</main>"
    )
}

impl Bench {
    /// The newest body of a resource, with its content type and version.
    async fn body(&self, resource: &Resource) -> (i64, String, String) {
        let (version, body) = self.store.body(resource.id).await.unwrap().unwrap();
        (version, body.content_type.unwrap(), String::from_utf8(body.bytes).unwrap())
    }

    /// Polls as the schedule does, at that time.
    async fn poll_at(&self, url: &str, at: DateTime<Utc>) -> Resource {
        let topic = feedgate_core::topic::Topic::parse(url).unwrap();
        let resource = self.store.ensure(&topic, at).await.unwrap();
        let id = resource.id;
        let (claim, trigger) = (ClaimToken::NONE, Trigger::Schedule);
        let due = DueResource { resource, claim, trigger };
        self.ingest.poll(&due, at, Patience::Background).await.unwrap();
        self.store.get(id).await.unwrap().unwrap()
    }
}

async fn n12_a_part_of_a_page_is_news_when_it_says_something_else(database: Database) {
    let bench = Bench::start(&database).await;
    let (one, other) = ("<p class=h-entry>One</p>", "<p class=h-entry>Two</p>");
    let two = format!("{one}<hr>{other}");
    #[rustfmt::skip]
    let steps = [
        ("at first",                       one,                                   1),
        ("something around it changed",    one,                                   1),
        ("white space in it changed",      "<p   class='h-entry'>\n  One  </p>",   1),
        ("another is there as well",       &two,                                  2),
        ("the first is back",              one,                                   3),
        ("and the other once more",        other,                                 4),
    ];
    for (nonce, (why, entries, head)) in steps.into_iter().enumerate() {
        bench.publisher.put("/", HTML, page(nonce, entries));
        let resource = bench.poll("/#.h-entry").await;
        assert_eq!((resource.kind, resource.head), (ResourceKind::Other, Seq(head)), "{why}");
        assert_eq!(resource.body_version, head, "{why}");
        if nonce == 3 {
            let sent = "<p class=\"h-entry\">One</p><p class=\"h-entry\">Two</p>";
            assert_eq!(bench.body(&resource).await, (2, HTML.to_owned(), sent.to_owned()));
        }
    }
    let whole = bench.poll("/").await;
    assert_eq!(bench.body(&whole).await.2, page(5, other), "the whole goes out as it came");
}

async fn n12_json_is_compared_by_its_values(database: Database) {
    let bench = Bench::start(&database).await;
    #[rustfmt::skip]
    let steps = [
        (r#"{"at": 1, "bike": {"price": 19.95, "color": "red"}}"#,           (1, 1)),
        (r#"{"at":1,"bike":{"color":"red","price":19.95}}"#,                 (1, 1)),
        (r#"{"at": 2, "bike": {"price": 19.95, "color": "red"}}"#,           (2, 1)),
        (r#"{"at": 2, "bike": {"price": 9.95, "color": "red"}}"#,            (3, 2)),
        (r#"{"at": 2, "bike": {"price": 19.95, "color": "red"}}"#,           (4, 3)),
    ];
    for (json, heads) in steps {
        bench.publisher.put("/data", "application/json", json);
        let whole = bench.poll("/data").await;
        let part = bench.poll("/data#%24.bike.price").await;
        assert_eq!((whole.head.0, part.head.0), heads, "{json}");
    }
    let part = bench.poll("/data#%24.bike.price").await;
    assert_eq!(bench.body(&part).await, (3, "application/json".to_owned(), "19.95".to_owned()));
    let request = bench.publisher.fetches("/data");
    assert!(
        request.iter().all(|fetch| !fetch.request.path.contains('#')),
        "a fragment is not sent"
    );
}

async fn a_part_that_is_not_there_is_a_status_and_no_storm(database: Database) {
    let bench = Bench::start(&database).await;
    let alert = "<p id=alert>Gale</p>";
    bench.publisher.put("/", HTML, page(0, alert));
    let well = bench.poll("/#%23alert").await;
    assert_eq!((well.head, well.status.error.as_str()), (Seq(1), ""));

    bench.publisher.put("/", HTML, page(1, ""));
    let lacking = bench.poll("/#%23alert").await;
    assert_eq!(lacking.status.error, "fragment_not_found");
    assert_eq!(lacking.status.http_code, 200);
    assert_eq!(lacking.status.http_message, "nothing in an HTML page matches #alert");
    assert_eq!(lacking.status.version, well.status.version + 1);
    let period = well.status.period_s..=2 * well.status.period_s;
    for _ in 0..4 {
        let still = bench.poll("/#%23alert").await;
        assert_eq!((still.head, still.status.error.as_str()), (Seq(1), "fragment_not_found"));
        assert_eq!(still.status.version, lacking.status.version, "one transition, not one a poll");
        assert!(period.contains(&still.status.period_s), "no ladder: {}", still.status.period_s);
    }
    let codes = bench.publisher.fetches("/").into_iter().map(|fetch| fetch.status.as_u16());
    assert_eq!(codes.last(), Some(304), "the page is not fetched whole each time");

    bench.publisher.put("/", HTML, page(2, alert));
    let back = bench.poll("/#%23alert").await;
    assert_eq!((back.head, back.status.error.as_str()), (Seq(1), ""), "as it was: no news");
    assert_eq!(back.status.version, lacking.status.version + 1);
    bench.publisher.put("/", HTML, page(2, "<p id=alert>Storm</p>"));
    assert_eq!(bench.poll("/#%23alert").await.head, Seq(2));
}

async fn who_waits_for_a_part_is_told_when_it_appears(database: Database) {
    let bench = Bench::start(&database).await;
    bench.publisher.put("/", HTML, page(0, ""));
    bench.subscribe("/#aside", Format::Raw).await;
    bench.subscribe("/#aside", Format::Fitting).await;
    let resource = bench.poll("/#aside").await;
    assert_eq!((resource.kind, resource.body_version), (ResourceKind::Other, 0));
    assert_eq!(bench.owed().await, []);
    bench.publisher.put("/", HTML, page(0, "<aside>Gale</aside>"));
    bench.poll("/#aside").await;
    assert_eq!(bench.owed().await, [(0, 1), (0, 1)]);
}

async fn parts_of_one_document_are_fetched_as_often_as_one(database: Database) {
    let bench = Bench::start(&database).await;
    bench.publisher.put("/", HTML, page(0, "<p id=a>1<p id=b>1<p id=c>1"));
    let urls = ["#%23a", "#%23b", "#%23c"].map(|part| bench.publisher.url(&format!("/{part}")));
    let begun = runner::now();
    let mut due: Vec<(DateTime<Utc>, &String)> =
        urls.iter().zip([0, 20, 40]).map(|(url, s)| (begun + TimeDelta::seconds(s), url)).collect();
    let mut period = TimeDelta::zero();
    for round in 0..60 {
        due.sort();
        let (at, url) = due[0];
        if round == 30 {
            bench.publisher.put("/", HTML, page(0, "<p id=a>2<p id=b>2<p id=c>2"));
        }
        let resource = bench.poll_at(url, at).await;
        period = TimeDelta::seconds(resource.status.period_s.into());
        due[0].0 = resource.next_fetch;
    }
    let spent = (due[0].0 - begun).num_seconds();
    let fetches = i64::try_from(bench.publisher.fetches("/").len()).unwrap();
    let most = spent * 100 / (90 * period.num_seconds()).max(1) + 3;
    assert!(fetches <= most, "{fetches} fetches in {spent} s, one in {} s", period.num_seconds());
    for url in &urls {
        let topic = bench.store.find(url).await.unwrap().unwrap();
        assert_eq!(topic.head, Seq(2), "and each was told of the change: {url}");
    }
}

async fn p50_a_feed_is_one_whatever_its_label(database: Database) {
    let bench = Bench::start(&database).await;
    for label in ["text/html", "text/plain", "application/json", "image/png"] {
        let path = format!("/{}", label.replace('/', "-"));
        bench.publisher.put(&path, label, rss("tides", 1..=2));
        let resource = bench.poll(&path).await;
        assert_eq!((resource.kind, resource.head), (ResourceKind::Feed, Seq(2)), "{label}");
    }
    bench.publisher.put("/page", "application/rss+xml", "<html><body><p>Hello");
    assert_eq!(bench.poll("/page").await.kind, ResourceKind::Other);
}

async fn p52_a_page_tells_its_feeds_and_one_in_the_place_of_a_feed_tells_nothing(
    database: Database,
) {
    let bench = Bench::start(&database).await;
    let blog = "<html><head><link rel=alternate type=application/rss+xml title=Tides href=/feed>\
                </head><body><p>Hello";
    bench.publisher.put("/", HTML, blog);
    bench.publisher.put_rss("/feed", rss("tides", 1..=1));
    let page = bench.poll("/").await;
    let feed = bench.poll("/feed").await;
    assert_eq!(page.kind, ResourceKind::Other, "the topic is not swapped");
    let offers: Vec<_> = page.polling.offers.iter().map(|offer| offer.href.as_str()).collect();
    assert_eq!(offers, [feed.topic.as_str()]);
    let told = format!("the page links to a feed: {}", feed.topic.as_str());
    assert!(page.status.http_message.ends_with(&told), "{}", page.status.http_message);
    let again = bench.poll("/").await;
    assert_eq!(again.status.http_code, 304);
    assert!(again.status.http_message.ends_with(&told), "{}", again.status.http_message);

    bench.publisher.put("/feed", HTML, blog);
    let feed = bench.poll("/feed").await;
    assert_eq!(feed.status.error, "not_a_feed");
    assert_eq!((feed.kind, feed.head, feed.polling.offers.len()), (ResourceKind::Feed, Seq(1), 0));
}

async fn an_anchor_behind_the_address_of_a_feed_is_no_part(database: Database) {
    let bench = Bench::start(&database).await;
    bench.publisher.put_rss("/feed", rss("tides", 1..=2));
    let anchor = bench.poll("/feed#top").await;
    assert_eq!((anchor.kind, anchor.head), (ResourceKind::Feed, Seq(2)));
    let part = bench.poll("/feed#item > title").await;
    assert_eq!((part.kind, part.head), (ResourceKind::Other, Seq(1)));
    let (_, content_type, titles) = bench.body(&part).await;
    assert!(content_type.ends_with("xml; charset=utf-8"), "{content_type}");
    assert_eq!(titles.matches("<title>").count(), 2, "{titles}");
}
