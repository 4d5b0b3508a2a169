//! `feedgate tail` as somebody types it whose program has no public address: against a gateway and a
//! program on this machine.

use std::fs;
use std::process::Stdio;

use feedgate_protocol::signature::holds;
use feedgate_protocol::standard_webhooks::sign;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::time::timeout;

use crate::support::PATIENCE;
use crate::support::feeds::{entry_id, entry_ids, rss};
use crate::support::gateway::{LOGIN, TOKEN};
use crate::support::ports::free_port;
use crate::support::server::ReceivedRequest;
use crate::support::subscriber::Behavior;
use crate::support::world::World;

/// A secret as Standard Webhooks serializes it, and its key.
const SECRET: (&str, &[u8]) = ("whsec_b3BlbnNlc2FtZSBvcGVuc2VzYW1l", b"opensesame opensesame");

/// A running `feedgate tail`.
struct Tail {
    child: Child,
    printed: Lines<BufReader<ChildStdout>>,
    notes: Lines<BufReader<ChildStderr>>,
}

impl Tail {
    fn start(world: &World, args: &[&str]) -> Tail {
        Tail::start_with(world, args, &[])
    }

    fn start_with(world: &World, args: &[&str], environment: &[(&str, &str)]) -> Tail {
        let mut child = Command::new(env!("CARGO_BIN_EXE_feedgate"))
            .args(["tail", "--server", &world.gateway.url("/")])
            .args(args)
            .env_clear()
            .env("FEEDGATE_TOKEN", format!("{LOGIN}:{TOKEN}"))
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let printed = BufReader::new(child.stdout.take().unwrap()).lines();
        let notes = BufReader::new(child.stderr.take().unwrap()).lines();
        Tail { child, printed, notes }
    }

    /// Waits until it prints this event as JSON.
    async fn event(&mut self, event: &str) -> Value {
        let find = async {
            while let Some(line) = self.printed.next_line().await.unwrap() {
                let object: Value = serde_json::from_str(&line).unwrap();
                if object["event"] == event {
                    return object;
                }
            }
            panic!("it ended without {event}")
        };
        timeout(PATIENCE, find).await.unwrap_or_else(|_| panic!("{event} was waited for in vain"))
    }

    /// Waits until it notes a line with this text beside its output.
    async fn note(&mut self, text: &str) -> String {
        let find = async {
            while let Some(line) = self.notes.next_line().await.unwrap() {
                if line.contains(text) {
                    return line;
                }
            }
            panic!("it ended without noting {text}")
        };
        timeout(PATIENCE, find).await.unwrap_or_else(|_| panic!("{text} was waited for in vain"))
    }

    /// Waits until it has printed so many lines: one for each answer of the local program.
    async fn prints(&mut self, count: usize) {
        for _ in 0..count {
            let line = timeout(PATIENCE, self.printed.next_line()).await.expect("a line");
            assert!(line.unwrap().is_some(), "it ended");
        }
    }

    /// Interrupts it, waits until it has ended, and returns the position that it prints.
    async fn ends(mut self) -> String {
        let id = i32::try_from(self.child.id().unwrap()).unwrap();
        kill_process(Pid::from_raw(id).unwrap(), Signal::INT).unwrap();
        let line = self.note("--from ").await;
        let ended = timeout(PATIENCE, self.child.wait()).await.expect("it ends").unwrap();
        assert!(ended.success(), "{ended}");
        line.split_once("--from ").unwrap().1.split_whitespace().next().unwrap().to_owned()
    }

    /// Waits until it has ended by itself. Returns the exit code and what it noted.
    async fn ended(mut self) -> (Option<i32>, String) {
        let ended = timeout(PATIENCE, self.child.wait()).await.expect("it ends").unwrap();
        let mut notes = String::new();
        self.notes.into_inner().read_to_string(&mut notes).await.unwrap();
        (ended.code(), notes)
    }
}

impl World {
    /// One whose account is subscribed to the feed, which has two items.
    async fn tailed() -> World {
        let world = World::with_tides(2, &[]).await;
        let callback = world.gateway.url("/dev/null");
        world.gateway.subscribe_superfeedr(&world.topic, &callback, "json").await;
        world
    }

    /// Waits until the local program was sent so many notifications, and returns them.
    async fn posted(&self, count: usize) -> Vec<ReceivedRequest> {
        self.subscriber.until("/local", |posted| posted.len() >= count).await;
        self.subscriber.notified("/local")
    }
}

