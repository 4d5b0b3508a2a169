//! `feedgate listen` as somebody types it who wants to know what a cloud does: against our
//! own gateway, by every protocol.

use std::process::Stdio;

use http::StatusCode;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use crate::support::PATIENCE;
use crate::support::feeds::rss;
use crate::support::gateway::{LOGIN, TOKEN};
use crate::support::ports::free_port;
use crate::support::world::World;

/// A running `feedgate listen`.
struct Listening {
    child: Child,
    printed: Lines<BufReader<ChildStdout>>,
}

impl Listening {
    fn start(args: &[&str]) -> Listening {
        let mut child = Command::new(env!("CARGO_BIN_EXE_feedgate"))
            .arg("listen")
            .args(args)
            .env_clear()
            .env("FEEDGATE_HOST_MIN_INTERVAL_MS", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let printed = BufReader::new(child.stdout.take().unwrap()).lines();
        Listening { child, printed }
    }

    /// Waits until it prints this word of this feed, and returns the rest of the line.
    async fn says(&mut self, word: &str, topic: &str) -> String {
        let mut lines = Vec::new();
        let find = async {
            while let Some(line) = self.printed.next_line().await.unwrap() {
                let mut words = line.split_whitespace().skip(1);
                if words.next() == Some(word) && words.next() == Some(topic) {
                    return words.collect::<Vec<_>>().join(" ");
                }
                lines.push(line);
            }
            panic!("it ended without saying {word} of {topic}")
        };
        let found = timeout(PATIENCE, find).await.ok();
        found.unwrap_or_else(|| panic!("{word} of {topic} was waited for in vain: {lines:#?}"))
    }

    /// Waits until it prints this event as JSON.
    async fn says_as_json(&mut self, event: &str) -> Value {
        let mut lines = Vec::new();
        let find = async {
            while let Some(line) = self.printed.next_line().await.unwrap() {
                let object: Value = serde_json::from_str(&line).unwrap();
                if object["event"] == event {
                    return object;
                }
                lines.push(line);
            }
            panic!("it ended without {event}")
        };
        let found = timeout(PATIENCE, find).await.ok();
        found.unwrap_or_else(|| panic!("{event} was waited for in vain: {lines:#?}"))
    }

    /// Interrupts it, and waits until it has ended.
    async fn ends(mut self, topic: &str) {
        let id = i32::try_from(self.child.id().unwrap()).unwrap();
        kill_process(Pid::from_raw(id).unwrap(), Signal::INT).unwrap();
        self.says("cancelled", topic).await;
        let ended = timeout(PATIENCE, self.child.wait()).await.expect("it ends").unwrap();
        assert!(ended.success(), "{ended}");
    }
}

async fn publish(world: &World, item: usize) {
    world.put_tides(item);
    let (status, text) = world.gateway.post("/ping", &[("url", &world.topic)]).await;
    assert!(status == StatusCode::OK && text.contains("success=\"true\""), "{text}");
}

async fn is_told(protocol: &str, further: &[&str]) {
    let world = World::with_tides(2, &[]).await;
    let cloud = world.gateway.url("/");
    let args = ["--cloud", &cloud, "--feed", &world.topic, "--protocol", protocol];
    let mut listening = Listening::start(&[&args, further].concat());
    if protocol == "websub" {
        assert_eq!(listening.says("verified", &world.topic).await, "for 864000 s");
    } else {
        listening.says("registered", &world.topic).await;
    }
    world.gateway.measures("feedgate_subscriptions 1").await;
    publish(&world, 3).await;
    let how = listening.says("notified", &world.topic).await;
    assert!(how.starts_with(protocol) && !how.contains("not signed"), "{how}");
    let new = listening.says("new", &world.topic).await;
    assert!(new.contains("3"), "the third item is new: {new}");
    listening.ends(&world.topic).await;
    world.gateway.measures("feedgate_subscriptions 0").await;
}

#[tokio::test]
async fn it_is_told_by_forms() {
    is_told("http-post", &[]).await;
}

#[tokio::test]
async fn it_is_told_by_forms_at_a_domain_of_its_own() {
    is_told("http-post", &["--domain", "127.0.0.1"]).await;
}

#[tokio::test]
async fn it_is_told_by_xmlrpc() {
    is_told("xml-rpc", &[]).await;
}

#[tokio::test]
async fn it_is_told_by_soap() {
    is_told("soap", &[]).await;
}

#[tokio::test]
async fn it_is_told_by_websub() {
    is_told("websub", &[]).await;
}

#[tokio::test]
async fn it_follows_more_feeds_than_it_holds_events() {
    const FEEDS: usize = 40;
    for protocol in ["http-post", "websub"] {
        let world = World::with_tides(2, &[]).await;
        let topic = |n| {
            let path = format!("/{n}");
            world.publisher.put_rss(&path, rss("tides", 1..3));
            world.publisher.url(&path)
        };
        let (topics, cloud): (Vec<_>, _) =
            ((0..FEEDS).map(topic).collect(), world.gateway.url("/"));
        let mut args = vec!["--cloud", &cloud, "--protocol", protocol];
        args.extend(topics.iter().flat_map(|topic| ["--feed", topic]));
        let mut listening = Listening::start(&args);
        listening.says("registered", &topics[FEEDS - 1]).await;
        world.gateway.measures(&format!("feedgate_subscriptions {FEEDS}")).await;
        listening.ends(&topics[FEEDS - 1]).await;
        world.gateway.measures("feedgate_subscriptions 0").await;
    }
}

#[tokio::test]
async fn it_is_told_though_the_length_is_not() {
    let world = World::with_tides(2, &[]).await;
    let (cloud, port) = (world.gateway.url("/"), free_port());
    let args = ["--cloud", &cloud, "--feed", &world.topic, "--port", &port.to_string()];
    let mut listening = Listening::start(&args);
    listening.says("registered", &world.topic).await;
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let body = format!("url={}", world.topic);
    let request = format!(
        "POST /0 HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n\
         {:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(listening.says("notified", &world.topic).await.starts_with("http-post"));
    listening.ends(&world.topic).await;
}

#[tokio::test]
async fn it_finds_the_cloud_that_a_feed_names_and_renews() {
    let world = World::with_tides(2, &[]).await;
    let port = world.gateway.url("/").rsplit(':').next().unwrap().replace('/', "");
    let cloud = format!(
        "<cloud domain='127.0.0.1' port='{port}' path='/RPC2' protocol='xml-rpc' \
         registerProcedure='rssCloud.pleaseNotify'/><item>"
    );
    world.publisher.put_rss("/feed", rss("tides", 1..3).replacen("<item>", &cloud, 1));
    let mut listening = Listening::start(&["--feed", &world.topic, "--renew", "1"]);
    assert_eq!(listening.says("registered", &world.topic).await, "xml-rpc");
    assert_eq!(listening.says("renewed", &world.topic).await, "xml-rpc");
    world.gateway.measures("feedgate_subscriptions 1").await;
    listening.ends(&world.topic).await;
}

#[tokio::test]
async fn it_registers_once_the_feed_can_be_read_and_says_when_it_cannot() {
    let world = World::with_tides(2, &[]).await;
    let (cloud, later) = (world.gateway.url("/"), world.publisher.url("/later"));
    let args = ["--cloud", &cloud, "--feed", &later, "--protocol", "xml-rpc", "--renew", "1"];
    let mut listening = Listening::start(&args);
    listening.says("refused", &later).await;
    world.publisher.put_rss("/later", rss("tides", 1..3));
    listening.says("registered", &later).await;
    listening.says("renewed", &later).await;
    world.publisher.put("/later", "text/plain", "closed");
    let (status, _) = world.gateway.post("/ping", &[("url", &later)]).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(listening.says("unread", &later).await, "the document is not a feed");
}

#[tokio::test]
async fn it_says_why_it_is_refused_and_what_names_no_cloud() {
    let world = World::with_tides(2, &[]).await;
    let nowhere = world.publisher.url("/nowhere");
    let cloud = world.gateway.url("/");
    let mut listening = Listening::start(&["--cloud", &cloud, "--feed", &nowhere]);
    let why = listening.says("refused", &nowhere).await;
    assert!(why.contains("error reading the resource at URL"), "{why}");

    let mut command = Listening::start(&["--feed", &world.topic]);
    let ended = timeout(PATIENCE, command.child.wait()).await.expect("it ends").unwrap();
    assert!(!ended.success());
}

#[tokio::test]
async fn notifications_are_printed_with_headers_body_and_verdicts_and_forwarded() {
    let world = World::with_tides(2, &[]).await;
    let (cloud, forward_to) = (world.gateway.url("/"), world.subscriber.url("/forwarded"));
    let user = format!("{LOGIN}:{TOKEN}");
    let args = ["--cloud", &cloud, "--feed", &world.topic, "--user", &user, "--json"];
    let mut listening = Listening::start(&[&args[..], &["--forward-to", &forward_to]].concat());
    assert_eq!(listening.says_as_json("registered").await["detail"], "account");
    publish(&world, 3).await;
    let notified = listening.says_as_json("notified").await;
    assert_eq!(notified["topic"], *world.topic);
    assert_eq!(notified["signatures"]["x-hub-signature"], "valid", "{notified}");
    assert_eq!(notified["signatures"]["webhook-signature"], "valid", "{notified}");
    assert!(notified["headers"]["webhook-id"].is_string(), "{notified}");
    assert!(notified["body"].as_str().unwrap().contains("Item 3"), "{notified}");
    let forwarded = listening.says_as_json("forwarded").await;
    assert!(forwarded["detail"].as_str().unwrap().contains("200 OK"), "{forwarded}");
    world.subscriber.until("/forwarded", |told| !told.is_empty()).await;
    let told = world.subscriber.notified("/forwarded");
    assert_eq!(told[0].header("webhook-id"), notified["headers"]["webhook-id"].as_str());
    assert_eq!(told[0].text(), notified["body"].as_str().unwrap());
}

#[tokio::test]
async fn a_notification_is_printed_below_its_line() {
    let world = World::with_tides(2, &[]).await;
    let hub = world.gateway.url("/hub");
    let mut listening = Listening::start(&["--cloud", &hub, "--feed", &world.topic]);
    listening.says("verified", &world.topic).await;
    world.gateway.measures("feedgate_subscriptions 1").await;
    publish(&world, 3).await;
    let how = listening.says("notified", &world.topic).await;
    assert!(how.contains("signed, webhook-signature valid"), "{how}");
    let mut displayed = Vec::new();
    while !displayed.iter().any(|line: &String| line.starts_with("    | ")) {
        displayed.push(listening.printed.next_line().await.unwrap().unwrap());
    }
    assert!(
        displayed.iter().any(|line| line.starts_with("    x-hub-signature: sha256=")),
        "{displayed:#?}"
    );
    listening.ends(&world.topic).await;
}
