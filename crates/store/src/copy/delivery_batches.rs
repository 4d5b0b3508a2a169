//! Batches of deliveries, which are not copied as such: the numbers of their members change.

use crate::delivery::batch_members::Members;
use crate::engine::sql::Value;
use feedgate_core::ports::StoreError;

/// Returns rows of `deliveries` with a row for each member of a batch in the place of the batch.
pub(super) fn separate_members(
    columns: &[String],
    rows: Vec<Vec<Value>>,
) -> Result<Vec<Vec<Value>>, StoreError> {
    let members = columns.iter().position(|column| column == "members");
    let mut separate = Vec::with_capacity(rows.len());
    for row in rows {
        match members.and_then(|members| row.get(members)) {
            Some(Value::Text(text)) => {
                let members = Members::parse(text)?;
                separate
                    .extend(members.numbers().iter().map(|id| row_of_member(columns, &row, *id)));
            }
            _ => separate.push(row),
        }
    }
    Ok(separate)
}

/// Returns the row of a member with this number, instead of that of its batch.
fn row_of_member(columns: &[String], batch: &[Value], id: i64) -> Vec<Value> {
    let values = columns.iter().zip(batch).map(|(column, value)| match column.as_str() {
        "subscription_id" => Value::Int(id),
        "size" => Value::Int(1),
        "first_member" | "last_member" | "members" => Value::Null,
        _ => value.clone(),
    });
    values.collect()
}
