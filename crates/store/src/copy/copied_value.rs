//! The value of a column of a row that is copied.

use crate::engine::sql::Value;

/// Returns the number in a column that is one.
pub(crate) fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        _ => None,
    }
}
