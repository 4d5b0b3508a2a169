//! A row that a statement returned.

use std::sync::Arc;
use std::vec::IntoIter;

use chrono::{DateTime, Utc};

use crate::engine::envelope::{RowIdentity, SecretKeys};
use crate::engine::postgres::row::PostgresRow;
use crate::engine::sql::{Value, parse_json};
use feedgate_core::store::StoreError;

/// A row, read from left to right.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    columns: Columns,
    /// The keys of encrypted columns; `None` if there are none.
    keys: Option<Arc<SecretKeys>>,
}

/// The columns that were not read yet.
#[derive(Clone, Debug)]
enum Columns {
    Values(IntoIter<Value>),
    Postgres(PostgresRow),
}

impl From<Vec<Value>> for Row {
    fn from(values: Vec<Value>) -> Row {
        Row { columns: Columns::Values(values.into_iter()), keys: None }
    }
}

impl From<PostgresRow> for Row {
    fn from(row: PostgresRow) -> Row {
        Row { columns: Columns::Postgres(row), keys: None }
    }
}

impl Row {
    /// Returns the row with the keys of its encrypted columns.
    pub(crate) fn with_keys(self, keys: Option<Arc<SecretKeys>>) -> Row {
        Row { keys, ..self }
    }

    /// Returns the columns that were not read yet.
    pub(crate) fn into_values(self) -> Result<Vec<Value>, StoreError> {
        match self.columns {
            Columns::Values(values) => Ok(values.collect()),
            Columns::Postgres(row) => row.collect(),
        }
    }

    fn next(&mut self) -> Result<Value, StoreError> {
        match &mut self.columns {
            Columns::Values(values) => Ok(values.next().unwrap_or(Value::Null)),
            Columns::Postgres(row) => row.next().unwrap_or(Ok(Value::Null)),
        }
    }

    /// Returns the next column, a number.
    pub(crate) fn int(&mut self) -> Result<i64, StoreError> {
        self.opt_int()?.ok_or_else(|| unlike("a number", &Value::Null))
    }

    /// Returns the next column, a number or null.
    pub(crate) fn opt_int(&mut self) -> Result<Option<i64>, StoreError> {
        match self.next()? {
            Value::Null => Ok(None),
            Value::Int(number) => Ok(Some(number)),
            other => Err(unlike("a number", &other)),
        }
    }

    /// Returns the next column, a number that is never negative.
    pub(crate) fn count(&mut self) -> Result<u64, StoreError> {
        let number = self.int()?;
        u64::try_from(number)
            .map_err(|_| StoreError::Corrupt(format!("{number} is not a valid count")))
    }

    /// Returns the next column, a small number that is never negative.
    pub(crate) fn small(&mut self) -> Result<u32, StoreError> {
        let number = self.int()?;
        u32::try_from(number)
            .map_err(|_| StoreError::Corrupt(format!("{number} is not a valid count")))
    }

    /// Returns the next column, a time.
    pub(crate) fn time(&mut self) -> Result<DateTime<Utc>, StoreError> {
        self.opt_time()?.ok_or_else(|| unlike("a time", &Value::Null))
    }

    /// Returns the next column, a time or null.
    pub(crate) fn opt_time(&mut self) -> Result<Option<DateTime<Utc>>, StoreError> {
        let Some(micros) = self.opt_int()? else { return Ok(None) };
        let time = DateTime::from_timestamp_micros(micros);
        time.map(Some).ok_or_else(|| StoreError::Corrupt(format!("{micros} is not a valid time")))
    }

    /// Returns the next column, a text.
    pub(crate) fn text(&mut self) -> Result<String, StoreError> {
        self.opt_text()?.ok_or_else(|| unlike("a text", &Value::Null))
    }

    /// Returns the next column, a text or null.
    pub(crate) fn opt_text(&mut self) -> Result<Option<String>, StoreError> {
        match self.next()? {
            Value::Null => Ok(None),
            Value::Text(text) => Ok(Some(text)),
            other => Err(unlike("a text", &other)),
        }
    }

    /// Returns the next column, a secret or null. `column` is `TABLE.COLUMN`, and `row` returns what
    /// identifies the row, as when the secret was stored. Few rows have a secret.
    pub(crate) fn opt_secret(
        &mut self,
        column: &'static str,
        row: impl FnOnce() -> RowIdentity,
    ) -> Result<Option<String>, StoreError> {
        let Some(stored) = self.opt_text()? else { return Ok(None) };
        let opened = match &self.keys {
            Some(keys) => keys.open(column, &row(), stored),
            None => SecretKeys::default().open(column, &row(), stored),
        };
        opened.map(Some)
    }

    /// Returns the next column, bytes.
    pub(crate) fn blob(&mut self) -> Result<Vec<u8>, StoreError> {
        match self.next()? {
            Value::Blob(bytes) => Ok(bytes),
            other => Err(unlike("bytes", &other)),
        }
    }

    /// Returns the next column, a word that `read` accepts.
    pub(crate) fn word<T>(&mut self, read: fn(&str) -> Option<T>) -> Result<T, StoreError> {
        let parse = |word: &str| {
            read(word).ok_or_else(|| StoreError::Corrupt(format!("unknown word {word:?}")))
        };
        match &mut self.columns {
            Columns::Values(_) => parse(&self.text()?),
            Columns::Postgres(row) => {
                row.next_text()?.map_or_else(|| Err(unlike("a text", &Value::Null)), parse)
            }
        }
    }

    /// Returns the next column, a JSON document that this program wrote.
    pub(crate) fn json<T: serde::de::DeserializeOwned>(&mut self) -> Result<T, StoreError> {
        parse_json(&self.text()?)
    }
}

fn unlike(wanted: &str, found: &Value) -> StoreError {
    let kind = match found {
        Value::Null => "null",
        Value::Int(_) => "a number",
        Value::Text(_) => "a text",
        Value::Blob(_) => "bytes",
        Value::Ints(_)
        | Value::Texts(_)
        | Value::Blobs(_)
        | Value::OptInts(_)
        | Value::OptTexts(_)
        | Value::OptBlobs(_) => "a list",
    };
    StoreError::Corrupt(format!("expected {wanted}, but found {kind}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_is_not_ours_is_corrupt() {
        let row = || Row::from(vec![Value::Text("x".to_owned())]);
        assert!(matches!(row().int(), Err(StoreError::Corrupt(_))));
        assert!(matches!(row().blob(), Err(StoreError::Corrupt(_))));
        assert!(matches!(row().json::<Vec<u8>>(), Err(StoreError::Corrupt(_))));
        assert!(matches!(Row::from(vec![]).text(), Err(StoreError::Corrupt(_))));
    }
}
