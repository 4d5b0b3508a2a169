//! JSON Feed 1.1 documents of feeds as they are stored in Atom (<https://www.jsonfeed.org/version/1.1/>).
//!
//! What JSON Feed has no field for is in the extension `_feedgate`, under the names that the
//! [JSON](super::json) of Superfeedr has for it. `schemas/json-feed.schema.json` describes the documents.

mod item;

use serde_json::{Map, Value, json};

use crate::model::{Element, Feed, Link, Person, Text, deleted_entry_id};

use super::StatusReport;
use super::atom::parts;
use super::categories::distinct_categories;
use super::entry_values::{is_status, page, stated_authors};
use super::json;
use super::json::modules;
use super::json::parts::{attribute, insert_some, links, standard_links};
use super::json::picture::{self, PICTURE_RELATIONS};

/// The version of JSON Feed.
const VERSION: &str = "https://jsonfeed.org/version/1.1";

/// Returns a document: `feed` with its entries in their order, and the status of the resource that is
/// subscribed to as a topic, if the document has one.
pub fn document(feed: &Feed, status: Option<(&str, StatusReport<'_>)>) -> Value {
    let mut document = Map::new();
    document.insert("version".to_owned(), Value::from(VERSION));
    let linked = |rel: &str| {
        let link = feed.links.iter().find(|link| link.rel == rel);
        link.map(|link| link.href.clone())
    };
    let own = linked("self");
    let title = feed.title.as_ref().map(Text::to_plain).filter(|title| !title.is_empty());
    let title = title.unwrap_or_else(|| own.clone().unwrap_or_else(|| feed.id.clone()));
    document.insert("title".to_owned(), Value::from(title));
    insert_some(&mut document, "home_page_url", page(&feed.links).map(|page| page.href.clone()));
    insert_some(&mut document, "feed_url", own);
    insert_some(&mut document, "description", plain(feed.subtitle.as_ref()));
    // Entries that are older.
    insert_some(&mut document, "next_url", linked("prev-archive").or_else(|| linked("next")));
    let icon = picture::of_feed(feed).map(|picture| picture.href);
    let pictured = || feed.links.iter().find(|link| link.rel == "picture");
    let icon = icon.or_else(|| pictured().map(|link| link.href.clone()));
    insert_some(&mut document, "icon", icon);
    insert_some(&mut document, "favicon", feed.icon.clone());
    insert_some(&mut document, "authors", authors(&feed.authors));
    insert_some(&mut document, "language", feed.lang.clone().filter(|lang| !lang.is_empty()));
    insert_some(&mut document, "hubs", hubs(&feed.links));
    document.insert("_feedgate".to_owned(), Value::Object(extension(feed, status)));
    let items = feed.entries.iter().map(|entry| item::item(entry, feed)).collect();
    document.insert("items".to_owned(), items);
    Value::Object(document)
}

/// Returns what JSON Feed has no field for.
fn extension(feed: &Feed, status: Option<(&str, StatusReport<'_>)>) -> Map<String, Value> {
    let mut extension = Map::new();
    insert_some(&mut extension, "id", Some(feed.id.clone()).filter(|id| !id.is_empty()));
    insert_some(&mut extension, "updated", feed.updated.map(|at| parts::date(&at)));
    insert_some(&mut extension, "rights", plain(feed.rights.as_ref()));
    let categories = distinct_categories(&feed.categories).into_iter();
    let categories: Vec<Value> = categories.map(|it| Value::from(it.term.as_str())).collect();
    insert_some(&mut extension, "categories", Some(categories).filter(|list| !list.is_empty()));
    let generator = feed.generator.as_ref().map(|generator| generator.name.clone());
    insert_some(&mut extension, "generator", generator);
    insert_some(&mut extension, "standardLinks", standard_links(&feed.links, None));
    let status = status.map(|(topic, status)| json::status_object(topic, status));
    insert_some(&mut extension, "status", status);
    let deleted: Vec<Value> = feed.extensions.iter().filter_map(deletion).collect();
    insert_some(&mut extension, "deleted", Some(deleted).filter(|list| !list.is_empty()));
    let kept: Vec<Element> =
        feed.extensions.iter().filter(|element| !is_status(element)).cloned().collect();
    modules::insert(&mut extension, &kept);
    extension
}

/// Returns the deletion of an entry.
fn deletion(element: &Element) -> Option<Value> {
    let id = deleted_entry_id(element)?;
    Some(json!({ "id": id, "deletedAt": attribute(element, "when") }))
}

/// Returns a text without markup, if it is not empty.
fn plain(text: Option<&Text>) -> Option<String> {
    text.map(Text::to_plain).filter(|text| !text.is_empty())
}

/// Returns the authors that the source states.
fn authors(people: &[Person]) -> Option<Value> {
    let authors: Vec<Value> = stated_authors(people).map(author).collect();
    (!authors.is_empty()).then_some(Value::Array(authors))
}

fn author(person: &Person) -> Value {
    let mut author = Map::new();
    author.insert("name".to_owned(), Value::from(person.name.as_str()));
    let mail = person.email.as_ref().map(|email| format!("mailto:{email}"));
    insert_some(&mut author, "url", person.uri.clone().or(mail));
    let pictures = links(&person.extensions);
    let mut pictures =
        pictures.iter().filter(|link| PICTURE_RELATIONS.contains(&link.rel.as_str()));
    insert_some(&mut author, "avatar", pictures.next().map(|link| link.href.clone()));
    Value::Object(author)
}

/// Returns the hubs at which the feed can be subscribed to.
fn hubs(links: &[Link]) -> Option<Value> {
    let hubs = links.iter().filter(|link| link.rel == "hub");
    let hubs: Vec<Value> = hubs.map(|hub| json!({ "type": "WebSub", "url": hub.href })).collect();
    (!hubs.is_empty()).then_some(Value::Array(hubs))
}

#[cfg(test)]
mod tests;
