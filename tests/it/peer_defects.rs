//! What the deployed rssCloud hub was seen to do wrong, B1 to B13 of `docs/contributing/rules.md`: each
//! of these tests would fail on a gateway that does the same.

mod crowds;
mod secrets;

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use http::header::{ACCEPT, LOCATION};
use http::{HeaderValue, Method, StatusCode};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};

use crate::store::on_both_stores;
use crate::support::PATIENCE;
use crate::support::feeds::rss;
use crate::support::gateway::Gateway;
use crate::support::postgres::Database;
use crate::support::publisher::Publisher;
use crate::support::server::{Server, client, say};
use crate::support::subscriber::{Behavior, Subscriber};
use crate::support::world::World;

on_both_stores!(b01_registrations_at_the_same_time_are_all_kept);

/// The deployed hub kept two of a hundred.
async fn b01_registrations_at_the_same_time_are_all_kept(database: Database) {
    const MANY: usize = 100;
    let gateway = Gateway::start(&database, &[]).await;
    let (publisher, subscriber) = (Publisher::start().await, Subscriber::start().await);
    publisher.put_rss("/feed", rss("tides", 1..3));
    let topic = publisher.url("/feed");
    let paths: Vec<String> = (0..MANY).map(|n| format!("/cb{n}")).collect();
    let register = |path| gateway.subscribe_rsscloud("http-post", &topic, &subscriber, path);
    join_all(paths.iter().map(|path| register(path))).await;

    publisher.put_rss("/feed", rss("tides", 1..4));
    let (_, text) = gateway.post("/ping?wait=1", &[("url", &topic)]).await;
    assert!(text.contains(&format!("told=\"{MANY}\"")), "{text}");
    for path in &paths {
        // The first call was the test of the handler.
        assert_eq!(subscriber.notified(path).len(), 2, "{path}");
    }
}

impl World {
    async fn registers(&self, path: &str) {
        let (gateway, subscriber) = (&self.gateway, &self.subscriber);
        gateway.subscribe_rsscloud("http-post", &self.topic, subscriber, path).await;
    }

    /// Publishes item `n`, and pings.
    async fn changes(&self, n: usize) {
        self.put_tides(n);
        let (_, text) = self.gateway.post("/ping", &[("url", &self.topic)]).await;
        assert!(text.contains("success=\"true\""), "{text}");
    }
}

