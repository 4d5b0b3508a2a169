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
    /// Returns the object that describes the feed, with its entries in `items`; `None` if the document is of
    /// another dialect.
    feed: fn(&Object) -> Option<Object>,
    /// Renames the fields of an entry.
    entry: fn(&mut Object),
}

/// The first that recognizes a document reads it.
#[rustfmt::skip]
const DIALECTS: [Dialect; 4] = [
    Dialect { format: FeedFormat::RssInJson,        feed: rss_channel,           entry: rss_item },
    Dialect { format: FeedFormat::SuperfeedrJson,   feed: superfeedr_feed,       entry: superfeedr_item },
    Dialect { format: FeedFormat::ActivityStreams2, feed: activity_collection,   entry: activity },
    Dialect { format: FeedFormat::ActivityStreams1, feed: activities_of_2011,    entry: activity_of_2011 },
];

/// Returns the format of a document in another dialect, and the same as a JSON Feed.
pub(super) fn as_json_feed(document: &Object) -> Option<(FeedFormat, Object)> {
    DIALECTS.iter().find_map(|dialect| {
        let mut feed = (dialect.feed)(document)?;
        let Some(Value::Array(items)) = feed.get_mut("items") else { return None };
        items.retain(Value::is_object);
        items.iter_mut().filter_map(Value::as_object_mut).for_each(dialect.entry);
        (!items.is_empty()).then_some((dialect.format, feed))
    })
}

