//! Secrets at rest (S36), as an operator introduces a key, rotates it, and forgets to set it.

use std::fs;
use std::process::{Command, Output, Stdio};

use feedgate_store::{SecretKey, SecretKeys};

use crate::store::on_both_stores;
use crate::support::feeds::{entry_id, rss};
use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Kind};
use crate::support::publisher::Publisher;
use crate::support::subscriber::{Subscriber, is_signed};

on_both_stores!(
    s36_keys_are_introduced_and_rotated_while_the_gateway_runs,
    s36_a_gateway_without_the_key_does_not_start,
    s36_an_export_has_envelopes_that_open_after_the_import,
);

const SECRET: &str = "0pensesame-at-rest";
/// 32 bytes, in hexadecimal and in base64.
const FIRST: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const SECOND: &str = "ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=";

const KEY: &str = "FEEDGATE_SECRETS_KEY";
const OLD_KEYS: &str = "FEEDGATE_SECRETS_OLD_KEYS";

/// Runs a command on a database, with these settings.
fn feedgate(args: &[&str], database: &Database, settings: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_feedgate"));
    command.args(args).env_clear().envs(settings.iter().copied());
    command.env("FEEDGATE_DATABASE", &database.url);
    command.env("FEEDGATE_CELLS", database.cells.to_string());
    command.stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// The keys with which the test itself opens the database.
fn keys(present: &str, old: Option<&str>) -> SecretKeys {
    SecretKeys {
        present: SecretKey::parse(present),
        old: old.into_iter().filter_map(SecretKey::parse).collect(),
    }
}

/// The stored secrets of subscriptions.
async fn stored(database: &Database) -> Vec<String> {
    database.texts("select secret from subscriptions where secret is not null").await
}

/// Rotates to the present key of `settings`, and returns what is printed.
fn rotate(database: &Database, settings: &[(&str, &str)]) -> String {
    let output = feedgate(&["rotate-key"], database, settings);
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).to_owned()
}

/// Makes the feed hold the items 1 to `items`, and checks that the last one arrives, signed.
async fn publish(gateway: &Gateway, publisher: &Publisher, subscriber: &Subscriber, items: usize) {
    publisher.put_rss("/feed", rss("tides", 1..items + 1));
    let topic = publisher.url("/feed");
    let form = [("hub.mode", "publish"), ("hub.url", topic.as_str())];
    assert!(gateway.post("/hub", &form).await.0.is_success());
    let newest = entry_id("tides", items);
    subscriber
        .until("/cb", |notified| notified.iter().any(|one| one.text().contains(&newest)))
        .await;
    let notified = subscriber.notified("/cb");
    let last = notified.iter().find(|one| one.text().contains(&newest)).unwrap();
    assert!(is_signed(last, SECRET), "{:?}", last.headers);
}

async fn s36_keys_are_introduced_and_rotated_while_the_gateway_runs(mut database: Database) {
    let (publisher, subscriber) = (Publisher::start().await, Subscriber::start().await);
    publisher.put_rss("/feed", rss("tides", 1..3));
    let topic = publisher.url("/feed");
    let mut gateway = Gateway::start(&database, &[]).await;
    gateway.subscribe_websub(&topic, &subscriber.url("/cb"), &[("hub.secret", SECRET)]).await;
    gateway.archive_holds(&topic, &entry_id("tides", 2)).await;
    assert_eq!(stored(&database).await, [SECRET]);
    gateway.comes_to_rest().await;
    gateway.kill();

    database.secret_keys = keys(FIRST, None);
    let mut gateway = Gateway::start(&database, &[(KEY, FIRST)]).await;
    let printed = rotate(&database, &[(KEY, FIRST)]);
    let (first, rest) = printed.split_once('\n').unwrap();
    assert!(first.starts_with("1 secrets were encrypted with the key "), "{printed}");
    assert_eq!(rest, "no other key is needed any more\n");
    let sealed = stored(&database).await.remove(0);
    assert!(sealed.starts_with("sealed:1:") && !sealed.contains(SECRET), "{sealed}");
    publish(&gateway, &publisher, &subscriber, 3).await;
    gateway.comes_to_rest().await;
    gateway.kill();

    let next = [(KEY, SECOND), (OLD_KEYS, FIRST)];
    database.secret_keys = keys(SECOND, Some(FIRST));
    let mut gateway = Gateway::start(&database, &next).await;
    publish(&gateway, &publisher, &subscriber, 4).await;
    rotate(&database, &next);
    assert_ne!(stored(&database).await.remove(0), sealed);
    publish(&gateway, &publisher, &subscriber, 5).await;
    gateway.comes_to_rest().await;
    gateway.kill();

    let mut database = restored(database).await;
    database.secret_keys = keys(SECOND, None);
    let gateway = Gateway::start(&database, &[(KEY, SECOND)]).await;
    publish(&gateway, &publisher, &subscriber, 6).await;
}

