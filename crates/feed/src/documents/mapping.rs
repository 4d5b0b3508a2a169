//! Mappings, with which the answer of a JSON API is read as a feed (rule S-18).
//!
//! ```text
//! $.data[*];title=$.name;url=$.link;id=$.id;date=$.created_at
//! ```
//!
//! The first path selects the items, the others a value in each of them. A semicolon is part of no
//! JSONPath outside of quotes, so no plain path is a mapping. Paths and documents are untrusted: the
//! cost of all evaluations together is limited, as that of one path is.

use serde_json::{Map, Value};

use super::json_path::{Path, STEPS, TooCostly};

/// The fields of an entry, and the fields of JSON Feed that they become.
#[rustfmt::skip]
const FIELDS: [(&str, &str); 11] = [
    ("id",      "id"),
    ("url",     "url"),
    ("title",   "title"),
    ("content", "content_html"),
    ("text",    "content_text"),
    ("summary", "summary"),
    ("date",    "date_published"),
    ("updated", "date_modified"),
    ("author",  "authors"),
    ("tags",    "tags"),
    ("image",   "image"),
];
/// The fields, as named by JSON Feed, of which an item has at least one.
const TELLING: [&str; 6] = ["id", "url", "title", "content_html", "content_text", "summary"];

/// A parsed mapping.
#[derive(Debug)]
pub(super) struct Mapping {
    items: Path,
    /// The path of the list that has the items.
    list: Option<Path>,
    /// The fields of JSON Feed, each with the path of its value in an item.
    fields: Vec<(&'static str, Path)>,
}

/// Why a document has no items as a mapping says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotMapped {
    /// Nothing is where the items should be.
    NoItems,
    /// No item has any of the fields that tell something.
    NoFields,
    /// Evaluating the paths takes too long, or selects too much.
    TooCostly,
}

impl From<TooCostly> for NotMapped {
    fn from(TooCostly: TooCostly) -> NotMapped {
        NotMapped::TooCostly
    }
}

impl Mapping {
    /// Parses a mapping. Returns `None` for a text that is none: it has no semicolon outside of quotes
    /// and brackets. The error is a part of a sentence.
    pub(super) fn parse(text: &str) -> Option<Result<Mapping, String>> {
        let parts = split_at_semicolons(text);
        let (items, fields) = parts.split_first().filter(|(_, fields)| !fields.is_empty())?;
        Some(Mapping::from_parts(items, fields))
    }

    fn from_parts(items: &str, parts: &[&str]) -> Result<Mapping, String> {
        let path = |name: &str, text: &str| {
            Path::parse(text).map_err(|why| format!("{name} is not a JSONPath: {why}"))
        };
        let mut fields: Vec<(&str, Path)> = Vec::new();
        for part in parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty()) {
            let Some((name, text)) = part.split_once('=') else {
                return Err(format!("{part} is no field: write title=$.name"));
            };
            let name = name.trim();
            let Some((_, field)) = FIELDS.iter().find(|(known, _)| *known == name) else {
                let known = FIELDS.map(|(known, _)| known).join(", ");
                return Err(format!("{name} is no field of an entry, which are {known}"));
            };
            if fields.iter().any(|(held, _)| held == field) {
                return Err(format!("{name} is given twice"));
            }
            fields.push((*field, path(name, text)?));
        }
        if !fields.iter().any(|(field, _)| TELLING.contains(field)) {
            return Err("it needs title, url, id, content, text or summary".to_owned());
        }
        let list = list_of(items).and_then(|list| Path::parse(list).ok());
        Ok(Mapping { items: path("what selects the items", items)?, list, fields })
    }

    /// Returns the items of a document as items of JSON Feed. The values together have `longest` bytes
    /// at most.
    pub(super) fn items(&self, document: &Value, longest: usize) -> Result<Vec<Value>, NotMapped> {
        let mut budget = Budget { steps: STEPS, bytes: longest };
        let found = budget.select(&self.items, document)?;
        let Some(found) = found else {
            let list = self.list.as_ref().map(|list| budget.select(list, document)).transpose()?;
            return if list.flatten().is_some() { Ok(Vec::new()) } else { Err(NotMapped::NoItems) };
        };
        let found = match found {
            Value::Array(values) => values,
            one => vec![one],
        };
        let mut items = Vec::with_capacity(found.len());
        for value in &found {
            let mut item = Map::new();
            for (field, path) in &self.fields {
                if let Some(value) = budget.select(path, value)?.filter(|value| !value.is_null()) {
                    item.insert((*field).to_owned(), value);
                }
            }
            if TELLING.iter().any(|field| item.contains_key(*field)) {
                items.push(Value::Object(item));
            }
        }
        match items.is_empty() && !found.is_empty() {
            true => Err(NotMapped::NoFields),
            false => Ok(items),
        }
    }
}

/// What the evaluations of all paths may still take.
struct Budget {
    steps: u64,
    bytes: usize,
}

impl Budget {
    fn select(&mut self, path: &Path, value: &Value) -> Result<Option<Value>, TooCostly> {
        self.steps = self.steps.checked_sub(path.max_steps(value)).ok_or(TooCostly)?;
        let (found, bytes) = path.select_measured(value, self.bytes)?;
        self.bytes -= bytes;
        Ok(found)
    }
}

