//! Why a database could not be copied.

use feedgate_core::store::StoreError;

/// An error of a copy.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// One of the two databases failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The source does not exist, or no gateway has ever used it.
    #[error("the source {place} is not the database of a gateway")]
    NoSource {
        /// The file, or the server's host and port.
        place: String,
    },
    /// A gateway, or one of its commands, uses the source.
    #[error("a gateway uses the source: stop all of its nodes first")]
    SourceInUse,
    /// The source was opened by a gateway after the copy began.
    #[error(
        "the source was used after the copy had begun: stop its gateway, empty the target, and \
         begin again"
    )]
    SourceChanged,
    /// The target is SQLite, which has one cell and is copied as a file.
    #[error("the target of a copy must be a PostgreSQL database")]
    TargetNotPostgres,
    /// A gateway or another copy uses the target.
    #[error("a gateway or another copy uses the target: stop it first")]
    TargetInUse,
    /// The target has rows that do not come from this copy.
    #[error("the target is not empty: a copy needs a new schema")]
    TargetNotEmpty,
    /// The numbers of the source, spread over the cells of the target, would be too large.
    #[error("the numbers of rows in the source are too large to be spread over cells")]
    NumbersExhausted,
    /// The copy wrote as many transactions as it was allowed to.
    #[error("the copy was interrupted; run it again to continue")]
    Interrupted,
}

impl CopyError {
    /// A stable code for programs, listed in `docs/errors.md`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Store(err) => err.code(),
            Self::NoSource { .. } => "no_source",
            Self::SourceInUse => "source_in_use",
            Self::SourceChanged => "source_changed",
            Self::TargetNotPostgres => "target_not_postgres",
            Self::TargetInUse => "target_in_use",
            Self::TargetNotEmpty => "target_not_empty",
            Self::NumbersExhausted => "numbers_exhausted",
            Self::Interrupted => "interrupted",
        }
    }
}
