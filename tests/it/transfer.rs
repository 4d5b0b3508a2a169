//! `feedgate export` and `feedgate import`: subscribers receive after the move exactly what they had
//! not received before.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::feeds::{entry_id, entry_ids, rss};
use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;
use crate::support::subscriber::{Behavior, Subscriber};

fn feedgate(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_feedgate"));
    command.args(args).env_clear().stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn export(database: &Database, file: &Path, options: &[&str]) -> String {
    let file = file.to_str().unwrap();
    let exported = feedgate(&[&["export", "--database", &database.url, file], options].concat());
    assert!(exported.status.success(), "{}", text(&exported.stderr));
    text(&exported.stderr).to_owned()
}

/// Imports a file; returns the report.
fn import(database: &Database, file: &Path) -> (bool, Value) {
    let file = file.to_str().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_feedgate"));
    command.args(["import", "--json", "--database", &database.url, file]).env_clear();
    let command = command.env("FEEDGATE_CELLS", database.cells.to_string());
    let imported = command.stdin(Stdio::null()).output().unwrap();
    let report = serde_json::from_slice(&imported.stdout);
    let report = report.unwrap_or_else(|_| panic!("{}", text(&imported.stderr)));
    (imported.status.success(), report)
}

/// Returns the number of rows that were added, of all kinds.
fn added(report: &Value) -> u64 {
    let kinds = report["kinds"].as_object().unwrap().values();
    kinds.map(|counts| counts["added"].as_u64().unwrap()).sum()
}

/// A publisher with the feed `tides`, and a subscriber.
struct Cast {
    publisher: Publisher,
    subscriber: Subscriber,
    topic: String,
    folder: tempfile::TempDir,
}

impl Cast {
    async fn new(items: usize) -> Cast {
        let publisher = Publisher::start().await;
        publisher.put_rss("/feed", rss("tides", 1..items + 1));
        let (topic, folder) = (publisher.url("/feed"), tempfile::tempdir().unwrap());
        Cast { publisher, subscriber: Subscriber::start().await, topic, folder }
    }

    /// Makes the feed hold the items 1 to `items`.
    fn put(&self, items: usize) {
        self.publisher.put_rss("/feed", rss("tides", 1..items + 1));
    }

    async fn publish(&self, gateway: &Gateway, items: usize) {
        self.put(items);
        let form = [("hub.mode", "publish"), ("hub.url", self.topic.as_str())];
        assert!(gateway.post("/hub", &form).await.0.is_success());
    }

    /// Waits until a callback was told of an item.
    async fn hears(&self, path: &str, item: usize) {
        let id = entry_id("tides", item);
        self.subscriber
            .until(path, |told| told.iter().any(|told| entry_ids(&told.text()).contains(&id)))
            .await;
    }

    /// Returns the items that a callback accepted after its first `skipped` notifications.
    fn items_after(&self, path: &str, skipped: usize) -> Vec<String> {
        let told = self.subscriber.notified(path);
        let mut items: Vec<String> =
            told.iter().skip(skipped).flat_map(|told| entry_ids(&told.text())).collect();
        items.sort();
        items
    }

    async fn subscribe(&self, gateway: &Gateway, path: &str) {
        gateway.subscribe_superfeedr(&self.topic, &self.subscriber.url(path), "atom").await;
    }
}

async fn subscribers_receive_what_they_had_not_received(from: Kind, to: Kind) {
    let cast = Cast::new(3).await;
    let (source, target) = (Database::new(from).await, Database::bare(to).await);
    let mut old = Gateway::start(&source, &[]).await;
    for path in ["/quick", "/slow"] {
        cast.subscribe(&old, path).await;
    }
    old.archive_holds(&cast.topic, &entry_id("tides", 3)).await;
    cast.publish(&old, 4).await;
    cast.hears("/quick", 4).await;
    cast.hears("/slow", 4).await;
    old.comes_to_rest().await;
    cast.subscriber.set("/slow", Behavior::Failing(500));
    cast.publish(&old, 5).await;
    cast.hears("/quick", 5).await;
    cast.hears("/slow", 5).await; // and refuses it
    old.terminate();
    old.ended().await;
    let before = ["/quick", "/slow"].map(|path| cast.subscriber.notified(path).len());

    let file = cast.folder.path().join("gateway.jsonl");
    export(&source, &file, &["--with-secrets"]);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    cast.put(6);
    cast.subscriber.set("/slow", Behavior::Accepting);
    let (is_complete, report) = import(&target, &file);
    assert!(is_complete && added(&report) > 10, "{report}");
    let (is_complete, again) = import(&target, &file);
    assert!(is_complete && added(&again) == 0, "{again}");

    let new = Gateway::start(&target, &[]).await;
    let form = [("hub.mode", "publish"), ("hub.url", cast.topic.as_str())];
    assert!(new.post("/hub", &form).await.0.is_success());
    cast.hears("/quick", 6).await;
    cast.hears("/slow", 6).await;
    new.comes_to_rest().await;
    let [quick, slow] = [("/quick", before[0]), ("/slow", before[1])]
        .map(|(path, skipped)| cast.items_after(path, skipped));
    assert_eq!(quick, [entry_id("tides", 6)]);
    assert_eq!(slow, [entry_id("tides", 5), entry_id("tides", 6)]);
    assert_eq!(new.own("/?hub.mode=list").await.as_array().map(Vec::len), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn subscribers_move_from_sqlite_to_postgres_and_lose_nothing() {
    subscribers_receive_what_they_had_not_received(Kind::Sqlite, Kind::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn subscribers_move_from_postgres_to_sqlite_and_lose_nothing() {
    subscribers_receive_what_they_had_not_received(Kind::Postgres, Kind::Sqlite).await;
}

async fn a_resource_that_is_there_keeps_its_log(kind: Kind) {
    let cast = Cast::new(2).await;
    let (source, target) = (Database::new(kind).await, Database::new(kind).await);
    let mut old = Gateway::start(&source, &[]).await;
    cast.subscribe(&old, "/moved").await;
    old.archive_holds(&cast.topic, &entry_id("tides", 2)).await;
    cast.publish(&old, 3).await;
    cast.hears("/moved", 3).await;
    old.comes_to_rest().await;
    old.terminate();
    old.ended().await;
    let file = cast.folder.path().join("gateway.jsonl");
    export(&source, &file, &["--with-secrets"]);

    // The running gateway has the same topic by itself, with fewer and other numbers.
    let new = Gateway::start(&target, &[]).await;
    cast.put(4);
    cast.subscribe(&new, "/own").await;
    new.archive_holds(&cast.topic, &entry_id("tides", 4)).await;
    let before = cast.subscriber.notified("/moved").len();
    let (is_complete, report) = import(&target, &file);
    assert!(is_complete, "{report}");
    let resources = &report["kinds"]["resources"];
    assert_eq!((&resources["added"], &resources["present"]), (&0.into(), &1.into()), "{report}");
    assert_eq!(report["kinds"]["subscriptions"]["added"], 1, "{report}");
    cast.hears("/moved", 4).await;
    cast.publish(&new, 5).await;
    cast.hears("/moved", 5).await;
    cast.hears("/own", 5).await;
    new.comes_to_rest().await;
    assert_eq!(cast.items_after("/moved", before), [entry_id("tides", 4), entry_id("tides", 5)]);
    let (_, again) = import(&target, &file);
    assert_eq!(added(&again), 0, "{again}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resource_that_is_there_keeps_its_log_on_sqlite() {
    a_resource_that_is_there_keeps_its_log(Kind::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resource_that_is_there_keeps_its_log_on_postgres() {
    a_resource_that_is_there_keeps_its_log(Kind::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_left_out_unless_requested_and_lines_that_are_wrong_are_named() {
    let cast = Cast::new(2).await;
    let source = Database::new(Kind::Sqlite).await;
    let mut old = Gateway::start(&source, &[]).await;
    let callback = cast.subscriber.url("/cb");
    old.subscribe_websub(&cast.topic, &callback, &[("hub.secret", "opensesame")]).await;
    let in_use = feedgate(&["export", "--database", &source.url]);
    assert!(!in_use.status.success() && text(&in_use.stderr).contains("a gateway uses the source"));
    old.terminate();
    old.ended().await;
    let file = cast.folder.path().join("gateway.jsonl");
    let told = export(&source, &file, &[]);
    assert!(told.contains("1 secrets were left out"), "{told}");
    let lines = fs::read_to_string(&file).unwrap();
    assert!(!lines.contains("opensesame"), "{lines}");
    let existing = feedgate(&["export", "--database", &source.url, file.to_str().unwrap()]);
    assert!(!existing.status.success(), "a file is never overwritten");

    let wrong = lines.lines().count() + 1;
    let lines = format!(
        "{lines}not json\n{{\"kind\":\"doors\",\"row\":{{}}}}\n\
                         {{\"kind\":\"accounts\",\"row\":{{\"id\":1}}}}\n"
    );
    fs::write(&file, lines).unwrap();
    let target = Database::bare(Kind::Sqlite).await;
    let (is_complete, report) = import(&target, &file);
    assert!(!is_complete);
    assert_eq!(report["paused"], 1, "{report}");
    let refused = report["refused"].as_array().unwrap();
    let refused: Vec<_> = refused.iter().map(|one| one["line"].as_u64().unwrap()).collect();
    assert_eq!(refused, [wrong as u64, wrong as u64 + 1, wrong as u64 + 2], "{report}");

    let new = Gateway::start(&target, &[]).await;
    cast.publish(&new, 3).await;
    new.archive_holds(&cast.topic, &entry_id("tides", 3)).await;
    new.comes_to_rest().await;
    assert!(cast.subscriber.notified("/cb").is_empty(), "it would not be signed");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_export_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (file, database) = (folder.path().join("x.jsonl"), Database::bare(Kind::Sqlite).await);
    let other = "{\"feedgate_export\":1,\"schema\":999,\"id\":\"a\",\"secrets\":false,\
                 \"greatest\":[],\"greatest_shared\":0}\n";
    for (header, want) in [("", "line 1"), ("{}\n", "line 1"), (other, "schema 999")] {
        fs::write(&file, header).unwrap();
        let import = feedgate(&["import", "--database", &database.url, file.to_str().unwrap()]);
        assert!(!import.status.success());
        assert!(text(&import.stderr).contains(want), "{}", text(&import.stderr));
    }
}
