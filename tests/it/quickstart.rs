//! The programs of `docs/quickstart.md`, in five languages, work as they are written: they subscribe,
//! verify what they receive, and read a stream that continues after a restart of either side.

mod page;
mod program;

use std::fs;
use std::path::{Path, PathBuf};

use futures_util::future::join_all;
use http::StatusCode;

use self::page::Language;
use self::program::Program;
use crate::support::feeds::entry_id;
use crate::support::server::client;
use crate::support::until;
use crate::support::world::World;

/// What a receiver prints once it may be sent something. That of PHP subscribes in a program of its own.
const READY: [&str; 2] = ["subscribed", "Development Server"];

/// What a program prints for an item of the feed.
fn received(item: usize) -> String {
    format!("received {} Item {item}", entry_id("tides", item))
}

/// A program that reads the stream, and the file with its position.
struct StreamReader {
    program: Program,
    position: PathBuf,
    stored: String,
}

impl StreamReader {
    fn start(language: &Language) -> StreamReader {
        let program = Program::start(language, &language.stream);
        let position = language.folder.path().join("position.txt");
        let stored = fs::read_to_string(&position).unwrap_or_default();
        StreamReader { program, position, stored }
    }

    /// Waits until an item is printed, and the position behind it is stored.
    async fn receives(&mut self, item: usize) {
        self.program.prints(&[&received(item)]).await;
        let read = || fs::read_to_string(&self.position).unwrap_or_default();
        until("the position is stored", async || {
            ![String::new(), self.stored.clone()].contains(&read())
        })
        .await;
        self.stored = read();
    }
}

/// Sends a receiver what the gateway did not sign.
async fn send_forgeries(language: &Language) {
    let signature = format!("v1,{}=", "A".repeat(43));
    let now = feedgate::jobs::runner::now().to_string();
    let forged =
        [("webhook-id", "1"), ("webhook-timestamp", &now), ("webhook-signature", &signature)];
    for headers in [&forged[..], &[]] {
        let request = client().post(language.callback()).body(r#"{"items": [{"id": "forged"}]}"#);
        let request =
            headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::NO_CONTENT, "{}", language.name);
    }
}

#[tokio::test]
async fn the_programs_of_the_quickstart_subscribe_verify_and_resume() {
    let mut world = World::with_tides(3, &[]).await;
    let languages = page::languages(&world).await;
    join_all(languages.iter().map(Language::prepare)).await;

    let mut receivers: Vec<Program> =
        languages.iter().map(|language| Program::start(language, &language.receiver)).collect();
    for (language, receiver) in languages.iter().zip(&mut receivers) {
        receiver.prints(&READY).await;
        send_forgeries(language).await;
        receiver.prints(&["ignored"]).await;
        receiver.prints(&["ignored"]).await;
    }
    let mut readers: Vec<StreamReader> = languages.iter().map(StreamReader::start).collect();
    for reader in &mut readers {
        reader.receives(1).await;
    }
    world.publish_tides(4).await;
    for reader in &mut readers {
        reader.receives(4).await;
    }
    world.gateway.terminate();
    world.gateway.ended().await;
    world.gateway.restart().await;
    world.publish_tides(5).await;
    for reader in &mut readers {
        reader.receives(5).await;
        reader.program.stop().await;
    }
    world.publish_tides(6).await;
    for receiver in &mut receivers {
        receiver.prints(&[&received(6)]).await;
    }
    let mut resumed: Vec<StreamReader> = languages.iter().map(StreamReader::start).collect();
    for reader in &mut resumed {
        reader.receives(6).await;
    }
    world.gateway.comes_to_rest().await;

    for (number, language) in languages.iter().enumerate() {
        let streamed = [readers[number].program.items(), resumed[number].program.items()].concat();
        let items = |numbers: &[usize]| numbers.iter().map(|n| received(*n)).collect::<Vec<_>>();
        assert_eq!(streamed, items(&[3, 2, 1, 4, 5, 6]), "the stream in {}", language.name);
        assert_eq!(receivers[number].items(), items(&[4, 5, 6]), "webhooks in {}", language.name);
    }
}

/// The packages that the page installs are those that the tests have installed.
#[test]
fn the_packages_of_the_quickstart_are_installed_for_the_tests() {
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/clients");
    let python = fs::read_to_string(clients.join("requirements.txt")).unwrap();
    let node = fs::read_to_string(clients.join("package.json")).unwrap();
    for (command, package) in page::packages() {
        let is_there = match command.as_str() {
            "pip" => python.lines().any(|line| line.split("==").next() == Some(&package)),
            _ => node.contains(&format!("\"{package}\": ")),
        };
        assert!(is_there, "{command} install {package}");
    }
}
