//! JSONPath (RFC 9535) with bounded cost.
//!
//! Both the path and the document are untrusted. Evaluation cannot be interrupted, so the cost of a
//! path is estimated beforehand from its shape and the size of the document, and a path that may
//! cost too much is refused. Nested filters, which are slow to parse, are refused by
//! [`super::fragment`]. A path may select the same value many times, and values inside selected
//! values, so the total length of the result is measured before anything is copied.

use std::io;

use serde_json::Value;
use serde_json_path::JsonPath;

/// The maximum number of nodes visited in one document: about a second of work.
pub(super) const STEPS: u64 = 10_000_000;

/// The cost of matching a pattern against one node, in visited nodes: the pattern is compiled anew
/// each time.
const PATTERN_STEPS: u64 = 100_000;

/// A parsed JSONPath.
#[derive(Debug)]
pub(super) struct Path {
    path: JsonPath,
    shape: Shape,
}

impl Path {
    /// Parses a path. Notations that predate RFC 9535 are translated. The error is the parser's
    /// message.
    pub(super) fn parse(text: &str) -> Result<Path, String> {
        let text = to_rfc_9535(text);
        let path = JsonPath::parse(&text).map_err(|err| err.to_string())?;
        Ok(Path { path, shape: Shape::from_text(&text) })
    }

    /// Returns the selected values: the value itself if the path can select at most one, otherwise
    /// an array; `None` if nothing matches. Fails if evaluation may take too long, or if the values
    /// exceed `longest` bytes together.
    pub(super) fn select(
        &self,
        document: &Value,
        longest: usize,
    ) -> Result<Option<Value>, TooCostly> {
        if self.max_steps(document) > STEPS {
            return Err(TooCostly);
        }
        self.select_measured(document, longest).map(|(found, _)| found)
    }

    /// Returns the maximum number of nodes that are visited in a document.
    pub(super) fn max_steps(&self, document: &Value) -> u64 {
        let (nodes, depth) = measure(document);
        self.shape.max_steps(nodes, depth)
    }

    /// Selects as [`select`](Self::select) does, whatever time that takes, and returns the length of
    /// the selected values too.
    pub(super) fn select_measured(
        &self,
        document: &Value,
        longest: usize,
    ) -> Result<(Option<Value>, usize), TooCostly> {
        let found = self.path.query(document).all();
        let mut limit = LengthLimit(longest);
        for value in &found {
            serde_json::to_writer(&mut limit, value).map_err(|_| TooCostly)?;
        }
        let selected = match found.as_slice() {
            [] => None,
            [one] if self.shape.is_singular => Some((*one).clone()),
            many => Some(many.iter().map(|value| (*value).clone()).collect()),
        };
        Ok((selected, longest - limit.0))
    }
}

/// The error of a path that would take too long to evaluate, or that selects too much to copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooCostly;

/// A writer that discards its input and fails after this many bytes.
struct LengthLimit(usize);

