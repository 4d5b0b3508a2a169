//! Serialization of an entry as JSON.

use serde_json::{Map, Value, json};

use crate::model::{Content, Element, Entry, Feed, Person, Text};

use super::parts::{
    GEORSS, attribute, child_text, children, insert_some, links, permalink, seconds, short_name,
    standard_links, text,
};

/// Returns the entry as an item. An entry without an author gets that of the feed.
pub(super) fn item(entry: &Entry, feed: &Feed) -> Value {
    let mut item = Map::new();
    item.insert("id".to_owned(), Value::String(entry.id.clone()));
    let title = entry.title.as_ref().map(Text::to_plain).unwrap_or_default();
    item.insert("title".to_owned(), Value::String(title));
    insert_some(&mut item, "content", entry.content.as_ref().map(content));
    insert_some(&mut item, "summary", entry.summary.as_ref().map(|summary| summary.value.clone()));
    insert_some(&mut item, "published", entry.published.map(seconds));
    insert_some(&mut item, "updated", entry.updated.map(seconds));
    insert_some(&mut item, "permalinkUrl", permalink(&entry.links));
    insert_some(&mut item, "standardLinks", standard_links(&entry.links));
    let of_source = entry.source.as_ref().and_then(|source| source.authors.first());
    let author = entry.authors.first().or(of_source).or(feed.authors.first());
    insert_some(&mut item, "actor", author.map(actor));
    insert_some(&mut item, "categories", categories(entry));
    let verb = child_text(&entry.extensions, "verb");
    insert_some(&mut item, "verb", verb.map(|verb| short_name(&verb)));
    insert_some(
        &mut item,
        "object",
        entry.extensions.iter().find(|e| e.name == "object").map(object),
    );
    insert_some(&mut item, "geo", entry.extensions.iter().find_map(geo));
    insert_some(&mut item, "language", entry.lang.clone().filter(|lang| !lang.is_empty()));
    insert_some(&mut item, "source", entry.source.as_deref().map(source));
    Value::Object(item)
}

fn content(content: &Content) -> String {
    match content {
        Content::Text(text) => text.value.clone(),
        Content::Media { value, .. } | Content::Xml { value, .. } => value.clone(),
        Content::Src { href, .. } => href.clone(),
    }
}

fn actor(person: &Person) -> Value {
    let mut actor = Map::new();
    let mine = &person.extensions;
    actor.insert("displayName".to_owned(), Value::String(person.name.clone()));
    let linked = links(mine);
    insert_some(&mut actor, "permalinkUrl", person.uri.clone().or_else(|| permalink(&linked)));
    insert_some(&mut actor, "email", person.email.clone());
    insert_some(&mut actor, "id", child_text(mine, "id"));
    let image =
        linked.iter().find(|link| matches!(link.rel.as_str(), "avatar" | "photo" | "image"));
    insert_some(&mut actor, "image", image.map(|link| link.href.clone()));
    let kind = child_text(mine, "object-type");
    insert_some(&mut actor, "objectType", kind.map(|kind| short_name(&kind)));
    insert_some(&mut actor, "title", child_text(mine, "title"));
    Value::Object(actor)
}

fn categories(entry: &Entry) -> Option<Value> {
    let display = |term: &str, label: Option<&str>| match label {
        Some(label) if term.is_empty() => Value::String(label.to_owned()),
        _ => Value::String(term.to_owned()),
    };
    let list: Vec<Value> =
        entry.categories.iter().map(|c| display(&c.term, c.label.as_deref())).collect();
    (!list.is_empty()).then_some(Value::Array(list))
}

fn object(element: &Element) -> Value {
    let parts = children(element);
    let mut object = Map::new();
    let types: Vec<Value> = parts
        .iter()
        .filter(|part| part.name == "object-type")
        .map(|part| Value::String(short_name(&text(part))))
        .collect();
    match types.len() {
        0 => {}
        1 => insert_some(&mut object, "objectType", types.into_iter().next()),
        _ => insert_some(&mut object, "objectType", Some(Value::Array(types))),
    }
    for name in ["id", "title", "published", "updated", "content"] {
        insert_some(&mut object, name, child_text(&parts, name));
    }
    let linked = links(&parts);
    insert_some(&mut object, "permalinkUrl", permalink(&linked));
    insert_some(&mut object, "standardLinks", standard_links(&linked));
    let terms: Vec<Value> = parts
        .iter()
        .filter(|part| part.name == "category")
        .filter_map(|part| attribute(part, "term").map(|term| Value::String(term.to_owned())))
        .collect();
    insert_some(&mut object, "categories", (!terms.is_empty()).then_some(Value::Array(terms)));
    Value::Object(object)
}

/// Returns a GeoRSS point: "latitude and longitude" (seed 003).
fn geo(element: &Element) -> Option<Value> {
    if element.namespace != GEORSS || element.name != "point" {
        return None;
    }
    let text = text(element);
    let mut numbers = text
        .split(|c: char| c.is_whitespace() || c == ',')
        .filter(|word| !word.is_empty())
        .map(str::parse::<f64>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(lat)), Some(Ok(long))) if lat.is_finite() && long.is_finite() => {
            Some(json!({"type": "point", "coordinates": [lat, long]}))
        }
        _ => None,
    }
}

fn source(source: &Feed) -> Value {
    let mut object = Map::new();
    insert_some(&mut object, "id", Some(source.id.clone()).filter(|id| !id.is_empty()));
    insert_some(&mut object, "title", source.title.as_ref().map(Text::to_plain));
    insert_some(&mut object, "updated", source.updated.map(seconds));
    insert_some(&mut object, "permalinkUrl", permalink(&source.links));
    insert_some(&mut object, "standardLinks", standard_links(&source.links));
    Value::Object(object)
}
