//! Subscribing: what is answered when, and what a subscriber is told from then on.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use futures_util::future::join_all;
use http::StatusCode;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::support::PATIENCE;
use crate::support::feeds::{entry_id, entry_ids, rss};
use crate::support::gateway::Gateway;
use crate::support::ports::free_port;
use crate::support::postgres::{Database, Kind};
use crate::support::server::{ReceivedRequest, Server, client, say};
use crate::support::subscriber::{Behavior, Subscriber};
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
        let server = Server::start(move |request: ReceivedRequest| {
            let (held, crowd) = (Arc::clone(&held), crowd.clone());
            async move {
                if request.path == "/robots.txt" {
                    return say(StatusCode::NOT_FOUND, "");
                }
                crowd.send_modify(|waiting| *waiting += 1);
                crowd.subscribe().wait_for(|waiting| *waiting >= together).await.unwrap();
                let body = held.lock().unwrap().get(&request.path).cloned().unwrap_or_default();
                let mut answer = say(StatusCode::OK, body);
                let rss = HeaderValue::from_static("application/rss+xml");
                answer.headers_mut().insert(CONTENT_TYPE, rss);
                answer
            }
        })
        .await;
        SlowPublisher { server, feeds, waiting }
    }

    fn publish_feed(&self, path: &str, items: usize) {
        self.feeds.lock().unwrap().insert(path.to_owned(), rss("tides", 1..items + 1));
    }

    /// Waits until a feed is requested.
    async fn is_requested(&self) {
        let mut waiting = self.waiting.subscribe();
        let request = timeout(PATIENCE, waiting.wait_for(|waiting| *waiting > 0)).await;
        assert!(request.is_ok(), "no feed was requested");
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
    publisher.publish_feed("/feed", 2);
    let gateway = gateway(&[]).await;
    let topic = publisher.server.url("/feed");
    gateway.subscribe_superfeedr(&topic, &subscriber.url("/cb"), "json").await;
    publisher.is_requested().await;

    // F19: what is published now is news, though the topic was never read before.
    publisher.publish_feed("/feed", 3);
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
        publisher.publish_feed(&path, 2);
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

#[tokio::test]
async fn f14_the_answer_says_why_a_topic_could_not_be_fetched() {
    let world = World::with_tides(2, &[]).await;
    let missing = world.publisher.url("/missing");
    let refusing = format!("http://127.0.0.1:{}/feed", free_port());
    #[rustfmt::skip]
    let cases = [
        (missing.as_str(),  ("retrieve", "true"),  StatusCode::OK,         "404 Not Found"),
        (refusing.as_str(), ("retrieve", "true"),  StatusCode::OK,         "could not reach 127.0.0.1"),
        (missing.as_str(),  ("hub.verify", "sync"), StatusCode::NO_CONTENT, "404 Not Found"),
    ];
    for (topic, further, want, reason) in cases {
        let callback = world.subscriber.url("/cb");
        let form =
            [("hub.mode", "subscribe"), ("hub.topic", topic), ("hub.callback", &callback), further];
        let request = client().post(world.gateway.url("/")).basic_auth("tester", Some("s3cret"));
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        let answer = request.body(body.extend_pairs(form).finish()).send().await.unwrap();
        assert_eq!(answer.status(), want, "{topic}");
        let note = answer.headers()["x-feedgate-note"].to_str().unwrap().to_owned();
        assert!(note.contains("could not be fetched") && note.contains(reason), "{note}");
        let text = answer.text().await.unwrap();
        assert!(text.is_empty() || text.contains(reason), "{text}");
    }
}

#[tokio::test]
async fn a08_who_accepts_json_is_told_in_it_what_the_first_fetch_found() {
    let world = World::with_tides(2, &[]).await;
    world.publisher.put("/page", "text/html", "<!doctype html><title>Tides</title><p>Low");
    world.publisher.put_rss("/empty", rss("empty", 1..1));
    let refusing = format!("http://127.0.0.1:{}/feed", free_port());
    #[rustfmt::skip]
    let cases = [
        (world.publisher.url("/missing"), 200, "404 Not Found"),
        (refusing,                        200, "could not reach 127.0.0.1"),
        (world.publisher.url("/page"),    200, "is not a feed and has no entries"),
        (world.publisher.url("/empty"),   200, "has no entries yet"),
        (world.topic.clone(),             204, ""),
    ];
    for (topic, want, words) in cases {
        let callback = world.subscriber.url("/cb");
        let form = [
            ("hub.mode", "subscribe"),
            ("hub.topic", topic.as_str()),
            ("hub.callback", &callback),
            ("hub.verify", "sync"),
        ];
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        let body = body.extend_pairs(form).finish();
        for (path, accept, want) in [
            ("/", "application/json", want),
            ("/hub", "application/json", want),
            ("/", "application/json, text/plain, */*", 204),
        ] {
            let request = client().post(world.gateway.url(path)).header(ACCEPT, accept);
            let request = request.basic_auth("tester", Some("s3cret"));
            let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
            let answer = request.body(body.clone()).send().await.unwrap();
            assert_eq!(answer.status().as_u16(), want, "{path} {topic}");
            let text = answer.text().await.unwrap();
            match serde_json::from_str::<serde_json::Value>(&text) {
                Ok(found) => assert!(found["note"].as_str().unwrap().contains(words), "{text}"),
                Err(_) => assert_eq!((text.as_str(), want), ("", 204), "{path} {topic}"),
            }
        }
    }
}

#[tokio::test]
async fn a08_an_address_without_a_scheme_is_answered_with_the_one_that_was_meant() {
    let world = World::with_tides(2, &[]).await;
    let callback = world.subscriber.url("/cb");
    let form =
        [("hub.mode", "subscribe"), ("hub.topic", "example.com/feed"), ("hub.callback", &callback)];
    let (status, text) = world.gateway.post("/hub", &form).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(text.contains("did you mean https://example.com/feed?"), "{text}");
    let (status, text) = world.gateway.superfeedr(&form).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(text.contains("did you mean https://example.com/feed?"), "{text}");
}

/// A mode, further parameters, and a part of the reason.
type RefusedRequest<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str);

