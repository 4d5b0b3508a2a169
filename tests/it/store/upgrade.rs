//! Migrating the schema: a later version's migrations on a database that holds data.
//!
//! The later migrations are made up here; each of them fails if it is applied twice.

use std::sync::Arc;

use feedgate_core::store::StoreError;
use feedgate_store::Store;
use feedgate_store::{self as store, MIGRATIONS, Migration, StoreSettings};

use super::{at, on_both_stores, topic};
use crate::support::postgres::{Database, Kind};

on_both_stores!(
    a_later_migration_is_applied_to_a_database_that_holds_data,
    a_migration_that_fails_leaves_those_before_it_and_the_next_start_goes_on,
    nodes_that_start_together_apply_a_later_migration_once,
    a_node_that_was_overtaken_by_a_later_schema_says_so,
);

const NOTE: Migration = Migration {
    name: "note",
    sql: "
        -- What was said of a resource; it's never empty.
        alter table resources add column note text not null default 'none; yet';
        update resources set note = 'held' where subscribers = 0;
        create table notes (id {number}, note text not null unique);",
};
const NOTES: Migration = Migration {
    name: "notes",
    sql: "
        insert into notes (note) select note from resources;
        insert into notes (note) values ('new')",
};

/// All migrations there are, and these after them.
fn and(later: &[Migration]) -> Vec<Migration> {
    [MIGRATIONS, later].concat()
}

/// Opens the database as a version with these migrations would.
async fn open(database: &Database, migrations: &[Migration]) -> Result<Arc<Store>, StoreError> {
    store::open_with(&database.settings(), migrations).await
}

/// The different texts that a query finds, in order.
async fn found(database: &Database, sql: &str) -> Vec<String> {
    let mut texts = database.texts(sql).await;
    texts.sort_unstable();
    texts.dedup();
    texts
}

/// The name of the newest migration of the first schema.
async fn newest(database: &Database) -> String {
    let newest = "select name from migrations order by version desc limit 1";
    database.texts(newest).await.swap_remove(0)
}

async fn a_later_migration_is_applied_to_a_database_that_holds_data(database: Database) {
    let store = database.open().await;
    let held = store.ensure(&topic("a"), at(0)).await.unwrap();
    store.close().await;

    for _ in 0..2 {
        let store = open(&database, &and(&[NOTE, NOTES])).await.unwrap();
        store.ready().await.unwrap();
        assert_eq!(store.find("https://feeds.test/a").await.unwrap().as_ref(), Some(&held));
        store.close().await;
    }
    assert_eq!(found(&database, "select note from notes").await, ["held", "new"]);
    assert_eq!(found(&database, "select note from resources").await, ["held"]);
}

async fn a_migration_that_fails_leaves_those_before_it_and_the_next_start_goes_on(
    database: Database,
) {
    let broken = Migration { name: "notes", sql: "delete from notes; delete from nowhere" };
    let Err(failed) = open(&database, &and(&[NOTE, broken])).await else {
        panic!("a broken migration was applied");
    };
    assert_eq!(failed.code(), "database");
    assert_eq!(newest(&database).await, "note");
    open(&database, &and(&[NOTE])).await.unwrap().ready().await.unwrap();
    open(&database, &and(&[NOTE, NOTES])).await.unwrap().ready().await.unwrap();
    assert_eq!(newest(&database).await, "notes");
}

async fn nodes_that_start_together_apply_a_later_migration_once(database: Database) {
    let migrations = and(&[NOTE, NOTES]);
    let opening = (0..4).map(|_| open(&database, &migrations));
    for store in futures_util::future::join_all(opening).await {
        store.unwrap().ready().await.unwrap();
    }
    assert_eq!(found(&database, "select note from notes").await, ["new"]);
}

async fn a_node_that_was_overtaken_by_a_later_schema_says_so(database: Database) {
    let running = database.open().await;
    running.ready().await.unwrap();
    open(&database, &and(&[NOTE])).await.unwrap().ready().await.unwrap();
    assert_eq!(running.ready().await.unwrap_err().code(), "newer_schema");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_may_take_longer_than_any_other_statement() {
    let database = Database::new(Kind::Postgres).await;
    // In one parameter with the search path that is there already.
    let limits = "%20-c%20statement_timeout%3D100%20-c%20lock_timeout%3D100";
    let settings =
        StoreSettings { url: format!("{}{limits}", database.url), ..database.settings() };
    let slow = Migration { name: "slow", sql: "create table slow (id bigint); select pg_sleep(1)" };
    let migrations = and(&[slow, NOTE]);
    // The second waits for the lock of the first for as long.
    let opening = (0..2).map(|_| store::open_with(&settings, &migrations));
    for store in futures_util::future::join_all(opening).await {
        store.unwrap().ready().await.unwrap();
    }
}