fn item_ids(request: &ReceivedRequest) -> Vec<String> {
    let document: Value = serde_json::from_slice(&request.body).unwrap();
    let items = document["items"].as_array().unwrap().iter();
    items.map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

/// Whether both signatures of a request are right.
fn is_signed(request: &ReceivedRequest, (secret, key): (&str, &[u8])) -> bool {
    let header = |name| request.header(name).unwrap_or_default();
    let at = header("webhook-timestamp").parse().unwrap();
    let signature = sign(key, header("webhook-id"), at, &request.body);
    holds(header("x-hub-signature"), secret, &request.body)
        && header("webhook-signature") == signature
}

#[tokio::test]
async fn a_local_program_is_sent_what_a_callback_is_sent() {
    for format in ["json", "atom"] {
        let world = World::with_tides(2, &[]).await;
        let (status, text) = world
            .gateway
            .superfeedr(&[
                ("hub.mode", "subscribe"),
                ("hub.topic", &world.topic),
                ("hub.callback", &world.subscriber.url("/cb")),
                ("hub.secret", SECRET.0),
                ("format", format),
            ])
            .await;
        assert!(status.is_success(), "{text}");
        let local = world.subscriber.url("/local");
        let args = [world.topic.as_str(), "--forward-to", &local, "--format", format, "--json"];
        let mut tail = Tail::start_with(&world, &args, &[("FEEDGATE_WEBHOOK_SECRET", SECRET.0)]);
        tail.note("signed with your secret").await;
        world.publish_tides(3).await;
        let forwarded = tail.event("forwarded").await;
        assert_eq!(forwarded["topic"], *world.topic);
        assert_eq!(forwarded["status"], 200, "{forwarded}");
        assert!(forwarded["ms"].is_u64(), "{forwarded}");
        world.subscriber.until("/cb", |notified| !notified.is_empty()).await;
        let (posted, notified) =
            (world.posted(1).await.remove(0), world.subscriber.notified("/cb"));
        assert_eq!(posted.text(), notified[0].text());
        assert!(is_signed(&posted, SECRET) && is_signed(&notified[0], SECRET), "{format}");
        assert_eq!(forwarded["id"], posted.header("webhook-id").unwrap());
        let names = |request: &ReceivedRequest| {
            let mut names: Vec<_> =
                request.headers.keys().map(|name| name.as_str().to_owned()).collect();
            names.sort();
            names
        };
        assert_eq!(names(&posted), names(&notified[0]), "{format}");
        for name in ["content-type", "link", "x-pubsubhubbub-topic", "x-feedgate-seq"] {
            assert_eq!(posted.header(name), notified[0].header(name), "{name}");
        }
        assert_eq!(posted.header("x-pubsubhubbub-callback"), Some(&*local));
        tail.ends().await;
    }
}

#[tokio::test]
async fn nothing_is_lost_while_the_gateway_is_gone_and_nothing_comes_twice() {
    let mut world = World::tailed().await;
    let local = world.subscriber.url("/local");
    let mut tail = Tail::start(&world, &["--forward-to", &local]);
    let secret = tail.note("signed with whsec_").await;
    world.gateway.kill();
    tail.note("opening the stream again").await;
    world.gateway.restart().await;
    world.publish_tides(3).await;
    world.posted(1).await;
    world.gateway.kill();
    world.gateway.restart().await;
    world.publish_tides(4).await;
    world.publish_tides(5).await;
    let last = entry_id("tides", 5);
    world
        .subscriber
        .until("/local", |posted| {
            posted.last().is_some_and(|last_one| item_ids(last_one).contains(&last))
        })
        .await;
    let posted = world.subscriber.notified("/local");
    let mut ids: Vec<_> = posted.iter().flat_map(item_ids).collect();
    ids.sort();
    assert_eq!(ids, [3, 4, 5].map(|item| entry_id("tides", item)));
    let secret = secret.split_whitespace().last().unwrap();
    let key = feedgate_core::signing::Secret::new(secret.to_owned()).unwrap().standard_key();
    assert!(posted.iter().all(|request| is_signed(request, (secret, key.as_slice()))), "{secret}");
    assert!(
        posted.iter().all(|request| {
            request.header("x-pubsubhubbub-topic") == Some(world.topic.as_str())
        })
    );

    let before = posted.len();
    tail.prints(before).await;
    let position = tail.ends().await;
    world.publish_tides(6).await;
    let mut tail = Tail::start(&world, &["--forward-to", &local, "--from", &position]);
    tail.note("signed with").await;
    let posted = world.posted(before + 1).await;
    assert_eq!(item_ids(&posted[before]), [entry_id("tides", 6)]);
    tail.ends().await;
}

#[tokio::test]
async fn a_program_that_fails_is_sent_the_same_again_and_then_no_more() {
    let world = World::tailed().await;
    let local = world.subscriber.url("/local");
    world.subscriber.set("/local", Behavior::Failing(500));
    let mut tail = Tail::start(&world, &["--forward-to", &local, "--json"]);
    tail.note("signed with").await;
    world.publish_tides(3).await;
    assert_eq!(tail.event("retrying").await["status"], 500);
    world.subscriber.set("/local", Behavior::Accepting);
    let forwarded = tail.event("forwarded").await;
    let posted = world.subscriber.notified("/local");
    assert!(posted.len() >= 2);
    assert!(posted.iter().all(|request| request.header("webhook-id") == forwarded["id"].as_str()));
    assert_eq!(posted[1].header("x-superfeedr-retried"), Some("1"));

    world.subscriber.set("/local", Behavior::Failing(422));
    world.publish_tides(4).await;
    let failed = tail.event("failed").await;
    assert_eq!(failed["status"], 422);
    assert!(failed["detail"].as_str().unwrap().ends_with("given up"), "{failed}");
    tail.ends().await;
}

#[tokio::test]
async fn a_program_that_does_not_run_is_waited_for_and_then_given_up() {
    let world = World::tailed().await;
    let local = format!("http://localhost:{}/", free_port());
    let mut tail = Tail::start(&world, &["--forward-to", &local, "--json"]);
    tail.note("signed with").await;
    world.publish_tides(3).await;
    let retrying = tail.event("retrying").await;
    assert_eq!(retrying["status"], Value::Null);
    assert!(
        retrying["detail"].as_str().unwrap().contains("could not reach localhost"),
        "{retrying}"
    );
    tail.event("failed").await;
    let id = i32::try_from(tail.child.id().unwrap()).unwrap();
    kill_process(Pid::from_raw(id).unwrap(), Signal::TERM).unwrap();
    tail.note("0 notifications were accepted, 1 were given up").await;
}

#[tokio::test]
async fn documents_are_printed_where_nothing_is_to_be_forwarded() {
    let world = World::tailed().await;
    world.publisher.put_rss("/more", rss("more", 1..2));
    let more = world.publisher.url("/more");
    world.gateway.subscribe_superfeedr(&more, &world.gateway.url("/dev/null"), "json").await;
    let mut tail = Tail::start(&world, &[more.as_str(), "--count", "1"]);
    let line = timeout(PATIENCE, tail.printed.next_line()).await.unwrap().unwrap().unwrap();
    let document: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(document["items"][0]["id"], entry_id("more", 1));
    tail.ends().await;

    let local = world.subscriber.url("/local");
    let args = ["--format", "atom", "--forward-to", &local, "--filter", "\"Item 3\""];
    let mut tail = Tail::start(&world, &args);
    tail.note("signed with").await;
    world.publish_tides(4).await;
    let posted = world.posted(1).await;
    assert_eq!(entry_ids(&posted[0].text()), [entry_id("tides", 3)]);
    assert_eq!(posted[0].header("x-pubsubhubbub-topic"), Some(&*world.topic));
    tail.ends().await;
}

#[tokio::test]
async fn what_the_gateway_refuses_ends_the_command_and_a_subscription_can_be_made() {
    let world = World::with_tides(2, &[]).await;
    let local = world.subscriber.url("/local");
    let args = [world.topic.as_str(), "--forward-to", &local];
    let (code, notes) = Tail::start(&world, &args).ended().await;
    assert_eq!(code, Some(1), "{notes}");
    assert!(notes.contains("You are not subscribed to this topic"), "{notes}");

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    fs::write(&file, format!("{}\n", SECRET.0)).unwrap();
    let further = ["--subscribe", "--count", "1", "--secret-file", file.to_str().unwrap()];
    let tail = Tail::start(&world, &[&args[..], &further].concat());
    let posted = world.posted(1).await;
    assert_eq!(item_ids(&posted[0]), [entry_id("tides", 2)]);
    assert!(is_signed(&posted[0], SECRET));
    tail.ends().await;

    fs::write(&file, "\n").unwrap();
    let (code, notes) = Tail::start(&world, &[&args[..], &further].concat()).ended().await;
    assert!(code == Some(1) && notes.contains("the secret is empty"), "{notes}");
    let nobody = [("FEEDGATE_TOKEN", "tester:wrong")];
    let (code, notes) = Tail::start_with(&world, &args, &nobody).ended().await;
    assert!(code == Some(1) && notes.contains("401"), "{notes}");
    let args = ["--server", &format!("http://127.0.0.1:{}", free_port())];
    let mut elsewhere = Command::new(env!("CARGO_BIN_EXE_feedgate"));
    let elsewhere = elsewhere.arg("tail").args(args).env_clear();
    let ended = timeout(PATIENCE, elsewhere.env("FEEDGATE_TOKEN", "a:b").output()).await;
    assert_eq!(ended.unwrap().unwrap().status.code(), Some(3));
}
