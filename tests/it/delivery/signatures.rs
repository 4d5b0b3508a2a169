//! The signatures of notifications, as the libraries of others verify them.

use std::process::Stdio;

use chrono::{DateTime, Utc};
use feedgate_core::record::Seq;
use feedgate_core::signing::Secret;
use feedgate_core::subscription::Format;
use feedgate_protocol::signature::{self, SignatureMethod};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::timeout;

use super::{Node, told};
use crate::store::{on_both_stores, on_one_store};
use crate::support::PATIENCE;
use crate::support::postgres::Database;
use crate::support::server::ReceivedRequest;
use crate::support::subscriber::{Behavior, Subscriber, is_signed};

on_both_stores!(a_replay_has_an_id_of_its_own);

on_one_store!(
    the_libraries_of_standard_webhooks_verify_a_notification,
    both_secrets_sign_while_one_replaces_the_other,
    each_subscription_has_its_own_hash_function,
    a_retry_has_the_id_of_the_first_attempt,
);

/// A secret as Standard Webhooks serializes it, and what other secrets look like.
const ENCODED: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const PLAIN: &str = "opensesame";

fn secret(text: &str) -> Option<Secret> {
    Some(Secret::new(text.to_owned()).unwrap())
}

/// Where the test runner has installed packages.
fn variable(name: &str) -> String {
    #[expect(clippy::disallowed_methods, reason = "it is the test runner that sets it")]
    let value = std::env::var(name);
    value.unwrap_or_else(|_| panic!("tests/run installs packages and sets {name}"))
}

/// What the packages of PyPI and npm say of a notification, with this secret.
async fn verdicts(notification: &ReceivedRequest, secret: &str) -> [String; 2] {
    let names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
    let headers: serde_json::Map<_, _> = names
        .map(|name| (name.to_owned(), notification.header(name).unwrap().into()))
        .into_iter()
        .collect();
    let given = json!({
        "secret": secret,
        "is_encoded": secret.starts_with("whsec_"),
        "headers": headers,
        "body": notification.text(),
    });
    let mut python = Command::new(variable("FEEDGATE_TEST_PYTHON"));
    python.arg(script("verify_webhook.py"));
    let mut node = Command::new("node");
    node.arg(script("verify_webhook.js")).env("NODE_PATH", variable("FEEDGATE_TEST_NODE_MODULES"));
    [output(python, &given.to_string()).await, output(node, &given.to_string()).await]
}

fn script(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/clients").join(name)
}

/// What a program prints that is given this.
async fn output(mut program: Command, input: &str) -> String {
    let program = program.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut running = program.spawn().unwrap();
    running.stdin.take().unwrap().write_all(input.as_bytes()).await.unwrap();
    let ended = timeout(PATIENCE, running.wait_with_output()).await.expect("it ends").unwrap();
    assert!(ended.status.success(), "{ended:?}");
    String::from_utf8(ended.stdout).unwrap().trim().to_owned()
}

async fn the_libraries_of_standard_webhooks_verify_a_notification(database: Database) {
    let node = Node::start(&database).await;
    let subscriber = Subscriber::start().await;
    let mut resource = None;
    for (path, key) in [("/encoded", ENCODED), ("/plain", PLAIN)] {
        let callback = subscriber.url(path);
        let subscribed = node.subscribe(&callback, |request| {
            (request.format, request.signing.secret) = (Format::Json, secret(key));
        });
        resource = Some(subscribed.await.id.resource);
    }
    node.append(resource.unwrap(), 1..=2).await;
    for (path, key, other) in [("/encoded", ENCODED, PLAIN), ("/plain", PLAIN, ENCODED)] {
        subscriber.until(path, |told| told.len() == 1).await;
        let notification = subscriber.notified(path).remove(0);
        assert_eq!(verdicts(&notification, key).await, ["verified", "verified"], "{path}");
        let refused = "No matching signature found";
        assert_eq!(verdicts(&notification, other).await, [refused, refused], "{path}");
        let altered =
            ReceivedRequest { body: notification.text().replace('1', "2").into(), ..notification };
        assert_eq!(verdicts(&altered, key).await, [refused, refused], "{path}");
    }
    node.stop().await;
}

