//! Databases on PostgreSQL that are copied from one with the same number of cells, which the first
//! test that needs it creates: a copy takes a fraction of the time of a migration.

use std::sync::atomic::{AtomicU32, Ordering};

use super::{Database, Place, connect, server};

/// Serializes the creation of templates among test processes.
const LOCK: &str = "select pg_advisory_lock(7466001)";

/// What the names of templates begin with; none if the role of the tests cannot create databases.
/// A server that outlives the run would keep templates with the schema of an older version.
pub(super) fn prefix() -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "it is the test runner that sets it")]
    std::env::var("FEEDGATE_TEST_TEMPLATES").ok()
}

/// Returns a copy of the template with so many cells.
pub(super) async fn copy(prefix: &str, cells: usize) -> Database {
    static COPIES: AtomicU32 = AtomicU32::new(0);
    let template = format!("{prefix}_{cells}");
    let number = COPIES.fetch_add(1, Ordering::Relaxed);
    let name = format!("test_{}_{number}", std::process::id());
    let client = connect(&server()).await;
    client.batch_execute(LOCK).await.unwrap();
    let complete = "select 1 from pg_database where datname = $1 and not datallowconn";
    if client.query_opt(complete, &[&template]).await.unwrap().is_none() {
        client.batch_execute(&format!("create database {template}")).await.unwrap();
        let created = database(&template, cells);
        created.open().await.close().await;
        created.spread_numbers().await;
        let close = format!("alter database {template} allow_connections false");
        client.batch_execute(&close).await.unwrap();
        std::mem::forget(created);
        // A copy needs a template that nobody is connected to.
        let connected = "select count(*) from pg_stat_activity where datname = $1";
        while client.query_one(connected, &[&template]).await.unwrap().get::<_, i64>(0) > 0 {
            tokio::task::yield_now().await;
        }
    }
    client.batch_execute("select pg_advisory_unlock_all()").await.unwrap();
    client.batch_execute(&format!("drop database if exists {name} with (force)")).await.unwrap();
    client.batch_execute(&format!("create database {name} template {template}")).await.unwrap();
    database(&name, cells)
}

fn database(name: &str, cells: usize) -> Database {
    let mut url = url::Url::parse(&server()).expect("the runner gives the address of the server");
    url.set_path(name);
    url.set_query(Some("options=-c%20search_path%3Dpublic"));
    let mut schemas = vec!["public".to_owned()];
    if cells > 1 {
        schemas.extend((0..cells).map(|cell| format!("public_cell_{cell}")));
    }
    Database {
        url: url.to_string(),
        cells,
        secret_keys: Default::default(),
        _place: Place::Copied { name: name.to_owned(), schemas },
    }
}
