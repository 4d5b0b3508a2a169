//! Why a database could not be backed up or restored.

use std::path::{Path, PathBuf};

use feedgate_core::store::StoreError;

/// An error of a backup, or of restoring one.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The database is on PostgreSQL, whose own programs make backups and restore them.
    #[error(
        "a PostgreSQL database is backed up and restored by its own programs; run\n\n  {command}\n"
    )]
    Postgres {
        /// The command to run.
        command: String,
    },
    /// The file of the new backup exists.
    #[error("{} exists; choose another name for the backup, or move the file away", .file.display())]
    FileExists {
        /// The file.
        file: PathBuf,
    },
    /// The file to restore is missing, or not the database of a gateway.
    #[error("{} is not a backup: {reason}", .file.display())]
    NotABackup {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A gateway, or one of its commands, uses the database to restore to.
    #[error("a gateway uses the database {place}: stop it first")]
    InUse {
        /// The file of the database.
        place: String,
    },
    /// The database to restore to has content.
    #[error(
        "the database {place} has content, and is not overwritten: move the file away, or restore to \
         another one with --database"
    )]
    NotEmpty {
        /// The file of the database.
        place: String,
    },
    /// A file cannot be written.
    #[error("cannot write {}: {source}", .file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
}

impl BackupError {
    /// A stable code for programs, listed in `docs/errors.md`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Store(err) => err.code(),
            Self::Postgres { .. } => "backup_by_postgres",
            Self::FileExists { .. } => "backup_exists",
            Self::NotABackup { .. } => "not_a_backup",
            Self::InUse { .. } => "database_in_use",
            Self::NotEmpty { .. } => "database_not_empty",
            Self::Write { .. } => "backup_not_written",
        }
    }

    /// Returns the error of writing `file`.
    pub(super) fn write(file: &Path) -> impl FnOnce(std::io::Error) -> BackupError {
        let file = file.to_owned();
        |source| BackupError::Write { file, source }
    }
}
