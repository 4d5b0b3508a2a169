//! Opening, migrating and closing.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use feedgate_core::store::StoreError;
use feedgate_store as store;
use feedgate_store::MIGRATIONS;

use super::{at, on_both_stores, subscribe, topic};
use crate::support::postgres::{Database, Kind};

on_both_stores!(
    a_store_is_ready_until_it_is_closed,
    what_was_kept_is_there_after_opening_again,
    a_newer_schema_is_refused,
    two_nodes_write_side_by_side,
);

async fn a_store_is_ready_until_it_is_closed(database: Database) {
    let store = database.open().await;
    store.ready().await.unwrap();
    store.close().await;
    let closed = store.ready().await.unwrap_err();
    assert!(matches!(closed, StoreError::Closed), "{closed}");
    let closed = store.find("https://feeds.test/a").await.unwrap_err();
    assert_eq!(closed.code(), "store_closed");
    store.close().await; // twice does no harm
}

async fn what_was_kept_is_there_after_opening_again(database: Database) {
    let store = database.open().await;
    let made = store.ensure(&topic("a"), at(0)).await.unwrap();
    store.close().await;
    let again = database.open().await;
    assert_eq!(again.find("https://feeds.test/a").await.unwrap(), Some(made));
}

async fn a_newer_schema_is_refused(database: Database) {
    let running = database.open().await;
    database.run("insert into migrations (version, name) values (99, 'from the future')").await;
    let Err(refused) = store::open(&database.settings()).await else { panic!("it was opened") };
    assert!(matches!(refused, StoreError::Newer { found: 99, .. }), "{refused}");
    let known = MIGRATIONS.len();
    let sentence = format!(
        "the database schema has version 99, but this feedgate knows versions up to {known} only: \
         upgrade feedgate"
    );
    assert_eq!(refused.to_string(), sentence);
    let not_ready = running.ready().await.unwrap_err();
    assert_eq!(not_ready.code(), "newer_schema", "a node that was overtaken says so");
}

async fn two_nodes_write_side_by_side(database: Database) {
    let nodes = [database.open().await, database.open().await];
    let subscribing = (0..60).map(|n| {
        let node = nodes[n % 2].clone();
        tokio::spawn(async move {
            subscribe(&node, "a", &format!("https://{n}.test/")).await;
        })
    });
    for done in futures_util::future::join_all(subscribing).await {
        done.unwrap();
    }
    assert_eq!(super::listed(&nodes[0]).await.len(), 60);
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_start_together_migrate_once() {
    for kind in [Kind::Sqlite, Kind::Postgres] {
        let database = Database::bare(kind).await;
        let opening = (0..4).map(|_| database.open());
        for store in futures_util::future::join_all(opening).await {
            store.ready().await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_on_one_server_wake_each_other() {
    let database = Database::new(Kind::Postgres).await;
    let (one, other) = (database.open().await, database.open().await);
    let signals = other.wake_signals();
    let woken = signals.resources.notified();
    subscribe(&one, "a", "https://callback.test/").await;
    woken.await;
}

/// The file holds secrets.
#[tokio::test]
async fn a_new_file_is_its_owners_alone() {
    let database = Database::new(Kind::Sqlite).await;
    let file = Path::new(database.url.strip_prefix("sqlite:").unwrap());
    for (path, mode) in [(file.parent().unwrap(), 0o700), (file, 0o600)] {
        let held = path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(held, mode, "{}", path.display());
    }
}
