//! A row as an object of JSON. Bytes are an array with one string of hexadecimal digits, so
//! that they differ from texts.

use serde_json::{Map, Value as Json};

use crate::copy::target::{ColumnKind, TargetColumn};
use crate::engine::sql::Value;

/// Returns the columns of a row.
pub(super) fn to_json(columns: &[TargetColumn], row: Vec<Value>) -> Map<String, Json> {
    let values = row.into_iter().map(|value| match value {
        Value::Int(number) => Json::from(number),
        Value::Text(text) => Json::from(text),
        Value::Blob(bytes) => Json::from(vec![hex::encode(bytes)]),
        _ => Json::Null,
    });
    columns.iter().map(|column| column.name.clone()).zip(values).collect()
}

/// Returns the values of the columns of a table. Fails with a sentence if a column is missing, unknown
/// or of another type.
pub(super) fn from_json(
    columns: &[TargetColumn],
    mut row: Map<String, Json>,
) -> Result<Vec<Value>, String> {
    let values = columns.iter().map(|column| {
        let name = &column.name;
        let value = row.remove(name).ok_or_else(|| format!("the column {name} is missing"))?;
        let wrong = || format!("the value of {name} has another type");
        Ok(match (column.kind, value) {
            (_, Json::Null) => Value::Null,
            (ColumnKind::Int, value) => Value::Int(value.as_i64().ok_or_else(wrong)?),
            (ColumnKind::Text, Json::String(text)) => Value::Text(text),
            (ColumnKind::Blob, Json::Array(parts)) => {
                let digits = parts.first().and_then(Json::as_str).ok_or_else(wrong)?;
                Value::Blob(hex::decode(digits).map_err(|_| wrong())?)
            }
            _ => return Err(wrong()),
        })
    });
    let values = values.collect::<Result<Vec<_>, String>>()?;
    match row.keys().next() {
        Some(unknown) => Err(format!("there is no column {unknown}")),
        None => Ok(values),
    }
}
