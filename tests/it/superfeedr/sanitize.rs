//! Sanitized texts for those who ask for them (rule S22): scripts of a feed reach nobody else.

use std::fmt::Write;

use http::StatusCode;
use http::header::{CONTENT_TYPE, ETAG};

use super::World;
use super::streams::EVENTS;
use crate::store::on_both_stores;
use crate::support::feeds::entry_id;
use crate::support::gateway::Gateway;
use crate::support::postgres::Database;
use crate::support::subscriber::Subscriber;

on_both_stores!(
    s22_a_subscription_chooses_whether_its_entries_are_sanitized,
    s22_a_page_that_is_sanitized_becomes_an_entry,
);

/// What could act in a page, in all forms of the items and of the head.
const ACTIVE: [&str; 4] = ["alert(", "onclick", "iframe", "evil.test"];

/// A feed with scripts in its head and in the items 1 to `items`.
fn hostile_rss(items: usize) -> String {
    let mut feed =
        "<rss version=\"2.0\"><channel><title>tides</title><link>https://tides.test/</link>\
         <description><![CDATA[<b>About</b> tides<script>alert(0)</script>]]></description>"
            .to_owned();
    for n in (1..=items).rev() {
        let id = entry_id("tides", n);
        write!(
            feed,
            "<item><title>Item {n}</title><guid isPermaLink=\"false\">{id}</guid>\
             <description><![CDATA[<p onclick=\"alert({n})\">Safe text {n}</p>\
             <script>alert({n})</script><iframe src=\"https://evil.test/\"></iframe>]]>\
             </description></item>"
        )
        .unwrap();
    }
    feed + "</channel></rss>"
}

/// A callback, the further parameters of its subscription, and whether it is sent sanitized texts.
type Wanted<'a> = (&'a str, &'a [(&'a str, &'a str)], bool);

/// Checks that item `n` is in `text`, and what could act only if `is_sanitized` is false.
fn assert_item(text: &str, n: usize, is_sanitized: bool) {
    assert!(text.contains(&format!("Safe text {n}")), "{text}");
    for active in ACTIVE {
        assert_eq!(text.contains(active), !is_sanitized, "{active} in {text}");
    }
}

/// Subscribes to the topic with further parameters.
async fn subscribe(world: &World, path: &str, further: &[(&str, &str)]) -> (StatusCode, String) {
    let callback = world.subscriber.url(path);
    let own = [
        ("hub.mode", "subscribe"),
        ("hub.topic", world.topic.as_str()),
        ("hub.callback", callback.as_str()),
    ];
    world.gateway.superfeedr(&[&own, further].concat()).await
}

/// Waits for the notification with item `n`, and returns its text.
async fn notification(subscriber: &Subscriber, path: &str, n: usize) -> String {
    let newest = format!("Safe text {n}");
    subscriber.until(path, |all| all.iter().any(|one| one.text().contains(&newest))).await;
    let all = subscriber.notified(path);
    all.iter().rev().map(|one| one.text()).find(|text| text.contains(&newest)).unwrap()
}

