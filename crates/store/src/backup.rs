//! `feedgate backup` and `feedgate restore`: copies of a SQLite database in one file.
//!
//! What always holds:
//!
//! * A backup has the state of one moment, also while gateways write the database: it is read in one
//!   transaction, which writers do not wait for.
//! * A file appears under its name once it is complete and on disk, and none is overwritten.
//! * Backups contain secrets, as databases do: they are created with access for their owner alone.

pub(crate) mod error;

use std::convert::Infallible;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::backup::error::BackupError;
use crate::copy::is_sqlite_open;
use crate::engine::error::store_error;
use crate::engine::migrate::{MIGRATIONS, newest};
use crate::engine::sqlite::{prepare_folder, wal};
use crate::{name_place, sqlite_path};
use feedgate_core::store::StoreError;

/// How long to wait for a lock: a gateway has none for longer while it runs.
const PATIENCE: Duration = Duration::from_secs(10);

/// The time between two reports of how much is written.
const REPORT_INTERVAL: Duration = Duration::from_millis(200);

/// The largest database whose pages are checked at each start: a few seconds of reading.
pub const LARGEST_CHECKED_BYTES: u64 = 1 << 30;

/// How much a database contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackupCounts {
    /// The resources: feeds, pages and documents.
    pub feeds: u64,
    /// The subscriptions to them.
    pub subscriptions: u64,
    /// The entries that their archives have, with updates.
    pub entries: u64,
}

/// Takes note of how many bytes of a file are written, and of how many at most.
pub type ReportWritten<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// Writes a backup of the database at `url` to `file`. Gateways may use the database meanwhile.
/// `report` is called several times a second.
pub fn back_up(
    url: &str,
    file: &Path,
    report: ReportWritten<'_>,
) -> Result<BackupCounts, BackupError> {
    let Some(path) = sqlite_path(url) else {
        let file = quoted(file);
        let command = format!("pg_dump --format=custom --file={file} \"$FEEDGATE_DATABASE\"");
        return Err(BackupError::Postgres { command });
    };
    if file.exists() {
        return Err(BackupError::FileExists { file: file.to_owned() });
    }
    back_up_file(path, file, report).map_err(|err| named(err, url))
}

/// Restores the backup `file` to the database at `url`, which must be missing or empty. `report` is
/// called several times a second while the database is written.
pub fn restore(
    file: &Path,
    url: &str,
    report: ReportWritten<'_>,
) -> Result<BackupCounts, BackupError> {
    let Some(path) = sqlite_path(url) else {
        let file = quoted(file);
        let command = format!("pg_restore --dbname=\"$FEEDGATE_DATABASE\" {file}");
        return Err(BackupError::Postgres { command });
    };
    let backup = open_backup(file)?;
    prepare_folder(path.parent().unwrap_or(Path::new("")), path)
        .map_err(|err| named(err.into(), url))?;
    if path.exists() {
        check_target(path).map_err(|err| named(err, url))?;
        let journals = [wal::wal_path(path), suffixed(path, "-shm"), suffixed(path, "-journal")];
        for journal in journals.iter().filter(|journal| journal.exists()) {
            fs::remove_file(journal).map_err(BackupError::write(journal))?;
        }
    }
    vacuum_into(&backup, path, (file, report))?;
    let restored = open_file(path).map_err(store_error)?;
    Ok(count(&restored)?)
}

/// Fails unless the file at `path` is the database of a gateway.
pub(crate) fn check_exists(path: &Path) -> Result<(), StoreError> {
    let missing = || StoreError::NoDatabase { place: format!("in {}", path.display()) };
    match fs::metadata(path) {
        Ok(file) if file.is_file() => {}
        Err(err) if err.kind() == ErrorKind::PermissionDenied => {
            return Err(StoreError::Database(Box::new(err)));
        }
        _ => return Err(missing()),
    }
    wal::check(path)?;
    let conn = open_file(path).map_err(store_error)?;
    version(&conn)?.map(drop).ok_or_else(missing)
}

fn back_up_file(
    path: &Path,
    file: &Path,
    report: ReportWritten<'_>,
) -> Result<BackupCounts, BackupError> {
    check_exists(path)?;
    let conn = open_file(path).map_err(store_error)?;
    vacuum_into(&conn, file, (path, report))?;
    let written = open_file(file).map_err(store_error)?;
    Ok(count(&written)?)
}

/// Opens a file that is to be restored, if it is a sound database of a gateway.
fn open_backup(file: &Path) -> Result<Connection, BackupError> {
    let unusable = |reason: String| BackupError::NotABackup { file: file.to_owned(), reason };
    if !file.is_file() {
        return Err(unusable("there is no such file".to_owned()));
    }
    let opened = wal::check(file).and_then(|()| open_file(file).map_err(store_error));
    let read = opened.and_then(|conn| Ok((version(&conn)?, conn)));
    let (version, conn) = match read {
        Ok(read) => read,
        // The error of the database is the reason in itself.
        Err(StoreError::Database(err)) => return Err(unusable(err.to_string())),
        Err(StoreError::Damaged { reason }) => return Err(unusable(reason)),
        Err(err) => return Err(unusable(err.to_string())),
    };
    let known = newest(MIGRATIONS);
    match version {
        None => return Err(unusable("no gateway has ever used it".to_owned())),
        Some(found) if found > known => return Err(StoreError::Newer { found, known }.into()),
        Some(_) => {}
    }
    match find_damage(&conn) {
        None => Ok(conn),
        Some(damage) => Err(unusable(format!("it is damaged: {damage}"))),
    }
}

