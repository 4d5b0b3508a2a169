//! `feedgate copy`: copies a gateway into a new PostgreSQL database, with another number of cells.
//!
//! The tables are copied one after the other, in chunks in the order of their keys. What always
//! holds:
//!
//! * A chunk is written to all schemas before the position behind it is stored. What an interrupted
//!   copy has written behind the position is read again and left as it is: keys follow from those
//!   of the source alone (`numbering.rs`).
//! * The source does not change: nobody may use it during the copy, and a copy continues only if
//!   nobody has used it since (`copy_state.rs`).
//! * Memory is bounded, whatever the source contains: a chunk has a bounded number of rows, and of
//!   bytes unless one row alone is longer.

pub(crate) mod copied_value;
pub(crate) mod copy_state;
pub(crate) mod error;
pub(crate) mod numbering;
pub(crate) mod row_mapping;
pub(crate) mod source;
pub(crate) mod tables;
pub(crate) mod target;

use std::collections::BTreeMap;

use crate::copy::copied_value::number;
use crate::copy::copy_state::{CopyPosition, CopyState, KeyValue, read_property, save_mark};
use crate::copy::error::CopyError;
use crate::copy::numbering::Numbering;
use crate::copy::row_mapping::{MappedRow, RowMapper};
use crate::copy::source::CopySource;
pub(crate) use crate::copy::source::{count_cells, is_sqlite_open};
use crate::copy::tables::{CopiedTable, NUMBERED_IN_SHARED, Rule, TABLES};
use crate::copy::target::CopyTarget;
use crate::engine::sql::Value;
use crate::{Db, StoreSettings};
use feedgate_core::store::StoreError;

/// The usual number of rows in a chunk: some 160 for each of 32 cells, and a few megabytes.
pub const COPY_BATCH_ROWS: usize = 5_000;

/// What is copied, and where to.
#[derive(Clone, Debug)]
pub struct CopySettings {
    /// The URL of the source. Its number of cells is read from it.
    pub from: String,
    /// The target, which is created with its number of cells.
    pub to: StoreSettings,
    /// The maximum number of rows in a chunk.
    pub batch_rows: usize,
    /// The number of transactions after which the copy is interrupted; `None`: it is not.
    pub stop_after: Option<u64>,
}

/// How far a copy or an export has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyProgress {
    /// The table that is being read.
    pub table: &'static str,
    /// The number of its rows that have been copied or exported.
    pub rows: u64,
    /// The number of all its rows.
    pub of: u64,
}

/// The result of a complete copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopySummary {
    /// The number of rows that this run has copied.
    pub rows: u64,
    /// Whether an earlier run had completed the copy.
    pub was_complete: bool,
}

/// Copies a gateway, or continues a copy that was interrupted. `report` is called after each chunk.
pub async fn copy(
    settings: &CopySettings,
    report: &mut (dyn FnMut(&CopyProgress) + Send),
) -> Result<CopySummary, CopyError> {
    let from = StoreSettings { url: settings.from.clone(), ..settings.to.clone() };
    let source = CopySource::open(&from).await?;
    let copied = match CopyTarget::open(&settings.to, settings.stop_after).await {
        Ok(target) => {
            let copied = copy_between(&source, &target, settings.batch_rows, report).await;
            target.close().await;
            copied
        }
        Err(err) => Err(err),
    };
    source.close().await;
    copied
}

async fn copy_between(
    source: &CopySource,
    target: &CopyTarget,
    batch_rows: usize,
    report: &mut (dyn FnMut(&CopyProgress) + Send),
) -> Result<CopySummary, CopyError> {
    let state = begin_or_continue(source, target).await?;
    if state.is_complete {
        return Ok(CopySummary { rows: 0, was_complete: true });
    }
    let mut copying = Copying { source, target, batch_rows, state, copied: 0 };
    let first = copying.state.position.as_ref().map(|position| position.table.clone());
    let first = first.and_then(|name| TABLES.iter().position(|table| table.name == name));
    for table in &TABLES[first.unwrap_or(0)..] {
        copying.copy_table(table, report).await?;
    }
    copying.complete().await?;
    Ok(CopySummary { rows: copying.copied, was_complete: false })
}

/// Returns the state of the copy that was begun, or begins one in an empty target.
async fn begin_or_continue(
    source: &CopySource,
    target: &CopyTarget,
) -> Result<CopyState, CopyError> {
    if let Some(state) = target.state().await? {
        return match source.check_mark(&state.mark).await {
            Err(CopyError::SourceChanged) if state.is_complete => Err(CopyError::TargetNotEmpty),
            checked => checked.map(|()| state),
        };
    }
    if !target.is_empty().await? {
        return Err(CopyError::TargetNotEmpty);
    }
    let greatest = source.greatest_numbers().await?;
    let numbering = Numbering::new(target.cell_count(), &greatest);
    let state = CopyState::new(numbering.ok_or(CopyError::NumbersExhausted)?)?;
    // The mark comes first: a target whose source has no mark could never be completed.
    save_mark(source.shared(), &state.mark).await?;
    target.save_state(&state).await?;
    Ok(state)
}

