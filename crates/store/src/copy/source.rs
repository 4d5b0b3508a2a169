//! The database that is copied: it is read in the order of keys, in chunks of bounded size.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use rusqlite::Connection;

use crate::cells::numbers::{cell_of_number, cell_of_topic};
use crate::copy::copied_value::number;
use crate::copy::copy_state::{self, KeyValue};
use crate::copy::error::CopyError;
use crate::copy::numbering::Numbering;
use crate::copy::tables::{CopiedTable, NUMBERED_IN_CELLS};
use crate::engine::error::store_error;
use crate::engine::migrate::MIGRATIONS;
use crate::engine::operation;
use crate::engine::postgres::{self, Connector, Postgres, SchemaLock};
use crate::engine::row::Row;
use crate::engine::sql::{Value, params};
use crate::{Db, OpenPurpose, Store, StoreSettings, name_place, sqlite_path};
use feedgate_core::store::{StoreError, WakeSignals};

/// The most bytes of long columns in one chunk, unless a single row is longer.
const CHUNK_BYTES: i64 = 16 << 20;
/// How long to wait for a process that has the SQLite file open and may just be ending.
const PATIENCE: Duration = Duration::from_secs(5);

/// The source of a copy.
pub(crate) struct CopySource {
    shared: Arc<Db>,
    cells: Vec<Arc<Db>>,
    lock: Option<SchemaLock>,
}

/// The new number of a resource, and the cell of the target that it lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NewPlace {
    pub(crate) cell: usize,
    pub(crate) number: i64,
}

impl CopySource {
    /// Opens the source and brings its schema up to date. Fails if a gateway uses it.
    pub(crate) async fn open(settings: &StoreSettings) -> Result<CopySource, CopyError> {
        let opened = match sqlite_path(&settings.url) {
            Some(path) => {
                if !path.is_file() {
                    return Err(CopyError::NoSource { place: path.display().to_string() });
                }
                if is_sqlite_open(path)? {
                    return Err(CopyError::SourceInUse);
                }
                CopySource::open_cells(settings, 1, None).await
            }
            None => CopySource::open_postgres(settings).await,
        };
        opened.map_err(|err| match err {
            CopyError::Store(err) => CopyError::Store(name_place(err, &settings.url)),
            other => other,
        })
    }

    async fn open_postgres(settings: &StoreSettings) -> Result<CopySource, CopyError> {
        let connector = Connector::new(&settings.url)?;
        let Some(cells) = count_cells(connector.clone()).await? else {
            let place = postgres::place(&settings.url);
            return Err(CopyError::NoSource { place });
        };
        let lock = SchemaLock::acquire(&connector).await?.ok_or(CopyError::SourceInUse)?;
        CopySource::open_cells(settings, cells, Some(lock)).await
    }

    async fn open_cells(
        settings: &StoreSettings,
        cells: usize,
        lock: Option<SchemaLock>,
    ) -> Result<CopySource, CopyError> {
        let settings = StoreSettings { cells, ..settings.clone() };
        let (shared, cells) = open_schemas(&settings).await?;
        Ok(CopySource { shared, cells, lock })
    }

    /// Returns the schema with the properties of the database.
    pub(crate) fn shared(&self) -> &Db {
        &self.shared
    }

    /// Returns the cells.
    pub(crate) fn cells(&self) -> &[Arc<Db>] {
        &self.cells
    }

    /// Returns the schemas that have the rows of a table.
    pub(crate) fn schemas_of(&self, table: &CopiedTable) -> &[Arc<Db>] {
        if table.location.is_shared() { std::slice::from_ref(&self.shared) } else { &self.cells }
    }

    /// Returns the greatest numbers that each table of the cells ever gave to a row.
    pub(crate) async fn greatest_numbers(&self) -> Result<Vec<i64>, StoreError> {
        let mut greatest = Vec::new();
        for cell in &self.cells {
            for table in NUMBERED_IN_CELLS {
                greatest.push(greatest_number(cell, table).await?);
            }
        }
        Ok(greatest)
    }

    /// Returns the greatest number that a table of the shared schema ever gave to a row.
    pub(crate) async fn greatest_shared_number(&self, table: &str) -> Result<i64, StoreError> {
        greatest_number(&self.shared, table).await
    }

