//! Requests to publishers are signed (rule S50), and a library that others wrote verifies them.

use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::timeout;

use crate::store::on_both_stores;
use crate::support::PATIENCE;
use crate::support::feeds::{entry_id, rss};
use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;
use crate::support::server::{ReceivedRequest, Server, client, say};
use crate::support::subscriber::Subscriber;

on_both_stores!(
    s50_a_library_verifies_each_hop_of_a_poll_and_no_other_server_can_use_it,
    s50_all_nodes_and_later_starts_sign_with_the_same_key,
    s50_an_export_has_no_private_key,
);

/// The path of the directory of keys.
const DIRECTORY: &str = "/.well-known/http-message-signatures-directory";

/// Answers each request with a redirect to `target`, and keeps it.
async fn redirecting(target: String) -> (Server, Arc<Mutex<Vec<ReceivedRequest>>>) {
    let request: Arc<Mutex<Vec<ReceivedRequest>>> = Arc::default();
    let seen = Arc::clone(&request);
    let server = Server::start(move |request| {
        seen.lock().unwrap().push(request);
        let mut answer = say(StatusCode::FOUND, "");
        answer.headers_mut().insert("location", target.parse().unwrap());
        async move { answer }
    });
    (server.await, request)
}

/// A request as the verifier takes it: to `url`, with these headers.
fn request(url: &str, headers: &HeaderMap) -> Value {
    let headers: serde_json::Map<String, Value> = headers
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), value.to_str().unwrap().into()))
        .collect();
    json!({ "method": "GET", "url": url, "headers": headers })
}

