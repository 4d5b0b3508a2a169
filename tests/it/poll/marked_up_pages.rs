//! Pages that are read as feeds because of what they state: an article that is edited, and a page that ceases
//! to state entries.

use std::time::Duration;

use chrono::TimeDelta;
use feedgate::jobs::runner;
use feedgate_core::poll::Polling;
use feedgate_core::record::{RecordKind, Seq};
use feedgate_core::resource::{Resource, ResourceKind};
use feedgate_core::subscription::Format;
use feedgate_core::topic::{Callback, Topic};

use super::Bench;
use crate::store::on_both_stores;
use crate::support::postgres::Database;

on_both_stores!(
    an_edited_article_is_sent_to_all_subscribers,
    a_page_that_states_no_entries_any_more_is_a_document_again,
    a_page_that_stands_in_for_another_is_a_failure_and_never_sent,
);

const HTML: &str = "text/html; charset=utf-8";

/// The page of an article with this JSON-LD, and whatever else is in its head and body.
fn article(json: &str, head: &str, body: &str) -> String {
    let script = format!(r#"<script type="application/ld+json">{json}</script>"#);
    format!("<!doctype html><title>Ebb</title>{head}{script}<body><p>{body}")
}

async fn an_edited_article_is_sent_to_all_subscribers(database: Database) {
    let bench = Bench::start(&database).await;
    let stated = |field: &str| format!(r#"{{"@type": "Article", "headline": "Ebb", {field}}}"#);
    let json = |field: &str| article(&stated(field), "", "Text");
    let h_entry = |text: &str| {
        format!(
            "<!doctype html><title>Ebb</title><div class=h-entry><h1 class=p-name>Ebb</h1>\
             <div class=e-content>{text}</div></div>"
        )
    };
    let listed = |text: &str| {
        let post = |n, text| stated(&format!(r#""url": "/{n}", "articleBody": "{text}""#));
        let posts = format!("[{}, {}]", post(1, text), post(2, "Flood"));
        article(&format!(r#"{{"@type": "Blog", "blogPost": {posts}}}"#), "", "Text")
    };
    let cases = [
        ("/text", json(r#""articleBody": "Low""#), json(r#""articleBody": "High""#), true),
        ("/h-entry", h_entry("Low"), h_entry("High"), true),
        ("/one-of-several", listed("Low"), listed("High"), false),
    ];
    for (path, before, after, is_sent) in cases {
        bench.subscribe(path, Format::Atom).await;
        bench.publisher.put(path, HTML, before.clone());
        let first = bench.poll(path).await;
        assert_eq!(first.kind, ResourceKind::Feed, "{path}");
        let head = first.head.0;
        bench.publisher.put(path, HTML, format!("{before} "));
        assert_eq!(bench.poll(path).await.head, Seq(head), "{path}: nothing has changed");

        bench.publisher.put(path, HTML, after);
        let edited = bench.poll(path).await;
        assert_eq!(edited.head, Seq(head + 1), "{path}");
        let records = bench.store.read_after(edited.id, Seq(head), 10).await.unwrap();
        assert_eq!(records[0].kind, RecordKind::Update, "{path}: its id stays");
        let owed = if is_sent { vec![(head, head + 1)] } else { Vec::new() };
        assert_eq!(bench.owed().await, owed, "{path}");
        unsubscribe(&bench, path).await;
    }
}

async fn unsubscribe(bench: &Bench, path: &str) {
    let topic = Topic::parse(bench.publisher.url(path)).unwrap();
    let callback = Callback::parse("https://b.test/atom").unwrap();
    assert!(bench.store.unsubscribe(None, &topic, &callback, None).await.unwrap());
}

/// An article that is read as a feed, and has a subscription.
async fn watched_article(bench: &Bench, path: &str) -> Resource {
    let json = r#"{"@type": "Article", "headline": "Ebb", "articleBody": "Low"}"#;
    bench.publisher.put(path, HTML, article(json, "", "Low"));
    bench.subscribe(path, Format::Atom).await;
    let resource = bench.poll(path).await;
    assert_eq!((resource.kind, resource.polling.format.as_str()), (ResourceKind::Feed, "jsonld"));
    resource
}

async fn a_page_that_states_no_entries_any_more_is_a_document_again(database: Database) {
    let bench = Bench::start(&database).await;
    let json = r#"{"@type": "Article", "headline": "Ebb", "articleBody": "Low"}"#;
    let advertised = "<link rel=alternate type='application/rss+xml' href=/feed>";
    let cases = [
        ("/markup-alone-is-gone", article("{}", "", "Low"), false),
        ("/text-has-changed-too", article("{}", "", "High"), true),
        ("/a-feed-is-advertised", article(json, advertised, "Low"), true),
    ];
    for (path, page, is_sent) in cases {
        watched_article(&bench, path).await;
        bench.publisher.put(path, HTML, page);
        let document = polled_for_two_days(&bench, &database, path).await;
        assert_eq!((document.kind, document.status.error.as_str()), (ResourceKind::Other, ""));
        assert_eq!(document.head, Seq(2), "{path}");
        let owed = if is_sent { vec![(1, 2)] } else { Vec::new() };
        assert_eq!(bench.owed().await, owed, "{path}");
        unsubscribe(&bench, path).await;
    }
    watched_article(&bench, "/ebb").await;
    bench.publisher.put("/ebb", HTML, article("{}", "", "Low"));
    polled_for_two_days(&bench, &database, "/ebb").await;
    bench.publisher.put("/ebb", HTML, article(json, "", "High"));
    let changed = bench.poll("/ebb").await;
    assert_eq!((changed.kind, changed.head), (ResourceKind::Other, Seq(3)), "it stays a document");
    assert_eq!(bench.owed().await, [(2, 3)]);
}

/// Polls a page that states no entries any more until it has been so for two days: the polls before are
/// failures, and store nothing.
async fn polled_for_two_days(bench: &Bench, database: &Database, path: &str) -> Resource {
    let failing = bench.poll(path).await;
    assert_eq!((failing.kind, failing.head), (ResourceKind::Feed, Seq(1)), "{path}");
    assert_eq!(failing.status.error, "not_a_feed");
    let id = failing.id.0;
    let held = database
        .texts(&format!("select polling from resource_details where resource_id = {id}"))
        .await;
    let mut polling: Polling = serde_json::from_str(&held[0]).unwrap();
    polling.failures = 3;
    polling.failing_since = polling.failing_since.map(|since| since - TimeDelta::hours(49));
    let polling = serde_json::to_string(&polling).unwrap().replace('\'', "''");
    database
        .run(&format!("update resource_details set polling = '{polling}' where resource_id = {id}"))
        .await;
    bench.poll(path).await
}

async fn a_page_that_stands_in_for_another_is_a_failure_and_never_sent(database: Database) {
    let bench = Bench::start(&database).await;
    let login = "<!doctype html><title>Ebb</title><form><input type=password></form>";
    let stand_ins = [
        (HTML, login, "it asks for a password"),
        (HTML, "<!doctype html><title>Maintenance</title><p>Back soon", "it has another title"),
        ("application/json", r#"{"error": "no session"}"#, "not a feed"),
    ];
    let before = watched_article(&bench, "/ebb").await;
    for (label, body, why) in stand_ins {
        bench.publisher.put("/ebb", label, body);
        let failing = bench.poll("/ebb").await;
        assert_eq!(failing.status.error, "not_a_feed");
        assert!(failing.status.http_message.contains(why), "{}", failing.status.http_message);
        assert_eq!((failing.kind, failing.head), (ResourceKind::Feed, Seq(1)));
        assert_eq!(failing.body_version, before.body_version, "it is not stored");
        assert_eq!(failing.polling.validators, before.polling.validators, "rule P7");
        let soon = runner::now() + Duration::from_secs(7 * 3_600);
        assert!(failing.next_fetch < soon, "rule P31: within six hours");
    }
    assert_eq!(bench.owed().await, []);

    let json = r#"{"@type": "Article", "headline": "Ebb", "articleBody": "High"}"#;
    bench.publisher.put("/ebb", HTML, article(json, "", "High"));
    let back = bench.poll("/ebb").await;
    assert_eq!((back.kind, back.status.error.as_str()), (ResourceKind::Feed, ""));
    assert_eq!(bench.owed().await, [(1, 2)], "what has changed meanwhile");
}
