//! A client that a generator made of the document works: the example of `docs/api/operations.md` is run
//! with it, against the program.

use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

use http::StatusCode;
use tokio::process::Command;

use super::{python_program, root};
use crate::support::feeds::rss;
use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;

/// The credentials of the account that every gateway of the tests has.
const ACCOUNT: &str = "tester:s3cret";

#[tokio::test]
async fn a01_a_generated_client_subscribes_lists_and_retrieves() {
    let publisher = Publisher::start().await;
    publisher.put_rss("/feed.xml", rss("tides", 1..4));
    let database = Database::new(Kind::Sqlite).await;
    let gateway = Gateway::start(&database, &[]).await;
    let folder = tempfile::tempdir().unwrap();
    let (status, document) = gateway.get("/openapi.json").await;
    assert_eq!(status, StatusCode::OK);
    fs::write(folder.path().join("openapi.json"), document).unwrap();
    fs::write(folder.path().join("client.yaml"), "literal_enums: true\n").unwrap();
    fs::write(folder.path().join("example.py"), example()).unwrap();

    let mut generate = Command::new(python_program("openapi-python-client"));
    generate.args(["generate", "--path", "openapi.json", "--config", "client.yaml"]).args([
        "--meta",
        "none",
        "--output-path",
        "feedgate_client",
    ]);
    run(generate, folder.path()).await;

    let mut client = Command::new(python_program("python"));
    client
        .arg("example.py")
        .env("GATE", gateway.url(""))
        .env("ACCOUNT", ACCOUNT)
        .env("FEED", publisher.url("/feed.xml"))
        .env("CALLBACK", gateway.url("/dev/null"));
    let output = run(client, folder.path()).await;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.len(), 4, "{printed}");
    assert_eq!(lines[0], "subscribed to tides");
    assert_eq!(lines[1], format!("listed {} ok", publisher.url("/feed.xml")));
    assert!(lines[2..].iter().all(|line| line.starts_with("entry ")), "{printed}");
    let (_, list) = gateway.superfeedr(&[("hub.mode", "list")]).await;
    assert_eq!(list, "[]", "the client has ended the subscription");
}

/// The example of the page, which begins with its first import.
fn example() -> String {
    let page = fs::read_to_string(root().join("docs/api/operations.md")).unwrap();
    let (_, rest) = page.split_once("```python\n").unwrap();
    rest.split_once("```\n").unwrap().0.to_owned()
}

async fn run(mut command: Command, folder: &Path) -> Output {
    let output = command.current_dir(folder).stdin(Stdio::null()).kill_on_drop(true).output();
    let output = output.await.unwrap();
    let failures = String::from_utf8_lossy(&output.stderr);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{command:?}\n{printed}\n{failures}");
    output
}
