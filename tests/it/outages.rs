//! Servers that fail, or want to be left alone: who is asked when, and that nobody can make it worse for
//! others.

mod site;

use std::time::Duration;

use http::StatusCode;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

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
    h02_pings_of_all_feeds_of_a_server_in_an_outage_do_not_pause_it,
    h03_a_refusal_is_that_of_the_server_that_answered,
    h03_a_server_in_a_pause_is_not_reached_by_redirects_either,
    h03_a_slow_server_behind_a_redirect_holds_up_nobody_else,
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
        self.status(topic).await["nextFetch"].as_i64().unwrap()
    }

    /// Why a topic is fetched then.
    async fn period_reason(&self, topic: &str) -> String {
        self.status(topic).await["periodReason"].as_str().unwrap().to_owned()
    }

    async fn status(&self, topic: &str) -> Value {
        let form = [("hub.mode", "retrieve"), ("hub.topic", topic), ("format", "json")];
        let (status, text) = self.superfeedr(&form).await;
        assert_eq!(status, StatusCode::OK, "{text}");
        let document: Value = serde_json::from_str(&text).unwrap();
        document["status"].clone()
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

async fn h02_pings_of_all_feeds_of_a_server_in_an_outage_do_not_pause_it(database: Database) {
    let gateway = Gateway::start(&database, &[]).await;
    let (site, subscriber) = (Site::start().await, Subscriber::start().await);
    let paths = ["/0", "/1", "/2", "/3", "/4", "/5"];
    for path in paths {
        site.feed(path, rss("tides", 1..3));
        let callback = subscriber.url(path);
        gateway.subscribe_superfeedr(&site.url(path), &callback, "atom").await;
        site.fetched(path, 1).await;
    }
    for (round, code) in [503, 403, 401].into_iter().enumerate() {
        for path in paths {
            site.say(path, code, &[], "");
            gateway.pinged(&site.url(path)).await;
            site.fetched(path, 2 + 2 * round).await;
        }
        for path in paths {
            site.feed(path, rss("tides", 1..round + 4));
            gateway.pinged(&site.url(path)).await;
            let id = entry_id("tides", round + 3);
            subscriber.until(path, |told| told.iter().any(|note| note.text().contains(&id))).await;
        }
    }
}

impl Gateway {
    /// Registers for a topic that cannot be read now.
    async fn subscribe_rsscloud_unreadable(&self, topic: &str, subscriber: &Subscriber) {
        let port = subscriber.port().to_string();
        let form = [("port", port.as_str()), ("path", "/rss"), ("protocol", "http-post")];
        self.post("/pleaseNotify", &[&form[..], &[("url1", topic)]].concat()).await;
    }
}

/// Subscribes without an account, as anybody may.
async fn subscribe_anonymously(gateway: &Gateway, topic: &str, callback: &str) {
    let form = [("hub.mode", "subscribe"), ("hub.topic", topic), ("hub.callback", callback)];
    assert_eq!(gateway.post("/hub", &form).await.0, StatusCode::ACCEPTED);
}

async fn h03_a_refusal_is_that_of_the_server_that_answered(database: Database) {
    let gateway = Gateway::start(&database, &[]).await;
    let (victim, subscriber) = (Site::start().await, Subscriber::start().await);
    let topic = victim.url("/feed");
    victim.feed("/feed", rss("tides", 1..2));
    gateway.subscribe_superfeedr(&topic, &subscriber.url("/feed"), "atom").await;
    victim.fetched("/feed", 1).await;

    // As many refusals as pause a whole server.
    for (round, (code, times)) in [(429, 1), (503, 3), (403, 3), (401, 5)].into_iter().enumerate() {
        let anonymous = Site::start().await;
        for n in 0..times {
            let (path, target) = (format!("/out/{code}/{n}"), format!("/{n}"));
            anonymous.say(&target, code, &[("retry-after", "86400")], "");
            victim.say(&path, 302, &[("location", anonymous.url(&target).as_str())], "");
            let callback = subscriber.url(&format!("/stranger{path}"));
            subscribe_anonymously(&gateway, &victim.url(&path), &callback).await;
            anonymous.fetched(&target, 1).await;
            subscriber.verified(&format!("/stranger{path}"), 1).await;
        }
        let newest = round + 2;
        victim.feed("/feed", rss("tides", 1..newest + 1));
        gateway.pinged(&topic).await;
        let id = entry_id("tides", newest);
        subscriber.until("/feed", |told| told.iter().any(|note| note.text().contains(&id))).await;
    }
}

async fn h03_a_server_in_a_pause_is_not_reached_by_redirects_either(database: Database) {
    let gateway = Gateway::start(&database, &[]).await;
    let (old, new) = (Site::start().await, Site::start().await);
    let subscriber = Subscriber::start().await;
    new.say("/refusing", 429, &[("retry-after", "86400")], "");
    new.feed("/feed", rss("tides", 1..2));
    for path in ["/first", "/second"] {
        old.say(path, 301, &[("location", new.url("/feed").as_str())], "");
    }
    gateway.subscribe_superfeedr(&old.url("/first"), &subscriber.url("/first"), "atom").await;
    new.fetched("/feed", 1).await;
    gateway.subscribe_superfeedr(&new.url("/refusing"), &subscriber.url("/cb"), "atom").await;
    new.fetched("/refusing", 1).await;
    gateway.comes_to_rest().await;

    // A pause by one address holds for what other servers redirect there.
    gateway.subscribe_superfeedr(&old.url("/second"), &subscriber.url("/second"), "atom").await;
    old.fetched("/second", 1).await;
    for _ in 0..3 {
        gateway.pinged(&old.url("/first")).await;
        gateway.pinged(&old.url("/second")).await;
    }
    assert_eq!(new.fetches("/feed"), 1);
    // The server that redirects is not asked in vain, and what it has itself is fetched.
    assert_eq!((old.fetches("/first"), old.fetches("/second")), (2, 1));
    let reason = gateway.period_reason(&old.url("/first")).await;
    assert!(reason.contains("to which this address redirects"), "{reason}");
    old.feed("/own", rss("tides", 1..2));
    gateway.subscribe_superfeedr(&old.url("/own"), &subscriber.url("/own"), "atom").await;
    old.fetched("/own", 1).await;
    assert_eq!(new.fetches("/feed"), 1);
}

async fn h03_a_slow_server_behind_a_redirect_holds_up_nobody_else(database: Database) {
    let gateway = Gateway::start(&database, &[]).await;
    let (victim, subscriber) = (Site::start().await, Subscriber::start().await);
    let (silent, request) = silent_server().await;
    victim.say("/out", 302, &[("location", format!("{silent}/").as_str())], "");
    victim.feed("/feed", rss("tides", 1..2));
    let topic = victim.url("/feed");
    gateway.subscribe_superfeedr(&topic, &subscriber.url("/feed"), "atom").await;
    victim.fetched("/feed", 1).await;
    subscribe_anonymously(&gateway, &victim.url("/out"), &subscriber.url("/out")).await;
    let mut request = request;
    request.recv().await.unwrap();

    // While the other server is silent, the worker fetches what the victim has.
    victim.feed("/feed", rss("tides", 1..3));
    gateway.post("/hub", &[("hub.mode", "publish"), ("hub.url", &topic)]).await;
    let id = entry_id("tides", 2);
    subscriber.until("/feed", |told| told.iter().any(|note| note.text().contains(&id))).await;
    assert!(request.try_recv().is_err(), "it is still the first request");
}

/// A server that takes requests and never answers. Returns its address, and what reports each request.
async fn silent_server() -> (String, mpsc::UnboundedReceiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (report, request) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            held.push(stream);
            report.send(()).ok();
        }
    });
    (url, request)
}
