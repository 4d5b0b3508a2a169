//! Errors of the store.

use chrono::{DateTime, Utc};

/// An error of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be reached, or reported an error.
    #[error("the database failed")]
    Database(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The database cannot be opened.
    #[error("cannot open the database {place}: {reason}; check FEEDGATE_DATABASE")]
    Open {
        /// The file, or the server's host and port.
        place: String,
        /// The message of the system or the server.
        reason: String,
    },
    /// There is no database, or no gateway has ever used it.
    #[error(
        "there is no database of a gateway {place}; check --database and FEEDGATE_DATABASE, or start \
         the gateway once"
    )]
    NoDatabase {
        /// The file, or the server's host and port.
        place: String,
    },
    /// The database file was copied without the file that contains its tables.
    #[error(
        "the database {place} is empty because its write-ahead log {place}-wal is missing: the file was \
         copied without it; copy both files, or restore a backup"
    )]
    WalMissing {
        /// The file.
        place: String,
    },
    /// Pages of the database file are damaged.
    #[error(
        "the database is damaged ({reason}): stop the gateway, keep a copy of the file, and restore a \
         backup with \"feedgate restore\""
    )]
    Damaged {
        /// What SQLite found.
        reason: String,
    },
    /// The database can be read, but not written: its disk is full or fails, or it is read-only.
    #[error("the database does not accept writes: {reason}")]
    Unwritable {
        /// What the database reported.
        reason: String,
    },
    /// A row contains a value that this program cannot have written.
    #[error("a stored row cannot be read: {0}")]
    Corrupt(String),
    /// The schema was created by a newer version of feedgate.
    #[error(
        "the database schema has version {found}, but this feedgate knows versions up to {known} \
         only: upgrade feedgate"
    )]
    Newer {
        /// The version of the schema.
        found: i64,
        /// The newest version known to this program.
        known: i64,
    },
    /// The database was created with another number of cells.
    #[error(
        "the database has {found} cells, but FEEDGATE_CELLS is {configured}: the number of cells \
         is fixed when a database is created"
    )]
    Cells {
        /// The number of cells that the database was created with.
        found: usize,
        /// The number in the configuration.
        configured: usize,
    },
    /// The database has encrypted secrets, but no key is set.
    #[error(
        "the database has secrets that are encrypted with the key {id}, but FEEDGATE_SECRETS_KEY is \
         not set: set it to this key"
    )]
    NoSecretsKey {
        /// The id of the key.
        id: String,
    },
    /// The database has secrets that are encrypted with a key that is not set.
    #[error(
        "the database has secrets that are encrypted with the key {id}, which is neither \
         FEEDGATE_SECRETS_KEY nor in FEEDGATE_SECRETS_OLD_KEYS: add it to the old keys"
    )]
    OtherSecretsKey {
        /// The id of the key.
        id: String,
    },
    /// A copy into the database was not completed.
    #[error("the copy into this database is not complete: run feedgate copy again")]
    CopyUnfinished,
    /// The database is the source or the target of a running copy.
    #[error("the database is being copied, and cannot be used until the copy ends")]
    BeingCopied,
    /// The account was removed, and its login is not given to anybody else.
    #[error(
        "the account {0} was removed, and its login cannot be used again; choose another login"
    )]
    AccountRemoved(String),
    /// The account is deactivated.
    #[error("the account {0} is deactivated")]
    AccountDeactivated(String),
    /// A document is stored later, because of what is stored for those who subscribed to it: nothing
    /// failed, and another poll finds what is not stored.
    #[error("the document is stored later: {reason}")]
    Postponed {
        /// The earliest time for it.
        until: DateTime<Utc>,
        /// Why it waits.
        reason: &'static str,
    },
    /// The store has been closed.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// A stable code for logs and metrics, listed in `docs/errors.md`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Database(_) | Self::Open { .. } => "database",
            Self::NoDatabase { .. } => "no_database",
            Self::WalMissing { .. } => "wal_missing",
            Self::Damaged { .. } => "database_damaged",
            Self::Unwritable { .. } => "database_unwritable",
            Self::Corrupt(_) => "corrupt_row",
            Self::Newer { .. } => "newer_schema",
            Self::Cells { .. } => "cells",
            Self::NoSecretsKey { .. } => "no_secrets_key",
            Self::OtherSecretsKey { .. } => "other_secrets_key",
            Self::CopyUnfinished => "copy_unfinished",
            Self::BeingCopied => "being_copied",
            Self::AccountRemoved(_) => "account_removed",
            Self::AccountDeactivated(_) => "account_deactivated",
            Self::Postponed { .. } => "store_postponed",
            Self::Closed => "store_closed",
        }
    }
}
