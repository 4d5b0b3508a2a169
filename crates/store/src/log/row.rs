//! Rows of records: their columns, and reading them.

use crate::engine::row::Row;
use feedgate_core::record::{Record, RecordKind, Seq};
use feedgate_core::store::StoreError;

/// The columns of a record `r`, as [`record`] reads them.
macro_rules! record_columns {
    () => {
        "r.seq, r.appended_at, r.kind, r.predecessor, r.entry_id, r.atom"
    };
}

pub(crate) use record_columns;

/// Converts a limit to a parameter of a statement.
pub(crate) fn most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Reads [`record_columns`].
pub(crate) fn record(mut row: Row) -> Result<Record, StoreError> {
    Ok(Record {
        seq: Seq(row.int()?),
        at: row.time()?,
        kind: row.word(RecordKind::from_word)?,
        predecessor: row.opt_int()?.map(Seq),
        entry_id: row.text()?,
        atom: row.text()?,
    })
}