/// Backs up and restores a SQLite database: the backup has no secret in it.
async fn restored(database: Database) -> Database {
    if database.kind() == Kind::Postgres {
        return database;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("backup.db");
    let path = file.to_str().unwrap();
    // Neither command needs a key.
    let backup = feedgate(&["backup", path], &database, &[]);
    assert!(backup.status.success(), "{}", text(&backup.stderr));
    let bytes = fs::read(&file).unwrap();
    let is_secret = |part: &[u8]| part == SECRET.as_bytes();
    assert!(!bytes.windows(SECRET.len()).any(is_secret), "the backup has the secret in it");
    let new = Database::bare(Kind::Sqlite).await;
    let restored = feedgate(&["restore", path], &new, &[]);
    assert!(restored.status.success(), "{}", text(&restored.stderr));
    new
}

async fn s36_an_export_has_envelopes_that_open_after_the_import(mut source: Database) {
    let (publisher, subscriber) = (Publisher::start().await, Subscriber::start().await);
    publisher.put_rss("/feed", rss("tides", 1..3));
    source.secret_keys = keys(FIRST, None);
    let mut old = Gateway::start(&source, &[(KEY, FIRST)]).await;
    let (topic, callback) = (publisher.url("/feed"), subscriber.url("/cb"));
    #[rustfmt::skip]
    let form = [
        ("hub.mode", "subscribe"), ("hub.topic", &*topic), ("hub.callback", &*callback),
        ("hub.secret", SECRET), ("format", "atom"),
    ];
    let (status, why) = old.superfeedr(&form).await;
    assert!(status.is_success(), "{why}");
    old.comes_to_rest().await;
    old.terminate();
    old.ended().await;

    let folder = tempfile::tempdir().unwrap();
    let exported = |name: &str, options: &[&str]| {
        let path = folder.path().join(name).to_str().unwrap().to_owned();
        let output = feedgate(&[&["export", &*path], options].concat(), &source, &[]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        (fs::read_to_string(&path).unwrap(), path)
    };
    let (without, _) = exported("without.jsonl", &[]);
    assert!(!without.contains("sealed:1:") && !without.contains("secret_keys"), "{without}");
    let (lines, path) = exported("with.jsonl", &["--with-secrets"]);
    assert!(lines.contains("sealed:1:") && !lines.contains(SECRET), "{lines}");

    // The account gets another number, because there is one already.
    let mut target = Database::new(source.kind()).await;
    let other = feedgate(&["token", "create", "--login", "other"], &target, &[]);
    assert!(other.status.success(), "{}", text(&other.stderr));
    let imported = feedgate(&["import", &path], &target, &[]);
    assert!(imported.status.success(), "{}", text(&imported.stderr));
    target.secret_keys = keys(FIRST, None);
    let new = Gateway::start(&target, &[(KEY, FIRST)]).await;
    publish(&new, &publisher, &subscriber, 3).await;
}

async fn s36_a_gateway_without_the_key_does_not_start(mut database: Database) {
    let warned = feedgate(&["check-config"], &database, &[]);
    let notice = "FEEDGATE_SECRETS_KEY is not set: secrets in the database are stored in clear";
    assert!(text(&warned.stderr).contains(notice), "{}", text(&warned.stderr));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    fs::write(&file, format!("{FIRST}\n")).unwrap();
    let from_file = [("FEEDGATE_SECRETS_KEY_FILE", file.to_str().unwrap())];
    let told = feedgate(&["check-config"], &database, &from_file);
    let line = "feedgate: secrets in the database are encrypted with the key ";
    assert!(text(&told.stderr).starts_with(line), "{}", text(&told.stderr));
    assert!(!text(&told.stdout).contains("0102030405"), "{}", text(&told.stdout));

    database.secret_keys = keys(FIRST, None);
    Gateway::start(&database, &from_file).await.kill();
    for (settings, sentence) in [
        (&[][..], "but FEEDGATE_SECRETS_KEY is not set: set it to this key"),
        (
            &[(KEY, SECOND)],
            "which is neither FEEDGATE_SECRETS_KEY nor in FEEDGATE_SECRETS_OLD_KEYS",
        ),
    ] {
        let mut settings = settings.to_vec();
        settings.extend([("FEEDGATE_LISTEN", "127.0.0.1:0"), ("FEEDGATE_LOG", "warn")]);
        let refused = feedgate(&["serve"], &database, &settings);
        let told = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{told}");
        assert!(told.contains(sentence), "{told}");
        // The log is a notice of the settings alone, once.
        let is_set = settings.iter().any(|(name, _)| *name == KEY);
        assert_eq!(told.matches(notice).count(), usize::from(!is_set), "{told}");
    }
    let bad = feedgate(&["check-config"], &database, &[(KEY, "opensesame-is-no-key")]);
    assert_eq!(bad.status.code(), Some(1));
    assert!(text(&bad.stderr).contains("FEEDGATE_SECRETS_KEY must be a key of 32 random bytes"));
    assert!(!text(&bad.stderr).contains("opensesame"), "{}", text(&bad.stderr));
}
