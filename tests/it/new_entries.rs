//! What is news, from the publisher to the callback: real entries that could be taken for known ones.

use http::StatusCode;

use crate::store::on_both_stores;
use crate::support::gateway::Gateway;
use crate::support::postgres::Database;
use crate::support::world::World;

on_both_stores!(
    h16_ids_that_are_kept_are_entries_whatever_they_say,
    h16_forty_entries_without_dates_are_forty_entries,
    h15_what_is_new_is_sent_of_a_feed_that_is_longer_than_what_is_read,
);

/// A feed of these items.
fn feed(items: &str) -> String {
    format!("<rss version=\"2.0\"><channel><title>News</title>{items}</channel></rss>")
}

/// An item that says the same as all others under another id, without a date.
fn same(n: usize) -> String {
    format!(
        "<item><guid isPermaLink=\"false\">urn:x:{n}.</guid><title>Up</title>\
         <link>https://a.test/status</link><description>All is well</description></item>"
    )
}

/// An item without a date.
fn undated(n: usize) -> String {
    format!(
        "<item><guid isPermaLink=\"false\">urn:x:{n}.</guid><title>Item {n}</title>\
         <link>https://a.test/{n}</link></item>"
    )
}

impl World {
    /// Follows what the publisher has now.
    async fn follow(&self, document: String) {
        self.publisher.put_rss("/feed", document);
        self.gateway.subscribe_superfeedr(&self.topic, &self.subscriber.url("/cb"), "atom").await;
        self.publisher.fetched("/feed", 1).await;
    }

    /// Publishes another document and says so.
    async fn announce(&self, document: String) {
        self.publisher.put_rss("/feed", document);
        let (status, text) = self.gateway.post("/ping", &[("url", &self.topic)]).await;
        assert_eq!(status, StatusCode::OK, "{text}");
    }

    /// Waits until the callback was sent all of these, and nothing else.
    async fn is_sent(&self, numbers: std::ops::Range<usize>) {
        let count = |text: &str, n: usize| text.matches(&format!("urn:x:{n}.</id>")).count();
        self.subscriber
            .until("/cb", |sent| {
                let text: String = sent.iter().map(|sent| sent.text()).collect();
                numbers.clone().all(|n| count(&text, n) > 0)
            })
            .await;
        let text: String = self.subscriber.notified("/cb").iter().map(|sent| sent.text()).collect();
        let entries = text.matches("<entry").count();
        assert_eq!(entries, numbers.len(), "each of them once:\n{text}");
    }
}

async fn world(database: Database) -> World {
    let gateway = Gateway::start(&database, &[]).await;
    World::on(database, gateway).await
}

async fn h16_ids_that_are_kept_are_entries_whatever_they_say(database: Database) {
    let world = world(database).await;
    world.follow(feed(&same(0))).await;
    for n in 1..7 {
        world.announce(feed(&same(n))).await;
        world.is_sent(1..n + 1).await;
    }
    let all: String = (6..12).map(same).collect();
    world.announce(feed(&all)).await;
    world.is_sent(1..12).await;
}

async fn h16_forty_entries_without_dates_are_forty_entries(database: Database) {
    let world = world(database).await;
    world.follow(feed(&undated(0))).await;
    let all: String = (0..41).rev().map(undated).collect();
    world.announce(feed(&all)).await;
    world.is_sent(1..41).await;
}

/// More entries than are read of a document, numbered in the order of the document, in every format that
/// publishers use; dated ones are a minute apart.
fn long(numbers: std::ops::Range<usize>, format: &str, is_dated: bool) -> String {
    let date = |n: usize| {
        let date = chrono::DateTime::from_timestamp(1_790_000_000 + n as i64 * 60, 0).unwrap();
        date.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
    };
    let dated = |n: usize, name: &str| match is_dated {
        true => format!("<{name}>{}</{name}>", date(n)),
        false => String::new(),
    };
    let entries = |entry: &dyn Fn(usize) -> String| numbers.clone().map(entry).collect::<String>();
    match format {
        "rss" => feed(&entries(&|n| {
            format!(
                "<item><guid isPermaLink=\"false\">urn:x:{n}.</guid><title>Item {n}</title>{}</item>",
                dated(n, "pubDate")
            )
        })),
        "atom" => {
            let entries = entries(&|n| {
                let updated = dated(n, "updated");
                format!("<entry><id>urn:x:{n}.</id><title>Item {n}</title>{updated}</entry>")
            });
            format!(
                "<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>News</title>{entries}</feed>"
            )
        }
        "rdf" => {
            let list = entries(&|n| format!("<rdf:li rdf:resource=\"urn:x:{n}.\"/>"));
            let items = entries(&|n| {
                let date = dated(n, "dc:date");
                format!("<item rdf:about=\"urn:x:{n}.\"><title>Item {n}</title>{date}</item>")
            });
            format!(
                "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" \
                 xmlns=\"http://purl.org/rss/1.0/\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\">\
                 <channel><title>News</title><items><rdf:Seq>{list}</rdf:Seq></items></channel>\
                 {items}</rdf:RDF>"
            )
        }
        _ => {
            let items = numbers.map(|n| {
                let mut item = serde_json::json!({"id": format!("urn:x:{n}."), "title": "Item"});
                if is_dated {
                    item["date_published"] = date(n).into();
                }
                item
            });
            let items: Vec<_> = items.collect();
            let version = "https://jsonfeed.org/version/1.1";
            serde_json::json!({"version": version, "title": "News", "items": items}).to_string()
        }
    }
}

async fn h15_what_is_new_is_sent_of_a_feed_that_is_longer_than_what_is_read(database: Database) {
    let gateway = Gateway::start(&database, &[]).await;
    let world = World::on(database, gateway).await;
    let callback = world.subscriber.url("/cb");
    let cases = [("rss", true), ("rss", false), ("atom", true), ("rdf", false), ("json", true)];
    for (n, (format, is_dated)) in cases.into_iter().enumerate() {
        let path = format!("/{n}");
        let topic = world.publisher.url(&path);
        world.publisher.put(&path, "text/plain", long(0..5_100, format, is_dated));
        world.gateway.subscribe_superfeedr(&topic, &callback, "atom").await;
        world.publisher.fetched(&path, 1).await;
        world.publisher.put(&path, "text/plain", long(0..5_103, format, is_dated));
        let (status, text) = world.gateway.post("/ping", &[("url", &topic)]).await;
        assert_eq!(status, StatusCode::OK, "{text}");
        let (mut is_sent, mut entries) = (false, 0);
        world
            .subscriber
            .until("/cb", |sent| {
                let sent: Vec<_> = sent.iter().map(|sent| sent.text()).collect();
                let sent = sent.iter().filter(|sent| sent.contains(&topic)).cloned();
                let text: String = sent.collect();
                entries = text.matches("<entry").count();
                is_sent = (5_100..5_103).all(|n| text.contains(&format!("urn:x:{n}.</id>")));
                is_sent
            })
            .await;
        assert_eq!(entries, 3, "{format}, dated: {is_dated}");
    }
    let list = world.gateway.own("/?hub.mode=list&detailed=true&format=json").await.to_string();
    assert!(list.contains("5000 of 5103 entries are read, the newest"), "{list}");
    assert!(list.contains("5000 of 5103 entries are read, at both ends"), "{list}");
}
