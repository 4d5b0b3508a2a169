//! The values in JSON feeds, whatever type they have.

use serde_json::{Map, Value};

use crate::parse::faults::Faults;
pub(super) use crate::parse::json::scalar;
use crate::parse::mend::TextRepair;
use crate::repair::Repair;

/// The members in which programs wrap a text or an address.
const WRAPPED: [&str; 8] = ["url", "href", "rendered", "value", "text", "name", "label", "term"];

/// Repairs every text in `value`, and lists the repairs.
pub(super) fn mend_texts(value: &mut Value, repairs: &mut Vec<Repair>) {
    let mut repair = TextRepair::default();
    for_each_text(value, |text| repair.examine(text));
    if !repair.is_needed() {
        return;
    }
    let mut faults = Faults::default();
    for_each_text(value, |text| {
        if let Some(sound) = repair.mend(text, &mut faults) {
            *text = sound;
        }
    });
    faults.report(repairs);
}

fn for_each_text(value: &mut Value, mut visit: impl FnMut(&mut String)) {
    let mut values = vec![value];
    while let Some(value) = values.pop() {
        match value {
            Value::String(text) => visit(text),
            Value::Array(items) => values.extend(items),
            Value::Object(members) => values.extend(members.values_mut()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// Returns the text of a field, if it has any.
pub(super) fn string(object: &Map<String, Value>, name: &str) -> Option<String> {
    let value = object.get(name)?;
    scalar(value).or_else(|| inner_text(value))
}

/// Returns the text in an object, or in the first value of an array, where a text is expected.
pub(super) fn inner_text(value: &Value) -> Option<String> {
    let inner = match value {
        Value::Array(values) => values.first()?,
        other => other,
    };
    match inner {
        Value::Object(object) => WRAPPED.iter().find_map(|name| scalar(object.get(*name)?)),
        other => scalar(other),
    }
}

/// Returns the values of a field. A single value counts as a list of one, and items whose keys are
/// numbers, as programs write lists with gaps, as a list.
pub(super) fn list<'o>(
    object: &'o Map<String, Value>,
    name: &str,
) -> impl Iterator<Item = &'o Value> {
    let is_number = |key: &String| key.bytes().all(|byte| byte.is_ascii_digit());
    let (values, members) = match object.get(name) {
        Some(Value::Array(values)) => (&values[..], None),
        Some(Value::Object(members)) if name == "items" && members.keys().all(is_number) => {
            (&[][..], Some(members.values()))
        }
        Some(value) => (std::slice::from_ref(value), None),
        None => (&[][..], None),
    };
    values.iter().chain(members.into_iter().flatten())
}
