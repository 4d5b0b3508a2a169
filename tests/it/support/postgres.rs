//! Databases to test with: a schema of its own on the test server, or a file of its own.
//!
//! Numbers begin ten thousand apart from table to table, so that one that strays into
//! the wrong table finds nothing there.

mod templates;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use feedgate_core::host_groups::HostGroups;
use feedgate_core::page::PageLimits;
use feedgate_core::ping_forwarding::PingForwarding;
use feedgate_core::visibility::ListedTopics;
use feedgate_store as store;
use feedgate_store::Store;
use feedgate_store::{SecretKeys, StoreSettings};
use tempfile::TempDir;
use tokio_postgres::NoTls;

/// A database that exists while this value does.
pub(crate) struct Database {
    /// What `FEEDGATE_DATABASE` would be.
    pub(crate) url: String,
    /// What `FEEDGATE_CELLS` would be.
    pub(crate) cells: usize,
    /// The keys that it is opened with.
    pub(crate) secret_keys: SecretKeys,
    /// Gone, with all that is in it, when the test ends.
    _place: Place,
}

enum Place {
    Folder(#[expect(dead_code, reason = "it is there to be dropped")] TempDir),
    /// A schema, and those of its cells.
    Schemas(Vec<String>),
    /// A database of its own on the test server: its name, and its schemas.
    Copied {
        name: String,
        schemas: Vec<String>,
    },
}

impl Drop for Place {
    fn drop(&mut self) {
        let drop = match self {
            Place::Folder(_) => return,
            Place::Schemas(schemas) => {
                format!("drop schema if exists {} cascade", schemas.join(", "))
            }
            Place::Copied { name, .. } => format!("drop database {name} with (force)"),
        };
        // A runtime of its own: the test's may be ending.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                connect(&server()).await.batch_execute(&drop).await.unwrap();
            });
        });
        let _ = dropping.join(); // a test that fails has something better to say
    }
}

/// The two kinds of database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Sqlite,
    Postgres,
}

impl Database {
    /// An empty one, with its schema.
    pub(crate) async fn new(kind: Kind) -> Database {
        Database::with_cells(kind, cells()).await
    }

    /// The same, with so many cells if it is on PostgreSQL.
    pub(crate) async fn with_cells(kind: Kind, cells: usize) -> Database {
        match templates::prefix() {
            Some(prefix) if kind == Kind::Postgres => templates::copy(&prefix, cells).await,
            _ => Database::created(kind, cells).await,
        }
    }

    /// One whose tables are created anew.
    async fn created(kind: Kind, cells: usize) -> Database {
        let database = Database::bare_with_cells(kind, cells).await;
        database.open().await.close().await;
        database.spread_numbers().await;
        database
    }

    /// One that no gateway has ever opened.
    pub(crate) async fn bare(kind: Kind) -> Database {
        Database::bare_with_cells(kind, cells()).await
    }

    /// The same, with so many cells if it is on PostgreSQL.
    pub(crate) async fn bare_with_cells(kind: Kind, cells: usize) -> Database {
        match kind {
            Kind::Sqlite => {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("data/feedgate.db");
                Database {
                    url: format!("sqlite:{}", path.display()),
                    cells: 1,
                    secret_keys: SecretKeys::default(),
                    _place: Place::Folder(folder),
                }
            }
            Kind::Postgres => {
                static SCHEMAS: AtomicU32 = AtomicU32::new(0);
                let server = server();
                let number = SCHEMAS.fetch_add(1, Ordering::Relaxed);
                let schema = format!("test_{}_{number}", std::process::id());
                let mut schemas = vec![schema.clone()];
                if cells > 1 {
                    schemas.extend((0..cells).map(|cell| format!("{schema}_cell_{cell}")));
                }
                let clear = format!("drop schema if exists {} cascade", schemas.join(", "));
                let client = connect(&server).await;
                client.batch_execute(&clear).await.unwrap();
                client.batch_execute(&format!("create schema {schema}")).await.unwrap();
                let sign = if server.contains('?') { '&' } else { '?' };
                let url = format!("{server}{sign}options=-c%20search_path%3D{schema}");
                let secret_keys = SecretKeys::default();
                Database { url, cells, secret_keys, _place: Place::Schemas(schemas) }
            }
        }
    }

    /// Which kind it is.
    pub(crate) fn kind(&self) -> Kind {
        if self.url.starts_with("sqlite:") { Kind::Sqlite } else { Kind::Postgres }
    }

    async fn spread_numbers(&self) {
        let starts = (10_000..).step_by(10_000);
        match self.url.strip_prefix("sqlite:") {
            Some(path) => {
                let conn = rusqlite::Connection::open(path).unwrap();
                let tables = "select name from sqlite_schema where sql like '%autoincrement%'";
                let mut tables = conn.prepare(tables).unwrap();
                let names = tables.query_map([], |row| row.get::<_, String>(0)).unwrap();
                for (table, start) in names.zip(starts) {
                    let begin = "insert into sqlite_sequence (name, seq) values (?1, ?2)";
                    conn.execute(begin, (table.unwrap(), start)).unwrap();
                }
            }
            None => {
                let client = connect(&self.url).await;
                let tables = "select table_name::text from information_schema.columns
                               where table_schema = current_schema() and is_identity = 'YES'";
                for (table, start) in client.query(tables, &[]).await.unwrap().iter().zip(starts) {
                    let table: String = table.get(0);
                    let begin = format!(
                        "select setval(pg_get_serial_sequence('{table}', 'id'), {start}, false)"
                    );
                    client.batch_execute(&begin).await.unwrap();
                }
            }
        }
    }

