//! The JSON members that feeds, entries and persons share.

use chrono::{DateTime, FixedOffset};
use serde_json::{Map, Value};

use crate::model::{Element, Link, Node};

use super::super::names::{ATOM, RSS};

/// Activity Streams.
pub(in crate::render) const ACTIVITY: &str = "http://activitystrea.ms/spec/1.0/";
/// GeoRSS Simple.
pub(super) const GEORSS: &str = "http://www.georss.org/georss";

/// Sets a key if there is a value for it.
pub(in crate::render) fn insert_some(
    object: &mut Map<String, Value>,
    key: &str,
    value: Option<impl Into<Value>>,
) {
    if let Some(value) = value {
        object.insert(key.to_owned(), value.into());
    }
}

/// Returns the seconds since 1970.
pub(super) fn seconds(at: DateTime<FixedOffset>) -> i64 {
    at.timestamp()
}

/// Returns the address of the first `alternate` link.
pub(super) fn permalink(links: &[Link]) -> Option<String> {
    links.iter().find(|link| is_alternate(link)).map(|link| link.href.clone())
}

fn is_alternate(link: &Link) -> bool {
    matches!(link.rel.as_str(), "" | "alternate")
}

/// Returns the links grouped by relation, with `picture` as one more; `None` if there are none. A
/// link without a title has the title `null`, as in Superfeedr's example.
pub(in crate::render) fn standard_links(links: &[Link], picture: Option<Link>) -> Option<Value> {
    let mut by_rel: Map<String, Value> = Map::new();
    for link in links.iter().chain(picture.as_ref()) {
        let rel = if is_alternate(link) { "alternate" } else { &link.rel };
        let mut object = Map::new();
        object.insert("href".to_owned(), Value::String(link.href.clone()));
        // "MimeType of the link destination (text/html by default)" (seed 003)
        let usual = is_alternate(link).then(|| "text/html".to_owned());
        insert_some(&mut object, "type", link.mime.clone().or(usual));
        object.insert("title".to_owned(), link.title.clone().into());
        insert_some(&mut object, "hreflang", link.hreflang.clone());
        insert_some(&mut object, "length", link.length.clone());
        let list = by_rel.entry(rel).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(list) = list {
            list.push(Value::Object(object));
        }
    }
    (!by_rel.is_empty()).then_some(Value::Object(by_rel))
}

/// Returns the first child element with this name, in a namespace of Atom or Activity Streams.
pub(super) fn child<'a>(elements: &'a [Element], name: &str) -> Option<&'a Element> {
    let ours = |element: &&Element| matches!(element.namespace.as_str(), ATOM | RSS | ACTIVITY);
    elements.iter().filter(ours).find(|element| element.name == name)
}

/// Returns the text of the first child element with this name, if it is not empty.
pub(super) fn child_text(elements: &[Element], name: &str) -> Option<String> {
    child(elements, name).map(text).filter(|text| !text.is_empty())
}

/// Returns the concatenated texts, trimmed.
pub(in crate::render) fn text(element: &Element) -> String {
    fn gather(element: &Element, out: &mut String) {
        for child in &element.children {
            match child {
                Node::Text(text) => out.push_str(text),
                Node::Element(child) => gather(child, out),
            }
        }
    }
    let mut out = String::new();
    gather(element, &mut out);
    out.trim().to_owned()
}

/// Returns the child elements of `element`.
pub(super) fn children(element: &Element) -> Vec<Element> {
    let elements = element.children.iter().filter_map(|child| match child {
        Node::Element(child) => Some(child.clone()),
        Node::Text(_) => None,
    });
    elements.collect()
}

/// Returns the value of an attribute without a namespace.
pub(in crate::render) fn attribute<'a>(element: &'a Element, name: &str) -> Option<&'a str> {
    let found = element.attributes.iter().find(|a| a.namespace.is_empty() && a.name == name);
    found.map(|attribute| attribute.value.as_str())
}

/// Returns the links among `elements`, which are extensions of a person or an object.
pub(in crate::render) fn links(elements: &[Element]) -> Vec<Link> {
    let found = elements.iter().filter(|element| element.name == "link");
    let read = |element: &Element| {
        let get = |name| attribute(element, name).map(str::to_owned);
        Some(Link {
            href: get("href")?,
            rel: get("rel").unwrap_or_else(|| "alternate".to_owned()),
            mime: get("type"),
            title: get("title"),
            ..Link::default()
        })
    };
    found.filter_map(read).collect()
}

/// Returns the short name of the last element with this name. Atom allows several verbs and object
/// types, the most specific last; JSON has one.
pub(super) fn last_short_name(elements: &[Element], name: &str) -> Option<String> {
    let named = elements.iter().rev().filter(|it| it.namespace == ACTIVITY && it.name == name);
    named.map(text).find(|text| !text.is_empty()).map(|text| short_name(&text))
}

/// Returns the last path segment of a schema's address: JSON has `post` where Atom has
/// `http://activitystrea.ms/schema/1.0/post`.
fn short_name(schema: &str) -> String {
    schema.trim_end_matches('/').rsplit('/').next().unwrap_or(schema).to_owned()
}
