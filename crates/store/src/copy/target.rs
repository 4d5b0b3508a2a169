//! The database that receives the copy: a new PostgreSQL database. Every statement may be run
//! again, so that what was written before an interruption is not written twice.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::{join_all, try_join_all};

use crate::changes::pings;
use crate::copy::copy_state::{CopyState, SAVE_PROPERTY, STATE};
use crate::copy::error::CopyError;
use crate::copy::numbering::Numbering;
use crate::copy::row_mapping::{Destination, MappedRow};
use crate::copy::source::{open_schemas, query};
use crate::copy::tables::{CopiedTable, NUMBERED_IN_CELLS, TABLES};
use crate::delivery::subscriber_counts::STRIPES;
use crate::engine::postgres::{Connector, SchemaLock};
use crate::engine::sql::{Value, params};
use crate::{Db, StoreSettings, name_place, sqlite_path};
use feedgate_core::store::StoreError;

/// The target of a copy.
pub(crate) struct CopyTarget {
    shared: Arc<Db>,
    cells: Vec<Arc<Db>>,
    lock: SchemaLock,
    /// The columns of each table, in the order of their definition.
    columns: BTreeMap<String, Vec<TargetColumn>>,
    /// The number of transactions that may still be written.
    transactions_left: AtomicU64,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TargetColumn {
    pub(crate) name: String,
    pub(crate) kind: ColumnKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    Int,
    Text,
    Blob,
}

impl CopyTarget {
    /// Opens the target, and creates its tables if they are missing. Fails if a gateway or another
    /// copy uses it.
    pub(crate) async fn open(
        settings: &StoreSettings,
        stop_after: Option<u64>,
    ) -> Result<CopyTarget, CopyError> {
        if sqlite_path(&settings.url).is_some() {
            return Err(CopyError::TargetNotPostgres);
        }
        let open = async {
            let lock = SchemaLock::acquire(&Connector::new(&settings.url)?).await?;
            let lock = lock.ok_or(CopyError::TargetInUse)?;
            let (shared, cells) = open_schemas(settings).await?;
            let columns = read_columns(&shared).await?;
            let transactions_left = AtomicU64::new(stop_after.unwrap_or(u64::MAX));
            Ok(CopyTarget { shared, cells, lock, columns, transactions_left })
        };
        open.await.map_err(|err| match err {
            CopyError::Store(err) => CopyError::Store(name_place(err, &settings.url)),
            other => other,
        })
    }

    /// Returns the number of cells.
    pub(crate) fn cell_count(&self) -> usize {
        self.cells.len()
    }

    /// Returns the columns of a table.
    pub(crate) fn columns_of(&self, table: &CopiedTable) -> &[TargetColumn] {
        self.columns.get(table.name).map_or(&[], Vec::as_slice)
    }

    /// Returns the state of the copy; `None` if none was begun.
    pub(crate) async fn state(&self) -> Result<Option<CopyState>, StoreError> {
        CopyState::read(&self.shared).await
    }

    /// Returns whether no table has a row.
    pub(crate) async fn is_empty(&self) -> Result<bool, StoreError> {
        let exists = TABLES.iter().map(|table| format!("exists (select 1 from {})", table.name));
        let sql = format!("select 1 where {}", exists.collect::<Vec<_>>().join(" or "));
        let found = self.schemas().map(|db| query(db, sql.clone(), Vec::new()));
        Ok(try_join_all(found).await?.iter().all(Vec::is_empty))
    }

    /// Stores the state of the copy.
    pub(crate) async fn save_state(&self, state: &CopyState) -> Result<(), CopyError> {
        self.execute(&self.shared, SAVE_PROPERTY, params![STATE, state.to_property()]).await
    }

    /// Inserts rows of a table that are not there yet, in a transaction in each schema.
    pub(crate) async fn insert_rows(
        &self,
        table: &CopiedTable,
        rows: Vec<MappedRow>,
    ) -> Result<(), CopyError> {
        let mut by_schema: BTreeMap<Option<usize>, Vec<Arc<[Value]>>> = BTreeMap::new();
        for row in rows {
            let values: Arc<[Value]> = row.values.into();
            match row.destination {
                Destination::Shared => by_schema.entry(None).or_default().push(values),
                Destination::Cell(cell) => by_schema.entry(Some(cell)).or_default().push(values),
                Destination::Everywhere => {
                    for schema in self.all_schemas() {
                        by_schema.entry(schema).or_default().push(Arc::clone(&values));
                    }
                }
            }
        }
        let inserts = by_schema.into_iter().map(|(schema, rows)| {
            let db = match schema {
                Some(cell) => &self.cells[cell],
                None => &self.shared,
            };
            self.insert_into(db, table, rows)
        });
        try_join_all(inserts).await.map(drop)
    }