    /// Returns the number of rows of a table, in all schemas.
    pub(crate) async fn count_rows(&self, table: &CopiedTable) -> Result<u64, StoreError> {
        let mut count = 0;
        for db in self.schemas_of(table) {
            let sql = format!("select count(*) from {}", table.name);
            for mut row in query(db, sql, Vec::new()).await? {
                count += row.count()?;
            }
        }
        Ok(count)
    }

    /// Returns the next rows of a table in one schema, with these columns, after the row with the
    /// key `after`.
    pub(crate) async fn read_chunk(
        &self,
        db: &Db,
        table: &CopiedTable,
        columns: &[String],
        (after, limit): (&[KeyValue], usize),
    ) -> Result<Vec<Vec<Value>>, StoreError> {
        let key = table.key.join(", ");
        let params: Vec<Value> = after.iter().map(KeyValue::to_param).collect();
        let places = (1..=params.len()).map(|n| format!("${n}")).collect::<Vec<_>>().join(", ");
        let next = match params.is_empty() {
            true => format!("from {} order by {key}", table.name),
            false => format!("from {} where ({key}) > ({places}) order by {key}", table.name),
        };
        let mut limit = limit;
        if let Some(column) = table.long_column {
            let lengths = format!("select length({column}) {next} limit {limit}");
            limit = rows_within(CHUNK_BYTES, query(db, lengths, params.clone()).await?)?;
        }
        let chunk = format!("select {} {next} limit {limit}", columns.join(", "));
        let rows = query(db, chunk, params).await?;
        rows.into_iter().map(Row::into_values).collect()
    }

    /// Returns where these resources lie in the target. Those that do not exist are missing.
    pub(crate) async fn new_places(
        &self,
        numbers: Vec<i64>,
        numbering: &Numbering,
        cells: usize,
    ) -> Result<HashMap<i64, NewPlace>, StoreError> {
        const TOPICS: &str = "select id, topic from resources where id in ({ids $1})";
        let mut by_cell: HashMap<usize, Vec<i64>> = HashMap::new();
        for number in numbers {
            by_cell.entry(self.cell_of(number)).or_default().push(number);
        }
        let mut places = HashMap::new();
        for (cell, numbers) in by_cell {
            let Some(cell) = self.cells.get(cell) else { continue };
            for mut row in cell.rows(TOPICS, &[Value::Ints(numbers)]).await? {
                let (old, topic) = (row.int()?, row.text()?);
                let cell = cell_of_topic(&topic, cells);
                places.insert(old, NewPlace { cell, number: numbering.renumber(old, cell) });
            }
        }
        Ok(places)
    }

    /// Moves the cursors of collections behind what they have taken from another cell, and drops
    /// those that have nothing left to take: a crash may have come before the cursor moved.
    pub(crate) async fn advance_cursors(
        &self,
        columns: &[String],
        rows: Vec<Vec<Value>>,
    ) -> Result<Vec<Vec<Value>>, StoreError> {
        let place = |name: &str| columns.iter().position(|column| column == name);
        let places = ["resource_id", "collection_id", "cursor", "upto"].map(place);
        let [Some(resource), Some(collection), Some(cursor), Some(upto)] = places else {
            return Ok(rows);
        };
        let mut owed = Vec::with_capacity(rows.len());
        for mut row in rows {
            let int = |column: usize| number(&row[column]).unwrap_or_default();
            let taken = self.collected(int(resource), int(collection)).await?;
            let (stands, upto) = (int(cursor).max(taken), int(upto));
            if stands < upto {
                row[cursor] = Value::Int(stands);
                owed.push(row);
            }
        }
        Ok(owed)
    }

    /// Returns how far a collection has taken the log of a resource that lies in another cell; 0 if
    /// that is not known, or both are in one cell.
    async fn collected(&self, resource: i64, collection: i64) -> Result<i64, StoreError> {
        const COLLECTED: &str = "
            select upto from collected where collection_id = $1 and resource_id = $2";
        let Some(cell) = self.cells.get(self.cell_of(collection)) else { return Ok(0) };
        let rows = cell.rows(COLLECTED, params![collection, resource]).await?;
        rows.into_iter().next().map_or(Ok(0), |mut row| row.int())
    }

    fn cell_of(&self, number: i64) -> usize {
        if self.cells.len() == 1 { 0 } else { cell_of_number(number) }
    }

