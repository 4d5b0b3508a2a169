//! Items of JSON Feed.

use serde_json::{Map, Value};

use crate::model::{Entry, Feed, Link};

use super::super::atom::parts;
use super::super::categories::distinct_categories;
use super::super::entry_values::{
    TextValue, content, duration_s, enclosures, own_language, page, published, source_id, summary,
    updated,
};
use super::super::json;
use super::super::json::parts::insert_some;
use super::super::json::picture;
use super::{authors, plain};
use crate::text_extraction;

/// The keys of the JSON of Superfeedr for which JSON Feed has no field.
const EXTENSION: [&str; 9] =
    ["derived", "verb", "object", "geo", "source", "media", "itunes", "podcast", "standardLinks"];

/// Returns the entry as an item. An item has the authors of the feed unless it has its own.
pub(super) fn item(entry: &Entry, feed: &Feed) -> Value {
    let mut item = Map::new();
    let id = source_id(entry);
    item.insert("id".to_owned(), Value::from(id.as_ref()));
    insert_some(&mut item, "url", page(&entry.links).map(|page| page.href.clone()));
    insert_some(&mut item, "external_url", related(entry));
    insert_some(&mut item, "title", plain(entry.title.as_ref()));
    insert_texts(&mut item, entry);
    insert_some(&mut item, "image", image(entry));
    insert_some(&mut item, "date_published", published(entry).map(|at| parts::date(&at)));
    insert_some(&mut item, "date_modified", updated(entry).map(|at| parts::date(&at)));
    if entry.authors != feed.authors {
        insert_some(&mut item, "authors", authors(&entry.authors));
    }
    let tags = distinct_categories(&entry.categories).into_iter();
    let tags: Vec<Value> = tags.map(|tag| Value::from(&*tag.term)).collect();
    insert_some(&mut item, "tags", Some(tags).filter(|tags| !tags.is_empty()));
    insert_some(&mut item, "language", own_language(entry, feed));
    insert_some(&mut item, "attachments", attachments(entry));
    let mut extension = Map::new();
    insert_some(&mut extension, "id", (id != entry.id).then(|| entry.id.clone()));
    insert_some(&mut extension, "rights", plain(entry.rights.as_ref()));
    if let Value::Object(mut object) = json::item::item(entry, feed) {
        let kept = EXTENSION.into_iter().filter_map(|key| object.remove_entry(key));
        extension.extend(kept);
    }
    item.insert("_feedgate".to_owned(), Value::Object(extension));
    Value::Object(item)
}

/// Returns the address of the page that the entry is about.
fn related(entry: &Entry) -> Option<String> {
    let is_related = |link: &&Link| link.rel == "related";
    entry.links.iter().find(is_related).map(|link| link.href.clone())
}

/// Sets the content, which is required, and the summary.
fn insert_texts(item: &mut Map<String, Value>, entry: &Entry) {
    let summary = summary(entry);
    let displayed = summary.as_ref().map(|text| match text {
        TextValue::Plain(text) => text.trim().to_owned(),
        TextValue::Html(html) => text_extraction::plain(html),
    });
    let body = content(entry).or(summary);
    let (key, body) = match body.unwrap_or(TextValue::Plain("".into())) {
        TextValue::Plain(text) => ("content_text", text),
        TextValue::Html(html) => ("content_html", html),
    };
    item.insert(key.to_owned(), Value::from(body.as_ref()));
    insert_some(item, "summary", displayed.filter(|text| !text.is_empty()));
}

/// Returns the address of the picture of an entry.
fn image(entry: &Entry) -> Option<String> {
    let linked = entry.links.iter().find(|link| link.rel == "picture");
    linked.map(|link| link.href.clone()).or_else(|| picture::of_entry(entry).map(|link| link.href))
}

/// Returns the enclosures. A recording has the duration that the entry states.
fn attachments(entry: &Entry) -> Option<Value> {
    let mut duration = duration_s(entry);
    let enclosures = enclosures(entry);
    let attachments: Vec<Value> = enclosures
        .iter()
        .map(|enclosure| {
            let mut attachment = Map::new();
            attachment.insert("url".to_owned(), Value::from(enclosure.url.as_ref()));
            attachment.insert("mime_type".to_owned(), Value::from(enclosure.mime));
            insert_some(&mut attachment, "title", enclosure.title);
            insert_some(&mut attachment, "size_in_bytes", enclosure.bytes);
            let is_recording =
                ["audio/", "video/"].iter().any(|kind| enclosure.mime.starts_with(kind));
            if is_recording {
                insert_some(&mut attachment, "duration_in_seconds", duration.take());
            }
            Value::Object(attachment)
        })
        .collect();
    (!attachments.is_empty()).then_some(Value::Array(attachments))
}
