//! JSON-LD in the scripts of a page, as far as pages use it: `@graph`, `@id`, `@type`, `@value` and lists.
//! Contexts are not fetched; names are those of schema.org.

use std::collections::VecDeque;

use serde_json::{Map, Value as Json};

use super::{Graph, LinkedItemId, PropertyValue};
use crate::parse::html::{HtmlElement, ParsedHtml};
use crate::parse::json::{repair_json, scalar};
use crate::parse::memory_bound::has_too_many_values;
use crate::repair::{Repair, RepairCode};

/// The maximum number of scripts that are read of a page. Real pages have one for each kind of item.
const SCRIPTS: usize = 64;
/// The maximum nesting of items.
const DEPTH: usize = 24;

/// What programs put around JSON in a page, in several combinations.
const AROUND: [(&str, &str); 6] = [
    ("<!--", "-->"),
    ("<![CDATA[", "]]>"),
    ("//<![CDATA[", "//]]>"),
    ("// <![CDATA[", "// ]]>"),
    ("/*<![CDATA[*/", "/*]]>*/"),
    ("/* <![CDATA[ */", "/* ]]> */"),
];

/// Escapes of HTML in a script whose JSON was escaped as a whole. The ampersand comes last.
const ESCAPES: [(&str, &str); 6] = [
    ("&quot;", "\""),
    ("&#34;", "\""),
    ("&#039;", "'"),
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&amp;", "&"),
];

/// Returns the items in all scripts of a page, and whether some script could not be read.
pub(in crate::parse) fn read<'p>(
    page: &'p ParsedHtml,
    repairs: &mut Vec<Repair>,
) -> (Graph<'p>, bool) {
    let mut graph = Graph::default();
    let mut is_broken = false;
    let scripts = page.named("script").into_iter().filter(|tag| is_json_ld(*tag));
    for tag in scripts.take(SCRIPTS) {
        let text = tag.raw_text();
        match read_json(unwrapped(&text), repairs) {
            Some(json) => add_document(&mut graph, json, tag),
            None => is_broken = true,
        }
    }
    graph.index();
    (graph, is_broken)
}

fn is_json_ld(tag: HtmlElement<'_>) -> bool {
    let label = tag.attr("type").unwrap_or_default();
    let essence = label.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/ld+json")
}

/// Returns JSON without what is put around it.
fn unwrapped(text: &str) -> &str {
    let mut text = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    for _ in 0..AROUND.len() {
        for (begin, end) in AROUND {
            text = text.strip_prefix(begin).unwrap_or(text).trim_start();
            text = text.strip_suffix(end).unwrap_or(text).trim_end();
        }
    }
    text.trim_end_matches(';')
}

/// Parses JSON that may have faults, or may be escaped as HTML.
fn read_json(text: &str, repairs: &mut Vec<Repair>) -> Option<Json> {
    if text.is_empty() || has_too_many_values(text) {
        return None;
    }
    let err = match serde_json::from_str(text) {
        Ok(json) => return Some(json),
        Err(err) => err,
    };
    let is_escaped = !text.contains('"') && (text.contains("&quot;") || text.contains("&#34;"));
    let mended = if is_escaped {
        let escapes = ESCAPES.iter();
        escapes.fold(text.to_owned(), |text, (escape, meant)| text.replace(escape, meant))
    } else {
        repair_json(text)
    };
    let json = serde_json::from_str(&mended).ok()?;
    repairs.push(Repair::new(RepairCode::BrokenJson, err.to_string()));
    Some(json)
}

/// An object that is still to be read into an item.
struct Pending {
    id: LinkedItemId,
    object: Map<String, Json>,
    depth: usize,
}

fn add_document<'p>(graph: &mut Graph<'p>, document: Json, tag: HtmlElement<'p>) {
    let mut pending = VecDeque::new();
    add_top(graph, document, tag, &mut pending);
    while let Some(Pending { id, object, depth }) = pending.pop_front() {
        let has_type = object.contains_key("@type");
        for (name, value) in object {
            match name.as_str() {
                "@context" | "@reverse" => {}
                "@graph" => add_top(graph, value, tag, &mut pending),
                "@id" => graph.nodes[id.0].id = scalar(&value),
                // The context of schema.org gives both names to the keywords.
                "id" if value.is_string() => {
                    let text = scalar(&value);
                    graph.nodes[id.0].id = graph.nodes[id.0].id.take().or(text);
                }
                "@type" => add_types(graph, id, value),
                "type" if !has_type && value.is_string() => add_types(graph, id, value),
                name => {
                    for value in flattened(value) {
                        add_value(graph, (id, name), value, &mut pending, depth);
                    }
                }
            }
        }
    }
}

/// Adds the objects in `json` as items that are not values.
fn add_top<'p>(
    graph: &mut Graph<'p>,
    json: Json,
    tag: HtmlElement<'p>,
    pending: &mut VecDeque<Pending>,
) {
    for value in flattened(json) {
        let Json::Object(object) = value else { continue };
        let Some(id) = graph.add(tag) else { return };
        let is_only_graph =
            object.keys().all(|name| matches!(name.as_str(), "@graph" | "@context"));
        if !is_only_graph {
            graph.top.push(id);
        }
        pending.push_back(Pending { id, object, depth: 0 });
    }
}

