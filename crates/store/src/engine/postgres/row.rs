//! Conversion of rows and values of PostgreSQL.

use std::error::Error;

use bytes::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use crate::engine::error::store_error;
use crate::engine::sql::{Row, Value, storable, storable_list};
use feedgate_core::ports::StoreError;

/// Converts a row of PostgreSQL.
pub(crate) fn row(row: &tokio_postgres::Row) -> Result<Row, StoreError> {
    let value = |n: usize| {
        let column = row.columns()[n].type_();
        Ok::<_, StoreError>(match *column {
            Type::INT8 => row.try_get::<_, Option<i64>>(n).map_err(store_error)?.into(),
            Type::INT4 => {
                row.try_get::<_, Option<i32>>(n).map_err(store_error)?.map(i64::from).into()
            }
            Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(n).map_err(store_error)?.into(),
            Type::VOID => Value::Null,
            _ => row.try_get::<_, Option<String>>(n).map_err(store_error)?.into(),
        })
    };
    let mut values = Vec::with_capacity(row.len());
    for n in 0..row.len() {
        values.push(value(n)?);
    }
    Ok(Row::new(values))
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