    /// Returns the keys of all schemas in `by_schema` above: the cells, and the shared schema if it
    /// is another one.
    fn all_schemas(&self) -> impl Iterator<Item = Option<usize>> + use<> {
        let shared = (self.cells.len() > 1).then_some(None);
        (0..self.cells.len()).map(Some).chain(shared)
    }

    fn schemas(&self) -> impl Iterator<Item = &Arc<Db>> {
        let shared = (self.cells.len() > 1).then_some(&self.shared);
        self.cells.iter().chain(shared)
    }

    async fn insert_into(
        &self,
        db: &Db,
        table: &CopiedTable,
        rows: Vec<Arc<[Value]>>,
    ) -> Result<(), CopyError> {
        let columns = self.columns_of(table);
        let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
        let list = names.join(", ");
        let sql = format!(
            "insert into {} ({list}) {{values {list}}} on conflict ({}) do nothing",
            table.name,
            table.key.join(", "),
        );
        let lists = columns.iter().enumerate().map(|(n, column)| column.kind.list(&rows, n));
        let lists = Arc::new(lists.collect::<Result<Vec<_>, _>>()?);
        self.spend_transaction()?;
        let inserted = db.write(move |tx| {
            Box::pin(async move {
                let names = names.iter().map(String::as_str);
                let columns: Vec<_> = names.zip(lists.iter().cloned()).collect();
                tx.execute_rows(&sql, &[], &columns).await
            })
        });
        inserted.await.map(drop).map_err(CopyError::Store)
    }

    /// Stores the former numbers of resources that have new ones.
    pub(crate) async fn insert_former_numbers(
        &self,
        numbers: Vec<(i64, i64)>,
    ) -> Result<(), CopyError> {
        const INSERT: &str = "
            insert into former_numbers (former_id, resource_id)
            {values former_id, resource_id}
                on conflict (former_id) do nothing";
        if numbers.is_empty() {
            return Ok(());
        }
        let (old, new) = numbers.into_iter().unzip();
        let columns = [("former_id", Value::Ints(old)), ("resource_id", Value::Ints(new))];
        self.spend_transaction()?;
        let inserted = self
            .shared
            .write(move |tx| Box::pin(async move { tx.execute_rows(INSERT, &[], &columns).await }));
        inserted.await.map(drop).map_err(CopyError::Store)
    }

    /// Stores the counters: of pings, which each cell counts, in the first cell, all others in the
    /// shared schema.
    pub(crate) async fn save_counters(
        &self,
        counters: BTreeMap<String, i64>,
    ) -> Result<(), CopyError> {
        const SAVE: &str = "
            insert into counters (name, count) values ($1, $2)
                on conflict (name) do update set count = excluded.count";
        for (name, count) in counters {
            let db = if pings::is_ping_counter(&name) { &self.cells[0] } else { &self.shared };
            self.execute(db, SAVE, params![name, count]).await?;
        }
        Ok(())
    }

    /// Counts the subscriptions of each owner, in the cells where they are now.
    pub(crate) async fn count_subscriptions(&self) -> Result<(), CopyError> {
        const COUNT: &str = "
            insert into subscription_counts (account_id, host, stripe, subscriptions)
            select account_id,
                   case when account_id = 0 then regexp_replace(host, ':[0-9]+$', '') else '' end,
                   resource_id % cast($1 as bigint), count(*)
              from subscriptions group by 1, 2, 3
                on conflict (account_id, host, stripe) do update
               set subscriptions = excluded.subscriptions";
        for cell in &self.cells {
            self.execute(cell, COUNT, params![STRIPES]).await?;
        }
        Ok(())
    }

    /// Stores by which groups the hosts of the resources are named, so that a gateway with other
    /// groups names them anew.
    pub(crate) async fn save_host_groups(&self, fingerprint: &str) -> Result<(), CopyError> {
        for db in self.schemas() {
            self.execute(db, SAVE_PROPERTY, params!["groups", fingerprint]).await?;
        }
        Ok(())
    }

