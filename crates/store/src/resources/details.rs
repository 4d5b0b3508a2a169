//! The stored state of a resource: details, which seldom change, and separately the poll times,
//! which every poll changes. A poll that finds nothing writes a narrow row of `resources` only.

use serde::Serialize;
use serde_json::Value;

use crate::engine::row::Row;
use crate::engine::sql::{self, params};
use crate::engine::tx::Tx;
use feedgate_core::poll::Polling;
use feedgate_core::poll_times::PollTimes;
use feedgate_core::resource::ResourceId;
use feedgate_core::status::Status;
use feedgate_core::store::StoreError;

/// Creates the details of a resource, if it has none.
pub(crate) async fn make(tx: &Tx<'_>, id: i64, status: &Status) -> Result<(), StoreError> {
    const MAKE: &str = "
        insert into resource_details (resource_id, status, polling) values ($1, $2, $3)
            on conflict (resource_id) do nothing";
    let params = params![id, json(status), json(&Polling::default())];
    tx.execute(MAKE, params).await.map(drop)
}

/// Reads the status and the polling state of the details, and then the poll times.
pub(crate) fn read(row: &mut Row) -> Result<(Status, Polling), StoreError> {
    let (mut status, mut polling) = (row.json()?, row.json()?);
    let pace = row.text()?;
    if !pace.is_empty() {
        sql::parse_json::<PollTimes>(&pace)?.set(&mut status, &mut polling);
    }
    Ok((status, polling))
}

/// Stores another status in the details of a resource, which is locked.
pub(crate) async fn keep_status(
    tx: &Tx<'_>,
    id: ResourceId,
    status: &Status,
) -> Result<(), StoreError> {
    const KEEP: &str = "update resource_details set status = $2 where resource_id = $1";
    tx.execute(KEEP, params![id.0, json(status)]).await.map(drop)
}

/// Returns the error of a resource that does not exist, or no longer exists.
pub(crate) fn missing(id: ResourceId) -> StoreError {
    StoreError::Corrupt(format!("there is no resource {id}"))
}

/// Serializes a document without its default values: it is written seldom and read before every
/// poll.
pub(crate) fn json<T: Serialize + Default>(document: &T) -> String {
    let value = |document: &T| serde_json::to_value(document).unwrap_or_default();
    match (value(document), value(&T::default())) {
        (Value::Object(mut fields), Value::Object(usual)) => {
            fields.retain(|name, value| usual.get(name) != Some(value));
            sql::json(&fields)
        }
        _ => sql::json(document),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_as_by_default_is_not_written() {
        assert_eq!(json(&Status::default()), "{}");
        let status = Status { title: "Tides".to_owned(), bozo_rank: 0.1, ..Status::default() };
        let written: Value = sql::parse_json(&json(&status)).unwrap();
        assert_eq!(written, serde_json::json!({ "bozo_rank": 0.1, "title": "Tides" }));
        assert_eq!(sql::parse_json::<Status>(&json(&status)).unwrap(), status);
    }
}
