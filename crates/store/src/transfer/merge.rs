//! Subscriptions that are imported to a resource whose log differs from that in the file.
//!
//! The database has numbered the entries of the resource by itself, so a cursor of the file means nothing
//! in its log. The cursor is set before the first record that the subscriber has not received: one that
//! the file has behind the cursor, or that the file does not have and that is newer than the
//! subscription. Later records may repeat what was received; none is missing.

use std::collections::{BTreeMap, HashMap};

use crate::Db;
use crate::copy::copied_value::number;
use crate::copy::target::TargetColumn;
use crate::engine::sql::{Value, params};
use feedgate_core::store::StoreError;

/// A record: its number, and the key of its entry.
type LogRecord = (i64, Vec<u8>);

/// The logs in the file of resources that the database has by itself.
pub(super) struct SourceLogs {
    records: HashMap<i64, Vec<LogRecord>>,
}

/// A record of the database.
struct TargetRecord {
    seq: i64,
    key: Vec<u8>,
    appended_at: i64,
}

impl SourceLogs {
    /// Returns no logs.
    pub(super) fn new() -> SourceLogs {
        SourceLogs { records: HashMap::new() }
    }

    /// Remembers a record of the file.
    pub(super) fn add(&mut self, columns: &[TargetColumn], values: &[Value]) {
        let value = |name: &str| value(columns, values, name);
        let numbers = (value("resource_id").and_then(number), value("seq").and_then(number));
        if let ((Some(resource), Some(seq)), Some(Value::Blob(key))) =
            (numbers, value("entry_hash"))
        {
            self.records.entry(resource).or_default().push((seq, key.clone()));
        }
    }

    /// Moves the cursor of a subscription from the log in the file, of the resource `old`, to that of
    /// the resource `new`.
    pub(super) async fn move_cursor(
        &mut self,
        db: &Db,
        columns: &[TargetColumn],
        (old, new): (i64, i64),
        values: &mut [Value],
    ) -> Result<(), StoreError> {
        const HEADS: &str =
            "select head, body_version, status_version from resources where id = $1";
        const LOG: &str = "
            select seq, entry_hash, appended_at from records where resource_id = $1 order by seq";
        let rows = db.rows(HEADS, params![new]).await?;
        let Some(mut heads) = rows.into_iter().next() else { return Ok(()) };
        let (head, body_version, status_version) = (heads.int()?, heads.int()?, heads.int()?);
        let int = |name: &str| value(columns, values, name).and_then(number).unwrap_or_default();
        let (cursor, created_at) = (int("cursor"), int("created_at"));
        let is_raw =
            matches!(value(columns, values, "format"), Some(Value::Text(text)) if text == "raw");
        let cursor = match is_raw {
            // The newest body is sent once more, because its predecessors are not stored.
            true => (body_version - 1).max(0),
            false => {
                let mut log = Vec::new();
                for mut row in db.rows(LOG, params![new]).await? {
                    let (seq, key, appended_at) = (row.int()?, row.blob()?, row.int()?);
                    log.push(TargetRecord { seq, key, appended_at });
                }
                let source = self.records.get(&old).map_or(&[][..], Vec::as_slice);
                moved_cursor(source, cursor, created_at, &log).unwrap_or(head)
            }
        };
        let changed = [
            ("cursor", Value::Int(cursor)),
            ("begun_after", Value::Int(if is_raw { head } else { cursor })),
            ("acknowledged_status", Value::Int(status_version)),
            ("replayed_upto", Value::Int(0)),
            ("failed_upto", Value::Int(0)),
            ("retry_at", Value::Null),
        ];
        for (name, new) in changed {
            if let Some(place) = columns.iter().position(|column| column.name == name) {
                values[place] = new;
            }
        }
        Ok(())
    }
}

fn value<'v>(columns: &[TargetColumn], values: &'v [Value], name: &str) -> Option<&'v Value> {
    values.get(columns.iter().position(|column| column.name == name)?)
}

/// Returns the number before the first record of `log` that a subscriber has not received whose
/// cursor in the log `source` is `cursor`; `None` if it has received all of them.
fn moved_cursor(
    source: &[LogRecord],
    cursor: i64,
    created_at: i64,
    log: &[TargetRecord],
) -> Option<i64> {
    // How many records of an entry were received, and how many are owed.
    let (mut received, mut owed) = (BTreeMap::new(), BTreeMap::new());
    for (seq, key) in source {
        let counts = if *seq <= cursor { &mut received } else { &mut owed };
        *counts.entry(key.as_slice()).or_insert(0) += 1;
    }
    let first = log.iter().find(|record| {
        if let Some(count) = received.get_mut(record.key.as_slice()).filter(|count| **count > 0) {
            *count -= 1;
            return false;
        }
        owed.contains_key(record.key.as_slice()) || record.appended_at >= created_at
    });
    first.map(|record| record.seq - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_stands_before_the_first_record_that_was_not_received() {
        let log = |keys: &str| -> Vec<TargetRecord> {
            let keys = (1..).zip(keys.bytes());
            keys.map(|(seq, key)| TargetRecord { seq, key: vec![key], appended_at: seq }).collect()
        };
        #[rustfmt::skip]
        let cases = [
            // source, cursor, created at, target, want
            ("abc",  3, 0, "abc",  None),
            ("abc",  3, 0, "abcd", Some(3)),
            ("abc",  2, 0, "abc",  Some(2)),
            ("abc",  2, 9, "abc",  Some(2)),
            ("abc",  3, 0, "bca",  None),
            ("abc",  2, 0, "cab",  Some(0)),
            ("aba",  2, 0, "aba",  Some(2)),
            ("bc",   2, 2, "abc",  None),
            ("",     0, 3, "abc",  Some(2)),
            ("",     0, 9, "abc",  None),
        ];
        for (source, cursor, created_at, target, want) in cases {
            let source: Vec<LogRecord> =
                (1..).zip(source.bytes()).map(|(seq, key)| (seq, vec![key])).collect();
            let moved = moved_cursor(&source, cursor, created_at, &log(target));
            assert_eq!(moved, want, "{source:?} {cursor} {created_at} {target}");
        }
    }
}
