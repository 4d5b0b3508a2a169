//! Statements on one connection of SQLite: binding values, reading rows.

use std::borrow::Cow;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Statement};

use crate::engine::error::store_error;
use crate::engine::row::Row;
use crate::engine::sql::{self, Columns, Value};
use feedgate_core::store::StoreError;

/// Passes each row of a statement to `visit`.
pub(crate) fn query(
    conn: &Connection,
    sql: &str,
    params: &[Value],
    columns: &Columns<'_>,
    mut visit: impl FnMut(Row),
) -> Result<(), StoreError> {
    let mut statement =
        conn.prepare_cached(&sql::sqlite(sql, params.len() + 1, columns)).map_err(store_error)?;
    let width = statement.column_count();
    for n in 0..turns(columns) {
        bind(&mut statement, params, columns, n)?;
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next().map_err(store_error)? {
            let mut values = Vec::with_capacity(width);
            for column in 0..width {
                values.push(value(row.get_ref(column).map_err(store_error)?)?);
            }
            visit(Row::from(values));
        }
    }
    Ok(())
}

/// Runs a statement. Returns how many rows it changed.
pub(crate) fn execute(
    conn: &Connection,
    sql: &str,
    params: &[Value],
    columns: &Columns<'_>,
) -> Result<u64, StoreError> {
    let mut statement =
        conn.prepare_cached(&sql::sqlite(sql, params.len() + 1, columns)).map_err(store_error)?;
    let mut changed = 0;
    for n in 0..turns(columns) {
        bind(&mut statement, params, columns, n)?;
        changed += statement.raw_execute().map_err(store_error)? as u64;
    }
    Ok(changed)
}

/// Returns how often a statement runs: once, or once for each of its `{rows}`.
fn turns(columns: &Columns<'_>) -> usize {
    columns.first().map_or(1, |(_, list)| list.len())
}

fn bind(
    statement: &mut Statement<'_>,
    params: &[Value],
    columns: &Columns<'_>,
    n: usize,
) -> Result<(), StoreError> {
    for (at, param) in params.iter().enumerate() {
        statement.raw_bind_parameter(at + 1, param).map_err(store_error)?;
    }
    for (at, (_, list)) in columns.iter().enumerate() {
        statement
            .raw_bind_parameter(params.len() + at + 1, nth(list, n).map_err(store_error)?)
            .map_err(store_error)?;
    }
    Ok(())
}

/// SQL's null.
const NULL: ToSqlOutput<'_> = ToSqlOutput::Borrowed(ValueRef::Null);

/// Returns one value of a list.
fn nth(list: &Value, n: usize) -> rusqlite::Result<ToSqlOutput<'_>> {
    Ok(match list {
        Value::Ints(list) => ToSqlOutput::from(list[n]),
        Value::Texts(list) => text(&list[n]),
        Value::Blobs(list) => ToSqlOutput::from(list[n].as_slice()),
        Value::OptInts(list) => list[n].map_or(NULL, ToSqlOutput::from),
        Value::OptTexts(list) => list[n].as_deref().map_or(NULL, text),
        Value::OptBlobs(list) => list[n].as_deref().map_or(NULL, ToSqlOutput::from),
        single => rusqlite::ToSql::to_sql(single)?,
    })
}

fn text(text: &str) -> ToSqlOutput<'_> {
    match sql::storable(text) {
        Cow::Borrowed(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        Cow::Owned(text) => ToSqlOutput::Owned(text.into()),
    }
}

fn value(found: ValueRef<'_>) -> Result<Value, StoreError> {
    Ok(match found {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Int(number),
        ValueRef::Real(_) => return Err(StoreError::Corrupt("a fraction".to_owned())),
        ValueRef::Text(text) => match std::str::from_utf8(text) {
            // U+0000 is never stored (`sql::storable`). A disk that lost a block reads zeros.
            Ok(text) if text.contains('\0') => {
                return Err(StoreError::Corrupt("a text contains U+0000".to_owned()));
            }
            Ok(text) => Value::Text(text.to_owned()),
            Err(err) => return Err(StoreError::Corrupt(err.to_string())),
        },
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
    })
}

impl rusqlite::ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        use rusqlite::types::Value as Owned;
        Ok(match self {
            Value::Null => ToSqlOutput::Owned(Owned::Null),
            Value::Int(number) => ToSqlOutput::Owned(Owned::Integer(*number)),
            Value::Text(value) => text(value),
            Value::Blob(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
            Value::Ints(list) => ToSqlOutput::Owned(Owned::Text(sql::json(list))),
            Value::Texts(list) => {
                ToSqlOutput::Owned(Owned::Text(sql::json(&sql::storable_list(list))))
            }
            Value::Blobs(list) => {
                let list = list.iter().map(hex::encode).collect::<Vec<_>>();
                ToSqlOutput::Owned(Owned::Text(sql::json(&list)))
            }
            // These occur in `{rows}` only, whose values are bound one by one.
            Value::OptInts(_) | Value::OptTexts(_) | Value::OptBlobs(_) => NULL,
        })
    }
}
