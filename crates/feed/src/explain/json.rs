//! The JSON form of an explanation, printed by `feedgate normalize --explain`.

use serde_json::{Map, Value, json};

use super::Explanation;
use super::fields::{self, Field};
use super::lines::LineIndex;
use crate::parse::SourceLocation;
use crate::repair::{self, Repair};

/// Returns the whole explanation.
pub(super) fn explanation(explained: &Explanation) -> Value {
    let writer = Writer { explained, lines: LineIndex::new(explained.trace.text()) };
    let feed = &explained.feed;
    let entries = feed.entries.iter().enumerate().map(|(index, entry)| {
        json!({
            "index": index,
            "id": entry.id,
            "from": writer.from(explained.trace.item(entry.trace_id)),
            "fields": writer.fields(&fields::of_entry(entry)),
        })
    });
    let [repairs, adaptations] = repair::by_kind(&feed.repairs).map(|(_, found)| -> Vec<Value> {
        found.into_iter().map(|repair| writer.repair(repair)).collect()
    });
    json!({
        "format": feed.format.as_str(),
        "generated_ids": feed.has_generated_ids(),
        "bozo_rank": explained.bozo_rank(),
        "moved_to": feed.moved_to,
        "feed": writer.fields(&fields::of_feed(feed)),
        "entries": entries.collect::<Vec<_>>(),
        "repairs": repairs,
        "adaptations": adaptations,
    })
}

struct Writer<'e> {
    explained: &'e Explanation,
    lines: LineIndex<'e>,
}

impl Writer<'_> {
    fn fields(&self, fields: &[Field]) -> Value {
        let described = fields.iter().map(|field| (field.label.clone(), self.field(field)));
        let mut object: Map<String, Value> = described.collect();
        // Atom requires a title, so an empty title is written if the feed has none.
        object
            .entry("title")
            .or_insert_with(|| json!({ "steps": [{ "pass": "write", "how": "left_empty" }] }));
        Value::Object(object)
    }

    /// Returns the origin of a field, if it came from the document, and the steps that changed it.
    fn field(&self, field: &Field) -> Value {
        let mut object = Map::new();
        let trace = &self.explained.trace;
        let place = match field.scalar {
            Some(name) => trace.field(field.owner, name),
            None => trace.item(field.trace_id),
        };
        // A one-line `source` has no elements, so all of its fields come from that line.
        let line = || trace.field(field.entry, "source").filter(|_| field.is_of_source());
        let place = place.or_else(line);
        if let Some(place) = place {
            object.insert("from".to_owned(), self.from(Some(place)));
        }
        let steps = self.explained.steps(field).iter();
        let steps: Vec<Value> =
            steps.map(|step| json!({ "pass": step.pass, "how": step.how })).collect();
        if !steps.is_empty() {
            object.insert("steps".to_owned(), steps.into());
        }
        Value::Object(object)
    }

    fn from(&self, place: Option<&SourceLocation>) -> Value {
        let Some(place) = place else { return Value::Null };
        let mut object = json!({ "name": place.name, "path": place.path });
        self.locate(&mut object, place.byte);
        object
    }

    /// Returns the code, the detail and the position of a repair.
    fn repair(&self, repair: &Repair) -> Value {
        let mut object = json!({ "code": repair.code.as_str(), "detail": repair.detail });
        self.locate(&mut object, repair.byte);
        if let Some(place) = self.explained.trace.item(repair.trace_id) {
            object["in"] = self.from(Some(place));
        }
        object
    }

    fn locate(&self, object: &mut Value, byte: Option<usize>) {
        if let Some(byte) = byte {
            let position = self.lines.position(byte);
            object["line"] = position.line.into();
            object["column"] = position.column.into();
            object["byte"] = position.byte.into();
        }
    }
}