/// Which subscriptions are listed as sanitized, by the paths of their callbacks.
async fn listed(world: &World) -> Vec<(String, bool)> {
    let query = [("hub.mode", "list")];
    let list = world.ask(http::Method::GET, &query, &[]).await.json();
    let mut listed = Vec::new();
    for one in list.as_array().unwrap() {
        let one = &one["subscription"];
        let path = one["endpoint"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        listed.push((path, one["sanitize"].as_bool().unwrap()));
    }
    listed.sort();
    listed
}

async fn s22_a_subscription_chooses_whether_its_entries_are_sanitized(database: Database) {
    let gateway = Gateway::start(&database, &[]).await;
    let world = World::on(database, gateway).await;
    world.publisher.put_rss("/feed", hostile_rss(2));
    let requests: [Wanted<'_>; 4] = [
        ("/atom", &[("format", "atom"), ("sanitize", "true")], true),
        ("/json", &[("format", "json"), ("sanitize", "true")], true),
        ("/plain", &[("format", "atom"), ("sanitize", "false")], false),
        ("/plain-json", &[("format", "json")], false),
    ];
    for (path, further, is_sanitized) in requests {
        let answer = subscribe(&world, path, &[further, &[("retrieve", "true")]].concat()).await;
        assert_eq!(answer.0, StatusCode::OK, "{}", answer.1);
        assert_item(&answer.1, 2, is_sanitized);
    }
    let flags = [("atom", true), ("json", true), ("plain", false), ("plain-json", false)];
    assert_eq!(listed(&world).await, flags.map(|(path, flag)| (path.to_owned(), flag)));

    let mut stream = world.open(&[("count", "1"), ("sanitize", "true")], &[EVENTS]).await;
    assert_item(&stream.event().await.1, 2, true);
    let mut untouched = world.open(&[("count", "1")], &[EVENTS]).await;
    assert_item(&untouched.event().await.1, 2, false);

    // All are owed the same records at the same time.
    world.publisher.put_rss("/feed", hostile_rss(3));
    world.gateway.post("/ping", &[("url", &world.topic)]).await;
    for (path, _, is_sanitized) in requests {
        assert_item(&notification(&world.subscriber, path, 3).await, 3, is_sanitized);
    }
    assert_item(&stream.event().await.1, 3, true);
    assert_item(&untouched.event().await.1, 3, false);

    retrieve_and_replay(&world).await;
    refused(&world).await;
    let renewed = subscribe(&world, "/json", &[("format", "json")]).await;
    assert_eq!(renewed.0, StatusCode::NO_CONTENT, "{}", renewed.1);
    assert_eq!(listed(&world).await[1], ("json".to_owned(), false), "a renewal chooses again");

    // The choice is kept until the callback is verified.
    let later = [("sanitize", "true"), ("hub.verify", "async")];
    assert_eq!(subscribe(&world, "/verified", &later).await.0, StatusCode::ACCEPTED);
    world.subscriber.verified("/verified", 1).await;
    world.gateway.comes_to_rest().await;
    assert!(listed(&world).await.contains(&("verified".to_owned(), true)));
}

async fn retrieve_and_replay(world: &World) {
    let mut etags = Vec::new();
    for format in ["atom", "json"] {
        for (sanitize, is_sanitized) in [("true", true), ("false", false)] {
            let got = world.retrieve(&[("format", format), ("sanitize", sanitize)]).await;
            assert_eq!(got.status, StatusCode::OK, "{}", got.text);
            assert_item(&got.text, 1, is_sanitized);
            etags.push(got.header(ETAG).to_owned());
        }
    }
    etags.dedup();
    assert_eq!(etags.len(), 4, "each has an entity tag of its own: {etags:?}");
    let callback = world.subscriber.url("/atom");
    let all = [("hub.mode", "retrieve"), ("hub.callback", callback.as_str()), ("sanitize", "1")];
    let combined = world.ask(http::Method::GET, &all, &[]).await;
    assert_item(&combined.text, 1, true);

    let replay = [
        ("hub.mode", "replay"),
        ("hub.topic", world.topic.as_str()),
        ("hub.callback", callback.as_str()),
        ("count", "3"),
    ];
    assert_eq!(world.gateway.superfeedr(&replay).await.0, StatusCode::NO_CONTENT);
    assert_item(&notification(&world.subscriber, "/atom", 1).await, 1, true);
}

/// Values that are rejected by the name of the parameter.
async fn refused(world: &World) {
    for (further, reason) in [
        (&[("sanitize", "maybe")][..], "sanitize must be true or false, not maybe."),
        (
            &[("sanitize", "true"), ("format", "raw")],
            "sanitize has an effect with format=atom or format=json only.",
        ),
    ] {
        let (status, text) = subscribe(world, "/refused", further).await;
        assert_eq!(
            (status, text.contains(reason)),
            (StatusCode::UNPROCESSABLE_ENTITY, true),
            "{text}"
        );
    }
    let callback = world.subscriber.url("/refused");
    let form = [
        ("hub.mode", "subscribe"),
        ("hub.topic", world.topic.as_str()),
        ("hub.callback", callback.as_str()),
        ("sanitize", "true"),
    ];
    let (status, text) = world.gateway.post("/hub", &form).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{text}");
    assert!(text.starts_with("sanitize has no effect here"), "{text}");
}

/// Without a format, a page is sent as it is. What is sent as it is cannot be sanitized.
async fn s22_a_page_that_is_sanitized_becomes_an_entry(database: Database) {
    let gateway = Gateway::start(&database, &[]).await;
    let world = World::on(database, gateway).await.about("/page");
    let page = |n: usize| {
        format!(
            "<!doctype html><title>Page</title><p onclick=\"alert(1)\">Version {n}</p>\
             <script>alert({n})</script>"
        )
    };
    world.publisher.put("/page", "text/html", page(1));
    for (path, further) in [("/plain", &[][..]), ("/clean", &[("sanitize", "true")])] {
        let answer = subscribe(&world, path, further).await;
        assert_eq!(answer.0, StatusCode::NO_CONTENT, "{}", answer.1);
    }
    world.gateway.comes_to_rest().await;
    world.publisher.put("/page", "text/html", page(2));
    world.gateway.post("/ping", &[("url", &world.topic)]).await;
    for (path, content_type) in [("/plain", "text/html"), ("/clean", "application/atom+xml")] {
        world.subscriber.until(path, |all| !all.is_empty()).await;
        let notified = world.subscriber.notified(path).remove(0);
        assert_eq!(notified.headers["content-type"], content_type);
        assert_eq!(notified.text().contains("alert("), path == "/plain", "{}", notified.text());
    }
    let got = world.retrieve(&[("sanitize", "true")]).await;
    assert_eq!(got.header(CONTENT_TYPE), "application/atom+xml");
    assert!(!got.text.contains("alert("), "{}", got.text);
    assert!(world.retrieve(&[]).await.text.contains("alert(2)"), "the body as it is stored");
}
