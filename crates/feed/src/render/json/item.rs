//! Serialization of an entry as JSON.

use serde_json::{Map, Value, json};

use crate::model::{Content, Element, Entry, Feed, Text};

use super::object::object;
use super::parts::{
    GEORSS, child, insert_some, last_short_name, permalink, seconds, standard_links, text,
};
use super::person::actor;
use super::{modules, picture};

/// Returns the entry as an item. An entry without an author gets that of the feed.
pub(super) fn item(entry: &Entry, feed: &Feed) -> Value {
    let mut item = Map::new();
    item.insert("id".to_owned(), Value::String(entry.id.clone()));
    let title = entry.title.as_ref().map(Text::to_plain).unwrap_or_default();
    item.insert("title".to_owned(), Value::String(title));
    insert_texts(&mut item, entry);
    insert_some(&mut item, "published", entry.published.map(seconds));
    insert_some(&mut item, "updated", entry.updated.map(seconds));
    insert_some(&mut item, "permalinkUrl", permalink(&entry.links));
    let picture = picture::of_entry(entry);
    insert_some(&mut item, "standardLinks", standard_links(&entry.links, picture));
    insert_some(&mut item, "actor", entry_actor(entry, feed));
    insert_some(&mut item, "categories", categories(entry));
    insert_some(&mut item, "verb", last_short_name(&entry.extensions, "verb"));
    insert_some(&mut item, "object", child(&entry.extensions, "object").map(|it| object(it, feed)));
    insert_some(&mut item, "geo", entry.extensions.iter().find_map(geo));
    insert_some(&mut item, "language", entry.lang.clone().filter(|lang| !lang.is_empty()));
    insert_some(&mut item, "source", entry.source.as_deref().map(source));
    modules::insert(&mut item, &entry.extensions);
    Value::Object(item)
}

/// Sets `content` and `summary`. An entry that has neither, such as a video of YouTube, has the
/// description of Media RSS as both, because clients read one or the other.
fn insert_texts(item: &mut Map<String, Value>, entry: &Entry) {
    let mut content = entry.content.as_ref().map(content);
    let mut summary = entry.summary.as_ref().map(|summary| summary.value.clone());
    if content.is_none() && summary.is_none() {
        content = modules::media_description(&entry.extensions);
        summary.clone_from(&content);
    }
    insert_some(item, "content", content);
    insert_some(item, "summary", summary);
}

fn content(content: &Content) -> String {
    match content {
        Content::Text(text) => text.value.clone(),
        Content::Media { value, .. } | Content::Xml { value, .. } => value.clone(),
        Content::Src { href, .. } => href.clone(),
    }
}

/// Returns the first author of the entry, of its source, or of the feed.
fn entry_actor(entry: &Entry, feed: &Feed) -> Option<Value> {
    let home = entry.source.as_deref().filter(|source| !source.id.is_empty()).unwrap_or(feed);
    let of_source = entry.source.as_ref().and_then(|source| source.authors.first());
    let author = entry.authors.first().or(of_source).or(feed.authors.first());
    author.map(|author| actor(author, &home.id))
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
    insert_some(&mut object, "standardLinks", standard_links(&source.links, None));
    Value::Object(object)
}
