//! Subscribing: what is answered when, and what a subscriber is told from then on.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use futures_util::future::join_all;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::support::PATIENCE;
use crate::support::feeds::{entry_id, entry_ids, rss};
use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::server::{Asked, Server, say};
use crate::support::subscriber::Subscriber;
use crate::support::world::World;

/// The pauses that gateways make unless they are set otherwise.
const DEFAULT_PAUSES: [(&str, &str); 2] =
    [("FEEDGATE_HOST_MIN_INTERVAL_MS", "1000"), ("FEEDGATE_PING_MIN_INTERVAL_MS", "1000")];

/// A publisher that answers when it is let to: each request waits until `open` admits that many at
/// the same time.
struct SlowPublisher {
    server: Server,
    feeds: Arc<Mutex<HashMap<String, String>>>,
    waiting: watch::Sender<usize>,
}

impl SlowPublisher {
    /// Starts one that answers feeds as soon as `together` of them are requested.
    async fn start(together: usize) -> SlowPublisher {
        let feeds: Arc<Mutex<HashMap<String, String>>> = Arc::default();
        let waiting = watch::Sender::new(0);
        let (held, crowd) = (Arc::clone(&feeds), waiting.clone());
        let server = Server::start(move |asked: Asked| {
            let (held, crowd) = (Arc::clone(&held), crowd.clone());
            async move {
                if asked.path == "/robots.txt" {
                    return say(StatusCode::NOT_FOUND, "");
                }
                crowd.send_modify(|waiting| *waiting += 1);
                crowd.subscribe().wait_for(|waiting| *waiting >= together).await.unwrap();
                let body = held.lock().unwrap().get(&asked.path).cloned().unwrap_or_default();
                let mut answer = say(StatusCode::OK, body);
                let rss = HeaderValue::from_static("application/rss+xml");
                answer.headers_mut().insert(CONTENT_TYPE, rss);
                answer
            }
        })
        .await;
        SlowPublisher { server, feeds, waiting }
    }

    fn put(&self, path: &str, items: usize) {
        self.feeds.lock().unwrap().insert(path.to_owned(), rss("tides", 1..items + 1));
    }

    /// Waits until a feed is requested.
    async fn is_asked(&self) {
        let mut waiting = self.waiting.subscribe();
        let asked = timeout(PATIENCE, waiting.wait_for(|waiting| *waiting > 0)).await;
        assert!(asked.is_ok(), "no feed was requested");
    }

    /// Answers from now on.
    fn open(&self) {
        self.waiting.send_modify(|waiting| *waiting = usize::MAX / 2);
    }
}

async fn gateway(settings: &[(&str, &str)]) -> Gateway {
    Gateway::start(&Database::new(Kind::Sqlite).await, settings).await
}

async fn published(gateway: &Gateway, topic: &str) {
    let form = [("hub.mode", "publish"), ("hub.url", topic)];
    assert_eq!(gateway.post("/hub", &form).await.0, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn f19_a_change_right_after_a_confirmed_subscription_is_delivered() {
    let world = World::with_tides(2, &DEFAULT_PAUSES).await;
    let topics = ["/feed", "/other"];
    world.publisher.put_rss("/other", rss("tides", 1..3));
    for path in topics {
        let (topic, callback) = (world.publisher.url(path), world.subscriber.url(path));
        let form = [("hub.mode", "subscribe"), ("hub.topic", &topic), ("hub.callback", &callback)];
        assert_eq!(world.gateway.post("/hub", &form).await.0, StatusCode::ACCEPTED);
    }
    for path in topics {
        world.subscriber.verified(path, 1).await;
        world.publisher.put_rss(path, rss("tides", 1..4));
        published(&world.gateway, &world.publisher.url(path)).await;
    }
    for path in topics {
        world.subscriber.until(path, |told| !told.is_empty()).await;
        assert_eq!(world.subscriber.notified(path)[0].text(), rss("tides", 1..4));
    }
}

#[tokio::test]
async fn f06_a_subscription_is_answered_while_its_topic_is_fetched() {
    let (publisher, subscriber) =
        (SlowPublisher::start(usize::MAX / 2).await, Subscriber::start().await);
    publisher.put("/feed", 2);
    let gateway = gateway(&[]).await;
    let topic = publisher.server.url("/feed");
    gateway.subscribe_superfeedr(&topic, &subscriber.url("/cb"), "json").await;
    publisher.is_asked().await;

    // F19: what is published now is news, though the topic was never read before.
    publisher.put("/feed", 3);
    published(&gateway, &topic).await;
    publisher.open();
    subscriber.until("/cb", |told| !told.is_empty()).await;
    let told = subscriber.notified("/cb").remove(0).text();
    assert!(told.contains(&entry_id("tides", 3)), "{told}");
    assert!(!told.contains(&entry_id("tides", 2)), "it was there before: {told}");
}

#[tokio::test]
async fn f06_subscribers_of_one_host_do_not_wait_for_each_other() {
    const TOGETHER: usize = 8;
    let publisher = SlowPublisher::start(TOGETHER).await;
    let gateway = gateway(&DEFAULT_PAUSES).await;
    let subscribe = async |n: usize| {
        let path = format!("/feed{n}");
        publisher.put(&path, 2);
        let topic = publisher.server.url(&path);
        let form = [
            ("hub.mode", "subscribe"),
            ("hub.topic", topic.as_str()),
            ("hub.callback", "https://push.superfeedr.com/dev/null"),
            ("retrieve", "true"),
        ];
        gateway.superfeedr(&form).await
    };
    for (status, text) in join_all((0..TOGETHER).map(subscribe)).await {
        assert_eq!(status, StatusCode::OK, "{text}");
        assert_eq!(entry_ids(&text), [entry_id("tides", 2), entry_id("tides", 1)], "{text}");
    }
}
