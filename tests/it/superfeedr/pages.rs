//! Documents that are no feeds in a common format, and list entries: each is subscribed to, and its entries
//! are delivered as Atom and as JSON.

use http::StatusCode;
use serde_json::Value;

use super::World;
use crate::schemas::assert_notification;

/// A kind of document, by its path: its type, and its text with the first `n` entries, or with the `n`th
/// alone. The address of entry `n` ends in `/n`, and its title, if it has one, is `Item n`.
struct Kind {
    path: &'static str,
    label: &'static str,
    write: fn(usize) -> String,
    has_titles: bool,
}

const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json";

#[rustfmt::skip]
const KINDS: [Kind; 9] = [
    Kind { path: "/h-feed",      label: HTML, write: |n| page("", &format!("<div class=h-feed>{}</div>", each(n, &h_entry))), has_titles: true },
    Kind { path: "/h-entry",     label: HTML, write: |n| page("", &h_entry(n)),                                             has_titles: true },
    Kind { path: "/json-ld",     label: HTML, write: |n| page(&script(&format!(r#"{{"@type": "Blog", "blogPost": [{}]}}"#, list(n, &posting))), ""), has_titles: true },
    Kind { path: "/article",     label: HTML, write: |n| page(&script(&posting(n)), ""),                                     has_titles: true },
    Kind { path: "/microdata",   label: HTML, write: |n| page("", &each(n, &item)),                                          has_titles: true },
    Kind { path: "/sitemap.xml", label: "application/xml", write: |n| format!("<?xml version='1.0'?><urlset>{}</urlset>", each(n, &|n| format!("<url><loc>https://tides.test/{n}</loc></url>"))), has_titles: false },
    Kind { path: "/rss.json",    label: JSON, write: |n| format!(r#"{{"rss": {{"channel": {{"title": "Tides", "item": [{}]}}}}}}"#, list(n, &|n| format!(r#"{{"title": "Item {n}", "guid": "https://tides.test/{n}", "link": "https://tides.test/{n}"}}"#))), has_titles: true },
    Kind { path: "/outbox",      label: JSON, write: |n| format!(r#"{{"type": "OrderedCollection", "orderedItems": [{}]}}"#, list(n, &|n| format!(r#"{{"type": "Note", "name": "Item {n}", "id": "https://tides.test/{n}", "url": "https://tides.test/{n}"}}"#))), has_titles: true },
    Kind { path: "/superfeedr",  label: JSON, write: |n| format!(r#"{{"status": {{"feed": "x"}}, "title": "Tides", "items": [{}]}}"#, list(n, &|n| format!(r#"{{"id": "https://tides.test/{n}", "title": "Item {n}", "permalinkUrl": "https://tides.test/{n}"}}"#))), has_titles: true },
];

fn page(head: &str, body: &str) -> String {
    format!(
        "<!doctype html><html><head><title>Tides</title>{head}</head><body>{body}</body></html>"
    )
}

fn script(json: &str) -> String {
    format!("<script type=\"application/ld+json\">{json}</script>")
}

/// The entries 1 to `n`, the newest first.
fn each(n: usize, write: &dyn Fn(usize) -> String) -> String {
    (1..=n).rev().map(write).collect()
}

/// The entries 1 to `n` of a JSON list.
fn list(n: usize, write: &dyn Fn(usize) -> String) -> String {
    (1..=n).rev().map(write).collect::<Vec<_>>().join(",")
}

fn h_entry(n: usize) -> String {
    format!(
        "<div class=h-entry><a class='p-name u-url' href='https://tides.test/{n}'>Item {n}</a></div>"
    )
}

fn posting(n: usize) -> String {
    format!(
        r#"{{"@context": "https://schema.org", "@type": "BlogPosting", "headline": "Item {n}", "url": "https://tides.test/{n}"}}"#
    )
}

fn item(n: usize) -> String {
    format!(
        "<div itemscope itemtype='https://schema.org/NewsArticle'>\
         <a itemprop=url href='https://tides.test/{n}'><b itemprop=headline>Item {n}</b></a></div>"
    )
}

#[tokio::test]
async fn entries_of_each_kind_of_document_are_delivered_as_atom_and_as_json() {
    let world = World::with_tides(0, &[]).await;
    for kind in &KINDS {
        world.publisher.put(kind.path, kind.label, (kind.write)(1));
        let topic = world.publisher.url(kind.path);
        for format in ["atom", "json"] {
            let callback = world.subscriber.url(&format!("{}/{format}", kind.path));
            world.gateway.subscribe_superfeedr(&topic, &callback, format).await;
        }
        world.publisher.fetched(kind.path, 1).await;
    }
    for Kind { path, label, write, has_titles } in &KINDS {
        world.publisher.put(path, label, write(2));
        let publish = [("hub.mode", "publish"), ("hub.url", &world.publisher.url(path))];
        assert_eq!(world.gateway.post("/", &publish).await.0, StatusCode::NO_CONTENT);
        let [atom, json] = ["atom", "json"].map(|format| format!("{path}/{format}"));
        for callback in [&atom, &json] {
            world.subscriber.until(callback, |received| received.len() == 1).await;
        }
        let text = world.subscriber.notified(&json).remove(0).text();
        assert_notification(&text);
        let notification: Value = serde_json::from_str(&text).unwrap();
        let items = notification["items"].as_array().unwrap();
        assert_eq!(items.len(), 1, "{path}: {text}");
        assert_eq!(items[0]["permalinkUrl"], "https://tides.test/2", "{path}");
        assert_eq!(items[0]["id"], "https://tides.test/2", "{path}");
        let atom = world.subscriber.notified(&atom).remove(0).text();
        assert_eq!(atom.matches("<entry").count(), 1, "{path}: {atom}");
        assert!(atom.contains("<id>https://tides.test/2</id>"), "{path}: {atom}");
        if *has_titles {
            assert_eq!(items[0]["title"], "Item 2", "{path}");
            assert!(atom.contains("Item 2</title>"), "{path}: {atom}");
        }
    }
}
