//! Batches of deliveries, which are not copied as such: the numbers of their members change.

use crate::delivery::batch_members::Members;
use crate::engine::sql::Value;
use feedgate_core::ports::StoreError;

/// Returns a row of `deliveries` for each member of a batch; any other row is returned as it is.
pub(super) fn separate_members(
    columns: &[String],
    row: Vec<Value>,
) -> Result<Vec<Vec<Value>>, StoreError> {
    let place = columns.iter().position(|column| column == "members");
    match place.and_then(|place| row.get(place)) {
        Some(Value::Text(text)) => {
            let members = Members::parse(text)?;
            Ok(members.ids().iter().map(|id| row_of_member(columns, &row, *id)).collect())
        }
        _ => Ok(vec![row]),
    }
}

/// Returns the row of a member with this id, instead of that of its batch.
fn row_of_member(columns: &[String], batch: &[Value], id: i64) -> Vec<Value> {
    let values = columns.iter().zip(batch).map(|(column, value)| match column.as_str() {
        "subscription_id" => Value::Int(id),
        "size" => Value::Int(1),
        "first_member" | "last_member" | "members" => Value::Null,
        _ => value.clone(),
    });
    values.collect()
}
