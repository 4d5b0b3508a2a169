//! Why the store did not do what it was asked.

/// Why a store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be reached, or said no.
    #[error("the database failed")]
    Database(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// There is no working with the database from the start.
    #[error("cannot open the database {place}: {reason}; check FEEDGATE_DATABASE")]
    Open {
        /// The file, or the server's host and port.
        place: String,
        /// What the system or the server says.
        reason: String,
    },
    /// A row holds what this program cannot have written.
    #[error("a stored row cannot be read: {0}")]
    Corrupt(String),
    /// The database was made by a newer feedgate.
    #[error(
        "the database schema has version {found}, but this feedgate knows versions up to {known} \
         only: upgrade feedgate"
    )]
    Newer {
        /// The schema found.
        found: i64,
        /// The newest schema this program knows.
        known: i64,
    },
    /// The store has been closed.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// A word for logs and metrics, listed in `docs/errors.md`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Database(_) | Self::Open { .. } => "database",
            Self::Corrupt(_) => "corrupt_row",
            Self::Newer { .. } => "newer_schema",
            Self::Closed => "store_closed",
        }
    }
}