    /// The schemas with tables, on PostgreSQL.
    pub(crate) fn schemas(&self) -> &[String] {
        match &self._place {
            Place::Folder(_) => &[],
            Place::Schemas(schemas) | Place::Copied { schemas, .. } => schemas,
        }
    }

    /// Runs a statement past the store, in every cell.
    pub(crate) async fn run(&self, sql: &str) {
        match self.url.strip_prefix("sqlite:") {
            Some(path) => {
                let conn = rusqlite::Connection::open(path).unwrap();
                conn.busy_timeout(Duration::from_secs(10)).unwrap();
                conn.execute_batch(sql).unwrap();
            }
            None => {
                let client = connect(&self.url).await;
                for schema in self.schemas() {
                    let enter = format!("set search_path to {schema}");
                    client.batch_execute(&enter).await.unwrap();
                    client.batch_execute(sql).await.unwrap();
                }
            }
        }
    }

    /// Lets all writes of resources wait until they are allowed again.
    pub(crate) async fn block_writes(&self) -> BlockedWrites {
        match self.url.strip_prefix("sqlite:") {
            Some(path) => {
                let conn = rusqlite::Connection::open(path).unwrap();
                conn.execute_batch("begin immediate").unwrap();
                BlockedWrites::Sqlite(conn)
            }
            None => {
                let mut clients = Vec::new();
                for schema in self.schemas() {
                    let client = connect(&self.url).await;
                    let lock = format!("begin; select from {schema}.resources for update");
                    client.batch_execute(&lock).await.unwrap();
                    clients.push(client);
                }
                BlockedWrites::Postgres(clients)
            }
        }
    }

    /// The first column of what a query finds past the store, in any cell, which is text.
    pub(crate) async fn texts(&self, sql: &str) -> Vec<String> {
        match self.url.strip_prefix("sqlite:") {
            Some(path) => {
                let conn = rusqlite::Connection::open(path).unwrap();
                let mut query = conn.prepare(sql).unwrap();
                let rows = query.query_map([], |row| row.get(0)).unwrap();
                rows.map(Result::unwrap).collect()
            }
            None => {
                let (client, mut texts) = (connect(&self.url).await, Vec::new());
                for schema in self.schemas() {
                    let enter = format!("set search_path to {schema}");
                    client.batch_execute(&enter).await.unwrap();
                    let rows = client.query(sql, &[]).await.unwrap();
                    texts.extend(rows.iter().map(|row| row.get::<_, String>(0)));
                }
                texts
            }
        }
    }

    /// Opens it, as a gateway would.
    pub(crate) async fn open(&self) -> Arc<Store> {
        self.open_with(HostGroups::new(Duration::ZERO)).await
    }

    /// The same, with these groups of servers.
    pub(crate) async fn open_with(&self, groups: HostGroups) -> Arc<Store> {
        self.open_cut(groups, PageLimits::default()).await
    }

    /// The same, with pages that take so much.
    pub(crate) async fn open_cut(&self, groups: HostGroups, cut: PageLimits) -> Arc<Store> {
        let settings = StoreSettings { groups, page_limits: cut, ..self.settings() };
        store::open(&settings).await.unwrap()
    }

    /// The same, with sinks that are told of changes.
    pub(crate) async fn open_telling(&self, forwarding: PingForwarding) -> Arc<Store> {
        store::open(&StoreSettings { forwarding, ..self.settings() }).await.unwrap()
    }

    /// What a gateway on it would open.
    pub(crate) fn settings(&self) -> StoreSettings {
        StoreSettings {
            url: self.url.clone(),
            connections: 8,
            groups: HostGroups::new(Duration::ZERO),
            page_limits: PageLimits::default(),
            // Few tests are about lists, and most have no subscriptions of strangers.
            listed: ListedTopics::OfAccounts,
            forwarding: PingForwarding::default(),
            anonymous_bytes_per_day: 256 << 20,
            account_bytes_per_day: 32 << 30,
            cells: self.cells,
            secret_keys: self.secret_keys.clone(),
        }
    }
}

/// How many cells databases on PostgreSQL have.
fn cells() -> usize {
    #[expect(clippy::disallowed_methods, reason = "it is the test runner that sets it")]
    let cells = std::env::var("FEEDGATE_TEST_CELLS");
    cells.map_or(1, |cells| cells.parse().expect("FEEDGATE_TEST_CELLS is a number"))
}

/// The server to test with.
fn server() -> String {
    #[expect(clippy::disallowed_methods, reason = "it is the test runner that sets it")]
    std::env::var("FEEDGATE_TEST_POSTGRES")
        .expect("no PostgreSQL to test with: run the tests with tests/run, which starts one")
}

pub(crate) async fn connect(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Writes that wait.
pub(crate) enum BlockedWrites {
    Sqlite(rusqlite::Connection),
    Postgres(Vec<tokio_postgres::Client>),
}

impl BlockedWrites {
    /// Allows them again.
    pub(crate) async fn end(self) {
        match self {
            BlockedWrites::Sqlite(conn) => conn.execute_batch("rollback").unwrap(),
            BlockedWrites::Postgres(clients) => {
                for client in clients {
                    client.batch_execute("rollback").await.unwrap();
                }
            }
        }
    }
}