impl io::Write for LengthLimit {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::Other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Translates Goessner's notation of JSONPath, which allows omitting the root `$` and counts from
/// the end with a script: `[(@.length-1)]`.
fn to_rfc_9535(text: &str) -> String {
    let text = text.trim();
    let rooted = match text.chars().next() {
        Some('$') => text.to_owned(),
        Some('.' | '[') | None => format!("${text}"),
        Some(_) => format!("$.{text}"),
    };
    let mut out = String::with_capacity(rooted.len());
    let mut rest = rooted.as_str();
    while let Some(at) = rest.find("[(@.length") {
        let (before, script) = rest.split_at(at);
        out.push_str(before);
        let inside = &script["[(@.length".len()..];
        let Some((number, after)) = inside.split_once(")]") else { break };
        let number: String = number.split_whitespace().collect();
        out.push('[');
        out.push_str(&number);
        out.push(']');
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Returns the number of values in a document and their maximum depth.
fn measure(document: &Value) -> (u64, u64) {
    let (mut nodes, mut deepest) = (0, 1);
    let mut waiting = vec![(document, 1)];
    while let Some((value, depth)) = waiting.pop() {
        nodes += 1;
        deepest = depth.max(deepest);
        match value {
            Value::Array(values) => waiting.extend(values.iter().map(|value| (value, depth + 1))),
            Value::Object(members) => {
                waiting.extend(members.values().map(|value| (value, depth + 1)));
            }
            _ => {}
        }
    }
    (nodes, deepest)
}

/// The properties of a path that determine its cost.
#[derive(Debug, Default, PartialEq, Eq)]
struct Shape {
    /// The number of `..` segments. Each one after the first visits a node once per ancestor.
    descents: u32,
    /// The number of queries from the root (`$`) inside filters.
    absolutes: u32,
    /// The factor by which selectors listed side by side may repeat a node.
    repeats: u64,
    /// The number of functions that match patterns.
    patterns: u32,
    /// Whether the path selects at most one value.
    is_singular: bool,
}

impl Shape {
    fn from_text(text: &str) -> Shape {
        let mut shape = Shape { repeats: 1, is_singular: true, ..Shape::default() };
        let mut brackets: Vec<u64> = Vec::new();
        let mut quote = None;
        let mut escaped = false;
        let bytes = text.as_bytes();
        for (at, byte) in bytes.iter().enumerate() {
            if let Some(open) = quote {
                if !escaped && *byte == open {
                    quote = None;
                }
                escaped = *byte == b'\\' && !escaped;
                continue;
            }
            match byte {
                b'\'' | b'"' => quote = Some(*byte),
                b'[' | b'(' => brackets.push(1),
                b']' | b')' => {
                    let listed = brackets.pop().unwrap_or(1);
                    shape.repeats = shape.repeats.saturating_mul(listed);
                }
                b',' => {
                    shape.is_singular = false;
                    brackets.last_mut().into_iter().for_each(|listed| *listed += 1);
                }
                b'*' | b'?' | b':' => shape.is_singular = false,
                b'.' if bytes.get(at + 1) == Some(&b'.') => {
                    shape.is_singular = false;
                    shape.descents += 1;
                }
                b'$' if at > 0 && !is_singular_query(&text[at + 1..]) => shape.absolutes += 1,
                _ => {}
            }
        }
        shape.patterns = (text.matches("match(").count() + text.matches("search(").count()) as u32;
        shape
    }

    /// Returns the maximum number of nodes visited in a document of this many nodes and this depth.
    fn max_steps(&self, nodes: u64, depth: u64) -> u64 {
        let patterns = if self.patterns > 0 { PATTERN_STEPS } else { 1 };
        nodes
            .saturating_mul(depth.saturating_pow(self.descents.saturating_sub(1)))
            .saturating_mul(nodes.saturating_pow(self.absolutes))
            .saturating_mul(self.repeats)
            .saturating_mul(patterns)
    }
}

/// Returns whether the text after a `$` selects exactly one value: only names and indices.
fn is_singular_query(rest: &str) -> bool {
    let end = rest.find(|c: char| !(c.is_alphanumeric() || "_.[]'\"-".contains(c)));
    let path = &rest[..end.unwrap_or(rest.len())];
    let next = rest[path.len()..].chars().next();
    !path.contains("..") && !matches!(next, Some('*' | '?' | ':'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn store() -> Value {
        json!({ "store": {
            "book": [
                { "category": "reference", "title": "Tides", "price": 8.95 },
                { "category": "fiction", "title": "Ebb", "isbn": "0-1", "price": 12.99 },
            ],
            "bicycle": { "color": "red", "price": 19.95 },
        } })
    }

    #[test]
    fn paths_lead_to_values() {
        #[rustfmt::skip]
        let cases = [
            ("one value is itself",          "$.store.bicycle.price",          Some(json!(19.95))),
            ("in brackets too",              "$['store']['book'][-1]['isbn']", Some(json!("0-1"))),
            ("several are an array",         "$.store.book[*].title",          Some(json!(["Tides", "Ebb"]))),
            ("and so is one that might be several", "$..isbn",                 Some(json!(["0-1"]))),
            ("a filter",                     "$..book[?@.price < 10].title",   Some(json!(["Tides"]))),
            ("in parentheses, as of old",    "$..book[?(@.isbn)].title",       Some(json!(["Ebb"]))),
            ("a count from the end, as of old", "$..book[(@.length-1)].title", Some(json!(["Ebb"]))),
            ("a comparison with the whole",  "$..book[?@.price < $.store.bicycle.price].isbn", Some(json!(["0-1"]))),
            ("a pattern",                    "$..book[?match(@.title, 'T.*')].price", Some(json!([8.95]))),
            ("without its root",             "store.bicycle.color",            Some(json!("red"))),
            ("nothing",                      "$.store.car",                    None),
        ];
        for (why, path, want) in cases {
            assert_eq!(
                Path::parse(path).unwrap().select(&store(), 1_000),
                Ok(want),
                "{why}: {path}"
            );
        }
        for none in ["$.", "$[", "$..", "$.a[?foo(@)]", "$ .a b"] {
            assert!(Path::parse(none).is_err(), "{none}");
        }
    }

    #[test]
    fn a_path_that_may_take_long_is_not_evaluated() {
        let wide: Value = (0..20_000).map(|n| json!({ "id": n })).collect();
        let cases: [(&str, bool); 7] = [
            ("$..id", true),
            ("$[?@.id > 19990].id", true),
            ("$[?@.id == $[0].id]", true),
            ("$[?@.id == count($[*])]", false),
            ("$[?$[?@.id]]", false),
            ("$[?search(@.id, 'a')]", false),
            ("$[*,*][*,*][*,*][*,*][*,*][*,*][*,*][*,*][*,*][*,*]", false),
        ];
        for (path, is_done) in cases {
            let found = Path::parse(path).unwrap().select(&wide, usize::MAX);
            assert_eq!(found.is_ok(), is_done, "{path}");
        }
        let nested = (0..120).fold(json!(1), |inner, _| json!({ "a": inner }));
        let often = Path::parse("$..a..a..a..a..a").unwrap();
        assert_eq!(often.select(&nested, usize::MAX), Err(TooCostly));
    }

    #[test]
    fn values_that_are_found_many_times_over_are_not_copied() {
        let text = "x".repeat(98);
        let nested = (0..120).fold(json!(text), |inner, _| json!({ "a": inner }));
        let listed = json!([text]);
        let repeated = format!("$[{}0]", "0,".repeat(99));
        #[rustfmt::skip]
        let cases: [(&str, &Value, usize, bool); 5] = [
            ("$..*",    &nested, 10_000, false),
            (&repeated, &listed, 10_000, true),
            (&repeated, &listed, 9_999,  false),
            ("$[0]",    &listed, 100,    true),
            ("$[0]",    &listed, 99,     false),
        ];
        for (path, document, longest, is_done) in cases {
            let found = Path::parse(path).unwrap().select(document, longest);
            assert_eq!(found.is_ok(), is_done, "{path} in {longest} bytes");
        }
    }
}
