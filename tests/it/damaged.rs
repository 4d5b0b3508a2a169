//! A database on SQLite with damaged pages: the gateway says so, and serves nothing of them.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};

use http::StatusCode;

use crate::support::feeds::{entry_id, rss};
use crate::support::gateway::Gateway;
use crate::support::ports::free_port;
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;
use crate::support::random::Random;

/// The size of a page.
const PAGE: u64 = 4_096;
/// The entries of the archive that is damaged: some dozens of pages.
const ENTRIES: usize = 100;

/// A gateway that has stored an archive and was stopped, and the topic.
async fn stopped_with_an_archive(database: &Database) -> (Gateway, String) {
    let publisher = Publisher::start().await;
    // The last entry does not fit into a page.
    let text = "The tide is coming in. ".repeat(2_000);
    let feed = rss("tides", 1..ENTRIES + 1).replacen("The text of", &text, 1);
    publisher.put_rss("/feed", feed);
    let topic = publisher.url("/feed");
    let mut gateway = Gateway::start(database, &[("FEEDGATE_LOG", "off")]).await;
    gateway.subscribe_superfeedr(&topic, &gateway.url("/dev/null"), "atom").await;
    gateway.open_to_anonymous(&topic).await;
    gateway.archive_holds(&topic, &entry_id("tides", ENTRIES)).await;
    gateway.terminate();
    gateway.ended().await;
    (gateway, topic)
}

fn path(database: &Database) -> &str {
    database.url.strip_prefix("sqlite:").unwrap()
}

/// The numbers of the pages of the archive: `leaf` of its table, or `overflow` of long entries.
async fn pages(database: &Database, kind: &str) -> Vec<u64> {
    let pages = format!(
        "select cast(pageno as text) from dbstat where name = 'records' and pagetype = '{kind}'"
    );
    let pages = database.texts(&pages).await;
    pages.iter().map(|page| page.parse().unwrap()).collect()
}

/// Overwrites a page but for its first bytes.
fn overwrite(database: &Database, page: u64, but: usize, mut byte: impl FnMut() -> u8) {
    let with: Vec<u8> = (but..PAGE as usize).map(|_| byte()).collect();
    let file = OpenOptions::new().write(true).open(path(database)).unwrap();
    file.write_all_at(&with, (page - 1) * PAGE + but as u64).unwrap();
}

/// Runs a command until it ends by itself. Returns its exit code and what it reported.
fn run(database: &Database, arguments: &[&str]) -> (Option<i32>, String) {
    let ended = Command::new(env!("CARGO_BIN_EXE_feedgate"))
        .args(arguments)
        .env_clear()
        .env("FEEDGATE_DATABASE", &database.url)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    (ended.status.code(), String::from_utf8(ended.stderr).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_page_is_reported_at_the_start_and_a_backup_helps() {
    let database = Database::new(Kind::Sqlite).await;
    let (mut gateway, topic) = stopped_with_an_archive(&database).await;
    let backup = format!("{}.backup", path(&database));
    assert_eq!(run(&database, &["backup", &backup]).0, Some(0));

    let mut random = Random::thrown();
    let page = *random.one_of(&pages(&database, "leaf").await);
    overwrite(&database, page, 0, || random.below(256) as u8);

    let listen = format!("127.0.0.1:{}", free_port());
    let (code, printed) = run(&database, &["serve", "--listen", &listen]);
    assert_eq!(code, Some(1), "{printed}");
    for part in ["is damaged", "keep a copy of the file", "feedgate restore"] {
        assert!(printed.contains(part), "page {page}: {printed}");
    }
    let (code, printed) = run(&database, &["backup", &format!("{backup}.2")]);
    assert_eq!(code, Some(1), "a damaged database makes no backup: {printed}");
    assert!(printed.contains("is damaged"), "{printed}");

    // What the message says.
    std::fs::rename(path(&database), format!("{}.damaged", path(&database))).unwrap();
    assert_eq!(run(&database, &["restore", &backup]).0, Some(0));
    gateway.restart().await;
    gateway.archive_holds(&topic, &entry_id("tides", ENTRIES)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_served_of_pages_that_are_damaged_later() {
    let database = Database::new(Kind::Sqlite).await;
    let (mut gateway, topic) = stopped_with_an_archive(&database).await;
    gateway.restart().await;
    let mut random = Random::thrown();
    for page in pages(&database, "leaf").await {
        overwrite(&database, page, 0, || random.below(256) as u8);
    }
    let (status, text) = gateway.fetch(&gateway.archive_of(&topic)).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{text}");
}

/// SQLite has no checksum of what is in a page, but a disk that has lost a block reads zeros.
#[tokio::test(flavor = "multi_thread")]
async fn no_zeros_of_a_lost_block_are_served() {
    let database = Database::new(Kind::Sqlite).await;
    let (mut gateway, topic) = stopped_with_an_archive(&database).await;
    // The first four bytes are the number of the next page, so that the file is sound to SQLite.
    let long = pages(&database, "overflow").await;
    assert!(long.len() > 5, "{long:?}");
    long.into_iter().for_each(|page| overwrite(&database, page, 4, || 0));
    gateway.restart().await;
    let (status, text) = gateway.fetch(&gateway.archive_of(&topic)).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{text}");
}
