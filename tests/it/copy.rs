//! `feedgate copy`, as an operator uses it: a gateway on SQLite goes on in a database with four
//! cells.

use std::process::{Command, Output, Stdio};

use http::StatusCode;
use http::header::ETAG;

use crate::support::feeds::{entry_id, link, rss};
use crate::support::gateway::Gateway;
use crate::support::ports::free_port;
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;
use crate::support::server::client;
use crate::support::subscriber::Subscriber;

const SETTINGS: [(&str, &str); 1] = [("FEEDGATE_PAGE_RECORDS", "2")];

/// Copies `from` into `to` by the command line.
fn copy(from: &Database, to: &Database) -> Output {
    let cells = to.cells.to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_feedgate"));
    command.args(["copy", "--from", &from.url, "--to", &to.url, "--cells", &cells]);
    command.env_clear().stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// The status, the entity tag and the text of a document.
async fn document(url: &str) -> (StatusCode, String, String) {
    let answer = client().get(url).send().await.unwrap();
    let etag = answer.headers()[ETAG].to_str().unwrap().to_owned();
    (answer.status(), etag, answer.text().await.unwrap())
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
async fn a_gateway_goes_on_in_the_database_that_it_was_copied_to() {
    let (publisher, subscriber) = (Publisher::start().await, Subscriber::start().await);
    let (from, port) = (Database::new(Kind::Sqlite).await, free_port());
    let to = Database::bare_with_cells(Kind::Postgres, 4).await;
    publisher.put_rss("/feed", rss("tides", 1..5));
    let topic = publisher.url("/feed");
    let mut old = Gateway::start_at(port, &from, &SETTINGS).await;
    let callback = subscriber.url("/cb");
    old.subscribe_websub(&topic, &callback, &[("hub.secret", "s3cret")]).await;
    old.archive_holds(&topic, &entry_id("tides", 4)).await;
    publish(&old, &publisher, &subscriber, 5).await;
    old.comes_to_rest().await;
    let recent = link(&old.fetch(&old.archive_of(&topic)).await.1, "self").unwrap();
    let archived = recent.replace("/recent", "/documents/1");
    let before = document(&archived).await;

    let refused = copy(&from, &to);
    assert!(!refused.status.success());
    let told = text(&refused.stderr);
    assert!(told.contains("a gateway uses the source: stop all of its nodes first"), "{told}");
    old.kill();
    let copied = copy(&from, &to);
    assert!(copied.status.success(), "{}", text(&copied.stderr));
    let lines: Vec<&str> = text(&copied.stdout).lines().collect();
    assert!(lines.contains(&"resources: 1 of 1 rows"), "{lines:?}");
    assert!(lines.contains(&"records: 5 of 5 rows"), "{lines:?}");
    assert!(lines.last().unwrap().starts_with("the copy is complete; "), "{lines:?}");
    let again = copy(&from, &to);
    assert_eq!(text(&again.stdout), "the copy is complete already\n", "{}", text(&again.stderr));

    let new = Gateway::start_at(port, &to, &SETTINGS).await;
    assert_eq!(document(&archived).await, before, "what was archived has the same bytes");
    assert_eq!(new.fetch(&recent).await.0, StatusCode::OK);
    let (status, newest) = new.fetch(recent.trim_end_matches("/recent")).await;
    assert!(status == StatusCode::OK && newest.contains(&entry_id("tides", 5)), "{newest}");
    publish(&new, &publisher, &subscriber, 6).await;
    new.archive_holds(&topic, &entry_id("tides", 6)).await;
    assert_eq!(document(&archived).await, before);
    new.comes_to_rest().await;
    let used = copy(&from, &to);
    let told = text(&used.stderr);
    assert!(told.contains("a gateway or another copy uses the target: stop it first"), "{told}");
}