    /// Fails if a gateway may have used the source since the copy with this mark began.
    pub(crate) async fn check_mark(&self, mark: &str) -> Result<(), CopyError> {
        let is_locked = self.lock.as_ref().is_none_or(SchemaLock::is_held);
        if is_locked && copy_state::read_mark(&self.shared).await?.as_deref() == Some(mark) {
            return Ok(());
        }
        Err(CopyError::SourceChanged)
    }

    /// Closes the source, and lets others use it.
    pub(crate) async fn close(&self) {
        join_all(self.cells.iter().map(|cell| cell.shut())).await;
        self.shared.shut().await;
        if let Some(lock) = &self.lock {
            lock.release().await;
        }
    }
}

/// Opens the shared schema and the cells of a database; both are the same if there is one cell.
pub(crate) async fn open_schemas(
    settings: &StoreSettings,
) -> Result<(Arc<Db>, Vec<Arc<Db>>), StoreError> {
    open_schemas_for(settings, OpenPurpose::Copy).await
}

/// Opens the schemas of a database for a purpose.
pub(crate) async fn open_schemas_for(
    settings: &StoreSettings,
    purpose: OpenPurpose,
) -> Result<(Arc<Db>, Vec<Arc<Db>>), StoreError> {
    Ok(Store::open(settings, MIGRATIONS, purpose).await?.into_schemas())
}

/// Returns the rows of a statement that was put together.
pub(crate) async fn query(
    db: &Db,
    sql: String,
    params: Vec<Value>,
) -> Result<Vec<Row>, StoreError> {
    db.read(move |tx| Box::pin(async move { tx.query(&sql, &params).await })).await
}

/// Returns the greatest number that a table ever gave to a row.
pub(crate) async fn greatest_number(db: &Db, table: &str) -> Result<i64, StoreError> {
    const GREATEST: &str = "
        select coalesce(
            {sqlite (select seq from sqlite_sequence where name = $1)}
            {postgres pg_sequence_last_value(pg_get_serial_sequence($1, 'id')::regclass)},
            0)";
    let rows = db.rows(GREATEST, params![table]).await?;
    rows.into_iter().next().map_or(Ok(0), |mut row| row.int())
}

/// Returns how many of the rows with these lengths fit into `bytes`, at least one.
fn rows_within(bytes: i64, lengths: Vec<Row>) -> Result<usize, StoreError> {
    let (mut count, mut sum) = (0, 0);
    for mut row in lengths {
        sum += row.opt_int()?.unwrap_or_default();
        if count > 0 && sum > bytes {
            break;
        }
        count += 1;
    }
    Ok(count)
}

/// Returns the number of cells of a PostgreSQL database; `None` if no gateway ever used it.
pub(crate) async fn count_cells(connector: Connector) -> Result<Option<usize>, StoreError> {
    const EXISTS: &str = "select to_regclass('database_properties')::text";
    const CELLS: &str = "select value from database_properties where name = 'cells'";
    let postgres = Postgres::open(connector, 1, WakeSignals::default()).await?;
    let counted = operation::run(
        |tx| {
            Box::pin(async move {
                let exists = tx.first(EXISTS, &[]).await?;
                if exists.map_or(Ok(None), |mut row| row.opt_text())?.is_none() {
                    return Ok(None);
                }
                tx.first(CELLS, &[]).await?.map(|mut row| row.text()).transpose()
            })
        },
        |op| Box::pin(postgres.read(op, None)),
    );
    let Some(cells) = counted.await? else { return Ok(None) };
    let corrupt = |_| StoreError::Corrupt(format!("{cells:?} is not a number of cells"));
    cells.parse().map(Some).map_err(corrupt)
}

/// Returns whether a process has a SQLite file open: then nobody can have it exclusively, because
/// in WAL mode each connection has a lock for as long as it is open.
pub(crate) fn is_sqlite_open(path: &Path) -> Result<bool, StoreError> {
    let conn = Connection::open(path).map_err(store_error)?;
    conn.busy_timeout(PATIENCE).map_err(store_error)?;
    conn.pragma_update(None, "locking_mode", "exclusive").map_err(store_error)?;
    match conn.execute_batch("begin exclusive; commit") {
        Ok(()) => Ok(false),
        Err(err) if err.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => Ok(true),
        Err(err) => Err(store_error(err)),
    }
}
