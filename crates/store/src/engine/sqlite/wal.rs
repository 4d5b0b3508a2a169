//! The write-ahead log (WAL) of SQLite, the file `NAME.db-wal` beside the database.
//!
//! A change is in the WAL only, until a checkpoint copies it into the database file. So a copy of the
//! database file alone may lack changes, or all tables. Two rules limit that:
//!
//! * The writer copies the WAL into the database when it is idle, and at least once a minute
//!   ([`CheckpointTimer`]).
//! * The last process that closes a database leaves WAL mode. So a database file in WAL mode without
//!   a WAL has been separated from it, which [`check`] reports.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};

use crate::engine::error::store_error;
use feedgate_core::store::StoreError;

/// How long nothing has to change before the WAL is copied: shorter than the pauses of a gateway that has
/// little to do, which changes something every few seconds.
const IDLE: Duration = Duration::from_secs(1);
/// The longest time for which changes stay in the WAL alone. Copying a page into the database costs as
/// much as writing it, and within a minute the pages that are written often are the same ones.
const LONGEST: Duration = Duration::from_secs(60);

/// Decides when the writer copies the WAL into the database.
#[derive(Debug, Default)]
pub(super) struct CheckpointTimer {
    /// The number of changes that the connection has made.
    total: u64,
    /// The changes that are in the WAL alone, if there are any.
    changes: Option<RecentChanges>,
}

/// When the first and the last change since the latest checkpoint were made.
#[derive(Clone, Copy, Debug)]
struct RecentChanges {
    first: Instant,
    last: Instant,
}

impl CheckpointTimer {
    /// Returns how long to wait for another operation before a checkpoint; `None`: as long as it
    /// takes, because the WAL has no changes.
    pub(super) fn patience(&self) -> Option<Duration> {
        let changes = self.changes?;
        let idle = IDLE.saturating_sub(changes.last.elapsed());
        Some(idle.min(LONGEST.saturating_sub(changes.first.elapsed())))
    }

    /// Notes that the connection has made `total` changes until `now`. Operations that change nothing,
    /// such as the search for due work, do not put off a checkpoint.
    pub(super) fn note_changes(&mut self, total: u64, now: Instant) {
        if total != self.total {
            self.total = total;
            let first = self.changes.map_or(now, |changes| changes.first);
            self.changes = Some(RecentChanges { first, last: now });
        }
    }

    /// Returns whether it is time for a checkpoint.
    pub(super) fn is_due(&self) -> bool {
        self.patience().is_some_and(|patience| patience.is_zero())
    }

    /// Notes a checkpoint. One that did not copy everything is repeated.
    pub(super) fn note_checkpoint(&mut self, is_complete: bool, now: Instant) {
        self.changes = match is_complete {
            true => None,
            false => Some(RecentChanges { first: now, last: now }),
        };
    }
}

/// Copies the WAL into the database and empties it. Returns `false` if another connection is in the
/// way. Nobody is waited for, because the writer would wait.
pub(super) fn checkpoint(conn: &Connection) -> rusqlite::Result<bool> {
    conn.busy_timeout(Duration::ZERO)?;
    let result = conn.query_row("pragma wal_checkpoint(truncate)", [], |row| row.get::<_, i64>(0));
    conn.busy_timeout(super::BUSY)?;
    result.map(|busy| busy == 0)
}

/// Leaves WAL mode, unless another connection has the database open.
pub(super) fn leave(conn: &Connection) {
    let left = conn
        .busy_timeout(Duration::ZERO)
        .and_then(|()| conn.pragma_update(None, "journal_mode", "delete"));
    if let Err(err) = left {
        tracing::debug!(error = %err, "another process has the database open");
    }
}

/// Fails if the database at `path` has no tables because its WAL is missing, and logs a warning if
/// it may lack changes for that reason.
pub(crate) fn check(path: &Path) -> Result<(), StoreError> {
    const HAS_TABLES: &str = "select exists (select 1 from sqlite_master)";
    if !path.is_file() || wal_path(path).exists() {
        return Ok(());
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags).map_err(store_error)?;
    conn.busy_timeout(super::BUSY).map_err(store_error)?;
    let mode = conn.pragma_query_value(None, "journal_mode", |row| row.get::<_, String>(0));
    if mode.map_err(store_error)? != "wal" {
        return Ok(());
    }
    let has_tables = conn.query_row(HAS_TABLES, [], |row| row.get::<_, bool>(0));
    if !has_tables.map_err(store_error)? {
        return Err(StoreError::WalMissing { place: path.display().to_string() });
    }
    tracing::warn!(
        database = %path.display(),
        "the write-ahead log of the database (-wal) is missing: if the file was copied while a \
         gateway was running, the copy lacks recent changes; \"feedgate backup\" makes complete copies"
    );
    Ok(())
}

/// Returns the path of the WAL of the database at `path`.
pub(crate) fn wal_path(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push("-wal");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_copied_when_idle_and_at_least_once_a_minute() {
        let mut timer = CheckpointTimer::default();
        assert_eq!(timer.patience(), None, "nothing was changed");
        let now = Instant::now();
        let [idle, longest] = [IDLE, LONGEST].map(|age| now.checked_sub(age).unwrap());
        timer.note_changes(1, now);
        assert!(!timer.is_due());
        timer.note_checkpoint(true, now);
        timer.note_changes(1, now);
        assert_eq!(timer.patience(), None, "nothing was changed since");

        timer.note_changes(2, idle);
        timer.note_changes(2, now);
        assert!(timer.is_due(), "an operation that changes nothing is no change");
        timer.note_changes(3, now);
        assert!(!timer.is_due());
        timer.note_checkpoint(false, now);
        assert!(timer.patience().is_some(), "it is repeated");
        timer.note_checkpoint(true, now);
        timer.note_changes(4, longest);
        timer.note_changes(5, now);
        assert!(timer.is_due(), "a busy writer is interrupted");
    }
}