async fn both_secrets_sign_while_one_replaces_the_other(database: Database) {
    let node = Node::start(&database).await;
    let subscriber = Subscriber::start().await;
    let callback = subscriber.url("/");
    for key in [PLAIN, ENCODED] {
        let subscribed = node.subscribe(&callback, |request| {
            (request.format, request.signing.secret) = (Format::Json, secret(key));
        });
        subscribed.await;
    }
    let id = node.now(&callback).await.unwrap().id;
    node.append(id.resource, 1..=1).await;
    subscriber.until("/", |told| told.len() == 1).await;
    let notification = subscriber.notified("/").remove(0);
    assert_eq!(notification.header("webhook-signature").unwrap().split(' ').count(), 2);
    for key in [PLAIN, ENCODED] {
        assert_eq!(verdicts(&notification, key).await, ["verified", "verified"], "{key}");
    }
    assert!(is_signed(&notification, ENCODED), "X-Hub-Signature is made with the new secret");
    node.stop().await;
}

/// WebSub 7.1.1.
async fn each_subscription_has_its_own_hash_function(database: Database) {
    let node = Node::start(&database).await;
    let subscriber = Subscriber::start().await;
    let mut resource = None;
    for method in SignatureMethod::ALL {
        let path = format!("/{}", method.as_str());
        let callback = subscriber.url(&path);
        let subscribed = node.subscribe(&callback, |request| {
            (request.signing.secret, request.signing.method) = (secret(PLAIN), Some(method));
        });
        resource = Some(subscribed.await.id.resource);
    }
    node.append(resource.unwrap(), 1..=1).await;
    for method in SignatureMethod::ALL {
        let path = format!("/{}", method.as_str());
        subscriber.until(&path, |told| told.len() == 1).await;
        let notification = subscriber.notified(&path).remove(0);
        let signed = notification.header("x-hub-signature").unwrap();
        assert!(signed.starts_with(&format!("{}=", method.as_str())), "{signed}");
        assert!(signature::holds(signed, PLAIN, &notification.body), "{signed}");
    }
    node.stop().await;
}

async fn a_retry_has_the_id_of_the_first_attempt(database: Database) {
    let node = Node::start(&database).await;
    let subscriber = Subscriber::start().await;
    let callback = subscriber.url("/");
    subscriber.set("/", Behavior::Failing(500));
    let id = node.subscribe(&callback, |request| request.signing.secret = secret(PLAIN)).await.id;
    node.append(id.resource, 1..=1).await;
    node.until(&callback, |held| held.is_some_and(|held| held.failures == 1)).await;
    subscriber.set("/", Behavior::Accepting);
    // A renewal tries at once what waits for its retry.
    node.subscribe(&callback, |request| request.signing.secret = secret(PLAIN)).await;
    node.until(&callback, told(1)).await;
    let notified = subscriber.notified("/");
    assert!(notified.len() >= 2);
    for attempt in &notified {
        assert_eq!(attempt.header("webhook-id"), notified[0].header("webhook-id"));
        assert!(timestamp(attempt) >= timestamp(&notified[0]), "of the attempt");
        assert_eq!(attempt.header("x-feedgate-replay-of"), None);
    }
    node.stop().await;
}

async fn a_replay_has_an_id_of_its_own(database: Database) {
    let node = Node::start(&database).await;
    let subscriber = Subscriber::start().await;
    let callback = subscriber.url("/");
    let id = node.subscribe(&callback, |_| {}).await.id;
    node.append(id.resource, 1..=3).await;
    node.until(&callback, told(3)).await;
    for replays in 1..=2 {
        node.store.replay(id, Seq(1), feedgate::jobs::runner::now()).await.unwrap();
        subscriber.until("/", |told| told.len() == 1 + replays).await;
        node.until(&callback, told(3)).await;
    }
    node.append(id.resource, 4..=4).await;
    node.until(&callback, told(4)).await;
    let notified = subscriber.notified("/");
    let heads: Vec<_> = notified
        .iter()
        .map(|request| {
            let id =
                request.header("webhook-id").unwrap().splitn(3, '-').last().unwrap().to_owned();
            (id, request.header("x-feedgate-replay-of").map(str::to_owned))
        })
        .collect();
    let replayed = Some("2-3".to_owned());
    let want = [
        ("1-3".to_owned(), None),
        ("2-3-replay-1".to_owned(), replayed.clone()),
        ("2-3-replay-2".to_owned(), replayed),
        ("4-4".to_owned(), None),
    ];
    assert_eq!(heads, want);
    node.stop().await;
}

fn timestamp(notification: &ReceivedRequest) -> DateTime<Utc> {
    let seconds = notification.header("webhook-timestamp").unwrap().parse().unwrap();
    DateTime::from_timestamp(seconds, 0).unwrap()
}
