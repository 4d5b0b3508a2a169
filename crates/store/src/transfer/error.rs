//! Why an export or an import failed.

use std::io;

use crate::copy::error::CopyError;
use feedgate_core::store::StoreError;

/// An error of an export or an import.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The database cannot be exported.
    #[error(transparent)]
    Source(#[from] CopyError),
    /// The file could not be written.
    #[error("cannot write the export")]
    Write(#[from] io::Error),
    /// The first line is not the header of an export.
    #[error("line 1 is not the header of an export: {0}")]
    BadHeader(String),
    /// The file was written by a version of this program with another schema.
    #[error("the file has schema {found}; this program reads schema {known}")]
    OtherSchema {
        /// That of the file.
        found: i64,
        /// That of this program.
        known: i64,
    },
    /// The numbers of rows would be too large.
    #[error("the numbers of rows in the file are too large for this database")]
    NumbersExhausted,
}

impl TransferError {
    /// A stable code for programs, listed in `docs/errors.md`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Store(err) => err.code(),
            Self::Source(err) => err.code(),
            Self::Write(_) => "cannot_write",
            Self::BadHeader(_) => "bad_header",
            Self::OtherSchema { .. } => "other_schema",
            Self::NumbersExhausted => "numbers_exhausted",
        }
    }
}