/// The deployed hub wrote back the list of subscribers that it had read before.
#[tokio::test]
async fn b02_a_registration_during_a_fan_out_survives() {
    let world = World::with_tides(2, &[("FEEDGATE_DELIVERY_TIMEOUT_S", "3")]).await;
    world.registers("/slow").await;
    world.subscriber.set("/slow", Behavior::Hanging);
    world.changes(3).await;
    world.subscriber.until("/slow", |told| told.len() == 2).await;
    world.registers("/new").await;
    let ended = async {
        while !world.gateway.get("/metrics").await.1.contains("result=\"timed_out\"") {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, ended).await.expect("the delivery in hand ends");
    world.changes(4).await;
    world.subscriber.until("/new", |told| told.len() == 2).await;
}

/// The deployed hub believed `X-Forwarded-For`, and called whoever stood there.
#[tokio::test]
async fn b04_a_stranger_cannot_choose_whom_we_call() {
    let world = World::with_tides(2, &[]).await;
    let victim = Subscriber::start().await;
    let form = |port: u16| format!("port={port}&path=/cb&protocol=http-post&url1={}", world.topic);
    let register = async |port: u16, forwarded: Option<&str>| {
        let request = client().post(world.gateway.url("/pleaseNotify")).body(form(port));
        let request = match forwarded {
            Some(address) => request.header("x-forwarded-for", address),
            None => request,
        };
        request.send().await.unwrap().text().await.unwrap()
    };
    // The subscriber listens at 127.0.0.1; nobody does at the address that is made up. Behind a proxy
    // that nobody declared, the caller may be anybody, and its address is in a private network.
    for (port, forwarded) in [(world.subscriber.port(), "127.0.0.2"), (victim.port(), "8.8.8.8")] {
        let text = register(port, Some(forwarded)).await;
        assert!(text.contains("success=\"false\""), "{forwarded}: {text}");
    }
    assert!(world.subscriber.requests_to("/cb").is_empty() && victim.requests_to("/cb").is_empty());
    let text = register(world.subscriber.port(), None).await;
    assert!(text.contains("success=\"true\""), "the caller's own address counts: {text}");
    // Who names another must have it agree: it cannot be made to answer for a stranger.
    victim.set("/victim", Behavior::Refusing);
    let port = victim.port().to_string();
    let form = [
        ("port", port.as_str()),
        ("path", "/victim"),
        ("protocol", "http-post"),
        ("domain", "127.0.0.1"),
        ("url1", &world.topic),
    ];
    let (_, text) = world.gateway.post("/pleaseNotify", &form).await;
    assert!(text.contains("success=\"false\""), "{text}");
    assert!(victim.requests_to("/victim").iter().all(|request| request.method == Method::GET));
}

/// The deployed hub wrote its file some time later.
#[tokio::test]
async fn b07_what_was_answered_with_success_survives_a_kill() {
    let mut world = World::with_tides(2, &[]).await;
    for round in 0..3 {
        let path = format!("/cb{round}");
        world.registers(&path).await;
        world.gateway.kill();
        world.gateway.restart().await;
        world.changes(3 + round).await;
        world.subscriber.until(&path, |told| told.len() == 2).await;
    }
}

/// The deployed hub read the body as UTF-8, wrote it as UTF-8, and called it ISO-8859-1.
#[tokio::test]
async fn b08_a_body_arrives_byte_for_byte() {
    let world = World::with_tides(0, &[]).await;
    let latin1 = |word: &[u8]| {
        let head = b"<?xml version='1.0' encoding='ISO-8859-1'?><rss><channel><title>Caf\xe9 ";
        [head, word, b"</title></channel></rss>"].concat()
    };
    let content_type = "text/xml; charset=ISO-8859-1";
    world.publisher.put("/cafe", content_type, latin1(b"1"));
    let world = world.about("/cafe");
    let callback = world.subscriber.url("/cb");
    world.gateway.subscribe_websub(&world.topic, &callback, &[("format", "raw")]).await;
    world.publisher.put("/cafe", content_type, latin1(b"\xe92"));
    world.gateway.post("/hub", &[("hub.mode", "publish"), ("hub.url", &world.topic)]).await;
    world.subscriber.until("/cb", |told| told.len() == 1).await;
    let told = world.subscriber.notified("/cb").remove(0);
    assert_eq!(told.body.as_ref(), latin1(b"\xe92"));
    assert_eq!(told.header("content-type"), Some(content_type));
}

/// The deployed hub read 150 MiB into its memory, and waited as long as bytes dripped.
#[tokio::test]
async fn b09_a_feed_may_be_neither_endless_nor_endlessly_slow() {
    let settings = [("FEEDGATE_BODY_LIMIT_BYTES", "100000"), ("FEEDGATE_FETCH_TIMEOUT_S", "1")];
    let world = World::with_tides(2, &settings).await;
    let port = dripping_server().await;
    for topic in ["endless", "slow"].map(|kind| format!("http://127.0.0.1:{port}/{kind}")) {
        let subscriber = world.subscriber.port().to_string();
        let form = [
            ("port", subscriber.as_str()),
            ("path", "/cb"),
            ("protocol", "http-post"),
            ("url1", topic.as_str()),
        ];
        let registered = timeout(PATIENCE, world.gateway.post("/pleaseNotify", &form));
        let (_, text) = registered.await.expect("an answer although the feed never ends");
        assert!(text.contains("error reading the resource"), "{text}");
    }
    assert_eq!(world.subscriber.requests_to("/cb").len(), 0);
}

/// A server whose answers never end: a byte now and then, or as many as are read.
async fn dripping_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = service_fn(|request: hyper::Request<hyper::body::Incoming>| async move {
                let is_slow = request.uri().path() == "/slow";
                let pause = Duration::from_millis(if is_slow { 50 } else { 0 });
                let drops = futures_util::stream::unfold((), move |()| async move {
                    sleep(pause).await;
                    let bytes =
                        if is_slow { Bytes::from_static(b" ") } else { vec![b' '; 8_192].into() };
                    Some((Ok::<_, Infallible>(Frame::data(bytes)), ()))
                });
                Ok::<_, Infallible>(hyper::Response::new(StreamBody::new(drops).boxed_unsync()))
            });
            let connection = hyper::server::conn::http1::Builder::new();
            tokio::spawn(connection.serve_connection(TokioIo::new(stream), service));
        }
    });
    port
}

