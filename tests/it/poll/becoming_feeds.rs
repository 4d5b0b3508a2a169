//! Documents that become feeds: because their publishers replace them, or because a new version of this
//! program has learnt to read them.

use chrono::TimeDelta;
use feedgate::jobs::runner;
use feedgate_core::record::Seq;
use feedgate_core::resource::{Resource, ResourceKind};
use feedgate_core::subscription::Format;
use feedgate_core::topic::{Callback, Topic};

use super::Bench;
use crate::store::on_both_stores;
use crate::support::postgres::{Database, Kind};

on_both_stores!(
    a_page_that_is_watched_stays_a_document_as_long_as_its_subscription,
    what_is_dated_after_the_last_change_of_a_document_is_sent_when_it_becomes_a_feed,
    what_was_in_a_document_is_not_sent_when_this_program_learns_to_read_it,
);

const HTML: &str = "text/html; charset=utf-8";

/// A page that describes these posts.
fn page(numbers: std::ops::RangeInclusive<usize>) -> String {
    let post = |n| format!(r#"{{"@type": "BlogPosting", "headline": "Item {n}", "url": "/{n}"}}"#);
    let posts: Vec<String> = numbers.map(post).collect();
    format!(
        "<!doctype html><title>Tides</title><script type='application/ld+json'>[{}]</script><p>{}",
        posts.join(","),
        posts.len()
    )
}

/// A sitemap of these pages, without dates.
fn sitemap(numbers: std::ops::RangeInclusive<usize>) -> String {
    let page = |n| format!("<url><loc>https://tides.test/{n}</loc></url>");
    format!("<?xml version='1.0'?><urlset>{}</urlset>", numbers.map(page).collect::<String>())
}

/// The entries of a feed that are sent, by the end of their ids; those that are old are not.
async fn sent(database: &Database, resource: &Resource) -> Vec<String> {
    let id = resource.id.0;
    let sql = format!(
        "select entry_id from records where resource_id = {id} and audience > 0 order by seq"
    );
    let ids = database.texts(&sql).await.into_iter();
    ids.filter(|id| !id.starts_with("urn:sha256:"))
        .map(|id| id.rsplit(['/', ':']).next().unwrap().to_owned())
        .collect()
}

async fn a_page_that_is_watched_stays_a_document_as_long_as_its_subscription(database: Database) {
    let bench = Bench::start(&database).await;
    bench.publisher.put("/", HTML, "<!doctype html><title>Tides</title><p>Nothing yet");
    bench.poll("/").await;
    bench.subscribe("/", Format::Atom).await;
    for (heads, count) in [(2, 1), (3, 2)] {
        bench.publisher.put("/", HTML, page(1..=count));
        let watched = bench.poll("/").await;
        assert_eq!((watched.kind, watched.head), (ResourceKind::Other, Seq(heads)));
    }
    assert_eq!(bench.owed().await, [(1, 3)], "each change of the document is sent");

    let topic = Topic::parse(bench.publisher.url("/")).unwrap();
    let callback = Callback::parse("https://b.test/atom").unwrap();
    assert!(bench.store.unsubscribe(None, &topic, &callback, None).await.unwrap());
    bench.publisher.put("/", HTML, page(1..=2).replace("Tides", "Tide"));
    let read_anew = bench.poll("/").await;
    assert_eq!((read_anew.kind, read_anew.polling.format.as_str()), (ResourceKind::Feed, "jsonld"));
    let mut stored = sent(&database, &read_anew).await;
    stored.sort_unstable();
    assert_eq!(stored, ["1", "2"], "they are those of a first document");
    bench.subscribe("/", Format::Atom).await;
    bench.publisher.put("/", HTML, page(1..=3));
    let feed = bench.poll("/").await;
    assert_eq!((feed.kind, feed.head.0), (ResourceKind::Feed, read_anew.head.0 + 1));
    assert_eq!(bench.owed().await, [(read_anew.head.0, feed.head.0)]);
}

async fn what_is_dated_after_the_last_change_of_a_document_is_sent_when_it_becomes_a_feed(
    database: Database,
) {
    let bench = Bench::start(&database).await;
    bench.publisher.put("/feed", HTML, "<!doctype html><p>We are moving");
    bench.poll("/feed").await;
    bench.subscribe("/feed", Format::Atom).await;
    bench.subscribe("/feed", Format::Raw).await;
    let item = |name: &str, date: Option<i64>| {
        let date = date.map(|minutes| (runner::now() + TimeDelta::minutes(minutes)).to_rfc2822());
        let date = date.map(|date| format!("<pubDate>{date}</pubDate>")).unwrap_or_default();
        format!("<item><guid>urn:x:{name}</guid><title>{name}</title>{date}</item>")
    };
    let items = [item("new", Some(5)), item("undated", None), item("old", Some(-60))].concat();
    let feed = format!("<rss version='2.0'><channel><title>Tides</title>{items}</channel></rss>");
    bench.publisher.put_rss("/feed", feed);
    let resource = bench.poll("/feed").await;
    assert_eq!((resource.kind, resource.head), (ResourceKind::Feed, Seq(4)));
    assert_eq!(sent(&database, &resource).await, ["new"]);
    let mut owed = bench.owed().await;
    owed.sort_unstable();
    assert_eq!(owed, [(1, 2), (1, 4)], "the second body, and an entry");
}

async fn what_was_in_a_document_is_not_sent_when_this_program_learns_to_read_it(
    database: Database,
) {
    let bench = Bench::start(&database).await;
    bench.publisher.put("/sitemap.xml", "application/xml", "<urls/>");
    let document = bench.poll("/sitemap.xml").await;
    assert_eq!(document.kind, ResourceKind::Other);
    bench.subscribe("/sitemap.xml", Format::Json).await;
    // An earlier version stored a sitemap as a document.
    let stored = hex::encode(sitemap(1..=2));
    let bytes = match database.kind() {
        Kind::Sqlite => format!("X'{stored}'"),
        Kind::Postgres => format!("decode('{stored}', 'hex')"),
    };
    let id = document.id.0;
    database.run(&format!("update bodies set bytes = {bytes} where resource_id = {id}")).await;

    bench.publisher.put("/sitemap.xml", "application/xml", sitemap(1..=4));
    let feed = bench.poll("/sitemap.xml").await;
    assert_eq!((feed.kind, feed.head), (ResourceKind::Feed, Seq(5)));
    let mut ids = sent(&database, &feed).await;
    ids.sort_unstable();
    assert_eq!(ids, ["3", "4"]);
    assert_eq!(bench.owed().await, [(1, 5)]);
}
