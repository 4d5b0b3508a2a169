//! The first line of an export.

use serde::{Deserialize, Serialize};

use crate::engine::migrate::{self, MIGRATIONS};
use crate::transfer::error::TransferError;

/// The version of the format.
const FORMAT: i64 = 1;

/// The header of an export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ExportHeader {
    /// The version of the format.
    feedgate_export: i64,
    /// The version of the schema that the rows have.
    schema: i64,
    /// Names the export, so that a file that is imported again is recognized.
    pub(super) id: String,
    /// Whether secrets are in the file.
    secrets: bool,
    /// The greatest numbers that each numbered table ever had.
    pub(super) greatest: Vec<i64>,
    /// The same of accounts and tokens.
    pub(super) greatest_shared: i64,
}

impl ExportHeader {
    pub(super) fn new(
        id: String,
        secrets: bool,
        greatest: Vec<i64>,
        greatest_shared: i64,
    ) -> ExportHeader {
        let schema = migrate::newest(MIGRATIONS);
        ExportHeader { feedgate_export: FORMAT, schema, id, secrets, greatest, greatest_shared }
    }

    /// Reads the first line of a file.
    pub(super) fn parse(line: &str) -> Result<ExportHeader, TransferError> {
        let header: ExportHeader =
            serde_json::from_str(line).map_err(|err| TransferError::BadHeader(err.to_string()))?;
        if header.feedgate_export != FORMAT {
            let reason = format!("it has format {}, not {FORMAT}", header.feedgate_export);
            return Err(TransferError::BadHeader(reason));
        }
        let known = migrate::newest(MIGRATIONS);
        match header.schema == known {
            true => Ok(header),
            false => Err(TransferError::OtherSchema { found: header.schema, known }),
        }
    }
}
