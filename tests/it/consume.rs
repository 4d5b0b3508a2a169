//! `feedgate consume`: the archive of a running gateway, entry by entry.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use feedgate::cli::consume::pages::Web;
use feedgate::cli::consume::walk::PageSource;
use feedgate::config::Config;
use feedgate::http::routes::archive::render::Order;
use http::StatusCode;
use http::header::{HeaderValue, LOCATION};
use url::Url;

use crate::support::feeds::{entry_id, rss};
use crate::support::gateway::{Gateway, LOGIN, TOKEN};
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
    gateway.open_to_anonymous(&topic).await;
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
    gateway.open_to_anonymous(&topic).await;
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

/// Publishes a document at `path` that leads back to `prev` and forward to `next`, with
/// these entries as they are to stand.
fn put_document(publisher: &Publisher, path: &str, links: (&str, &str), entries: &[String]) {
    let link = |rel: &str, href: &str| match href {
        "" => String::new(),
        href => format!("<link rel='{rel}' href='{href}'/>"),
    };
    let links = link("prev-archive", links.0) + &link("next-archive", links.1);
    let body = format!(
        "<feed xmlns='http://www.w3.org/2005/Atom'><id>tag:tides.test,2026:feed</id>\
         <title>Tides</title><updated>2026-01-01T00:00:00Z</updated>{links}{}</feed>",
        entries.concat()
    );
    publisher.put(path, "application/atom+xml", body);
}

/// Entries with these numbers, in this order.
fn entries(numbers: &[usize]) -> Vec<String> {
    let entry = |n: &usize| {
        let id = entry_id("tides", *n);
        format!(
            "<entry><id>{id}</id><title>{n}</title><updated>2026-01-01T00:00:00Z</updated></entry>"
        )
    };
    numbers.iter().map(entry).collect()
}

