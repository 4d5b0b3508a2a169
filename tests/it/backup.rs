//! `feedgate backup` and `feedgate restore`, as an operator uses them, and database files that were
//! copied without them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::support::feeds::{entry_id, rss};
use crate::support::gateway::Gateway;
use crate::support::ports::free_port;
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;
use crate::support::server::client;
use crate::support::subscriber::Subscriber;
use crate::support::until;

/// Runs a command on the database at `url`.
fn feedgate(args: &[&str], url: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_feedgate"));
    command.args(args).args(["--database", url]);
    command.env_clear().stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn file_of(database: &Database) -> PathBuf {
    database.url.strip_prefix("sqlite:").unwrap().into()
}

fn wal_of(path: &Path) -> PathBuf {
    format!("{}-wal", path.display()).into()
}

/// Makes the feed hold the items 1 to `items`, and waits until the subscriber has the last one.
async fn publish(gateway: &Gateway, publisher: &Publisher, subscriber: &Subscriber, items: usize) {
    publisher.put_rss("/feed", rss("tides", 1..items + 1));
    let topic = publisher.url("/feed");
    let form = [("hub.mode", "publish"), ("hub.url", topic.as_str())];
    assert!(gateway.post("/hub", &form).await.0.is_success());
    let newest = entry_id("tides", items);
    let is_newest = |body: &[u8]| String::from_utf8_lossy(body).contains(&newest);
    subscriber.until("/cb", |request| request.iter().any(|request| is_newest(&request.body))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_of_a_running_gateway_is_restored_elsewhere_and_goes_on() {
    let (publisher, subscriber) = (Publisher::start().await, Subscriber::start().await);
    let (from, to) = (Database::new(Kind::Sqlite).await, Database::bare(Kind::Sqlite).await);
    let folder = tempfile::tempdir().unwrap();
    let backup = folder.path().join("monday.db");
    let backup = backup.to_str().unwrap();
    publisher.put_rss("/feed", rss("tides", 1..5));
    let topic = publisher.url("/feed");
    let mut old = Gateway::start(&from, &[]).await;
    old.subscribe_websub(&topic, &subscriber.url("/cb"), &[]).await;
    old.archive_holds(&topic, &entry_id("tides", 4)).await;
    publish(&old, &publisher, &subscriber, 5).await;
    old.comes_to_rest().await;

    let done = feedgate(&["backup", backup], &from.url);
    let counts = "1 feed, 1 subscription and 5 entries\n";
    assert_eq!(text(&done.stdout), format!("{backup} has {counts}"), "{}", text(&done.stderr));
    assert_eq!(fs::metadata(backup).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
    let again = feedgate(&["backup", backup], &from.url);
    assert!(!again.status.success());
    assert!(text(&again.stderr).contains("exists; choose another name"), "{again:?}");

    let refused = feedgate(&["restore", backup], &from.url);
    let told = text(&refused.stderr);
    assert!(!refused.status.success() && told.contains("stop it first"), "{told}");
    old.kill();
    let refused = feedgate(&["restore", backup], &from.url);
    let told = text(&refused.stderr);
    assert!(!refused.status.success() && told.contains("has content"), "{told}");

    let done = feedgate(&["restore", backup], &to.url);
    assert_eq!(text(&done.stdout), format!("restored {counts}"), "{}", text(&done.stderr));
    assert!(text(&done.stderr).contains(file_of(&to).to_str().unwrap()), "{done:?}");
    let new = Gateway::start_at(free_port(), &to, &[]).await;
    new.archive_holds(&topic, &entry_id("tides", 5)).await;
    publish(&new, &publisher, &subscriber, 6).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_token_is_in_a_private_file_and_not_in_the_output() {
    let database = Database::bare(Kind::Sqlite).await;
    let port = free_port();
    let mut command = Command::new(env!("CARGO_BIN_EXE_feedgate"));
    command
        .args(["serve", "--listen", &format!("127.0.0.1:{port}")])
        .args(["--database", &database.url]);
    let mut serving = command.env_clear().stdout(Stdio::piped()).spawn().unwrap();
    let file = file_of(&database).with_file_name("admin-token");
    let url = format!("http://127.0.0.1:{port}/?hub.mode=list");
    let mut credentials = String::new();
    until("the token is accepted", async || {
        credentials = fs::read_to_string(&file).unwrap_or_default().trim().to_owned();
        let Some((login, token)) = credentials.split_once(':') else { return false };
        let request = client().get(&url).basic_auth(login, Some(token));
        request.send().await.is_ok_and(|reply| reply.status().is_success())
    })
    .await;
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    serving.kill().unwrap();
    let output = serving.wait_with_output().unwrap();
    let (_, token) = credentials.split_once(':').unwrap();
    let printed = text(&output.stdout);
    assert!(printed.contains(file.to_str().unwrap()) && !printed.contains(token), "{printed}");
}

#[tokio::test]
async fn what_is_no_backup_is_not_restored() {
    let to = Database::bare(Kind::Sqlite).await;
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    fs::write(place("notes.txt"), "no database").unwrap();
    fs::write(place("empty.db"), "").unwrap();
    let from = Database::new(Kind::Sqlite).await;
    assert!(feedgate(&["backup", &place("damaged.db")], &from.url).status.success());
    let mut bytes = fs::read(place("damaged.db")).unwrap();
    let last_page = bytes.len() - 4_096;
    bytes[last_page..].fill(0xff);
    fs::write(place("damaged.db"), bytes).unwrap();

    // What the last page has decides whether the schema can still be read.
    let damaged: &[&str] = &["it is damaged: ", "database disk image is malformed"];
    for (name, wanted) in [
        ("missing.db", &["there is no such file"][..]),
        ("notes.txt", &["file is not a database"]),
        ("empty.db", &["no gateway has ever used it"]),
        ("damaged.db", damaged),
    ] {
        let refused = feedgate(&["restore", &place(name)], &to.url);
        let told = text(&refused.stderr);
        let is_told = wanted.iter().any(|want| told.contains(want));
        assert!(!refused.status.success() && is_told, "{name}: {told}");
        assert!(!file_of(&to).exists(), "{name}");
    }
}

#[test]
fn the_programs_of_postgresql_are_named() {
    let url = "postgres://me:hunter2@127.0.0.1:1/x";
    for (args, want) in [
        (
            ["backup", "a b.dump"],
            "pg_dump --format=custom --file='a b.dump' \"$FEEDGATE_DATABASE\"",
        ),
        (["restore", "a b.dump"], "pg_restore --dbname=\"$FEEDGATE_DATABASE\" 'a b.dump'"),
    ] {
        let refused = feedgate(&args, url);
        let told = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{told}");
        assert!(told.contains(want) && !told.contains("hunter2"), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_database_file_of_an_idle_gateway_has_everything() {
    let (publisher, subscriber) = (Publisher::start().await, Subscriber::start().await);
    let from = Database::new(Kind::Sqlite).await;
    publisher.put_rss("/feed", rss("tides", 1..5));
    let topic = publisher.url("/feed");
    let gateway = Gateway::start(&from, &[]).await;
    gateway.subscribe_websub(&topic, &subscriber.url("/cb"), &[]).await;
    gateway.archive_holds(&topic, &entry_id("tides", 4)).await;
    let wal = wal_of(&file_of(&from));
    until("the log is empty", async || fs::metadata(&wal).is_ok_and(|file| file.len() == 0)).await;

    let copy = Database::bare(Kind::Sqlite).await;
    fs::create_dir(file_of(&copy).parent().unwrap()).unwrap();
    fs::copy(file_of(&from), file_of(&copy)).unwrap();
    let restored = Gateway::start(&copy, &[]).await;
    restored.archive_holds(&topic, &entry_id("tides", 4)).await;
}

#[tokio::test]
async fn a_database_file_without_its_log_is_noticed() {
    let database = Database::bare(Kind::Sqlite).await;
    let file = file_of(&database);
    fs::create_dir(file.parent().unwrap()).unwrap();
    let writing = rusqlite::Connection::open(&file).unwrap();
    writing.pragma_update(None, "journal_mode", "wal").unwrap();
    let separated = file.with_file_name("copy.db");
    writing.execute_batch("create table migrations (version bigint primary key)").unwrap();
    fs::copy(&file, &separated).unwrap();
    let url = format!("sqlite:{}", separated.display());
    for args in [&["serve", "--listen", "127.0.0.1:0"][..], &["token", "list"], &["migrate"]] {
        let refused = feedgate(args, &url);
        let told = text(&refused.stderr);
        assert!(!refused.status.success(), "{args:?}: {told}");
        assert!(told.contains("is empty because its write-ahead log"), "{args:?}: {told}");
    }
}

#[tokio::test]
async fn a_database_that_was_closed_is_one_file() {
    let database = Database::new(Kind::Sqlite).await;
    let file = file_of(&database);
    assert!(!wal_of(&file).exists(), "the last process copies the log into the file");
    let header = fs::read(&file).unwrap();
    assert_eq!(header[18..20], [1, 1], "the file is not in WAL mode, so that it needs no log");
}
