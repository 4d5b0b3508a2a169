//! Conversion of rows and values of PostgreSQL.

use std::error::Error;

use bytes::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use crate::engine::error::store_error;
use crate::engine::sql::{Value, storable, storable_list};
use feedgate_core::store::StoreError;

/// A row, whose columns are converted as they are read, from left to right.
#[derive(Clone, Debug)]
pub(crate) struct PostgresRow {
    row: tokio_postgres::Row,
    next: usize,
}

impl From<tokio_postgres::Row> for PostgresRow {
    fn from(row: tokio_postgres::Row) -> PostgresRow {
        PostgresRow { row, next: 0 }
    }
}

impl PostgresRow {
    /// Returns the next column, which must be a text or null.
    pub(crate) fn next_text(&mut self) -> Result<Option<&str>, StoreError> {
        let text = self.row.try_get(self.next).map_err(store_error)?;
        self.next += 1;
        Ok(text)
    }
}

impl Iterator for PostgresRow {
    type Item = Result<Value, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (row, n) = (&self.row, self.next);
        let value = match *row.columns().get(n)?.type_() {
            Type::INT8 => row.try_get::<_, Option<i64>>(n).map(Value::from),
            Type::INT4 => row.try_get::<_, Option<i32>>(n).map(|it| it.map(i64::from).into()),
            Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(n).map(Value::from),
            Type::VOID => Ok(Value::Null),
            _ => row.try_get::<_, Option<String>>(n).map(Value::from),
        };
        self.next += 1;
        Some(value.map_err(store_error))
    }
}

impl ToSql for Value {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Value::Null => Ok(IsNull::Yes),
            Value::Int(number) => number.to_sql_checked(ty, out),
            Value::Text(text) => storable(text).to_sql_checked(ty, out),
            Value::Blob(bytes) => bytes.to_sql_checked(ty, out),
            Value::Ints(list) => list.to_sql_checked(ty, out),
            Value::Texts(list) => storable_list(list).to_sql_checked(ty, out),
            Value::Blobs(list) => list.to_sql_checked(ty, out),
            Value::OptInts(list) => list.to_sql_checked(ty, out),
            Value::OptTexts(list) => {
                let texts = list.iter().map(|text| text.as_deref().map(storable));
                texts.collect::<Vec<_>>().to_sql_checked(ty, out)
            }
            Value::OptBlobs(list) => list.to_sql_checked(ty, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true // each kind checks for itself
    }

    to_sql_checked!();
}