fn add_types(graph: &mut Graph<'_>, id: LinkedItemId, value: Json) {
    for name in flattened(value).iter().filter_map(scalar) {
        graph.add_type(id, &name);
    }
}

fn add_value(
    graph: &mut Graph<'_>,
    (id, name): (LinkedItemId, &str),
    value: Json,
    pending: &mut VecDeque<Pending>,
    depth: usize,
) {
    match value {
        Json::Object(object) => {
            let tag = graph.nodes[id.0].tag;
            let child = graph.add(tag).filter(|_| depth < DEPTH);
            if let Some(child) = child {
                graph.add_value(id, name, PropertyValue::Node(child));
                pending.push_back(Pending { id: child, object, depth: depth + 1 });
            }
        }
        other => {
            if let Some(text) = scalar(&other) {
                graph.add_value(id, name, PropertyValue::Text(text));
            }
        }
    }
}

/// Returns the values in arrays, lists and sets, in order, and texts without what is said of them.
fn flattened(value: Json) -> Vec<Json> {
    let (mut found, mut open) = (Vec::new(), vec![value]);
    while let Some(value) = open.pop() {
        match value {
            Json::Array(values) => open.extend(values.into_iter().rev()),
            Json::Object(mut object) => {
                let inner =
                    ["@value", "@list", "@set"].iter().find_map(|name| object.remove(*name));
                match inner {
                    Some(inner) => open.push(inner),
                    None => found.push(Json::Object(object)),
                }
            }
            other => found.push(other),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The types of the items that are not values, of the scripts with these contents.
    fn top_types(scripts: &[&str]) -> Vec<String> {
        let scripts = scripts.iter();
        let scripts: String = scripts
            .map(|json| format!("<script type='application/ld+json'>{json}</script>"))
            .collect();
        let page = ParsedHtml::read(&scripts);
        let (graph, _) = read(&page, &mut Vec::new());
        graph.top().iter().map(|id| graph.node(*id).types.join("+")).collect()
    }

    #[test]
    fn json_is_read_as_pages_have_it() {
        const ONE: &str = r#"{"@type": "Article"}"#;
        let escaped = ONE.replace('"', "&quot;");
        let deep = format!("{}{}", r#"{"a":"#.repeat(100), "1".to_owned() + &"}".repeat(100));
        #[rustfmt::skip]
        let cases: [(&str, &[&str], &[&str]); 14] = [
            ("one object",             &[ONE],                                                   &["Article"]),
            ("an array",               &[r#"[{"@type": "A"}, [{"@type": "B"}]]"#],               &["A", "B"]),
            ("a graph",                &[r#"{"@context": "x", "@graph": [{"@type": "A"}, {"@type": "B"}]}"#], &["A", "B"]),
            ("a graph in an item",     &[r#"{"@type": "C", "@graph": [{"@type": "A"}]}"#],       &["C", "A"]),
            ("several types",          &[r#"{"@type": ["A", "https://schema.org/B", "schema:C"]}"#], &["A+B+C"]),
            ("a name of the context",  &[r#"{"type": "A", "id": "x"}"#],                         &["A"]),
            ("several scripts, one of them broken", &[ONE, r#"{"@type": "#, r#"{"@type": "B"}"#], &["Article", "B"]),
            ("a comma too many",       &[r#"{"@type": "A",}"#],                                  &["A"]),
            ("a line end in a text",   &["{\"@type\": \"A\", \"name\": \"x\ny\"}"],              &["A"]),
            ("in a section",           &[&format!("\n//<![CDATA[\n{ONE}\n//]]>\n")],             &["Article"]),
            ("in a comment and a section", &[&format!("<!-- /*<![CDATA[*/ {ONE}; /*]]>*/ -->")], &["Article"]),
            ("escaped",                &[&escaped],                                              &["Article"]),
            ("deep",                   &[&deep],                                                 &[""]),
            ("nothing",                &["", "7", "null", "[]"],                                 &[]),
        ];
        for (why, scripts, want) in cases {
            assert_eq!(top_types(scripts), want, "{why}");
        }
    }

    #[test]
    fn an_item_may_refer_to_another_one() {
        let text = r##"<script type="application/ld+json; charset=utf-8">[
            {"@id": "#a", "author": {"@id": "#ada"}},
            {"@id": "#ada", "name": {"@value": "Ada", "@language": "en"}, "knows": {"@id": "#ada"}}]</script>"##;
        let page = ParsedHtml::read(text);
        let (graph, is_broken) = read(&page, &mut Vec::new());
        let author = graph.values(graph.top()[0], "author").next();
        let Some(PropertyValue::Node(author)) = author else { panic!("an item") };
        assert_eq!((graph.text(*author, &["name"]), is_broken), (Some("Ada"), false));
    }
}