/// The deployed hub followed the redirect of a call with GET, and took that for a success.
#[tokio::test]
async fn b10_a_call_that_is_redirected_is_repeated_and_not_replaced_by_a_get() {
    let world = World::with_tides(2, &[]).await;
    let methods: Arc<Mutex<Vec<Method>>> = Arc::default();
    let seen = Arc::clone(&methods);
    let page = Server::start(move |request| {
        seen.lock().unwrap().push(request.method.clone());
        let is_get = request.method == Method::GET;
        let status = if is_get { StatusCode::OK } else { StatusCode::METHOD_NOT_ALLOWED };
        async move { say(status, "a page") }
    })
    .await;
    let elsewhere = page.url("/page");
    let server = Server::start(move |_| {
        let mut answer = say(StatusCode::MOVED_PERMANENTLY, "");
        answer.headers_mut().insert(LOCATION, HeaderValue::try_from(&elsewhere).unwrap());
        async move { answer }
    })
    .await;
    let port = server.port().to_string();
    for protocol in ["xml-rpc", "soap", "http-post"] {
        let form = [
            ("notifyProcedure", "river.changed"),
            ("port", port.as_str()),
            ("path", "/RPC2"),
            ("protocol", protocol),
            ("url1", &world.topic),
        ];
        let (_, text) = world.gateway.post("/pleaseNotify", &form).await;
        assert!(text.contains("success=\"false\""), "{protocol}: {text}");
    }
    assert_eq!(*methods.lock().unwrap(), [Method::POST, Method::POST, Method::POST]);
}

/// The deployed hub refused what it had done already, and refused what it then served.
#[tokio::test]
async fn b11_who_takes_xml_is_answered_and_who_does_not_is_refused_before_the_work() {
    let world = World::with_tides(2, &[]).await;
    let port = world.subscriber.port();
    let ask = async |accept: &'static str, path: &str| {
        let form = format!("port={port}&path={path}&protocol=http-post&url1={}", world.topic);
        let request = client().post(world.gateway.url("/pleaseNotify"));
        request.header(ACCEPT, accept).body(form).send().await.unwrap()
    };
    let answer = ask("text/xml", "/xml").await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert!(answer.headers()["content-type"].to_str().unwrap().starts_with("text/xml"));
    assert_eq!(world.subscriber.requests_to("/xml").len(), 1);
    let answer = ask("text/html", "/html").await;
    assert_eq!(answer.status(), StatusCode::NOT_ACCEPTABLE);
    assert_eq!(world.subscriber.requests_to("/html").len(), 0, "nothing was done");
}

/// The deployed hub answered when the slowest subscriber had; WordPress waits for three
/// seconds.
#[tokio::test]
async fn b13_who_pings_does_not_wait_for_the_slowest_subscriber() {
    // Longer than this test may take: an answer that comes has not waited for it.
    let settings = [("FEEDGATE_DELIVERY_TIMEOUT_S", "60"), ("FEEDGATE_JOB_LEASE_S", "120")];
    let world = World::with_tides(2, &settings).await;
    for path in ["/slow", "/cb"] {
        world.registers(path).await;
    }
    world.subscriber.set("/slow", Behavior::Hanging);
    let told = async {
        world.changes(3).await;
        world.subscriber.until("/cb", |told| told.len() == 2).await;
        world.subscriber.until("/slow", |told| told.len() == 2).await;
    };
    timeout(PATIENCE, told).await.expect("an answer although somebody is slow");
}
