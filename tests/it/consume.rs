//! `feedgate consume`: the archive of a running gateway, entry by entry.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use http::StatusCode;
use http::header::{HeaderValue, LOCATION};

use crate::support::feeds::{entry_id, rss};
use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;
use crate::support::server::{Server, say};
use crate::support::subscriber::Subscriber;

/// Runs `feedgate consume` in `folder`.
async fn consume(folder: &Path, archive: &str, further: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_feedgate"));
    command.args(["consume", archive]).args(further).current_dir(folder);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).stdin(Stdio::null());
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

/// The ids in lines of JSON.
fn ids(output: &Output) -> Vec<String> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    lines.map(|line| line["id"].as_str().unwrap().to_owned()).collect()
}

fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_entry_is_handed_over_once_and_in_order() {
    let publisher = Publisher::start().await;
    publisher.put_rss("/feed", rss("tides", 1..3));
    let topic = publisher.url("/feed");
    let subscriber = Subscriber::start().await;
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[("FEEDGATE_PAGE_RECORDS", "3")]).await;
    gateway.subscribe_superfeedr(&topic, &subscriber.url("/cb"), "atom").await;
    let archive = gateway.archive_of(&topic);
    let folder = tempfile::tempdir().unwrap();
    let state = ["--state", "place"];

    let mut taken = ids(&consume(folder.path(), &archive, &state).await);
    assert_eq!(taken.len(), 2, "from the oldest on");
    for items in [4, 9, 10, 23] {
        publisher.put_rss("/feed", rss("tides", 1..items + 1));
        let (status, _) = gateway.post("/ping", &[("url", &topic)]).await;
        assert!(status.is_success());
        let newest = entry_id("tides", items);
        gateway.archive_holds(&topic, &newest).await;
        taken.extend(ids(&consume(folder.path(), &archive, &state).await));
    }
    let want: Vec<String> = (1..24).map(|n| entry_id("tides", n)).collect();
    assert_eq!(taken, want);
    assert_eq!(ids(&consume(folder.path(), &archive, &state).await), Vec::<String>::new());

    let behind = consume(folder.path(), &archive, &["--from", &entry_id("tides", 20)]).await;
    assert_eq!(ids(&behind), want[20..]);
    let lost = consume(folder.path(), &archive, &["--from", "nowhere"]).await;
    assert!(!lost.status.success() && complaint(&lost).contains("nowhere"), "{lost:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_a_command_does_not_take_is_offered_again() {
    let publisher = Publisher::start().await;
    publisher.put_rss("/feed", rss("tides", 1..6));
    let topic = publisher.url("/feed");
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[("FEEDGATE_PAGE_RECORDS", "2")]).await;
    gateway.subscribe_superfeedr(&topic, &publisher.url("/dev/null"), "atom").await;
    let archive = gateway.archive_of(&topic);
    let folder = tempfile::tempdir().unwrap();

    // Takes two entries, then fails once.
    let script = "test -e failed || test $(cat taken 2>/dev/null | wc -l) -lt 2 \
                  || { touch failed; exit 3; }; echo $FEEDGATE_ENTRY_ID >> taken";
    let with = ["--state", "place", "--exec", script, "--format", "atom"];
    let stopped = consume(folder.path(), &archive, &with).await;
    assert!(!stopped.status.success() && complaint(&stopped).contains("3"), "{stopped:?}");
    let ended = consume(folder.path(), &archive, &with).await;
    assert!(ended.status.success(), "{ended:?}");
    let taken = std::fs::read_to_string(folder.path().join("taken")).unwrap();
    let want: Vec<String> = (1..6).map(|n| entry_id("tides", n)).collect();
    assert_eq!(taken.lines().collect::<Vec<_>>(), want);
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_an_inner_archive_does_not_lead_to_other_inner_addresses() {
    let server = Server::start(|_| async {
        let mut answer = say(StatusCode::FOUND, "");
        let inner = HeaderValue::from_static("http://127.0.0.2:8080/");
        answer.headers_mut().insert(LOCATION, inner);
        answer
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let refused = consume(folder.path(), &server.url("/recent"), &[]).await;
    let said = complaint(&refused);
    assert!(!refused.status.success() && said.contains("127.0.0.2 leads to"), "{refused:?}");
}
