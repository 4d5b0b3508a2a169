//! How far a copy has come: a property of both databases.
//!
//! A copy begins with a random mark, which is stored in the source and, with the progress, in the
//! target. What always holds:
//!
//! * A gateway that opens the source removes the mark, so a copy never continues from a source that
//!   has changed.
//! * A gateway cannot open a target whose copy is not complete.

use serde::{Deserialize, Serialize};

use crate::Db;
use crate::copy::numbering::Numbering;
use crate::engine::sql::{self, Value, params};
use feedgate_core::store::StoreError;

/// The state of a copy, as the target stores it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CopyState {
    /// The mark that the source has too.
    pub(crate) mark: String,
    /// How rows are numbered in the target.
    pub(crate) numbering: Numbering,
    /// Where the copy continues; `None` at its beginning.
    pub(crate) position: Option<CopyPosition>,
    /// Whether everything has been copied.
    pub(crate) is_complete: bool,
}

/// The last row that was copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CopyPosition {
    /// The table of the row.
    pub(crate) table: String,
    /// The place of its schema among those of the source that are read for the table.
    pub(crate) schema: usize,
    /// The key of the row; empty: no row of this schema has been copied.
    pub(crate) key: Vec<KeyValue>,
    /// The number of rows of the table that have been copied from all schemas.
    pub(crate) rows: u64,
}

/// A value of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum KeyValue {
    Int(i64),
    Text(String),
    Blob(Vec<u8>),
}

impl KeyValue {
    /// Returns the value of a column that is part of a key, and so is neither null nor a list.
    pub(crate) fn from_column(value: &Value) -> Result<KeyValue, StoreError> {
        match value {
            Value::Int(number) => Ok(KeyValue::Int(*number)),
            Value::Text(text) => Ok(KeyValue::Text(text.clone())),
            Value::Blob(bytes) => Ok(KeyValue::Blob(bytes.clone())),
            _ => Err(StoreError::Corrupt("a key without a value".to_owned())),
        }
    }

    /// Returns the value as a parameter.
    pub(crate) fn to_param(&self) -> Value {
        match self {
            KeyValue::Int(number) => Value::Int(*number),
            KeyValue::Text(text) => Value::Text(text.clone()),
            KeyValue::Blob(bytes) => Value::Blob(bytes.clone()),
        }
    }
}

impl CopyState {
    /// Returns the state at the beginning of a copy.
    pub(crate) fn new(numbering: Numbering) -> Result<CopyState, StoreError> {
        let mut mark = [0; 16];
        getrandom::fill(&mut mark).map_err(|err| StoreError::Database(Box::new(err)))?;
        Ok(CopyState { mark: hex::encode(mark), numbering, position: None, is_complete: false })
    }

    /// Reads the state in a target; `None` if no copy was begun.
    pub(crate) async fn read(target: &Db) -> Result<Option<CopyState>, StoreError> {
        let state = read_property(target, STATE).await?;
        state.map(|state| sql::parse_json(&state)).transpose()
    }

    /// Returns the state as the target stores it.
    pub(crate) fn to_property(&self) -> String {
        sql::json(self)
    }
}

/// The property of the target.
pub(crate) const STATE: &str = "copy";
/// The property of the source.
const MARK: &str = "copy_mark";

/// Returns the mark of the last copy of this source, if it was not opened since.
pub(crate) async fn read_mark(source: &Db) -> Result<Option<String>, StoreError> {
    read_property(source, MARK).await
}

/// Stores the mark of a copy in its source.
pub(crate) async fn save_mark(source: &Db, mark: &str) -> Result<(), StoreError> {
    let mark = mark.to_owned();
    let saved = source.write(move |tx| {
        Box::pin(async move { tx.execute(SAVE_PROPERTY, params![MARK, mark]).await })
    });
    saved.await.map(drop)
}

/// Stores a property of a database, in place of an older one.
pub(crate) const SAVE_PROPERTY: &str = "
    insert into database_properties (name, value) values ($1, $2)
        on conflict (name) do update set value = excluded.value";

/// Returns a property of a database.
pub(crate) async fn read_property(db: &Db, name: &str) -> Result<Option<String>, StoreError> {
    const PROPERTY: &str = "select value from database_properties where name = $1";
    let rows = db.rows(PROPERTY, params![name]).await?;
    rows.into_iter().next().map(|mut row| row.text()).transpose()
}

/// Lets a gateway use a database, unless it is the target of a copy that is not complete. A copy
/// that was made of it before cannot be continued afterwards.
pub(crate) async fn admit_gateway(db: &Db) -> Result<(), StoreError> {
    const UNMARK: &str = "delete from database_properties where name = $1";
    if CopyState::read(db).await?.is_some_and(|state| !state.is_complete) {
        return Err(StoreError::CopyUnfinished);
    }
    if read_mark(db).await?.is_some() {
        let unmarked =
            db.write(|tx| Box::pin(async move { tx.execute(UNMARK, params![MARK]).await }));
        unmarked.await?;
    }
    Ok(())
}
