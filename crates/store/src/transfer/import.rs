//! Reads the lines of an export into a database, which may be in use and may have rows already.
//!
//! Rows get numbers after all that the database has used. The numbering is stored before the first row,
//! so a file that is imported again gets the same numbers, and its rows are found to be there. A
//! resource that the database has by itself keeps its log: of the file, only the subscriptions are added
//! to it, with cursors in that log (`merge.rs`).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::{Map, Value as Json};

use crate::cells::numbers::cell_of_topic;
use crate::copy::copied_value::number;
use crate::copy::row_mapping::{Destination, MappedRow, RowMapper};
use crate::copy::source::{NewPlace, open_schemas_for};
use crate::copy::tables::{CopiedTable, Location, NUMBERED_IN_SHARED};
use crate::copy::target::{TargetColumn, read_columns};
use crate::engine::sql::{Value, params};
use crate::transfer::contents::exported_table;
use crate::transfer::error::TransferError;
use crate::transfer::header::ExportHeader;
use crate::transfer::import_numbers::{ImportNumbers, begin_numbers};
use crate::transfer::insertion::Insertion;
use crate::transfer::merge::SourceLogs;
use crate::transfer::report::ImportReport;
use crate::transfer::row_json::from_json;
use crate::{Db, OpenPurpose, StoreSettings};
use feedgate_core::store::StoreError;

/// The most rows that are inserted together, and the most bytes of their lines, unless one is longer.
const BATCH_ROWS: usize = 500;
const BATCH_BYTES: usize = 8 << 20;

/// A line that waits for its insertion.
struct PendingRow {
    line: u64,
    values: Vec<Value>,
}

/// An import in progress.
pub struct Importer {
    shared: Arc<Db>,
    cells: Vec<Arc<Db>>,
    columns: BTreeMap<String, Vec<TargetColumn>>,
    numbers: ImportNumbers,
    /// The accounts of the file by their numbers.
    accounts: HashMap<i64, i64>,
    /// The resources of the file by their numbers.
    places: HashMap<i64, NewPlace>,
    /// Resources that the database has by itself.
    foreign: HashSet<i64>,
    source_logs: SourceLogs,
    table: Option<&'static CopiedTable>,
    pending: Vec<PendingRow>,
    pending_bytes: usize,
    report: ImportReport,
    now: DateTime<Utc>,
}

impl Importer {
    /// Opens the database for a file with this first line.
    pub async fn begin(
        settings: &StoreSettings,
        header: &str,
        now: DateTime<Utc>,
    ) -> Result<Importer, TransferError> {
        let header = ExportHeader::parse(header)?;
        let (shared, cells) = open_schemas_for(settings, OpenPurpose::Gateway).await?;
        let columns = read_columns(&shared).await?;
        let numbers = begin_numbers(&shared, &cells, &header).await?;
        Ok(Importer {
            shared,
            cells,
            columns,
            numbers,
            accounts: HashMap::from([(0, 0)]),
            places: HashMap::new(),
            foreign: HashSet::new(),
            source_logs: SourceLogs::new(),
            table: None,
            pending: Vec::new(),
            pending_bytes: 0,
            report: ImportReport::default(),
            now,
        })
    }

    /// Adds a line of the file. A line that cannot be used is reported, and changes nothing.
    pub async fn add_line(&mut self, line: u64, text: &str) -> Result<(), TransferError> {
        #[derive(Deserialize)]
        struct Line {
            kind: String,
            #[serde(default)]
            left_out: Vec<String>,
            row: Map<String, Json>,
        }
        let read: Line = match serde_json::from_str(text) {
            Ok(read) => read,
            Err(err) => {
                self.report.refuse("unknown", line, err.to_string());
                return Ok(());
            }
        };
        let Some(table) = exported_table(&read.kind) else {
            self.report.refuse("unknown", line, format!("there is no kind {:?}", read.kind));
            return Ok(());
        };
        let columns = self.columns.get(table.name).map_or(&[][..], Vec::as_slice);
        let mut values = match from_json(columns, read.row) {
            Ok(values) => values,
            Err(reason) => {
                self.report.refuse(table.name, line, reason);
                return Ok(());
            }
        };
        if table.name == "subscriptions" && !read.left_out.is_empty() {
            self.pause(&mut values);
        }
        let is_other = self.table.is_some_and(|pending| pending.name != table.name);
        let is_full = self.pending.len() >= BATCH_ROWS || self.pending_bytes > BATCH_BYTES;
        if is_other || is_full {
            self.insert_pending().await?;
        }
        self.table = Some(table);
        self.pending.push(PendingRow { line, values });
        self.pending_bytes += text.len();
        Ok(())
    }

