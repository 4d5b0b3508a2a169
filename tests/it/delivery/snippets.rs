//! The functions that `docs/api/signatures.md` has in five languages verify a real notification, and
//! reject it altered, unsigned or with another secret.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use feedgate_core::signing::Secret;
use feedgate_core::subscription::Format;
use feedgate_protocol::signature::SignatureMethod;
use http::HeaderMap;
use serde_json::json;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::timeout;

use super::Node;
use crate::store::on_one_store;
use crate::support::PATIENCE;
use crate::support::postgres::Database;
use crate::support::server::ReceivedRequest;
use crate::support::subscriber::Subscriber;

on_one_store!(the_documented_functions_verify_a_notification);

/// A language of the page.
struct Language {
    /// The name of its block.
    block: &'static str,
    /// What a program begins with, before the block.
    head: &'static str,
    /// The end of the names of its files.
    extension: &'static str,
    /// What runs a program, before the name of its file; nothing for one that is compiled.
    interpreter: Option<&'static str>,
}

#[rustfmt::skip]
const LANGUAGES: [Language; 5] = [
    Language { block: "python", head: "",               extension: "py",  interpreter: Some("python3") },
    Language { block: "js",     head: "",               extension: "js",  interpreter: Some("node") },
    Language { block: "ruby",   head: "",               extension: "rb",  interpreter: Some("ruby") },
    Language { block: "php",    head: "<?php\n",        extension: "php", interpreter: Some("php") },
    Language { block: "go",     head: "package main\n", extension: "go",  interpreter: None },
];

/// A program of the functions of the page and what calls them (`tests/it/clients/signatures`).
struct Verifier {
    block: &'static str,
    program: PathBuf,
    interpreter: Option<&'static str>,
}

impl Verifier {
    async fn new(language: &Language, page: &str, folder: &Path) -> Verifier {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let begin = format!("```{}\n", language.block);
        let (_, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("no {begin}"));
        let functions = format!("{}{}", language.head, rest.split_once("```\n").unwrap().0);
        let main = format!("tests/it/clients/signatures/main.{}", language.extension);
        let main = fs::read_to_string(root.join(main)).unwrap();
        let file = |name: &str| folder.join(format!("{name}.{}", language.extension));
        let (block, interpreter) = (language.block, language.interpreter);
        if interpreter.is_some() {
            fs::write(file("verify"), functions + &main).unwrap();
            return Verifier { block, program: file("verify"), interpreter };
        }
        fs::write(file("verify"), functions).unwrap();
        fs::write(file("main"), main).unwrap();
        let program = folder.join("verify");
        let built = Command::new("go")
            .args(["build", "-o"])
            .args([&program, &file("verify"), &file("main")])
            .output();
        let built = timeout(PATIENCE, built).await.expect("go ends").expect("go runs");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        Verifier { block, program, interpreter }
    }

    /// What the two functions return for a notification: that of `X-Hub-Signature`, and that of
    /// Standard Webhooks.
    async fn verdicts(&self, notification: &ReceivedRequest, secret: &str) -> [bool; 2] {
        let names = ["x-hub-signature", "webhook-id", "webhook-timestamp", "webhook-signature"];
        let headers: serde_json::Map<_, _> = names
            .into_iter()
            .filter_map(|name| {
                Some((name.to_owned(), notification.headers.get(name)?.to_str().ok()?.into()))
            })
            .collect();
        let given = json!({ "secret": secret, "headers": headers, "body": notification.text() });
        let mut command = match self.interpreter {
            Some(interpreter) => Command::new(interpreter),
            None => Command::new(&self.program),
        };
        if self.interpreter.is_some() {
            command.arg(&self.program);
        }
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut running = command.spawn().unwrap_or_else(|err| {
            panic!("{}: {err}; tests/run installs what is missing", self.block)
        });
        running.stdin.take().unwrap().write_all(given.to_string().as_bytes()).await.unwrap();
        let ended = timeout(PATIENCE, running.wait_with_output()).await.expect("it ends").unwrap();
        assert!(ended.status.success(), "{}: {ended:?}", self.block);
        serde_json::from_slice(&ended.stdout).unwrap()
    }
}

/// A notification in JSON, with the secret and the method of its signatures.
struct Signed {
    secret: &'static str,
    method: SignatureMethod,
    notification: ReceivedRequest,
}

/// A notification for each kind of secret, by different methods.
async fn signed_notifications(database: &Database) -> Vec<Signed> {
    let node = Node::start(database).await;
    let subscriber = Subscriber::start().await;
    let [_, sha256, _, sha512] = SignatureMethod::ALL;
    let kinds = [
        ("/plain", "opensesame", sha256),
        ("/encoded", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", sha512),
    ];
    let mut resource = None;
    for (path, secret, method) in kinds {
        let callback = subscriber.url(path);
        let subscribed = node.subscribe(&callback, |request| {
            request.format = Format::Json;
            request.signing.secret = Some(Secret::new(secret.to_owned()).unwrap());
            request.signing.method = Some(method);
        });
        resource = Some(subscribed.await.id.resource);
    }
    node.append(resource.unwrap(), 1..=2).await;
    let mut signed = Vec::new();
    for (path, secret, method) in kinds {
        subscriber.until(path, |told| told.len() == 1).await;
        signed.push(Signed { secret, method, notification: subscriber.notified(path).remove(0) });
    }
    node.stop().await;
    signed
}

async fn the_documented_functions_verify_a_notification(database: Database) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/api/signatures.md");
    let page = fs::read_to_string(page).unwrap();
    let folder = TempDir::new().unwrap();
    let signed = signed_notifications(&database).await;
    for language in &LANGUAGES {
        let verifier = Verifier::new(language, &page, folder.path()).await;
        for Signed { secret, method, notification } in &signed {
            let case = format!("{} {}", language.block, method.as_str());
            let verdicts = verifier.verdicts(notification, secret).await;
            assert_eq!(verdicts, [true; 2], "{case}");
            let body = notification.text().replace('1', "2").into();
            let altered = ReceivedRequest { body, ..notification.clone() };
            assert_eq!(verifier.verdicts(&altered, secret).await, [false; 2], "{case}, altered");
            let verdicts = verifier.verdicts(notification, "another").await;
            assert_eq!(verdicts, [false; 2], "{case}, another secret");
            let unsigned = ReceivedRequest { headers: HeaderMap::new(), ..notification.clone() };
            assert_eq!(verifier.verdicts(&unsigned, secret).await, [false; 2], "{case}, unsigned");
        }
    }
}
