//! Other JSON in which programs list entries: RSS in JSON, ActivityStreams 1 and 2, and Superfeedr's own.
//!
//! The fields with a counterpart get the names of JSON Feed, and all others stay as they are. So each dialect is
//! where its entries are, and how the fields of one are called.

use chrono::{DateTime, SecondsFormat};
use serde_json::{Map, Value, json};

use super::values::{list, string};
use crate::model::FeedFormat;

type Object = Map<String, Value>;

/// One way to list entries in JSON.
struct Dialect {
    format: FeedFormat,
    /// Returns the list of entries; `None` if the document is of another dialect.
    items: for<'o> fn(&'o Object) -> Option<Vec<&'o Value>>,
    /// Returns the object that describes the feed, with its entries in `items`.
    feed: fn(Object) -> Object,
    /// Renames the fields of an entry.
    entry: fn(&mut Object),
}

/// The first that recognizes a document reads it.
#[rustfmt::skip]
const DIALECTS: [Dialect; 4] = [
    Dialect { format: FeedFormat::RssInJson,        items: rss_items,          feed: rss_channel,          entry: rss_item },
    Dialect { format: FeedFormat::SuperfeedrJson,   items: superfeedr_items,   feed: superfeedr_feed,      entry: superfeedr_item },
    Dialect { format: FeedFormat::ActivityStreams2, items: activities,         feed: activity_collection,  entry: activity },
    Dialect { format: FeedFormat::ActivityStreams1, items: activities_of_2011, feed: |document| document,  entry: activity_of_2011 },
];

/// Returns the format of a document in another dialect, and the same as a JSON Feed. A list without entries
/// is a feed that has none; a list of something other than objects is of no dialect, and returned as it is.
pub(super) fn as_json_feed(document: Object) -> Result<(FeedFormat, Object), Object> {
    let is_of = |dialect: &&Dialect| {
        let items = (dialect.items)(&document);
        items.is_some_and(|items| items.is_empty() || items.iter().any(|item| item.is_object()))
    };
    let Some(dialect) = DIALECTS.iter().find(is_of) else { return Err(document) };
    let mut feed = (dialect.feed)(document);
    if let Some(Value::Array(items)) = feed.get_mut("items") {
        items.retain(Value::is_object);
        items.iter_mut().filter_map(Value::as_object_mut).for_each(dialect.entry);
    }
    Ok((dialect.format, feed))
}

/// Returns the values of a field that is a list.
fn values<'o>(object: &'o Object, name: &str) -> Option<Vec<&'o Value>> {
    Some(object.get(name)?.as_array()?.iter().collect())
}

/// `{"rss": {"channel": {…, "item": […]}}}` (scripting.com).
fn rss_items(document: &Object) -> Option<Vec<&Value>> {
    let channel = document.get("rss")?.get("channel")?.as_object()?;
    Some(list(channel, "item").collect())
}

fn rss_channel(mut document: Object) -> Object {
    let channel = document.get_mut("rss").and_then(|rss| rss.get_mut("channel"));
    let Some(Value::Object(mut channel)) = channel.map(Value::take) else { return document };
    let items = match channel.remove("item") {
        Some(Value::Array(items)) => items,
        item => item.into_iter().collect(),
    };
    channel.insert("items".to_owned(), Value::Array(items));
    rename(&mut channel, &[("link", "home_page_url")]);
    channel
}

fn rss_item(item: &mut Object) {
    for name in ["guid", "category", "description", "title", "link"] {
        take_member(item, name, "#value");
    }
    let fields = [
        ("guid", "id"),
        ("link", "url"),
        ("description", "content_html"),
        ("pubDate", "date_published"),
        ("category", "tags"),
        ("enclosure", "attachments"),
    ];
    rename(item, &fields);
    let file = [("type", "mime_type"), ("length", "size_in_bytes")];
    each_object(item, "attachments", |attachment| rename(attachment, &file));
}

/// The JSON of Superfeedr (seed 003), and so that of gateways.
fn superfeedr_items(document: &Object) -> Option<Vec<&Value>> {
    document.get("status")?.as_object()?;
    let is_item =
        |item: &&Value| item.get("permalinkUrl").is_some() || item.get("standardLinks").is_some();
    values(document, "items").filter(|items| items.iter().any(is_item))
}

fn superfeedr_feed(mut feed: Object) -> Object {
    rename(&mut feed, &[("permalinkUrl", "home_page_url"), ("subtitle", "description")]);
    feed
}

fn superfeedr_item(item: &mut Object) {
    rename(
        item,
        &[
            ("permalinkUrl", "url"),
            ("content", "content_html"),
            ("published", "date_published"),
            ("updated", "date_modified"),
            ("categories", "tags"),
            ("actor", "authors"),
        ],
    );
    for date in ["date_published", "date_modified"] {
        let seconds = item.get(date).and_then(Value::as_i64);
        if let Some(time) = seconds.and_then(|seconds| DateTime::from_timestamp(seconds, 0)) {
            item.insert(date.to_owned(), time.to_rfc3339_opts(SecondsFormat::Secs, true).into());
        }
    }
    let person = [("displayName", "name"), ("permalinkUrl", "url"), ("image", "avatar")];
    each_object(item, "authors", |author| rename(author, &person));
    let files = item.get("standardLinks").and_then(|links| links.get("enclosure")).cloned();
    if let Some(files) = files {
        item.entry("attachments").or_insert(files);
        let file = [("href", "url"), ("type", "mime_type"), ("length", "size_in_bytes")];
        each_object(item, "attachments", |attachment| rename(attachment, &file));
    }
}