fn numbered(numbers: std::ops::Range<usize>) -> Vec<String> {
    numbers.map(|n| entry_id("tides", n)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn next_archive_may_be_missing_or_lead_elsewhere() {
    let publisher = Publisher::start().await;
    put_document(&publisher, "/recent", ("/3", ""), &entries(&[8, 7]));
    put_document(&publisher, "/3", ("/2", ""), &entries(&[6, 5]));
    put_document(&publisher, "/2", ("/1", "/1"), &entries(&[4, 3]));
    put_document(&publisher, "/1", ("", "/nowhere"), &entries(&[2, 1]));
    let folder = tempfile::tempdir().unwrap();
    let (recent, state) = (publisher.url("/recent"), ["--state", "place"]);
    assert_eq!(ids(&consume(folder.path(), &recent, &state).await), numbered(1..9));
    put_document(&publisher, "/4", ("/3", ""), &entries(&[9, 8, 7]));
    put_document(&publisher, "/recent", ("/4", ""), &entries(&[10]));
    assert_eq!(ids(&consume(folder.path(), &recent, &state).await), numbered(9..11));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_is_not_found_is_one_that_is_no_longer_kept() {
    let publisher = Publisher::start().await;
    put_document(&publisher, "/recent", ("/2", ""), &entries(&[4]));
    put_document(&publisher, "/2", ("/1", ""), &entries(&[3, 2]));
    let folder = tempfile::tempdir().unwrap();
    let recent = publisher.url("/recent");
    for status in [StatusCode::NOT_FOUND, StatusCode::GONE] {
        publisher.fail("/1", status);
        let begun = consume(folder.path(), &recent, &[]).await;
        assert_eq!(ids(&begun), numbered(2..5), "{begun:?}");
        assert!(
            begun.status.success()
                && complaint(&begun).contains("/1 has been deleted by the server")
        );
        let lost = consume(folder.path(), &recent, &["--from", &entry_id("tides", 1)]).await;
        let printed = complaint(&lost);
        assert!(
            !lost.status.success() && printed.contains("/1 has been deleted by the server"),
            "{printed}"
        );
    }
    let nothing = consume(folder.path(), &publisher.url("/nothing"), &[]).await;
    let printed = complaint(&nothing);
    assert!(!nothing.status.success() && printed.contains("there is no archive"), "{printed}");
}

/// The recent document has a language and an author that the archived ones have not.
#[tokio::test(flavor = "multi_thread")]
async fn an_entry_is_the_same_in_whichever_document_it_stands() {
    let publisher = Publisher::start().await;
    let entry = entries(&[1]).concat();
    let mut hashes = Vec::new();
    for head in ["", " xml:lang='en' xml:base='/x/'><author><name>Ada</name></author"] {
        let body = format!("<feed xmlns='http://www.w3.org/2005/Atom'{head}>{entry}</feed>");
        publisher.put("/recent", "application/atom+xml", body);
        let recent = Url::parse(&publisher.url("/recent")).unwrap();
        let config = Config::read(|_| None).unwrap();
        let mut web = Web::new(&config, &recent, Order::NewestFirst).unwrap();
        web.open().await.unwrap();
        hashes.push(web.get(&recent).await.unwrap().items[0].hash());
    }
    assert_eq!(hashes[0], hashes[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_may_list_the_oldest_entry_first() {
    let publisher = Publisher::start().await;
    put_document(&publisher, "/recent", ("/1", ""), &entries(&[3, 4]));
    put_document(&publisher, "/1", ("", "/recent"), &entries(&[1, 2]));
    let folder = tempfile::tempdir().unwrap();
    let recent = publisher.url("/recent");
    let turned = consume(folder.path(), &recent, &["--oldest-first"]).await;
    assert_eq!(ids(&turned), numbered(1..5));
    let printed = consume(folder.path(), &publisher.url("/recent?order=asc"), &[]).await;
    assert_eq!(ids(&printed), numbered(1..5));
}

#[tokio::test(flavor = "multi_thread")]
async fn n8_what_was_taken_back_is_handed_over_too() {
    let publisher = Publisher::start().await;
    let gone = format!(
        "<at:deleted-entry xmlns:at='http://purl.org/atompub/tombstones/1.0' \
         ref='{}' when='2026-01-02T00:00:00Z'/>",
        entry_id("tides", 1)
    );
    let first = entries(&[2, 1]);
    put_document(&publisher, "/recent", ("", ""), &[first[0].clone(), gone, first[1].clone()]);
    let folder = tempfile::tempdir().unwrap();
    let recent = publisher.url("/recent");
    let printed = consume(folder.path(), &recent, &[]).await;
    let text = String::from_utf8(printed.stdout).unwrap();
    let line = text.lines().nth(1).unwrap();
    let id = entry_id("tides", 1);
    assert_eq!(line, format!("{{\"id\":\"{id}\",\"deleted\":true,\"deletedAt\":1767312000}}"));

    let script = "echo \"$FEEDGATE_ENTRY_ID ${FEEDGATE_ENTRY_DELETED-no}\" >> taken; cat >> read";
    let with = ["--state", "place", "--exec", script, "--format", "atom"];
    for _ in 0..2 {
        let ended = consume(folder.path(), &recent, &with).await;
        assert!(ended.status.success(), "{ended:?}");
    }
    let taken = std::fs::read_to_string(folder.path().join("taken")).unwrap();
    let two = entry_id("tides", 2);
    assert_eq!(taken, format!("{id} no\n{id} 1\n{two} no\n"), "each once");
    let read = std::fs::read_to_string(folder.path().join("read")).unwrap();
    assert!(read.contains("<at:deleted-entry "), "{read}");
}

#[tokio::test(flavor = "multi_thread")]
async fn s56_an_account_reads_its_private_archive_with_credentials_in_the_url() {
    let publisher = Publisher::start().await;
    publisher.put_rss("/feed", rss("tides", 1..10));
    let topic = publisher.url("/feed");
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[("FEEDGATE_PAGE_RECORDS", "3")]).await;
    gateway.subscribe_superfeedr(&topic, &publisher.url("/dev/null"), "atom").await;
    gateway.archive_holds(&topic, &entry_id("tides", 9)).await;
    let folder = tempfile::tempdir().unwrap();
    let archive = gateway.archive_of(&topic);

    let refused = consume(folder.path(), &archive, &[]).await;
    assert!(complaint(&refused).contains("there is no archive"), "{refused:?}");
    let own = archive.replacen("://", &format!("://{LOGIN}:{TOKEN}@"), 1);
    let want: Vec<String> = (1..10).map(|n| entry_id("tides", n)).collect();
    assert_eq!(ids(&consume(folder.path(), &own, &[]).await), want, "from several documents");
    let wrong = archive.replacen("://", &format!("://{LOGIN}:hush@"), 1);
    let refused = complaint(&consume(folder.path(), &wrong, &[]).await);
    assert!(refused.contains("401") && !refused.contains("hush"), "{refused}");
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
    let printed = complaint(&refused);
    assert!(!refused.status.success() && printed.contains("127.0.0.2 resolves to"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_stops_early_ends_it_quietly() {
    let publisher = Publisher::start().await;
    publisher.put_rss("/feed", rss("tides", 1..10));
    let topic = publisher.url("/feed");
    let subscriber = Subscriber::start().await;
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[]).await;
    gateway.subscribe_superfeedr(&topic, &subscriber.url("/cb"), "atom").await;
    gateway.open_to_anonymous(&topic).await;
    gateway.archive_holds(&topic, &entry_id("tides", 9)).await;
    let mut command = Command::new(env!("CARGO_BIN_EXE_feedgate"));
    command.args(["consume", &gateway.archive_of(&topic)]).env_clear().stdin(Stdio::null());
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    command.stdout(writer).stderr(Stdio::piped());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    assert!(output.status.success(), "{}", complaint(&output));
    assert_eq!(complaint(&output), "");
}
