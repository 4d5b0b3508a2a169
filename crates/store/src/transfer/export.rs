//! Writes the state of a gateway as lines of JSON. No gateway may use the database meanwhile: tables
//! are read one after the other, and a cursor that was read later than its log could be ahead of it.

use std::io;

use serde_json::{Map, Value as Json, json};

use crate::StoreSettings;
use crate::copy::CopyProgress;
use crate::copy::copy_state::KeyValue;
use crate::copy::source::CopySource;
use crate::copy::tables::{CopiedTable, NUMBERED_IN_SHARED, Rule};
use crate::copy::target::read_columns;
use crate::transfer::contents::{exported_tables, secrets_of};
use crate::transfer::error::TransferError;
use crate::transfer::header::ExportHeader;
use crate::transfer::row_json::to_json;
use feedgate_core::store::StoreError;

/// The number of rows that are read together.
const BATCH_ROWS: usize = 1_000;

/// What an export contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportSummary {
    /// The kinds of lines, with their numbers.
    pub kinds: Vec<(&'static str, u64)>,
    /// The number of secrets that were left out.
    pub secrets_left_out: u64,
}

/// Writes all lines with `write`, each without a line end. `with_secrets`: secrets are in the file.
/// `report` is called after each chunk.
pub async fn export(
    settings: &StoreSettings,
    with_secrets: bool,
    write: &mut (dyn FnMut(&str) -> io::Result<()> + Send),
    report: &mut (dyn FnMut(&CopyProgress) + Send),
) -> Result<ExportSummary, TransferError> {
    let source = CopySource::open(settings).await?;
    let exported = Export { source: &source, with_secrets, summary: ExportSummary::default() };
    let exported = exported.run(write, report).await;
    source.close().await;
    exported
}

struct Export<'a> {
    source: &'a CopySource,
    with_secrets: bool,
    summary: ExportSummary,
}

impl Export<'_> {
    async fn run(
        mut self,
        write: &mut (dyn FnMut(&str) -> io::Result<()> + Send),
        report: &mut (dyn FnMut(&CopyProgress) + Send),
    ) -> Result<ExportSummary, TransferError> {
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|err| StoreError::Database(Box::new(err)))?;
        let greatest = self.source.greatest_numbers().await?;
        let mut greatest_shared = 0;
        for table in NUMBERED_IN_SHARED {
            greatest_shared = self.source.greatest_shared_number(table).await?.max(greatest_shared);
        }
        let header =
            ExportHeader::new(hex::encode(id), self.with_secrets, greatest, greatest_shared);
        write(&json!(header).to_string())?;
        let columns = read_columns(self.source.shared()).await?;
        // A gateway would be asked for keys that nothing in its database needs.
        let with_secrets = self.with_secrets;
        let is_of_use = |table: &&CopiedTable| with_secrets || table.name != "secret_keys";
        for table in exported_tables().filter(is_of_use) {
            let columns = columns.get(table.name).map_or(&[][..], Vec::as_slice);
            let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
            let mut count = 0;
            let mut progress = CopyProgress {
                table: table.name,
                rows: 0,
                of: self.source.count_rows(table).await?,
            };
            for db in self.source.schemas_of(table) {
                let mut after = Vec::new();
                loop {
                    let chunk = (after.as_slice(), BATCH_ROWS);
                    let rows = self.source.read_chunk(db, table, &names, chunk).await?;
                    let Some(last) = rows.last() else { break };
                    let key =
                        table.key.iter().filter_map(|key| names.iter().position(|n| n == key));
                    let key = key.map(|column| KeyValue::from_column(&last[column]));
                    after = key.collect::<Result<Vec<_>, StoreError>>()?;
                    progress.rows += rows.len() as u64;
                    report(&progress);
                    let rows = match table.has_rule(Rule::Collected) {
                        true => self.source.advance_cursors(&names, rows).await?,
                        false => rows,
                    };
                    for row in rows {
                        if let Some(line) = self.line(table, to_json(columns, row)) {
                            write(&line)?;
                            count += 1;
                        }
                    }
                }
            }
            self.summary.kinds.push((table.name, count));
        }
        Ok(self.summary)
    }

    /// Returns the line of a row; `None` if it is of no use without the secrets that are left out.
    fn line(&mut self, table: &CopiedTable, mut row: Map<String, Json>) -> Option<String> {
        let mut object = json!({ "kind": table.name });
        if !self.with_secrets {
            let mut missing = Vec::new();
            for secret in secrets_of(table.name) {
                if row.get(secret.column).is_some_and(|value| !value.is_null()) {
                    self.summary.secrets_left_out += 1;
                    if secret.is_needed {
                        return None;
                    }
                    row.insert(secret.column.to_owned(), Json::Null);
                    missing.push(secret.column);
                }
            }
            if !missing.is_empty() {
                object["left_out"] = json!(missing);
            }
        }
        object["row"] = Json::Object(row);
        Some(object.to_string())
    }
}
