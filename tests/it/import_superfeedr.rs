//! `feedgate import-superfeedr` against a stand-in for Superfeedr and a whole gateway: nothing is lost on
//! the way, and nothing is sent that was not asked for.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;
use tokio::process::Command;

use crate::support::cases::is_full;
use crate::support::feeds::{entry_id, entry_ids};
use crate::support::gateway::{LOGIN, TOKEN};
use crate::support::ports::free_port;
use crate::support::superfeedr::{ACCOUNT, Subscribed, Superfeedr};
use crate::support::until;
use crate::support::world::World;

/// A gateway, a stand-in, and the file of the command.
struct Move {
    world: World,
    superfeedr: Superfeedr,
    folder: tempfile::TempDir,
}

impl Move {
    /// One whose account has a subscription of the callback `/cb` to the feed `tides` with so many items,
    /// which both services have.
    async fn of_tides(items: usize) -> Move {
        let world = World::with_tides(items, &[]).await;
        let superfeedr = Superfeedr::start().await;
        let folder = tempfile::tempdir().unwrap();
        let moved = Move { world, superfeedr, folder };
        moved.subscribe_there("/cb");
        moved.put_there(1..items + 1);
        moved
    }

    /// One whose services were compared before the items 4 and 5 came, of which Superfeedr lists 4 alone.
    async fn of_tides_that_superfeedr_has_not_sent() -> Move {
        let moved = Move::of_tides(3).await;
        moved.run(&[], 0).await;
        moved.gateway_has(3).await;
        moved.run(&["--compare"], 0).await;
        moved.publish_here(5).await;
        moved.put_there(1..5);
        moved
    }

    fn subscribe_there(&self, callback: &str) {
        self.superfeedr.subscribe(Subscribed {
            topic: self.world.topic.clone(),
            endpoint: self.world.subscriber.url(callback),
            format: "json",
            secret: Some("k3y"),
        });
    }

    /// Makes Superfeedr have these items of `tides`.
    fn put_there(&self, numbers: impl DoubleEndedIterator<Item = usize>) {
        let ids = numbers.rev().map(|n| entry_id("tides", n)).collect();
        self.superfeedr.put(&self.world.topic, ids);
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("move.jsonl")
    }

    /// Runs the command. It must end with this code; returns its lines.
    async fn run(&self, options: &[&str], code: i32) -> Vec<Value> {
        let server = self.world.gateway.url("/");
        let output = run(&self.state(), &self.superfeedr.url(), &server, options).await;
        assert_eq!(output.status.code(), Some(code), "{options:?}: {output:?}");
        lines(&output)
    }

    /// The subscriptions of the account at the gateway, by their callbacks.
    async fn callbacks_here(&self) -> BTreeSet<String> {
        let list = [("hub.mode", "list"), ("by_page", "500")];
        let listed: Value =
            serde_json::from_str(&self.world.gateway.superfeedr(&list).await.1).unwrap();
        let listed = listed.as_array().unwrap().iter();
        listed.map(|item| item["subscription"]["endpoint"].as_str().unwrap().to_owned()).collect()
    }

    /// Publishes the items 1 to `items`, and waits until the gateway has the last one.
    async fn publish_here(&self, items: usize) {
        self.world.put_tides(items);
        let form = [("hub.mode", "publish"), ("hub.url", self.world.topic.as_str())];
        assert!(self.world.gateway.post("/hub", &form).await.0.is_success());
        self.gateway_has(items).await;
    }

    /// Waits until the gateway has an item of `tides`.
    async fn gateway_has(&self, item: usize) {
        let retrieve = [("hub.mode", "retrieve"), ("hub.topic", self.world.topic.as_str())];
        let id = entry_id("tides", item);
        let has_it = async || self.world.gateway.superfeedr(&retrieve).await.1.contains(&id);
        until("the gateway has the item", has_it).await;
    }
}