/// Fails if the SQLite database at `url`, which this process has open, is damaged; all of its pages are
/// read. A database on PostgreSQL, which has checksums of its own, and one that is larger than
/// [`LARGEST_CHECKED_BYTES`] are not checked.
pub fn check_pages(url: &str) -> Result<(), StoreError> {
    let Some(path) = sqlite_path(url) else { return Ok(()) };
    let size = fs::metadata(path).map_or(0, |file| file.len());
    if size > LARGEST_CHECKED_BYTES {
        tracing::info!(size, "the database is too large to be checked at each start");
        return Ok(());
    }
    match find_damage(&open_file(path).map_err(store_error)?) {
        None => Ok(()),
        Some(reason) => Err(StoreError::Damaged { reason }),
    }
}

/// Returns the first fault in the structure of a database.
fn find_damage(conn: &Connection) -> Option<String> {
    let checked = conn.query_row("pragma quick_check(1)", [], |row| row.get::<_, String>(0));
    match checked {
        Ok(checked) if checked == "ok" => None,
        // The first line only names the schema.
        Ok(damage) => Some(damage.lines().next_back().unwrap_or_default().to_owned()),
        Err(err) => Some(err.to_string()),
    }
}

/// Fails if the database at `path` is in use, or has content.
fn check_target(path: &Path) -> Result<(), BackupError> {
    if is_sqlite_open(path)? {
        return Err(BackupError::InUse { place: path.display().to_string() });
    }
    let conn = open_file(path).map_err(store_error)?;
    if version(&conn)?.is_some() && has_content(&conn).map_err(store_error)? {
        return Err(BackupError::NotEmpty { place: path.display().to_string() });
    }
    Ok(())
}

/// Writes the contents of a database, which is at `source`, to a new file.
fn vacuum_into(
    conn: &Connection,
    file: &Path,
    (source, report): (&Path, ReportWritten<'_>),
) -> Result<(), BackupError> {
    let part = suffixed(file, &format!(".{}.part", std::process::id()));
    let created = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&part);
    created.map_err(BackupError::write(&part))?;
    let written = thread::scope(|scope| {
        let (ended, is_writing) = mpsc::channel();
        scope.spawn(|| watch_part(&part, source, report, is_writing));
        let written = write_part(conn, &part);
        drop(ended);
        written
    });
    let written = written
        .and_then(|()| fs::rename(&part, file).map_err(BackupError::write(file)))
        .and_then(|()| sync_folder(file).map_err(BackupError::write(file)));
    if written.is_err() {
        // The file is gone if the last step failed.
        fs::remove_file(&part).unwrap_or_default();
    }
    written
}

/// Reports how far the file `part` is written, until the other end of `is_writing` is gone.
fn watch_part(
    part: &Path,
    source: &Path,
    report: ReportWritten<'_>,
    is_writing: Receiver<Infallible>,
) {
    let length = |file| fs::metadata(file).map_or(0, |file| file.len());
    while let Err(RecvTimeoutError::Timeout) = is_writing.recv_timeout(REPORT_INTERVAL) {
        report(length(part), length(source));
    }
}

fn write_part(conn: &Connection, part: &Path) -> Result<(), BackupError> {
    let name = part.to_str().ok_or_else(|| std::io::Error::other("the name is not UTF-8"));
    let name = name.map_err(BackupError::write(part))?;
    conn.execute("vacuum into ?1", [name]).map_err(store_error)?;
    File::open(part).and_then(|file| file.sync_all()).map_err(BackupError::write(part))
}

/// Makes the name of a new file survive a power failure.
fn sync_folder(file: &Path) -> std::io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

fn open_file(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(PATIENCE)?;
    Ok(conn)
}

/// Returns the version of the schema; `None` if the database has no tables of a gateway.
fn version(conn: &Connection) -> Result<Option<i64>, StoreError> {
    const EXISTS: &str = "select exists (select 1 from sqlite_master where name = 'migrations')";
    const NEWEST: &str = "select max(version) from migrations";
    if !conn.query_row(EXISTS, [], |row| row.get::<_, bool>(0)).map_err(store_error)? {
        return Ok(None);
    }
    conn.query_row(NEWEST, [], |row| row.get(0)).map_err(store_error)
}

fn count(conn: &Connection) -> Result<BackupCounts, StoreError> {
    let rows = |table: &str| {
        let sql = format!("select count(*) from {table}");
        let count = conn.query_row(&sql, [], |row| row.get::<_, i64>(0)).map_err(store_error)?;
        u64::try_from(count).map_err(|_| StoreError::Corrupt("a negative count".to_owned()))
    };
    Ok(BackupCounts {
        feeds: rows("resources")?,
        subscriptions: rows("subscriptions")?,
        entries: rows("records")?,
    })
}

/// Returns whether the tables of a gateway have a row that a user would miss.
fn has_content(conn: &Connection) -> rusqlite::Result<bool> {
    for table in ["resources", "accounts"] {
        let sql = format!("select exists (select 1 from {table})");
        if conn.query_row(&sql, [], |row| row.get::<_, bool>(0))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Adds to an error of the database where the database is.
fn named(err: BackupError, url: &str) -> BackupError {
    match err {
        BackupError::Store(err) => BackupError::Store(name_place(err, url)),
        other => other,
    }
}

fn suffixed(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// Returns a path as a word of a shell command.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}