/// Returns the path of the list whose values a path selects with its last brackets.
fn list_of(path: &str) -> Option<&str> {
    let path = path.trim();
    if let Some(list) = path.strip_suffix(".*") {
        return Some(list);
    }
    let mut opened = Vec::new();
    let mut last = None;
    for (at, c) in outside_of_quotes(path) {
        match c {
            '[' | '(' => opened.push(at),
            ']' | ')' => last = opened.pop(),
            _ => {}
        }
    }
    path.ends_with(']').then(|| last.map(|at| &path[..at]))?
}

/// Splits a text at the semicolons that are neither in quotes nor in brackets.
fn split_at_semicolons(text: &str) -> Vec<&str> {
    let (mut parts, mut begin, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, c) in outside_of_quotes(text) {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => depth = depth.saturating_sub(1),
            ';' if depth == 0 => {
                parts.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[begin..]);
    parts
}

/// Returns the characters of a path that are not in quotes, with their places.
fn outside_of_quotes(text: &str) -> impl Iterator<Item = (usize, char)> {
    let (mut quote, mut escaped) = (None, false);
    text.char_indices().filter(move |(_, c)| match quote {
        Some(open) => {
            if *c == open && !escaped {
                quote = None;
            }
            escaped = *c == '\\' && !escaped;
            false
        }
        None => {
            if matches!(c, '\'' | '"') {
                quote = Some(*c);
            }
            quote.is_none()
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn mapping(text: &str) -> Mapping {
        Mapping::parse(text).unwrap().unwrap()
    }

    #[test]
    fn s18_a_mapping_says_where_items_and_their_fields_are() {
        let document = json!({ "data": [
            { "name": "Ebb", "link": "/1", "id": 1, "user": { "name": "Ada" }, "labels": ["sea", "moon"] },
            { "name": "Flood", "link": null, "id": 2 },
            { "other": true },
        ], "none": [], "one": { "name": "Neap" }, "texts": ["x"] });
        let ebb = json!({ "title": "Ebb", "url": "/1", "authors": "Ada", "tags": ["sea", "moon"] });
        #[rustfmt::skip]
        let cases = [
            ("$.data[*];title=$.name;url=$.link;author=$.user.name;tags=$.labels[*]", Ok(json!([ebb, { "title": "Flood" }]))),
            ("$.data[?@.id==2];id=$.id",            Ok(json!([{ "id": 2 }]))),
            ("$.data[?@.name=='a;b'];id=$.id",      Ok(json!([]))),
            ("$.data;title=name;",                  Ok(json!([{ "title": "Ebb" }, { "title": "Flood" }]))),
            ("$.none[*];title=$.name",              Ok(json!([]))),
            ("$.none.*;title=$.name",               Ok(json!([]))),
            ("$.none;title=$.name",                 Ok(json!([]))),
            ("$.one;title=$.name",                  Ok(json!([{ "title": "Neap" }]))),
            ("$.texts[*];title=$",                  Ok(json!([{ "title": "x" }]))),
            ("$.missing[*];title=$.name",           Err(NotMapped::NoItems)),
            ("$.data[*];title=$.label",             Err(NotMapped::NoFields)),
        ];
        for (text, want) in cases {
            let items = mapping(text).items(&document, 1_000).map(Value::Array);
            assert_eq!(items, want, "{text}");
        }
    }

    #[test]
    fn s18_a_plain_path_is_no_mapping_and_a_bad_mapping_says_why() {
        for text in ["$.data[*]", "$['a;b']", "$[?@.a==\"x;y\"]", "$.a[?match(@.b, 'c;')]", ".x"] {
            assert!(Mapping::parse(text).is_none(), "{text}");
        }
        #[rustfmt::skip]
        let cases = [
            ("$.data[*];",                     "it needs title"),
            ("$.data[*];date=$.at",            "it needs title"),
            ("$.data[*];titel=$.name",         "titel is no field of an entry, which are id, url,"),
            ("$.data[*];title",                "title is no field: write title=$.name"),
            ("$.data[*];title=$.a;title=$.b",  "title is given twice"),
            ("$.data[*];title=$.a[",           "title is not a JSONPath"),
            ("$.data[;title=$.a",              "what selects the items is not"),
        ];
        for (text, want) in cases {
            match Mapping::parse(text) {
                Some(Err(why)) => assert!(why.starts_with(want), "{text}: {why}"),
                other => assert!(text.contains("[;") && other.is_none(), "{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn s18_all_paths_of_a_mapping_share_one_budget() {
        let many: Value = (0..20_000).map(|n| json!({ "a": { "b": { "n": n } } })).collect();
        assert!(mapping("$[*];title=$.a.b.n").items(&many, 1 << 20).is_ok());
        assert_eq!(mapping("$[*];title=$.a.b.n").items(&many, 1_000), Err(NotMapped::TooCostly));
        let slow = "$[*];title=$..[?@.n == count($..*)].n";
        let nested: Value = (0..2_000)
            .map(|n| (0..60).fold(json!({ "n": n }), |inner, _| json!({ "a": inner })))
            .collect();
        assert_eq!(mapping(slow).items(&nested, 1 << 20), Err(NotMapped::TooCostly));
    }
}
