//! An explanation as JSON: `feedgate normalize --explain`.

use serde_json::{Map, Value, json};

use super::Explanation;
use super::fields::{self, Field};
use super::lines::Lines;
use crate::parse::Place;
use crate::repair::Repair;

/// The whole of it.
pub(super) fn whole(explained: &Explanation) -> Value {
    let told = Told { explained, lines: Lines::of(explained.trace.text()) };
    let feed = &explained.feed;
    let entries = feed.entries.iter().enumerate().map(|(index, entry)| {
        json!({
            "index": index,
            "id": entry.id,
            "from": told.from(explained.trace.place(entry.mark)),
            "fields": told.fields(&fields::of_entry(entry)),
        })
    });
    json!({
        "format": feed.format,
        "generated_ids": feed.has_generated_ids(),
        "bozo_rank": explained.bozo_rank(),
        "moved_to": feed.moved_to,
        "feed": told.fields(&fields::of_feed(feed)),
        "entries": entries.collect::<Vec<_>>(),
        "repairs": feed.repairs.iter().map(|repair| told.repair(repair)).collect::<Vec<_>>(),
    })
}

struct Told<'e> {
    explained: &'e Explanation,
    lines: Lines<'e>,
}

impl Told<'_> {
    fn fields(&self, fields: &[Field]) -> Value {
        let told = fields.iter().map(|field| (field.shown.clone(), self.field(field)));
        let mut told: Map<String, Value> = told.collect();
        // Atom requires a title, so an empty one is written where there is none.
        told.entry("title")
            .or_insert_with(|| json!({ "steps": [{ "pass": "write", "how": "left_empty" }] }));
        Value::Object(told)
    }

    /// Where a field came from, if it is of the document, and what was done to it.
    fn field(&self, field: &Field) -> Value {
        let mut told = Map::new();
        let trace = &self.explained.trace;
        let place = match field.scalar {
            Some(name) => trace.field(field.owner, name),
            None => trace.place(field.mark),
        };
        // Of a source that is one line, that line is all there is.
        let line = || trace.field(field.entry, "source").filter(|_| field.is_of_source());
        let place = place.or_else(line);
        if let Some(place) = place {
            told.insert("from".to_owned(), self.from(Some(place)));
        }
        let steps = self.explained.steps(field).iter();
        let steps: Vec<Value> =
            steps.map(|step| json!({ "pass": step.pass, "how": step.how })).collect();
        if !steps.is_empty() {
            told.insert("steps".to_owned(), steps.into());
        }
        Value::Object(told)
    }

    fn from(&self, place: Option<&Place>) -> Value {
        let Some(place) = place else { return Value::Null };
        let mut told = json!({ "name": place.name, "path": place.path });
        self.locate(&mut told, place.byte);
        told
    }

    /// What was mended, and where: at a place in the text, or in what is at a place.
    fn repair(&self, repair: &Repair) -> Value {
        let mut told = json!({ "code": repair.code.as_str(), "detail": repair.detail });
        self.locate(&mut told, repair.byte);
        if let Some(place) = self.explained.trace.place(repair.mark) {
            told["in"] = self.from(Some(place));
        }
        told
    }

    fn locate(&self, told: &mut Value, byte: Option<usize>) {
        if let Some(byte) = byte {
            let position = self.lines.position(byte);
            told["line"] = position.line.into();
            told["column"] = position.column.into();
            told["byte"] = position.byte.into();
        }
    }
}
