//! An index of sitemaps, which is followed, and sitemaps that are gzip files (rule N12).

use std::io::Write;

use feedgate::jobs::runner;
use http::StatusCode;

use crate::store::on_both_stores;
use crate::support::gateway::Gateway;
use crate::support::postgres::Database;
use crate::support::publisher::Publisher;
use crate::support::subscriber::Subscriber;
use crate::support::until;

on_both_stores!(
    n12_an_index_of_sitemaps_is_a_feed_of_their_newest_pages,
    n12_an_index_without_dates_is_read_in_full,
    n12_the_sitemaps_of_an_index_are_on_its_host_and_allowed_by_robots_txt,
);

const XML: &str = "application/xml";

struct World {
    publisher: Publisher,
    subscriber: Subscriber,
    gateway: Gateway,
    _database: Database,
}

impl World {
    async fn new(database: Database) -> World {
        let gateway = Gateway::start(&database, &[]).await;
        let (publisher, subscriber) = (Publisher::start().await, Subscriber::start().await);
        World { publisher, subscriber, gateway, _database: database }
    }

    async fn subscribe(&self, topic: &str) {
        let callback = self.subscriber.url("/cb");
        let form = [
            ("hub.mode", "subscribe"),
            ("hub.topic", topic),
            ("hub.callback", &callback),
            ("format", "json"),
            ("retrieve", "true"),
        ];
        let (status, text) = self.gateway.superfeedr(&form).await;
        assert_eq!(status, StatusCode::OK, "{text}");
    }

    async fn publish(&self, url: &str) {
        self.gateway.post("/", &[("hub.mode", "publish"), ("hub.url", url)]).await;
    }

    /// Publishes an index of the sitemaps with these names, or addresses, and dates.
    fn put_index(&self, sitemaps: &[(&str, &str)]) {
        let listed = sitemaps.iter().map(|(name, date)| {
            let changed = match *date {
                "" => String::new(),
                date => format!("<lastmod>{date}</lastmod>"),
            };
            let address = match name.starts_with('/') {
                true => self.publisher.url(name),
                false => (*name).to_owned(),
            };
            format!("<sitemap><loc>{address}</loc>{changed}</sitemap>")
        });
        let listed: String = listed.collect();
        let index = format!(
            "<?xml version=\"1.0\"?><sitemapindex \
             xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">{listed}</sitemapindex>"
        );
        self.publisher.put("/index.xml", XML, index);
    }

    /// Returns the pages that the callback was sent, in order.
    fn pages(&self) -> Vec<String> {
        let told = self.subscriber.notified("/cb").into_iter().map(|told| told.text());
        let told = told.map(|told| serde_json::from_str::<serde_json::Value>(&told).unwrap());
        let pages = told.flat_map(|told| {
            let items = told["items"].as_array().cloned().unwrap_or_default();
            items.into_iter().map(|item| item["permalinkUrl"].as_str().unwrap().to_owned())
        });
        pages.collect()
    }
}

/// A sitemap of pages with dates, or with none.
fn sitemap(pages: &[(&str, &str)]) -> String {
    let pages = pages.iter().map(|(page, date)| {
        let changed = match *date {
            "" => String::new(),
            date => format!("<lastmod>{date}</lastmod>"),
        };
        format!("<url><loc>https://tides.test/{page}</loc>{changed}</url>")
    });
    let pages: String = pages.collect();
    format!("<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">{pages}</urlset>")
}

fn gzip(text: &str) -> Vec<u8> {
    let mut file = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    file.write_all(text.as_bytes()).unwrap();
    file.finish().unwrap()
}

fn today() -> String {
    runner::now().format("%Y-%m-%d").to_string()
}

async fn n12_an_index_of_sitemaps_is_a_feed_of_their_newest_pages(database: Database) {
    let world = World::new(database).await;
    let names: Vec<String> = (1..=7).map(|n| format!("/{n}.xml")).collect();
    let dates: Vec<String> = (1..=7).map(|n| format!("2020-01-0{n}")).collect();
    let mut listed: Vec<(&str, &str)> =
        names.iter().map(String::as_str).zip(dates.iter().map(String::as_str)).collect();
    for (name, date) in &listed {
        world.publisher.put(name, XML, sitemap(&[(&format!("old{name}"), date)]));
    }
    world.put_index(&listed);
    let index = world.publisher.url("/index.xml");
    world.subscribe(&index).await;
    let fetches = |name: &str| world.publisher.fetches(name).len();
    let fetched = || names.iter().map(|name| fetches(name)).collect::<Vec<_>>();
    assert_eq!(fetched(), [0, 0, 1, 1, 1, 1, 1], "the newest five");
    let (_, text) = world
        .gateway
        .superfeedr(&[("hub.mode", "retrieve"), ("hub.topic", &index), ("format", "json")])
        .await;
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["items"].as_array().unwrap().len(), 5, "{text}");

    // The first one changes: a page is new, and others were there before, although nobody was told.
    let today = today();
    listed[0].1 = &today;
    let pages = [("new", today.as_str()), ("earlier", "2020-01-01"), ("undated", "")];
    world.publisher.put("/1.xml", "application/x-gzip", gzip(&sitemap(&pages)));
    world.put_index(&listed);
    world.publish(&index).await;
    world.subscriber.until("/cb", |told| !told.is_empty()).await;
    world.gateway.comes_to_rest().await;
    assert_eq!(world.pages(), ["https://tides.test/new"]);
    assert_eq!(fetched(), [1, 0, 1, 1, 1, 1, 1], "what has not changed is not fetched again");
}

