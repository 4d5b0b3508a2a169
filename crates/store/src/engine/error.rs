//! Errors of the database drivers, as errors of the store.

use feedgate_core::ports::StoreError;
use rusqlite::ErrorCode;

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
