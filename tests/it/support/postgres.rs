//! Databases to test with: a schema of its own on the test server, or a file of its own.
//!
//! Numbers begin ten thousand apart from table to table, so that one that strays into
//! the wrong table finds nothing there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use feedgate::store::{self, Settings, Store};
use tempfile::TempDir;
use tokio_postgres::NoTls;

/// A database that exists while this value does.
pub(crate) struct Database {
    /// What `FEEDGATE_DATABASE` would be.
    pub(crate) url: String,
    /// Gone, with all that is in it, when the test ends.
    _place: Place,
}

enum Place {
    Folder(#[expect(dead_code, reason = "it is there to be dropped")] TempDir),
    Schema(String),
}

impl Drop for Place {
    fn drop(&mut self) {
        let Place::Schema(schema) = self else { return };
        let drop = format!("drop schema {schema} cascade");
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
        match kind {
            Kind::Sqlite => Database::sqlite().await,
            Kind::Postgres => Database::postgres().await,
        }
    }

    async fn sqlite() -> Database {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data/feedgate.db");
        let database =
            Database { url: format!("sqlite:{}", path.display()), _place: Place::Folder(folder) };
        database.open().await.close().await;
        let conn = rusqlite::Connection::open(path).unwrap();
        let tables = "select name from sqlite_schema where sql like '%autoincrement%' order by 1";
        let mut tables = conn.prepare(tables).unwrap();
        let names = tables.query_map([], |row| row.get::<_, String>(0)).unwrap();
        for (table, start) in names.zip((10_000..).step_by(10_000)) {
            let begin = "insert into sqlite_sequence (name, seq) values (?1, ?2)";
            conn.execute(begin, (table.unwrap(), start)).unwrap();
        }
        database
    }

    async fn postgres() -> Database {
        static SCHEMAS: AtomicU32 = AtomicU32::new(0);
        let server = server();
        let client = connect(&server).await;
        let number = SCHEMAS.fetch_add(1, Ordering::Relaxed);
        let schema = format!("test_{}_{number}", std::process::id());
        let fresh = format!("drop schema if exists {schema} cascade; create schema {schema}");
        client.batch_execute(&fresh).await.unwrap();
        let sign = if server.contains('?') { '&' } else { '?' };
        let url = format!("{server}{sign}options=-c%20search_path%3D{schema}");
        let database = Database { url, _place: Place::Schema(schema.clone()) };
        database.open().await.close().await;
        let tables = "select table_name from information_schema.columns
                       where table_schema = $1 and is_identity = 'YES' order by 1";
        let names = client.query(tables, &[&schema]).await.unwrap();
        for (table, start) in names.iter().zip((10_000..).step_by(10_000)) {
            let table: String = table.get(0);
            let begin = format!("alter table {schema}.{table} alter id restart {start}");
            client.batch_execute(&begin).await.unwrap();
        }
        database
    }

    /// Opens it, as a gateway would.
    pub(crate) async fn open(&self) -> Arc<dyn Store> {
        let settings = Settings { url: self.url.clone(), connections: 8 };
        store::open(&settings).await.unwrap()
    }
}

/// The server to test with.
fn server() -> String {
    #[expect(clippy::disallowed_methods, reason = "it is the test runner that sets it")]
    std::env::var("FEEDGATE_TEST_POSTGRES")
        .expect("no PostgreSQL to test with: run the tests with tests/run, which starts one")
}

async fn connect(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