/// What the library of PyPI says of the directory and of each request.
async fn verify(gateway: &Gateway, requests: &[Value]) -> Vec<String> {
    #[expect(clippy::disallowed_methods, reason = "it is the test runner that sets it")]
    let python = std::env::var("FEEDGATE_TEST_PYTHON").expect("tests/run installs packages");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/clients/verify_requests.py");
    let mut program = Command::new(python);
    let program = program.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut running = program.kill_on_drop(true).spawn().unwrap();
    let given = json!({ "directory": gateway.url(DIRECTORY), "requests": requests });
    running.stdin.take().unwrap().write_all(given.to_string().as_bytes()).await.unwrap();
    let ended = timeout(PATIENCE, running.wait_with_output()).await.expect("it ends").unwrap();
    assert!(ended.status.success(), "{ended:?}");
    String::from_utf8(ended.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// The ids of the keys in the directory.
async fn key_ids(gateway: &Gateway) -> Vec<String> {
    let (status, text) = gateway.get(DIRECTORY).await;
    assert_eq!(status, StatusCode::OK, "{text}");
    let set: Value = serde_json::from_str(&text).unwrap();
    let keys = set["keys"].as_array().unwrap();
    keys.iter().map(|key| key["kid"].as_str().unwrap().to_owned()).collect()
}

async fn s50_a_library_verifies_each_hop_of_a_poll_and_no_other_server_can_use_it(
    database: Database,
) {
    let (publisher, subscriber) = (Publisher::start().await, Subscriber::start().await);
    publisher.put_rss("/feed", rss("tides", 1..2));
    let (front, received) = redirecting(publisher.url("/feed")).await;
    let gateway = Gateway::start_reachable(&database).await;
    let (topic, callback) = (front.url("/moved"), subscriber.url("/cb"));
    gateway.subscribe_superfeedr(&topic, &callback, "atom").await;
    gateway.archive_holds(&topic, &entry_id("tides", 1)).await;

    let first =
        received.lock().unwrap().iter().find(|request| request.path == "/moved").cloned().unwrap();
    let second = publisher.fetches("/feed")[0].request.clone();
    let requests = [
        request(&front.url("/moved"), &first.headers),
        request(&publisher.url("/feed"), &second.headers),
        request(&publisher.url("/feed"), &first.headers),
        request("https://other.test/feed", &second.headers),
    ];
    let verified = verify(&gateway, &requests).await;
    let [key] = &*key_ids(&gateway).await else { panic!("there is one key at first") };
    assert_eq!(verified[0], format!("directory {key}"));
    let covered = "\"@authority\" \"signature-agent\";key=\"sig1\" \"@signature-params\"";
    assert_eq!(verified[1..3], [(); 2].map(|()| format!("verified {key} {covered}")));
    assert!(verified[3..].iter().all(|line| line.starts_with("not verified")), "{verified:?}");
    let origin = gateway.url("");
    assert_eq!(first.header("signature-agent"), Some(&*format!("sig1=\"{origin}\"")));

    let (_, page) = gateway.get("/bot").await;
    for part in [key.as_str(), &gateway.url(DIRECTORY), "web-bot-auth", "@authority"] {
        assert!(page.contains(part), "{part} is not in {page}");
    }
    publisher.put_rss("/feed", rss("tides", 1..3));
    gateway.post("/ping", &[("url", &topic)]).await;
    subscriber.until("/cb", |notified| !notified.is_empty()).await;
    let notified = &subscriber.notified("/cb")[0];
    for name in ["signature", "signature-input", "signature-agent"] {
        assert_eq!(notified.header(name), None, "callbacks have signatures of their own");
    }
}

async fn s50_all_nodes_and_later_starts_sign_with_the_same_key(database: Database) {
    let mut first = Gateway::start_reachable(&database).await;
    let keys = key_ids(&first).await;
    let second = Gateway::start_reachable(&database).await;
    assert_eq!(key_ids(&second).await, keys);
    first.kill();
    first.restart().await;
    assert_eq!(key_ids(&first).await, keys);
    let seeds = database.texts("select seed from signing_keys").await;
    assert_eq!(seeds.len(), 1, "one key for both");
    let (_, document) = first.get(DIRECTORY).await;
    assert!(!document.contains(&seeds[0]) && !document.contains("\"d\""), "{document}");
}

async fn s50_an_export_has_no_private_key(database: Database) {
    let mut gateway = Gateway::start_reachable(&database).await;
    let seeds = database.texts("select seed from signing_keys").await;
    gateway.terminate();
    gateway.ended().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.jsonl");
    let mut export = std::process::Command::new(env!("CARGO_BIN_EXE_feedgate"));
    export.args(["export", "--with-secrets"]).arg(&file).env_clear();
    export.env("FEEDGATE_DATABASE", &database.url);
    export.env("FEEDGATE_CELLS", database.cells.to_string());
    let exported = export.output().unwrap();
    assert!(exported.status.success(), "{exported:?}");
    let lines = std::fs::read_to_string(&file).unwrap();
    assert!(!lines.contains("signing_keys") && !lines.contains(&seeds[0]), "{lines}");
}

#[tokio::test(flavor = "multi_thread")]
async fn s50_without_a_public_url_nothing_is_signed() {
    let database = Database::new(Kind::Sqlite).await;
    let (publisher, gateway) = (Publisher::start().await, Gateway::start(&database, &[]).await);
    publisher.put_rss("/feed", rss("tides", 1..2));
    let topic = publisher.url("/feed");
    gateway.subscribe_superfeedr(&topic, "https://b.test/dev/null", "atom").await;
    gateway.archive_holds(&topic, &entry_id("tides", 1)).await;
    assert_eq!(publisher.fetches("/feed")[0].request.header("signature-input"), None);
    let absent = client().get(gateway.url(DIRECTORY)).send().await.unwrap();
    assert_eq!(absent.status(), StatusCode::NOT_FOUND);
    assert!(!gateway.get("/bot").await.1.contains("How to verify it"));
}

/// Below a path, the directory is at the root of the host, where others look for it.
#[tokio::test(flavor = "multi_thread")]
async fn s50_the_agent_of_a_gateway_below_a_path_is_its_host() {
    let database = Database::new(Kind::Sqlite).await;
    let settings = [("FEEDGATE_PUBLIC_URL", "https://gateway.example/below/")];
    let (publisher, gateway) =
        (Publisher::start().await, Gateway::start(&database, &settings).await);
    publisher.put_rss("/feed", rss("tides", 1..2));
    let topic = publisher.url("/feed");
    gateway.subscribe_superfeedr(&topic, "https://b.test/dev/null", "atom").await;
    publisher.fetched("/feed", 1).await;
    let request = publisher.fetches("/feed")[0].request.clone();
    assert_eq!(request.header("signature-agent"), Some("sig1=\"https://gateway.example\""));
    assert_eq!(key_ids(&gateway).await.len(), 1);
}