/// A collection of ActivityStreams 2 (`#collections`), such as an outbox or a page of one.
fn activities(document: &Object) -> Option<Vec<&Value>> {
    const COLLECTIONS: [&str; 4] =
        ["Collection", "OrderedCollection", "CollectionPage", "OrderedCollectionPage"];
    let is_collection = |object: &Object| {
        string(object, "type").is_some_and(|kind| COLLECTIONS.contains(&kind.as_str()))
    };
    if !is_collection(document) {
        return None;
    }
    let page = match document.get("first") {
        Some(Value::Object(first)) if !has_items(document) => first,
        _ => document,
    };
    values(page, if page.contains_key("items") { "items" } else { "orderedItems" })
}

fn activity_collection(mut feed: Object) -> Object {
    if !has_items(&feed)
        && let Some(Value::Object(first)) = feed.remove("first")
    {
        feed = first;
    }
    feed.remove("@context");
    rename(&mut feed, &[("orderedItems", "items"), ("name", "title"), ("next", "next_url")]);
    feed
}

fn has_items(collection: &Object) -> bool {
    collection.contains_key("items") || collection.contains_key("orderedItems")
}

/// An activity, which has an object such as a note; or an object alone.
fn activity(item: &mut Object) {
    let object = item.get_mut("object").filter(|object| object.is_object());
    if let Some(Value::Object(object)) = object.map(Value::take) {
        let activity = std::mem::replace(item, object);
        if let Some(verb) = activity.get("type") {
            item.insert("verb".to_owned(), verb.clone());
        }
        for field in ["actor", "published", "updated"] {
            if let Some(value) = activity.get(field) {
                item.entry(field).or_insert_with(|| value.clone());
            }
        }
    }
    rename(
        item,
        &[
            ("object", "external_url"), // the address of what is shared or liked
            ("name", "title"),
            ("content", "content_html"),
            ("published", "date_published"),
            ("updated", "date_modified"),
            ("attributedTo", "authors"),
            ("actor", "authors"),
            ("attachment", "attachments"),
            ("tag", "tags"),
        ],
    );
    address(item, "url");
    people(item);
    each_object(item, "attachments", |attachment| {
        address(attachment, "url");
        rename(attachment, &[("mediaType", "mime_type"), ("name", "title")]);
    });
    let tags = list(item, "tags").filter_map(|tag| match tag {
        Value::Object(tag) => {
            string(tag, "name").filter(|_| string(tag, "type").as_deref() == Some("Hashtag"))
        }
        other => other.as_str().map(str::to_owned),
    });
    let tags: Vec<Value> = tags.map(|tag| tag.trim_start_matches('#').into()).collect();
    if item.contains_key("tags") {
        item.insert("tags".to_owned(), tags.into());
    }
}

/// A stream of ActivityStreams 1 (`#activity`).
fn activities_of_2011(document: &Object) -> Option<Vec<&Value>> {
    let is_activity = |item: &&Value| {
        item.get("verb").is_some_and(Value::is_string)
            && item.get("object").is_some_and(Value::is_object)
    };
    values(document, "items").filter(|items| items.iter().any(is_activity))
}

fn activity_of_2011(item: &mut Object) {
    let object = item.get("object").and_then(Value::as_object).cloned().unwrap_or_default();
    rename(
        item,
        &[
            ("content", "content_html"),
            ("published", "date_published"),
            ("updated", "date_modified"),
        ],
    );
    let fields = [
        ("id", "id"),
        ("title", "displayName"),
        ("url", "url"),
        ("summary", "summary"),
        ("content_html", "content"),
        ("date_modified", "updated"),
    ];
    for (field, of_object) in fields {
        if let (false, Some(value)) = (item.contains_key(field), object.get(of_object)) {
            item.insert(field.to_owned(), value.clone());
        }
    }
    if let Some(actor) = item.remove("actor") {
        item.insert("authors".to_owned(), actor);
    }
    each_object(item, "authors", |author| {
        rename(author, &[("displayName", "name"), ("image", "avatar")]);
    });
}

/// Makes people of the actors in `authors`, who may be addresses.
fn people(item: &mut Object) {
    let people = list(item, "authors").map(|actor| match actor {
        Value::String(url) => json!({ "url": url }),
        other => other.clone(),
    });
    let people: Vec<Value> = people.collect();
    if people.is_empty() {
        return;
    }
    item.insert("authors".to_owned(), people.into());
    each_object(item, "authors", |author| {
        address(author, "url");
        rename(author, &[("preferredUsername", "name"), ("id", "url"), ("icon", "avatar")]);
    });
}

/// Gives fields other names, unless there is one of that name.
fn rename(object: &mut Object, names: &[(&str, &str)]) {
    for (from, to) in names {
        if !object.contains_key(*to)
            && let Some(value) = object.remove(*from)
        {
            object.insert((*to).to_owned(), value);
        }
    }
}

/// Replaces the objects of a field by what they have in a member.
fn take_member(object: &mut Object, name: &str, member: &str) {
    let inner = |value: &mut Value| {
        if let Some(inner) = value.get(member).cloned() {
            *value = inner;
        }
    };
    match object.get_mut(name) {
        Some(Value::Array(values)) => values.iter_mut().for_each(inner),
        Some(value) => inner(value),
        None => {}
    }
}

/// Replaces links in a field by the address of the first one.
fn address(object: &mut Object, name: &str) {
    if let Some(address) = string(object, name) {
        object.insert(name.to_owned(), address.into());
    }
}

/// Changes the objects in a field.
fn each_object(object: &mut Object, name: &str, change: impl Fn(&mut Object)) {
    match object.get_mut(name) {
        Some(Value::Array(values)) => {
            values.iter_mut().filter_map(Value::as_object_mut).for_each(change)
        }
        Some(Value::Object(value)) => change(value),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