    /// Makes each table of the cells number new rows after all old ones.
    pub(crate) async fn start_numbers(&self, numbering: &Numbering) -> Result<(), CopyError> {
        for (number, cell) in self.cells.iter().enumerate() {
            for table in NUMBERED_IN_CELLS {
                self.start_number(cell, table, numbering.last_number(number)).await?;
            }
        }
        Ok(())
    }

    /// Makes a table of the shared schema number new rows after `last`.
    pub(crate) async fn start_shared_numbers(
        &self,
        table: &str,
        last: i64,
    ) -> Result<(), CopyError> {
        self.start_number(&self.shared, table, last).await
    }

    async fn start_number(&self, db: &Db, table: &str, last: i64) -> Result<(), CopyError> {
        const START: &str = "select setval(pg_get_serial_sequence($1, 'id'), $2)";
        if last == 0 {
            return Ok(()); // the source never had such a row
        }
        self.execute(db, START, params![table, last]).await
    }

    /// Runs a statement in a transaction of its own.
    async fn execute(&self, db: &Db, sql: &'static str, params: &[Value]) -> Result<(), CopyError> {
        self.spend_transaction()?;
        let params = params.to_vec();
        let executed = db.write(move |tx| Box::pin(async move { tx.query(sql, &params).await }));
        executed.await.map(drop).map_err(CopyError::Store)
    }

    /// Fails if no transaction is left, or the target may be used by others.
    fn spend_transaction(&self) -> Result<(), CopyError> {
        if !self.lock.is_held() {
            return Err(CopyError::TargetInUse);
        }
        let spend = |left: u64| left.checked_sub(1);
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        let spent = self.transactions_left.fetch_update(set, fetch, spend);
        spent.map(drop).map_err(|_| CopyError::Interrupted)
    }

    /// Closes the target, and lets others use it.
    pub(crate) async fn close(&self) {
        join_all(self.cells.iter().map(|cell| cell.shut())).await;
        self.shared.shut().await;
        self.lock.release().await;
    }
}

impl ColumnKind {
    /// Returns the values of column `n` of these rows as one list.
    pub(crate) fn list(self, rows: &[Arc<[Value]>], n: usize) -> Result<Value, StoreError> {
        let unlike = |_: &Value| StoreError::Corrupt("a value has another type".to_owned());
        let values = rows.iter().map(|row| row.get(n).unwrap_or(&Value::Null));
        Ok(match self {
            ColumnKind::Int => Value::OptInts(
                values
                    .map(|value| match value {
                        Value::Null => Ok(None),
                        Value::Int(number) => Ok(Some(*number)),
                        other => Err(unlike(other)),
                    })
                    .collect::<Result<_, _>>()?,
            ),
            ColumnKind::Text => Value::OptTexts(
                values
                    .map(|value| match value {
                        Value::Null => Ok(None),
                        Value::Text(text) => Ok(Some(text.clone())),
                        other => Err(unlike(other)),
                    })
                    .collect::<Result<_, _>>()?,
            ),
            ColumnKind::Blob => Value::OptBlobs(
                values
                    .map(|value| match value {
                        Value::Null => Ok(None),
                        Value::Blob(bytes) => Ok(Some(bytes.clone())),
                        other => Err(unlike(other)),
                    })
                    .collect::<Result<_, _>>()?,
            ),
        })
    }
}

/// Reads the columns of all tables of a schema.
pub(crate) async fn read_columns(
    db: &Db,
) -> Result<BTreeMap<String, Vec<TargetColumn>>, StoreError> {
    const COLUMNS: &str = "
        {postgres select table_name::text, column_name::text, data_type::text
          from information_schema.columns
         where table_schema = current_schema()
         order by table_name, ordinal_position}
        {sqlite select tables.name, columns.name, lower(columns.type)
          from sqlite_schema as tables, pragma_table_info(tables.name) as columns
         where tables.type = 'table'
         order by tables.name, columns.cid}";
    let mut columns: BTreeMap<String, Vec<TargetColumn>> = BTreeMap::new();
    for mut row in db.rows(COLUMNS, &[]).await? {
        let (table, name) = (row.text()?, row.text()?);
        let kind = match row.text()?.as_str() {
            "text" => ColumnKind::Text,
            "bytea" | "blob" => ColumnKind::Blob,
            _ => ColumnKind::Int,
        };
        columns.entry(table).or_default().push(TargetColumn { name, kind });
    }
    Ok(columns)
}
