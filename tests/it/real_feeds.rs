//! The main job on feeds as they are: every file of a folder is served, subscribed to,
//! changed once, and must come out by webhook, by rssCloud and in its archive.
//!
//! `FEEDGATE_TEST_CORPUS` names other folders than our own fixtures, separated by
//! colons. What did not come through is printed as a table, with why.

use std::path::{Path, PathBuf};

use tokio::time::{Duration, Instant};

use crate::store::on_both_stores;
use crate::support::changed::with_one_more;
use crate::support::feeds::between;
use crate::support::gateway::Gateway;
use crate::support::postgres::Database;
use crate::support::publisher::Publisher;
use crate::support::server::ReceivedRequest;
use crate::support::subscriber::Subscriber;

/// What the new entry of every feed holds, and nothing else does.
const MARK: &str = "feedgate-real-feeds-mark";

/// What each file may take until it has come through, all of them side by side.
const PATIENCE_PER_FILE: Duration = Duration::from_millis(200);
/// What all of them together may take besides.
const PATIENCE: Duration = Duration::from_secs(60);

on_both_stores!(real_feeds_come_through);

/// A file on its way.
struct Case {
    name: String,
    path: String,
    topic: String,
    changed: Vec<u8>,
}

async fn real_feeds_come_through(database: Database) {
    let settings = [("FEEDGATE_DELIVERY_CONCURRENCY_PER_HOST", "32"), ("FEEDGATE_LOG", "error")];
    let gateway = Gateway::start(&database, &settings).await;
    let publisher = Publisher::start().await;
    let subscriber = Subscriber::start().await;

    let (mut cases, mut table) = (Vec::new(), Vec::new());
    for (number, file) in (1..).zip(files()) {
        let name = file.display().to_string();
        let body = std::fs::read(&file).unwrap();
        let Some(changed) = with_one_more(&body, MARK) else {
            table.push(format!("{name}: not tried: there is no place for an entry in it"));
            continue;
        };
        let path = format!("/{number}/{}", file.file_name().unwrap().to_string_lossy());
        publisher.put(&path, mime(&file), body);
        cases.push(Case { name, topic: publisher.url(&path), path, changed });
    }
    assert!(!cases.is_empty(), "no feeds found");
    for case in &cases {
        let callback = subscriber.url(&format!("/webhook{}", case.path));
        gateway.subscribe_superfeedr(&case.topic, &callback, "atom").await;
        let callback = format!("/cloud{}", case.path);
        gateway.subscribe_rsscloud("http-post", &case.topic, &subscriber, &callback).await;
    }
    for case in &cases {
        publisher.fetched(&case.path, 1).await;
    }
    for case in &cases {
        publisher.put(&case.path, mime(Path::new(&case.path)), case.changed.clone());
        gateway.post("/rsscloud/ping", &[("url", &case.topic)]).await;
    }

    let deadline = Instant::now() + PATIENCE + PATIENCE_PER_FILE * cases.len() as u32;
    let mut lost = 0;
    for case in &cases {
        let missing = missing(&gateway, &subscriber, case, deadline).await;
        if !missing.is_empty() {
            lost += 1;
            let why = why(&gateway, case).await;
            table.push(format!("{}: not by {}: {why}", case.name, missing.join(", ")));
        }
    }
    eprintln!("{} of {} feeds came through\n{}", cases.len() - lost, cases.len(), table.join("\n"));
    assert_eq!(lost, 0, "feeds did not come through:\n{}", table.join("\n"));
}

/// The ways by which the new entry of this file did not come through.
async fn missing(
    gateway: &Gateway,
    subscriber: &Subscriber,
    case: &Case,
    deadline: Instant,
) -> Vec<&'static str> {
    let mut missing = Vec::new();
    let has_mark = |request: &&ReceivedRequest| request.text().contains(MARK);
    let brought = |notified: &[&ReceivedRequest]| notified.iter().any(has_mark);
    if !subscriber.hears(&format!("/webhook{}", case.path), deadline, brought).await {
        missing.push("webhook");
    }
    // The first of them was the test call of the registration.
    let told = |notified: &[&ReceivedRequest]| notified.len() > 1;
    if !subscriber.hears(&format!("/cloud{}", case.path), deadline, told).await {
        missing.push("rssCloud");
    }
    let recent = gateway.archive_of(&case.topic);
    let archived = gateway.fetch(&recent).await.1;
    if !archived.contains(MARK) {
        missing.push("archive");
    }
    missing
}

/// What the gateway says of the resource.
async fn why(gateway: &Gateway, case: &Case) -> String {
    let (code, recent) = gateway.fetch(&gateway.archive_of(&case.topic)).await;
    let status = between(&recent, "<http ", "</http>");
    status.map_or_else(|| format!("the archive answers {code}"), str::to_owned)
}

/// The files to try.
fn files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = std::env::var_os("FEEDGATE_TEST_CORPUS").map_or_else(
        || vec![root.join("fixtures/demo"), root.join("fixtures/normalize")],
        |named| std::env::split_paths(&named).collect(),
    );
    let mut files: Vec<PathBuf> = folders.iter().flat_map(|folder| files_under(folder)).collect();
    files.retain(|file| !mime(file).is_empty());
    files.sort();
    files
}

fn files_under(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_under(&path) } else { vec![path] }).collect()
}

/// What a server would call it; empty for what is no feed.
fn mime(file: &Path) -> &'static str {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("xml" | "rdf" | "rss" | "feed" | "cdf") => "text/xml",
        Some("atom") => "application/atom+xml",
        Some("json") => "application/feed+json",
        _ => "",
    }
}