async fn n12_an_index_without_dates_is_read_in_full(database: Database) {
    let world = World::new(database).await;
    let today = today();
    world.publisher.put("/posts.xml", XML, sitemap(&[("1", &today)]));
    world.put_index(&[("/posts.xml", ""), ("/gone.xml", "")]);
    let index = world.publisher.url("/index.xml");
    world.subscribe(&index).await;
    world.publisher.put("/posts.xml", XML, sitemap(&[("2", ""), ("1", &today)]));
    world.publish(&index).await;
    world.subscriber.until("/cb", |told| !told.is_empty()).await;
    world.gateway.comes_to_rest().await;
    assert_eq!(world.pages(), ["https://tides.test/2"], "although the index is the same");

    // A sitemap that cannot be read now is one of the whole: nothing is lost.
    world.publisher.fail("/posts.xml", StatusCode::SERVICE_UNAVAILABLE);
    world.publish(&index).await;
    world.publisher.fetched("/posts.xml", 3).await;
    world.publisher.put("/posts.xml", XML, sitemap(&[("3", &today), ("2", &today)]));
    world.publish(&index).await;
    world.subscriber.until("/cb", |told| told.iter().any(|it| it.text().contains("/3"))).await;
}

async fn n12_the_sitemaps_of_an_index_are_on_its_host_and_allowed_by_robots_txt(
    database: Database,
) {
    let world = World::new(database).await;
    let (other, today) = (Publisher::start().await, today());
    other.put("/posts.xml", XML, sitemap(&[("elsewhere", &today)]));
    world.publisher.put("/robots.txt", "text/plain", "User-agent: feedgate\nDisallow: /private\n");
    for name in ["/private/posts.xml", "/posts.xml"] {
        world.publisher.put(name, XML, sitemap(&[(&name[1..], &today)]));
    }
    let elsewhere = other.url("/posts.xml");
    let all = [(elsewhere.as_str(), ""), ("/private/posts.xml", ""), ("/posts.xml", "")];
    world.put_index(&all);
    let index = world.publisher.url("/index.xml");
    world.subscribe(&index).await;
    let named = [("hub.mode", "retrieve"), ("hub.topic", index.as_str()), ("format", "json")];
    let (_, text) = world.gateway.superfeedr(&named).await;
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let pages: Vec<_> = document["items"].as_array().unwrap().iter().collect();
    assert_eq!(pages.len(), 1, "{text}");
    assert_eq!(pages[0]["permalinkUrl"], "https://tides.test/posts.xml");

    // If none may be fetched, the index cannot be read.
    world.put_index(&all[..2]);
    world.publish(&index).await;
    until("the status of the index names robots.txt", async || {
        let list = world.gateway.own("/?hub.mode=list&detailed=true").await;
        let message = &list["subscriptions"][0]["subscription"]["feed"]["status"]["http"];
        message.as_str().unwrap().contains("robots.txt")
    })
    .await;
    assert_eq!(world.publisher.fetches("/private/posts.xml").len(), 0);
    assert_eq!((other.fetches("/posts.xml").len(), other.fetches("/robots.txt").len()), (0, 0));
}