/// `{"rss": {"channel": {…, "item": […]}}}` (scripting.com).
fn rss_channel(document: &Object) -> Option<Object> {
    let mut channel = document.get("rss")?.get("channel")?.as_object()?.clone();
    let items = list(&channel, "item").cloned().collect();
    channel.remove("item");
    channel.insert("items".to_owned(), Value::Array(items));
    rename(&mut channel, &[("link", "home_page_url")]);
    Some(channel)
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
fn superfeedr_feed(document: &Object) -> Option<Object> {
    document.get("status")?.as_object()?;
    let is_item =
        |item: &Value| item.get("permalinkUrl").is_some() || item.get("standardLinks").is_some();
    if !list(document, "items").any(is_item) {
        return None;
    }
    let mut feed = document.clone();
    rename(&mut feed, &[("permalinkUrl", "home_page_url"), ("subtitle", "description")]);
    Some(feed)
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
fn activity_collection(document: &Object) -> Option<Object> {
    const COLLECTIONS: [&str; 4] =
        ["Collection", "OrderedCollection", "CollectionPage", "OrderedCollectionPage"];
    let is_collection = |object: &Object| {
        string(object, "type").is_some_and(|kind| COLLECTIONS.contains(&kind.as_str()))
    };
    let mut feed = is_collection(document).then(|| document.clone())?;
    if let Some(Value::Object(first)) = feed.get("first").filter(|_| !has_items(&feed)) {
        feed = first.clone();
    }
    feed.remove("@context");
    rename(&mut feed, &[("orderedItems", "items"), ("name", "title"), ("next", "next_url")]);
    Some(feed)
}

fn has_items(collection: &Object) -> bool {
    collection.contains_key("items") || collection.contains_key("orderedItems")
}

/// An activity, which has an object such as a note; or an object alone.
fn activity(item: &mut Object) {
    if let Some(Value::Object(object)) = item.get("object").cloned() {
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
fn activities_of_2011(document: &Object) -> Option<Object> {
    let is_activity = |item: &Value| {
        item.get("verb").is_some_and(Value::is_string)
            && item.get("object").is_some_and(Value::is_object)
    };
    list(document, "items").any(is_activity).then(|| document.clone())
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
mod tests {
    use url::Url;

    use crate::context::Context;
    use crate::model::{Content, Entry, FeedFormat};
    use crate::parse::parse;

    /// The format of a document, and its only entry.
    fn read(text: &str) -> (FeedFormat, Entry) {
        let context = Context::new(Url::parse("https://tides.test/outbox").unwrap());
        let mut feed = parse(text.as_bytes(), &context).unwrap();
        assert_eq!(feed.entries.len(), 1, "{feed:?}");
        (feed.format, feed.entries.remove(0))
    }

    fn content(entry: &Entry) -> &str {
        let Some(Content::Text(text)) = &entry.content else { panic!("no content") };
        &text.value
    }

    #[test]
    fn n13_rss_in_json_is_read() {
        let (format, entry) = read(
            r##"{"rss": {"version": "2.0", "channel": {"title": "Tides", "link": "https://tides.test/",
            "item": {"title": "Ebb", "link": "https://tides.test/1", "description": "<p>low</p>",
            "guid": {"isPermaLink": "false", "#value": "e1"}, "pubDate": "Sun, 01 Nov 2026 02:03:04 GMT",
            "category": [{"#value": "sea"}], "enclosure": {"url": "https://tides.test/1.mp3", "type": "audio/mpeg", "length": "9"}}}}}"##,
        );
        assert_eq!(
            (format, entry.id.as_str(), content(&entry)),
            (FeedFormat::RssInJson, "e1", "<p>low</p>")
        );
        assert_eq!((entry.links.len(), entry.categories[0].term.as_str()), (2, "sea"));
        assert_eq!(entry.links[1].mime.as_deref(), Some("audio/mpeg"));
        assert_eq!(entry.published.unwrap().timestamp(), 1_793_498_584);
    }

    #[test]
    fn n13_activities_are_read_by_their_objects() {
        let (format, entry) = read(
            r##"{"@context": "https://www.w3.org/ns/activitystreams", "type": "OrderedCollectionPage",
            "orderedItems": [{"id": "https://tides.test/a/1", "type": "Create", "actor": "https://tides.test/@ada",
            "published": "2026-11-01T02:03:04Z", "object": {"id": "https://tides.test/n/1", "type": "Note",
            "content": "<p>low</p>", "url": [{"type": "Link", "href": "https://tides.test/@ada/1"}],
            "attachment": [{"url": "https://tides.test/1.png", "mediaType": "image/png"}],
            "tag": [{"type": "Hashtag", "name": "#sea"}, {"type": "Mention", "name": "@bob"}]}}, "https://tides.test/a/2"]}"##,
        );
        assert_eq!(
            (format, entry.id.as_str()),
            (FeedFormat::ActivityStreams2, "https://tides.test/n/1")
        );
        assert_eq!(
            (content(&entry), entry.links[0].href.as_str()),
            ("<p>low</p>", "https://tides.test/@ada/1")
        );
        assert_eq!(entry.authors[0].uri.as_deref(), Some("https://tides.test/@ada"));
        assert_eq!((entry.categories.len(), entry.links.len()), (1, 2));
        assert!(entry.published.is_some());
    }

    #[test]
    fn n13_activities_of_2011_are_read() {
        let (format, entry) = read(
            r#"{"items": [{"published": "2026-11-01T02:03:04Z", "verb": "post", "title": "Ada posted",
            "actor": {"objectType": "person", "displayName": "Ada", "url": "https://tides.test/ada"},
            "object": {"id": "tag:tides.test,2026:1", "objectType": "note", "content": "low", "url": "https://tides.test/1"}}]}"#,
        );
        assert_eq!(
            (format, entry.id.as_str()),
            (FeedFormat::ActivityStreams1, "tag:tides.test,2026:1")
        );
        assert_eq!((content(&entry), entry.authors[0].name.as_str()), ("low", "Ada"));
    }

    #[test]
    fn n13_what_superfeedr_sends_is_read() {
        let (format, entry) = read(
            r#"{"status": {"code": 200, "feed": "https://tides.test/feed"}, "title": "Tides",
            "items": [{"id": "e1", "title": "Ebb", "published": 1793498584, "permalinkUrl": "https://tides.test/1",
            "actor": {"displayName": "Ada", "permalinkUrl": "https://tides.test/ada"}, "categories": ["sea"],
            "standardLinks": {"enclosure": [{"href": "https://tides.test/1.mp3", "type": "audio/mpeg"}]}}]}"#,
        );
        assert_eq!((format, entry.id.as_str()), (FeedFormat::SuperfeedrJson, "e1"));
        assert_eq!(entry.published.unwrap().timestamp(), 1_793_498_584);
        assert_eq!((entry.links.len(), entry.authors[0].name.as_str()), (2, "Ada"));
    }

    #[test]
    fn n13_collections_without_objects_are_no_feeds() {
        let context = Context::new(Url::parse("https://tides.test/outbox").unwrap());
        for text in [
            r#"{"type": "OrderedCollection", "totalItems": 3, "first": "https://tides.test/outbox?page=1"}"#,
            r#"{"type": "Collection", "items": ["https://tides.test/1"]}"#,
            r#"{"rss": {"channel": {"title": "x"}}}"#,
        ] {
            assert!(parse(text.as_bytes(), &context).is_err(), "{text}");
        }
    }
}
