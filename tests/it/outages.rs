//! Servers that fail, or want to be left alone: who is asked when, and that nobody can make it worse for
//! others.

mod site;

use std::time::Duration;

use http::StatusCode;
use serde_json::Value;

use crate::store::on_both_stores;
use crate::support::feeds::{entry_id, rss};
use crate::support::gateway::Gateway;
use crate::support::postgres::Database;
use crate::support::subscriber::Subscriber;

use site::Site;

on_both_stores!(
    h02_pings_during_an_outage_do_not_lengthen_the_wait,
    h02_retry_after_holds_for_pings_and_one_fetch_follows_it,
    h02_retry_after_holds_for_every_door,
);

/// Anonymous pings, as many as somebody sends in a short outage.
const PINGS: usize = 8;

impl Gateway {
    /// Pings a topic anonymously. The answer comes once the topic was fetched, if it was.
    async fn pinged(&self, topic: &str) {
        self.post("/ping", &[("url", topic)]).await;
    }

    /// When a topic is fetched next, in seconds since 1970.
    async fn next_fetch(&self, topic: &str) -> i64 {
        let form = [("hub.mode", "retrieve"), ("hub.topic", topic), ("format", "json")];
        let (status, text) = self.superfeedr(&form).await;
        assert_eq!(status, StatusCode::OK, "{text}");
        let document: Value = serde_json::from_str(&text).unwrap();
        document["status"]["nextFetch"].as_i64().unwrap()
    }
}

async fn h02_pings_during_an_outage_do_not_lengthen_the_wait(database: Database) {
    let gateway = Gateway::start(&database, &[]).await;
    let (site, subscriber) = (Site::start().await, Subscriber::start().await);
    let failures: [(&str, u16); 6] = [
        ("/busy", 503),
        ("/broken", 500),
        ("/missing", 404),
        ("/gone", 410),
        ("/denied", 401),
        ("/page", 200),
    ];
    for (path, code) in failures {
        let topic = site.url(path);
        site.feed(path, rss("tides", 1..3));
        gateway.subscribe_superfeedr(&topic, &subscriber.url(path), "atom").await;
        site.fetched(path, 1).await;
        let planned = gateway.next_fetch(&topic).await;

        site.say(path, code, &[], "<html><p>We are moving.");
        for n in 0..PINGS {
            gateway.pinged(&topic).await;
            site.fetched(path, n + 2).await;
        }
        let longer = gateway.next_fetch(&topic).await - planned;
        // Five minutes is the least time between two polls that nobody asked for.
        assert!(longer <= 305, "{path}: the next poll is {longer} s later than before the pings");

        site.feed(path, rss("tides", 1..4));
        gateway.pinged(&topic).await;
        let id = entry_id("tides", 3);
        subscriber.until(path, |told| told.iter().any(|note| note.text().contains(&id))).await;
    }
}

async fn h02_retry_after_holds_for_pings_and_one_fetch_follows_it(database: Database) {
    let gateway = Gateway::start(&database, &[]).await;
    let (site, subscriber) = (Site::start().await, Subscriber::start().await);
    let topic = site.url("/feed");
    site.feed("/feed", rss("tides", 1..3));
    gateway.subscribe_superfeedr(&topic, &subscriber.url("/cb"), "atom").await;
    site.say("/feed", 503, &[("retry-after", "10")], "");
    gateway.pinged(&topic).await;
    site.fetched("/feed", 2).await;
    site.feed("/feed", rss("tides", 1..4));
    let (hub_form, xml) = ([("hub.mode", "publish"), ("hub.url", topic.as_str())], "/hub");
    for _ in 0..PINGS {
        gateway.pinged(&topic).await;
        gateway.post(xml, &hub_form).await;
    }
    assert_eq!(site.fetches("/feed"), 2, "the server wants to be left alone");
    // Nothing but the pings makes this fetch: the next planned one is minutes later.
    let id = entry_id("tides", 3);
    subscriber.until("/cb", |told| told.iter().any(|note| note.text().contains(&id))).await;
    assert_eq!(site.fetches("/feed"), 3);
}

async fn h02_retry_after_holds_for_every_door(database: Database) {
    let gateway = Gateway::start(&database, &[]).await;
    let (site, subscriber) = (Site::start().await, Subscriber::start().await);
    let topic = site.url("/feed");
    site.say("/feed", 503, &[("retry-after", "3600")], "");
    gateway.subscribe_superfeedr(&topic, &subscriber.url("/first"), "atom").await;
    site.fetched("/feed", 1).await;
    gateway.comes_to_rest().await;

    gateway.pinged(&topic).await;
    gateway.post("/ping", &[("url", &topic), ("wait", "delivery")]).await;
    gateway.post("/hub", &[("hub.mode", "publish"), ("hub.url", &topic)]).await;
    gateway.subscribe_superfeedr(&topic, &subscriber.url("/second"), "json").await;
    gateway.subscribe_websub(&topic, &subscriber.url("/third"), &[]).await;
    gateway.subscribe_rsscloud_unreadable(&topic, &subscriber).await;
    gateway.next_fetch(&topic).await;
    // Workers look at what is due all the time: a poll of another feed shows that they did.
    let other = site.url("/other");
    site.feed("/other", rss("tides", 1..2));
    gateway.subscribe_superfeedr(&other, &subscriber.url("/other"), "atom").await;
    gateway.post("/hub", &[("hub.mode", "publish"), ("hub.url", &other)]).await;
    site.fetched("/other", 2).await;
    assert_eq!(site.fetches("/feed"), 1);
    let pause = gateway.next_fetch(&topic).await - site::now_s();
    assert!(Duration::from_secs(pause.unsigned_abs()) > Duration::from_secs(3_000), "{pause} s");
}

impl Gateway {
    /// Registers for a topic that cannot be read now.
    async fn subscribe_rsscloud_unreadable(&self, topic: &str, subscriber: &Subscriber) {
        let port = subscriber.port().to_string();
        let form = [("port", port.as_str()), ("path", "/rss"), ("protocol", "http-post")];
        self.post("/pleaseNotify", &[&form[..], &[("url1", topic)]].concat()).await;
    }
}