    /// Inserts what is left, and closes the database.
    pub async fn finish(mut self) -> Result<ImportReport, TransferError> {
        let inserted = self.insert_pending().await;
        for cell in &self.cells {
            cell.shut().await;
        }
        self.shared.shut().await;
        inserted.map(|()| self.report)
    }

    /// Pauses a subscription whose secret is not in the file.
    fn pause(&mut self, values: &mut [Value]) {
        let now = Value::from(self.now);
        if let Some(paused_at) = self.column("subscriptions", "paused_at") {
            values[paused_at] = now;
        }
        self.report.paused += 1;
    }

    fn column(&self, table: &str, name: &str) -> Option<usize> {
        self.columns.get(table)?.iter().position(|column| column.name == name)
    }

    async fn insert_pending(&mut self) -> Result<(), TransferError> {
        let Some(table) = self.table.take() else { return Ok(()) };
        let mut rows = std::mem::take(&mut self.pending);
        self.pending_bytes = 0;
        self.report.kind(table.name);
        rows = self.map_accounts(table, rows).await?;
        if table.name == "resources" {
            rows = self.map_resources(rows).await?;
        } else if let Location::Resource(column) = table.location {
            rows = self.split_foreign(table, column, rows).await?;
        }
        self.insert_rows(table, rows).await
    }

    /// Replaces the numbers of accounts, and drops accounts that the database has by their login.
    async fn map_accounts(
        &mut self,
        table: &CopiedTable,
        rows: Vec<PendingRow>,
    ) -> Result<Vec<PendingRow>, TransferError> {
        let mut kept = Vec::with_capacity(rows.len());
        let account = self.column(table.name, "account_id");
        let is_shared = NUMBERED_IN_SHARED.contains(&table.name);
        let id = self.column(table.name, "id").filter(|_| is_shared);
        let parent = self.column(table.name, "parent_id").filter(|_| is_shared);
        for mut row in rows {
            if let Some(id) = id {
                let old = number(&row.values[id]).unwrap_or_default();
                let new = old + self.numbers.shared_base;
                row.values[id] = Value::Int(new);
                if table.name == "accounts" {
                    let existing = self.account_with_login_of(&row).await?;
                    self.accounts.insert(old, existing.unwrap_or(new));
                    if existing.is_some_and(|existing| existing != new) {
                        self.report.kind(table.name).present += 1;
                        continue;
                    }
                }
            }
            if let Some(parent) = parent
                && let Some(old) = number(&row.values[parent])
            {
                row.values[parent] = Value::Int(old + self.numbers.shared_base);
            }
            if let Some(account) = account {
                let old = number(&row.values[account]).unwrap_or_default();
                let Some(new) = self.accounts.get(&old) else {
                    let reason = "its account is not in the file".to_owned();
                    self.report.refuse(table.name, row.line, reason);
                    continue;
                };
                row.values[account] = Value::Int(*new);
                // The collection of an account is named after it.
                let name = self.column(table.name, "name").filter(|_| table.name == "collections");
                if let Some(name) = name.filter(|_| old != 0) {
                    row.values[name] = Value::Text(format!("account {new}"));
                }
            }
            kept.push(row);
        }
        Ok(kept)
    }

    async fn account_with_login_of(&self, row: &PendingRow) -> Result<Option<i64>, StoreError> {
        const FIND: &str = "select id from accounts where login = $1";
        let Some(login) = self.column("accounts", "login") else { return Ok(None) };
        let found = self.shared.rows(FIND, &[row.values[login].clone()]).await?;
        found.into_iter().next().map(|mut row| row.int()).transpose()
    }

