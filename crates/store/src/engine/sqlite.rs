//! SQLite: one file, one thread that writes it, several connections that read it.
//!
//! Guarantees:
//!
//! * `Ok` means durable: `synchronous = full`, and no caller gets its result before the transaction
//!   behind the result is on disk.
//! * Readers see the state that was committed when they began (WAL) and never wait.
//! * Several processes may open one file, so `feedgate token create` works beside `feedgate serve`,
//!   and a second `serve` does no harm: work is claimed in rows, and a writer waits for the other's
//!   lock. Only wake-up signals are limited to one process; the other finds the work when it polls
//!   next.

mod readers;
pub(crate) mod statement;
pub(crate) mod wal;
mod writer;

use crate::engine::error::store_error;
use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rusqlite::Connection;
use rusqlite::config::DbConfig;

use crate::engine::operation::{AnyResult, Operation};
use feedgate_core::store::{StoreError, WakeSignals};
use readers::SqliteReaders;
use writer::SqliteWriter;

pub(crate) use writer::WriteSize;

/// The name of the database file in a folder of its own.
const FILE_NAME: &str = "feedgate.db";
/// How long a statement waits for another process's lock.
const BUSY: Duration = Duration::from_secs(10);
/// The prepared statements cached per connection: more than there are in this program.
const STATEMENTS: usize = 256;

/// An open database file.
pub(crate) struct Sqlite {
    /// The readers come first, so that they are dropped first: the writer can leave WAL mode only if
    /// it has the last connection.
    readers: SqliteReaders,
    writer: SqliteWriter,
}

impl Sqlite {
    /// Opens the file at `path`, created if there is none. It contains secrets, so it is created with
    /// access for its owner alone.
    pub(crate) fn open(
        path: &Path,
        readers: usize,
        wake_signals: WakeSignals,
    ) -> Result<Sqlite, StoreError> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            prepare_folder(folder, path)?;
        }
        create_file(path)?;
        wal::check(path)?;

        let writing = connect(path)?;
        writing.pragma_update(None, "journal_mode", "wal").map_err(store_error)?;
        writing.pragma_update(None, "synchronous", "full").map_err(store_error)?;
        writing.pragma_update(None, "journal_size_limit", 64 << 20).map_err(store_error)?;
        // The limit is 16 MB, so that a page that is written often is copied into the database less
        // often.
        writing.pragma_update(None, "wal_autocheckpoint", 4_000).map_err(store_error)?;
        let readers = (0..readers.max(1)).map(|_| {
            let reading = connect(path)?;
            reading.pragma_update(None, "query_only", true).map_err(store_error)?;
            Ok(reading)
        });
        let readers = SqliteReaders::start(readers.collect::<Result<_, StoreError>>()?)?;
        Ok(Sqlite { readers, writer: SqliteWriter::start(writing, wake_signals)? })
    }

    /// Runs `op` on the writer's thread, in a transaction that changes nothing if it fails.
    pub(crate) async fn write(&self, size: WriteSize, op: Operation) -> AnyResult {
        self.writer.run(size, op).await
    }

    /// Runs `op`, which only reads, concurrently with the writer.
    pub(crate) async fn read(&self, op: Operation) -> AnyResult {
        self.readers.run(op).await
    }

    /// Completes pending operations and closes the file.
    pub(crate) async fn close(&self) {
        self.readers.stop().await;
        self.writer.stop().await;
    }
}

/// Creates the file at `path`, unless there is one. An existing file is not opened: closing it would
/// release the locks that other connections of this process have on it.
fn create_file(path: &Path) -> Result<(), StoreError> {
    match OpenOptions::new().create_new(true).append(true).mode(0o600).open(path) {
        Err(err) if err.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        created => created.map(drop).map_err(|err| StoreError::Database(Box::new(err))),
    }
}

/// Makes sure that the folder of the database at `path` exists.
pub(crate) fn prepare_folder(folder: &Path, path: &Path) -> Result<(), StoreError> {
    check_folder(folder, path)?;
    if folder.is_dir() {
        return Ok(());
    }
    match DirBuilder::new().mode(0o700).create(folder) {
        // Another process may have created it meanwhile.
        Err(_) if folder.is_dir() => Ok(()),
        made => made.map_err(|err| StoreError::Database(Box::new(err))),
    }
}

/// Fails if the folder of the database at `path` does not exist and is not to be created.
///
/// Only a folder that belongs to the database is created: one that contains the file under the name
/// that `sqlite:FOLDER` stands for. Its parent must exist. Otherwise, a path with a typing error, or on
/// a disk that is not mounted, would begin an empty database there.
pub(crate) fn check_folder(folder: &Path, path: &Path) -> Result<(), StoreError> {
    if folder.is_dir() {
        return Ok(());
    }
    let failed = |failure: String| Err(StoreError::Database(failure.into()));
    if folder.is_file() {
        let folder = folder.display();
        return failed(format!(
            "{folder} is a file, not a folder; the name of a database file must end in .db"
        ));
    }
    let is_own = path.file_name().is_some_and(|name| name == FILE_NAME);
    let missing = match folder.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) if is_own && !parent.is_dir() => Some(parent),
        _ if !is_own => Some(folder),
        _ => None,
    };
    if let Some(missing) = missing {
        return failed(format!("the folder {} does not exist", missing.display()));
    }
    Ok(())
}

fn connect(path: &Path) -> Result<Connection, StoreError> {
    let conn = Connection::open(path).map_err(store_error)?;
    conn.busy_timeout(BUSY).map_err(store_error)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    // Plans are independent of parameters. Without this option a statement that could use a partial
    // index is planned again whenever other values are bound: an eighth of the time of a poll.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(store_error)?;
    conn.pragma_update(None, "foreign_keys", true).map_err(store_error)?;
    conn.pragma_update(None, "temp_store", "memory").map_err(store_error)?;
    conn.pragma_update(None, "cache_size", -16_000).map_err(store_error)?; // 16 MB
    Ok(conn)
}

/// Runs an operation to its end.
fn drive<T>(op: BoxFuture<'_, T>) -> T {
    op.now_or_never().expect("an operation awaits statements only, and SQLite's are done at once")
}
