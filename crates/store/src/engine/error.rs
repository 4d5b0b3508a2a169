//! Errors of the database drivers, as errors of the store.

use feedgate_core::store::StoreError;
use rusqlite::ErrorCode;
use tokio_postgres::error::SqlState;

/// The messages of SQLite for a full or failing disk and a read-only file, in which the error of a
/// transaction that several operations share ends (`sqlite3_errstr`).
const UNWRITABLE_SQLITE: [&str; 3] =
    ["database or disk is full", "disk I/O error", "attempt to write a readonly database"];
/// The class of SQLSTATE for errors of the system that PostgreSQL runs on, such as of its disk.
const SYSTEM_ERRORS: &str = "58";

/// An error from a driver.
#[derive(Debug)]
pub(crate) enum DriverError {
    /// The connection pool of PostgreSQL.
    Pool(deadpool_postgres::PoolError),
    /// PostgreSQL, or the connection to it.
    Postgres(tokio_postgres::Error),
    /// SQLite.
    Sqlite(rusqlite::Error),
}

impl From<deadpool_postgres::PoolError> for DriverError {
    fn from(err: deadpool_postgres::PoolError) -> DriverError {
        DriverError::Pool(err)
    }
}

impl From<tokio_postgres::Error> for DriverError {
    fn from(err: tokio_postgres::Error) -> DriverError {
        DriverError::Postgres(err)
    }
}

impl From<rusqlite::Error> for DriverError {
    fn from(err: rusqlite::Error) -> DriverError {
        DriverError::Sqlite(err)
    }
}

/// Converts a driver's error to the matching error of the store.
pub(crate) fn store_error(err: impl Into<DriverError>) -> StoreError {
    match err.into() {
        DriverError::Pool(deadpool_postgres::PoolError::Closed) => StoreError::Closed,
        DriverError::Pool(deadpool_postgres::PoolError::Backend(err)) => store_error(err),
        DriverError::Pool(err) => StoreError::Database(Box::new(err)),
        DriverError::Postgres(err) => StoreError::Database(Box::new(err)),
        DriverError::Sqlite(err) if is_damage(&err) => {
            StoreError::Damaged { reason: err.to_string() }
        }
        DriverError::Sqlite(err) => StoreError::Database(Box::new(err)),
    }
}

/// Returns whether SQLite has found that the file is not a sound database.
pub(crate) fn is_damage(err: &rusqlite::Error) -> bool {
    matches!(err.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// Returns what the database reported if an error means that it does not accept writes.
pub(crate) fn unwritable_reason(err: &StoreError) -> Option<String> {
    let StoreError::Database(err) = err else { return None };
    if let Some(err) = err.downcast_ref::<tokio_postgres::Error>() {
        let err = err.as_db_error()?;
        let is_unwritable = [&SqlState::DISK_FULL, &SqlState::READ_ONLY_SQL_TRANSACTION]
            .contains(&err.code())
            || err.code().code().starts_with(SYSTEM_ERRORS);
        return is_unwritable.then(|| err.message().to_owned());
    }
    let text = err.to_string();
    UNWRITABLE_SQLITE.iter().any(|message| text.contains(message)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi;

    #[test]
    fn h18_a_full_disk_and_a_read_only_file_are_recognized() {
        let sqlite = |code| rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
        #[rustfmt::skip]
        let cases = [
            (ffi::SQLITE_FULL,       true),
            (ffi::SQLITE_IOERR,      true),
            (ffi::SQLITE_READONLY,   true),
            (ffi::SQLITE_BUSY,       false),
            (ffi::SQLITE_CONSTRAINT, false),
        ];
        for (code, want) in cases {
            let found = unwritable_reason(&store_error(sqlite(code)));
            assert_eq!(found.is_some(), want, "{code}: {found:?}");
            let told = StoreError::Database(sqlite(code).to_string().into());
            assert_eq!(unwritable_reason(&told).is_some(), want, "{told:?}");
        }
        assert_eq!(unwritable_reason(&StoreError::Closed), None);
    }
}