/// A copy in progress.
struct Copying<'a> {
    source: &'a CopySource,
    target: &'a CopyTarget,
    batch_rows: usize,
    state: CopyState,
    /// The number of rows copied by this run.
    copied: u64,
}

impl Copying<'_> {
    /// Copies the rows of a table after the position, from all schemas that have them.
    async fn copy_table(
        &mut self,
        table: &'static CopiedTable,
        report: &mut (dyn FnMut(&CopyProgress) + Send),
    ) -> Result<(), CopyError> {
        let of = self.source.count_rows(table).await?;
        let begin =
            CopyPosition { table: table.name.to_owned(), schema: 0, key: Vec::new(), rows: 0 };
        let stored = self.state.position.take().filter(|position| position.table == table.name);
        let mut position = stored.unwrap_or(begin);
        let source = self.source;
        for (schema, db) in source.schemas_of(table).iter().enumerate().skip(position.schema) {
            if position.schema != schema {
                (position.schema, position.key) = (schema, Vec::new());
            }
            while let Some(next) = self.copy_chunk(table, db, &position).await? {
                position = next;
                self.state.position = Some(position.clone());
                self.target.save_state(&self.state).await?;
                report(&CopyProgress { table: table.name, rows: position.rows, of });
            }
        }
        Ok(())
    }

    /// Copies the next rows behind the position. Returns the position behind them; `None` if there
    /// are none.
    async fn copy_chunk(
        &mut self,
        table: &CopiedTable,
        db: &Db,
        position: &CopyPosition,
    ) -> Result<Option<CopyPosition>, CopyError> {
        let columns = self.target.columns_of(table).iter().map(|column| column.name.clone());
        let columns: Vec<String> = columns.collect();
        let after = (position.key.as_slice(), self.batch_rows);
        let mut rows = self.source.read_chunk(db, table, &columns, after).await?;
        let Some(last) = rows.last() else { return Ok(None) };
        let key = table.key.iter().filter_map(|name| columns.iter().position(|it| it == name));
        let key = key.map(|column| KeyValue::from_column(&last[column]));
        let key = key.collect::<Result<Vec<_>, StoreError>>()?;
        let read = rows.len() as u64;
        if table.has_rule(Rule::Collected) {
            rows = self.source.advance_cursors(&columns, rows).await?;
        }
        let mapped = self.map_rows(table, &columns, rows).await?;
        self.target.insert_rows(table, mapped).await?;
        self.copied += read;
        Ok(Some(CopyPosition { key, rows: position.rows + read, ..position.clone() }))
    }

    /// Returns the rows as they are in the target. The former numbers of resources are stored.
    async fn map_rows(
        &self,
        table: &CopiedTable,
        columns: &[String],
        rows: Vec<Vec<Value>>,
    ) -> Result<Vec<MappedRow>, CopyError> {
        let (numbering, cells) = (&self.state.numbering, self.target.cell_count());
        let mapper = RowMapper::new(table, columns, numbering, cells);
        let named = mapper.named_resources(&rows);
        let places = self.source.new_places(named, numbering, cells).await?;
        let id = columns.iter().position(|column| column == "id");
        let id = id.filter(|_| table.name == "resources");
        let (mut mapped, mut former) = (Vec::with_capacity(rows.len()), Vec::new());
        for row in rows {
            let old = id.and_then(|id| number(&row[id]));
            let row = mapper.map(row, &places)?;
            let new = id.and_then(|id| number(&row.values[id]));
            former.extend(old.zip(new).filter(|(old, new)| old != new));
            mapped.push(row);
        }
        self.target.insert_former_numbers(former).await?;
        Ok(mapped)
    }

    /// Stores what is not copied row by row, and that the copy is complete.
    async fn complete(&mut self) -> Result<(), CopyError> {
        self.target.save_counters(self.counters().await?).await?;
        self.target.count_subscriptions().await?;
        if let Some(groups) = read_property(&self.source.cells()[0], "groups").await? {
            self.target.save_host_groups(&groups).await?;
        }
        self.target.start_numbers(&self.state.numbering).await?;
        for table in NUMBERED_IN_SHARED {
            let last = self.source.greatest_shared_number(table).await?;
            self.target.start_shared_numbers(table, last).await?;
        }
        self.source.check_mark(&self.state.mark).await?;
        self.state.is_complete = true;
        self.target.save_state(&self.state).await
    }

    /// Returns the counters of all schemas of the source, added up.
    async fn counters(&self) -> Result<BTreeMap<String, i64>, StoreError> {
        const COUNTERS: &str = "select name, count from counters";
        let cells = self.source.cells();
        let shared = (cells.len() > 1).then_some(self.source.shared());
        let mut counters = BTreeMap::new();
        for db in cells.iter().map(|cell| &**cell).chain(shared) {
            for mut row in db.rows(COUNTERS, &[]).await? {
                let (name, count) = (row.text()?, row.int()?);
                *counters.entry(name).or_default() += count;
            }
        }
        Ok(counters)
    }
}