    /// Finds where resources are or will be, and drops those that the database has by itself.
    async fn map_resources(
        &mut self,
        rows: Vec<PendingRow>,
    ) -> Result<Vec<PendingRow>, TransferError> {
        const FIND: &str = "select id from resources where topic = $1";
        let (id, topic) = (self.column("resources", "id"), self.column("resources", "topic"));
        let (Some(id), Some(topic)) = (id, topic) else { return Ok(rows) };
        let mut kept = Vec::with_capacity(rows.len());
        for row in rows {
            let (Some(old), Value::Text(text)) = (number(&row.values[id]), &row.values[topic])
            else {
                let reason = "it has no number or no topic".to_owned();
                self.report.refuse("resources", row.line, reason);
                continue;
            };
            let cell = cell_of_topic(text, self.cells.len());
            let new = self.numbers.numbering.renumber(old, cell);
            let found = self.cells[cell].rows(FIND, params![text.as_str()]).await?;
            let existing = found.into_iter().next().map(|mut row| row.int()).transpose()?;
            self.places.insert(old, NewPlace { cell, number: existing.unwrap_or(new) });
            if existing.is_some_and(|existing| existing != new) {
                self.foreign.insert(old);
                self.report.kind("resources").present += 1;
            } else {
                kept.push(row);
            }
        }
        Ok(kept)
    }

    /// Drops rows of resources that the database has by itself, except subscriptions, whose cursors
    /// are moved to its log, and the reading lists that they follow.
    async fn split_foreign(
        &mut self,
        table: &CopiedTable,
        column: &str,
        rows: Vec<PendingRow>,
    ) -> Result<Vec<PendingRow>, TransferError> {
        let Some(column) = self.column(table.name, column) else { return Ok(rows) };
        let mut kept = Vec::with_capacity(rows.len());
        for mut row in rows {
            let old = number(&row.values[column]).unwrap_or_default();
            let Some(place) = self.places.get(&old).copied() else {
                let reason = "its resource is not in the file".to_owned();
                self.report.refuse(table.name, row.line, reason);
                continue;
            };
            if self.foreign.contains(&old) {
                let columns = &self.columns[table.name];
                match table.name {
                    "records" => self.source_logs.add(columns, &row.values),
                    "subscriptions" => {
                        let db = &self.cells[place.cell];
                        let logs = &mut self.source_logs;
                        logs.move_cursor(db, columns, (old, place.number), &mut row.values).await?;
                        kept.push(row);
                        continue;
                    }
                    // A reading list belongs to a subscription of the file.
                    "reading_lists" => {
                        kept.push(row);
                        continue;
                    }
                    _ => {}
                }
                self.report.kind(table.name).present += 1;
                continue;
            }
            kept.push(row);
        }
        Ok(kept)
    }

    /// Inserts rows that are not there yet, in a transaction in each schema.
    async fn insert_rows(
        &mut self,
        table: &'static CopiedTable,
        rows: Vec<PendingRow>,
    ) -> Result<(), TransferError> {
        let names: Vec<String> =
            self.columns[table.name].iter().map(|column| column.name.clone()).collect();
        let mapper = RowMapper::new(table, &names, &self.numbers.numbering, self.cells.len());
        let mut by_schema: BTreeMap<Option<usize>, Vec<Arc<[Value]>>> = BTreeMap::new();
        let count = rows.len() as u64;
        for row in rows {
            let MappedRow { destination, values } = mapper.map(row.values, &self.places)?;
            let values: Arc<[Value]> = values.into();
            match destination {
                Destination::Shared => by_schema.entry(None).or_default().push(values),
                Destination::Cell(cell) => by_schema.entry(Some(cell)).or_default().push(values),
                Destination::Everywhere => {
                    let cells = (0..self.cells.len()).map(Some);
                    let shared = (self.cells.len() > 1).then_some(None);
                    for schema in cells.chain(shared) {
                        by_schema.entry(schema).or_default().push(Arc::clone(&values));
                    }
                }
            }
        }
        let is_everywhere = table.location == Location::Everywhere;
        let foreign = self.foreign.iter().filter_map(|old| self.places.get(old));
        let foreign = Arc::new(foreign.map(|place| place.number).collect());
        let columns = &self.columns[table.name];
        let insertion = Insertion { table, columns, foreign, now: self.now };
        let mut added = 0;
        for (schema, rows) in by_schema {
            let db = schema.map_or(&self.shared, |cell| &self.cells[cell]);
            let inserted = insertion.insert_into(db, rows).await?;
            added = if is_everywhere { inserted } else { added + inserted };
        }
        let kind = self.report.kind(table.name);
        kind.added += added;
        kind.present += count.saturating_sub(added);
        Ok(())
    }
}