#[tokio::test]
async fn f14_what_would_have_no_effect_is_refused_and_nothing_is_stored() {
    let world = World::with_tides(2, &[]).await;
    let callback = world.subscriber.url("/cb");
    let topic = [("hub.topic", world.topic.as_str()), ("hub.callback", &callback)];
    #[rustfmt::skip]
    let cases: [RefusedRequest<'_>; 5] = [
        ("subscribe", &[("fromat", "json")],                       "Did you mean format?"),
        ("subscribe", &[("before", "zzz")],                        "before has an effect with retrieve=true only."),
        ("subscribe", &[("before", "zzz"), ("retrieve", "true")],  "before names no entry"),
        ("subscribe", &[("count", "many"), ("retrieve", "true")],  "count must be a number"),
        ("replay",    &[("since", "2026-11-01")],                  "since is not a parameter of replay"),
    ];
    for (mode, further, reason) in cases {
        let form = [&[("hub.mode", mode)], &topic[..], further].concat();
        let (status, text) = world.gateway.superfeedr(&form).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{further:?}");
        assert!(text.contains(reason), "{text}");
    }
    assert_eq!(world.gateway.own("/?hub.mode=list").await, serde_json::json!([]));
}

impl World {
    async fn subscribe_now(&self, callback: &str) -> (StatusCode, Option<String>) {
        let form = [
            ("hub.mode", "subscribe"),
            ("hub.topic", self.topic.as_str()),
            ("hub.callback", callback),
            ("hub.verify", "sync"),
        ];
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        let request = client()
            .post(self.gateway.url("/hub"))
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(body.extend_pairs(form).finish());
        let answer = request.send().await.unwrap();
        let retry = answer.headers().get("retry-after");
        let retry = retry.map(|value| value.to_str().unwrap().to_owned());
        (answer.status(), retry)
    }
}

#[tokio::test]
async fn f20_failures_are_counted_for_public_hosts_and_answered_at_once() {
    let world = World::with_tides(2, &[]).await;
    let port = world.subscriber.port();
    for n in 0..12 {
        world.subscriber.set(&format!("/no{n}"), Behavior::Refusing);
        let named = format!("http://localhost:{port}/no{n}");
        assert_eq!(world.subscribe_now(&named).await, (StatusCode::CONFLICT, None));
    }
    let named = format!("http://localhost:{port}/yes");
    assert_eq!(world.subscribe_now(&named).await, (StatusCode::NO_CONTENT, None));

    for n in 0..10 {
        let nowhere = format!("http://nowhere.invalid/{n}");
        assert_eq!(world.subscribe_now(&nowhere).await, (StatusCode::CONFLICT, None));
    }
    let (status, retry) = world.subscribe_now("http://nowhere.invalid/x").await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
    let retry: u64 = retry.unwrap().parse().unwrap();
    assert!((1..=60).contains(&retry), "{retry}");
}

/// A callback that agrees to the first request of each connection, and closes it at the second.
async fn forgetful_callback() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.unwrap());
                }
                let head = String::from_utf8(head).unwrap();
                let challenge = head.split_once("hub.challenge=").unwrap().1;
                let challenge = challenge.split(['&', ' ']).next().unwrap();
                let length = challenge.len();
                let answer =
                    format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{challenge}");
                stream.write_all(answer.as_bytes()).await.unwrap();
                // The next request is read and not answered.
                let _ = stream.read_u8().await;
            });
        }
    });
    port
}

#[tokio::test]
async fn f27_a_verification_on_a_connection_that_was_closed_is_sent_again() {
    let world = World::with_tides(2, &[]).await;
    let port = forgetful_callback().await;
    // Connections are kept from the second request on, so the third meets one that is closed.
    for n in 0..5 {
        let callback = format!("http://127.0.0.1:{port}/{n}");
        assert_eq!(world.subscribe_now(&callback).await, (StatusCode::NO_CONTENT, None), "{n}");
    }
}

#[tokio::test]
async fn f26_another_body_without_entries_is_a_change_for_who_asked_for_it_as_it_is() {
    let dated = |second: u32| {
        format!(
            "<rss version=\"2.0\"><channel><title>t</title><link>http://a.test/</link>\
             <pubDate>Sat, 07 Sep 2002 00:00:0{second} GMT</pubDate></channel></rss>"
        )
    };
    let versions = [
        ["<rss>version-1</rss>".to_owned(), "<rss>version-2</rss>".to_owned()],
        [dated(1), dated(2)],
    ];
    for (n, [before, after]) in versions.into_iter().enumerate() {
        let path = format!("/bare{n}");
        let world = World::with_tides(0, &[]).await.about(&path);
        world.publisher.put(&path, "text/xml", before);
        let (gateway, subscriber) = (&world.gateway, &world.subscriber);
        gateway.subscribe_websub(&world.topic, &subscriber.url("/raw"), &[]).await;
        gateway.subscribe_rsscloud("http-post", &world.topic, subscriber, "/cloud").await;
        world.publisher.put(&path, "text/xml", after.clone());
        published(gateway, &world.topic).await;
        subscriber.until("/raw", |told| told.len() == 1).await;
        assert_eq!(subscriber.notified("/raw")[0].text(), after);
        // The first call was the test of the handler.
        subscriber.until("/cloud", |told| told.len() == 2).await;
    }
}