async fn run(state: &Path, superfeedr: &str, server: &str, options: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_feedgate"));
    command.arg("import-superfeedr").arg("--state").arg(state).env_clear();
    command.args(["--json", "--superfeedr", superfeedr, "--server", server]).args(options);
    command.env("SUPERFEEDR_TOKEN", ACCOUNT).env("FEEDGATE_TOKEN", format!("{LOGIN}:{TOKEN}"));
    command.output().await.unwrap()
}

fn lines(output: &Output) -> Vec<Value> {
    let text = std::str::from_utf8(&output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The numbers of the summary, which is the last line.
fn summary<const N: usize>(lines: &[Value], names: [&str; N]) -> [u64; N] {
    let last = lines.last().unwrap();
    names.map(|name| last[name].as_u64().unwrap_or_else(|| panic!("{name}: {last}")))
}

#[tokio::test]
async fn an_account_moves_and_its_callback_misses_nothing() {
    let moved = Move::of_tides(3).await;
    let (world, callback) = (&moved.world, moved.world.subscriber.url("/cb"));
    let imported = moved.run(&[], 0).await;
    assert_eq!(summary(&imported, ["listed", "added", "failed"]), [1, 1, 0]);
    assert_eq!(moved.callbacks_here().await, [world.gateway.url("/dev/null")].into());
    moved.gateway_has(3).await;

    // What comes while both are compared is sent by Superfeedr alone.
    moved.publish_here(4).await;
    moved.put_there(1..5);
    let compared = moved.run(&["--compare"], 0).await;
    assert_eq!(summary(&compared, ["same", "different", "not_compared"]), [1, 0, 0]);
    assert!(world.subscriber.requests_to("/cb").is_empty());

    let switched = moved.run(&["--switch"], 0).await;
    assert_eq!(summary(&switched, ["switched", "kept_at_superfeedr", "failed"]), [1, 0, 0]);
    assert!(moved.superfeedr.subscriptions().is_empty());
    assert_eq!(moved.callbacks_here().await, [callback].into());

    moved.publish_here(5).await;
    world.subscriber.until("/cb", |told| !told.is_empty()).await;
    let told = &world.subscriber.notified("/cb")[0];
    assert_eq!(entry_ids(&told.text()), [entry_id("tides", 5)], "nothing is sent again");
    let signature = told.header("x-hub-signature").unwrap();
    assert!(feedgate_protocol::signature::holds(signature, "k3y", &told.body), "{signature}");
    let nothing = moved.run(&["--switch"], 0).await;
    assert_eq!(summary(&nothing, ["switched", "failed"]), [0, 0]);
    let file = std::fs::read_to_string(moved.state()).unwrap();
    assert!(!file.contains("k3y") && !file.contains(TOKEN) && !file.contains("t0ken"), "{file}");
}

#[tokio::test]
async fn what_superfeedr_had_not_sent_is_sent_at_the_switch() {
    let moved = Move::of_tides_that_superfeedr_has_not_sent().await;
    moved.run(&["--switch"], 0).await;
    moved.world.subscriber.until("/cb", |told| !told.is_empty()).await;
    let told = moved.world.subscriber.notified("/cb");
    assert_eq!(entry_ids(&told[0].text()), [entry_id("tides", 5)]);
}

#[tokio::test]
async fn what_cannot_be_compared_at_the_switch_stays_at_superfeedr() {
    let moved = Move::of_tides_that_superfeedr_has_not_sent().await;
    moved.superfeedr.be_unreadable(true);
    let kept = moved.run(&["--switch"], 1).await;
    assert_eq!(summary(&kept, ["switched", "failed"]), [0, 1]);
    assert!(kept[0]["reason"].as_str().unwrap().contains("not compared again"), "{kept:?}");
    assert_eq!(moved.superfeedr.subscriptions().len(), 1);
    moved.superfeedr.be_unreadable(false);
    let switched = moved.run(&["--switch"], 0).await;
    assert_eq!(summary(&switched, ["switched", "failed"]), [1, 0]);
    moved.world.subscriber.until("/cb", |told| !told.is_empty()).await;
    let told = moved.world.subscriber.notified("/cb");
    assert_eq!(entry_ids(&told[0].text()), [entry_id("tides", 5)]);
}

#[tokio::test]
async fn a_feed_with_differences_stays_unless_told_otherwise() {
    let moved = Move::of_tides(3).await;
    let uncompared = moved.run(&["--switch"], 1).await;
    assert!(uncompared[0]["reason"].as_str().unwrap().contains("not imported"), "{uncompared:?}");
    moved.run(&[], 0).await;
    moved.gateway_has(3).await;
    let uncompared = moved.run(&["--switch"], 1).await;
    assert!(uncompared[0]["reason"].as_str().unwrap().contains("not compared"), "{uncompared:?}");

    moved.superfeedr.put(&moved.world.topic, vec!["other".to_owned(), entry_id("tides", 2)]);
    let compared = moved.run(&["--compare"], 1).await;
    assert_eq!(compared[0]["result"], "different");
    assert_eq!(compared[0]["only_here"], Value::from(vec![entry_id("tides", 3)]));
    assert_eq!(compared[0]["only_there"], Value::from(vec!["other"]));
    let kept = moved.run(&["--switch"], 1).await;
    assert_eq!(summary(&kept, ["switched", "kept_at_superfeedr"]), [0, 1]);
    assert_eq!(moved.superfeedr.subscriptions().len(), 1);

    let switched = moved.run(&["--switch", "--despite-differences"], 0).await;
    assert_eq!(summary(&switched, ["switched", "kept_at_superfeedr"]), [1, 0]);
    assert!(moved.superfeedr.subscriptions().is_empty());
    moved.world.subscriber.until("/cb", |told| !told.is_empty()).await;
}

#[tokio::test]
async fn what_cannot_be_moved_is_reported_and_stays_at_superfeedr() {
    let moved = Move::of_tides(1).await;
    let topic = moved.world.topic.clone();
    let of = |topic: &str, endpoint: &str, secret| Subscribed {
        topic: topic.to_owned(),
        endpoint: endpoint.to_owned(),
        format: "atom",
        secret,
    };
    moved.superfeedr.subscribe(of(&topic, "ann@superfeedr.com", None));
    moved.superfeedr.subscribe(of("tides", "https://a.test/hook", None));
    moved.superfeedr.subscribe(of(&topic, "http://10.0.0.1/hook", None));
    let imported = moved.run(&[], 1).await;
    let reasons: Vec<&str> = imported.iter().filter_map(|line| line["reason"].as_str()).collect();
    assert!(reasons.len() == 2 && reasons[0].contains("XMPP"), "{imported:?}");
    assert!(reasons[1].contains("hub.topic"), "{imported:?}");
    assert_eq!(summary(&imported, ["listed", "added", "failed"]), [4, 1, 2]);

    moved.gateway_has(1).await;
    moved.run(&["--compare"], 0).await;
    let switched = moved.run(&["--switch"], 1).await;
    assert_eq!(summary(&switched, ["switched", "kept_at_superfeedr", "failed"]), [1, 1, 2]);
    let left: Vec<String> =
        moved.superfeedr.subscriptions().into_iter().map(|held| held.endpoint).collect();
    assert_eq!(left, ["ann@superfeedr.com", "https://a.test/hook", "http://10.0.0.1/hook"]);
    let here = moved.callbacks_here().await;
    let want = [moved.world.gateway.url("/dev/null"), moved.world.subscriber.url("/cb")];
    assert_eq!(here, want.into(), "the placeholder is still needed");
}

#[tokio::test]
async fn callbacks_may_be_notified_by_both_until_the_switch() {
    let moved = Move::of_tides(1).await;
    moved.subscribe_there("/other");
    let imported = moved.run(&["--deliver"], 0).await;
    assert_eq!(summary(&imported, ["listed", "added"]), [2, 2]);
    let callbacks = ["/cb", "/other"].map(|path| moved.world.subscriber.url(path));
    assert_eq!(moved.callbacks_here().await, callbacks.clone().into());
    moved.gateway_has(1).await;
    moved.publish_here(2).await;
    moved.world.subscriber.until("/cb", |told| !told.is_empty()).await;
    moved.put_there(1..3);
    moved.run(&["--compare"], 0).await;
    moved.put_there(1..2);
    moved.run(&["--switch"], 0).await;
    assert!(moved.superfeedr.subscriptions().is_empty());
    assert_eq!(moved.callbacks_here().await, callbacks.clone().into());
    moved.publish_here(3).await;
    moved.world.subscriber.until("/cb", |told| told.len() >= 2).await;
    let told = moved.world.subscriber.notified("/cb");
    assert_eq!(entry_ids(&told[1].text()), [entry_id("tides", 3)], "nothing is sent again");
}

#[tokio::test]
async fn a_run_that_could_not_end_is_continued() {
    let moved = Move::of_tides(1).await;
    let nowhere = format!("http://127.0.0.1:{}/", free_port());
    let stopped = run(&moved.state(), &nowhere, &moved.world.gateway.url("/"), &[]).await;
    assert_eq!(stopped.status.code(), Some(3), "{stopped:?}");
    std::fs::remove_file(moved.state()).unwrap();
    let stopped = run(&moved.state(), &moved.superfeedr.url(), &nowhere, &[]).await;
    assert_eq!(stopped.status.code(), Some(3), "{stopped:?}");
    let told = String::from_utf8(stopped.stderr).unwrap();
    assert!(told.contains("run the command again to go on"), "{told}");
    std::fs::remove_file(moved.state()).unwrap();

    moved.run(&[], 0).await;
    moved.subscribe_there("/other");
    moved.superfeedr.subscribe(Subscribed {
        topic: format!("{}?two", moved.world.topic),
        endpoint: moved.world.subscriber.url("/cb"),
        format: "atom",
        secret: None,
    });
    let again = moved.run(&[], 0).await;
    assert_eq!(summary(&again, ["listed", "added", "already_there"]), [3, 1, 2]);
    let other = run(&moved.state(), &nowhere, &moved.world.gateway.url("/"), &[]).await;
    assert_eq!(other.status.code(), Some(1));
    assert!(
        String::from_utf8(other.stderr).unwrap().contains("is about ann at "),
        "another account"
    );
}

/// In full, ten thousand; otherwise as many as two pages of a list and two batches have.
#[tokio::test]
async fn ten_thousand_subscriptions_are_moved_politely() {
    let moved = Move::of_tides(2).await;
    let count = if is_full() { 10_000 } else { 600 };
    for n in 1..count {
        let topic = format!("{}?{n}", moved.world.topic);
        let ids = [2, 1].map(|n| entry_id("tides", n));
        moved.superfeedr.put(&topic, ids.to_vec());
        let endpoint = moved.world.subscriber.url("/cb");
        moved.superfeedr.subscribe(Subscribed { topic, endpoint, format: "json", secret: None });
    }
    moved.superfeedr.be_busy_every(count / 2);
    let count = count as u64;
    let imported = moved.run(&[], 0).await;
    assert_eq!(summary(&imported, ["listed", "added"]), [count, count]);
    let again = moved.run(&[], 0).await;
    assert_eq!(summary(&again, ["added", "already_there"]), [0, count]);
    // Feeds are compared as soon as the gateway has fetched them.
    let server = moved.world.gateway.url("/");
    let is_same = async || {
        let compared = run(&moved.state(), &moved.superfeedr.url(), &server, &["--compare"]).await;
        summary(&lines(&compared), ["same"]) == [count]
    };
    until("all feeds are the same", is_same).await;
    let switched = moved.run(&["--switch"], 0).await;
    assert_eq!(summary(&switched, ["switched"]), [count]);
    assert!(moved.superfeedr.subscriptions().is_empty());
    let (early, most_open) = moved.superfeedr.impoliteness();
    assert!(early <= 3 && most_open <= 4, "{early} came early, {most_open} at the same time");
}
