//! An entry as the REST API shows it: its place in the log of its feed, and the item as in notifications.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;

use feedgate_core::record::{Record, RecordKind, Seq};
use feedgate_core::resource::{Resource, ResourceId};
use feedgate_core::stored_entry::read_records;
use feedgate_feed::render::json;

/// An entry.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EntryView {
    id: String,
    feed: String,
    number: i64,
    kind: &'static str,
    received_at: DateTime<Utc>,
    item: Value,
}

/// Returns the entry of a record in JSON.
pub(super) fn entry(resource: &Resource, record: &Record) -> Value {
    let displayed = EntryView {
        id: format!("{}-{}", resource.id, record.seq),
        feed: resource.id.to_string(),
        number: record.seq.0,
        kind: record.kind.as_str(),
        received_at: record.at,
        item: item(resource, record),
    };
    serde_json::to_value(displayed).expect("an entry is a struct of plain values")
}

/// Returns the item as a notification in JSON has it. The deletion of an entry has its id alone.
fn item(resource: &Resource, record: &Record) -> Value {
    let of_deletion = || serde_json::json!({ "id": record.entry_id });
    if record.kind == RecordKind::Deleted {
        return of_deletion();
    }
    let feed = read_records(resource, std::slice::from_ref(record));
    let mut document = json::document(&feed, &resource.topic.displayed(), resource.status.report());
    match document["items"].get_mut(0) {
        Some(item) => item.take(),
        None => of_deletion(),
    }
}

/// Parses the id of an entry: the id of its feed, a hyphen, and its number.
pub(super) fn parse_id(text: &str) -> Option<(ResourceId, Seq)> {
    let number = |text: &str| {
        let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_plain.then(|| text.parse().ok()).flatten()
    };
    let (feed, seq) = text.split_once('-')?;
    Some((ResourceId(number(feed)?), Seq(number(seq)?)))
}
