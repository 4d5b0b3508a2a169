//! JSON Feed 1.0 and 1.1.
//!
//! Parsing is lenient: numbers are accepted as texts, a missing title is ignored, and a single value is
//! accepted as a list. A missing version is ignored if most items are what JSON Feed says of them; the
//! answers of other services have `items` as well, whose data an entry could not hold. Extensions and
//! fields without a counterpart in Atom are kept as elements whose text is the value, as JSON if it is not
//! a string.

mod dialects;
mod values;

use chrono::{DateTime, FixedOffset, Utc};
use serde_json::{Map, Value};

use crate::model::{
    Attribute, Category, Content, Element, Entry, Feed, FeedFormat, Link, Node, Person, Text,
    TextKind,
};
use crate::parse::memory_bound::has_too_many_values;
use crate::parse::selection::{Choice, Room, Selection};
use crate::parse::trace::{JsonPointer, SourceTrace, Traceable};
use crate::parse::{MAX_ENTRIES, NotAFeed, Notes, dates, json};
use crate::repair::{Repair, RepairCode};

use values::{inner_text, list, mend_texts, scalar, string};

/// The namespace of kept fields.
const NAMESPACE: &str = "https://www.jsonfeed.org/version/1.1/";
const PREFIX: &str = "json";

/// The fields that are mapped to Atom.
#[rustfmt::skip]
const READ: [&str; 31] = [
    "version", "title", "home_page_url", "feed_url", "description", "next_url", "icon", "favicon",
    "author", "authors", "language", "hubs", "items", "id", "url", "external_url", "content_html",
    "content_text", "summary", "date_published", "date_modified", "tags", "attachments", "expired",
    "user_comment", "image", "banner_image", "avatar", "name", "email", "date_created",
];

/// The mapped fields that are kept as well, because Atom covers them only in part.
const KEPT: [&str; 4] = ["expired", "user_comment", "banner_image", "date_created"];

/// The fields of which an item has at least one.
const CONTENTS: [&str; 4] = ["content_html", "content_text", "title", "url"];

/// The mapped fields that are not texts.
const LISTS: [&str; 6] = ["author", "authors", "hubs", "items", "tags", "attachments"];

/// Reads a feed from a JSON text.
pub(in crate::parse) fn read(
    text: &str,
    received_at: Option<DateTime<Utc>>,
    notes: Notes<'_>,
) -> Result<Feed, NotAFeed> {
    let Notes { repairs, trace } = notes;
    if has_too_many_values(text) {
        return Err(NotAFeed::Other("JSON with too many values"));
    }
    let mut value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(err) => {
            repairs.push(Repair::new(RepairCode::BrokenJson, err.to_string()));
            let mended = serde_json::from_str(&json::repair_json(text));
            mended.map_err(|_| NotAFeed::Other("broken JSON"))?
        }
    };
    mend_texts(&mut value, repairs);
    let Value::Object(object) = value else { return Err(NotAFeed::Other("JSON of another kind")) };
    // Fields that have got other names have no place in the document.
    let mut unrecorded = SourceTrace::default();
    let (format, object, trace) = match dialects::as_json_feed(object) {
        Ok((format, object)) => (format, object, &mut unrecorded),
        Err(object) => (version_of(&object)?, object, trace),
    };
    Ok(read_object(&object, (format, received_at), Notes { repairs, trace }))
}

/// Reads the items of a feed that has nothing else.
#[cfg(feature = "html")]
pub(in crate::parse) fn read_items(
    items: Vec<Value>,
    received_at: Option<DateTime<Utc>>,
    notes: Notes<'_>,
) -> Feed {
    let mut items = Value::Array(items);
    mend_texts(&mut items, notes.repairs);
    let object = Map::from_iter([("items".to_owned(), items)]);
    read_object(&object, (FeedFormat::MappedJson, received_at), notes)
}

fn read_object(
    object: &Map<String, Value>,
    (format, received_at): (FeedFormat, Option<DateTime<Utc>>),
    notes: Notes<'_>,
) -> Feed {
    let Notes { repairs, trace } = notes;
    let mut feed = Feed { format, ..Feed::default() };
    let mut reading = Reading { object, item: None, repairs, trace };
    reading.feed(&mut feed);
    let items = list(object, "items").enumerate();
    let mut items: Vec<_> = items.filter_map(|(n, item)| Some((n, item.as_object()?))).collect();
    if items.len() > MAX_ENTRIES {
        let choices: Vec<Choice> = items.iter().map(|(_, item)| choice(item)).collect();
        let selection = Selection::choose(&choices, Room::ENTRIES, received_at);
        repairs.push(selection.report(selection.kept.len()));
        items = selection.kept.iter().map(|at| items[*at]).collect();
        feed.gap = selection.gap;
    }
    for (n, item) in items {
        let mut entry = Entry::default();
        let mut reading = Reading { object: item, item: Some(n), repairs, trace };
        reading.entry(&mut entry);
        feed.entries.push(entry);
    }
    feed
}

/// Returns the version of a JSON Feed.
fn version_of(object: &Map<String, Value>) -> Result<FeedFormat, NotAFeed> {
    let version = string(object, "version").unwrap_or_default();
    if !version.contains("jsonfeed.org/version/") && !has_items_of_a_feed(object) {
        return Err(match list(object, "items").next() {
            Some(_) => NotAFeed::OTHER_LIST,
            None => NotAFeed::Other("JSON of another kind"),
        });
    }
    let is_first = version.ends_with("/1");
    Ok(if is_first { FeedFormat::JsonFeed10 } else { FeedFormat::JsonFeed11 })
}

/// Returns whether most items have an id and contents, or there is a title and none yet.
fn has_items_of_a_feed(object: &Map<String, Value>) -> bool {
    if object.get("items").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        return object.get("title").is_some_and(Value::is_string);
    }
    let is_item = |item: &&Value| {
        let has = |field: &&str| item.get(*field).and_then(scalar).is_some();
        has(&"id") && CONTENTS.iter().any(has)
    };
    let items = list(object, "items").count();
    list(object, "items").filter(is_item).count() * 2 > items
}

/// Returns what decides whether an item is read of a feed that has too many.
fn choice(item: &Map<String, Value>) -> Choice {
    let date = |field: &str| dates::parse(&string(item, field)?);
    let date = date("date_published").or_else(|| date("date_modified"));
    Choice::of_entry(date)
}

/// The state of reading one JSON object.
#[derive(Debug)]
struct Reading<'r> {
    object: &'r Map<String, Value>,
    /// The index of the item; `None` for the feed.
    item: Option<usize>,
    repairs: &'r mut Vec<Repair>,
    trace: &'r mut SourceTrace,
}

impl Reading<'_> {
    fn feed(&mut self, feed: &mut Feed) {
        self.trace.begin(feed, JsonPointer { item: None, field: "", index: None });
        self.text(feed, "title", |feed, text| feed.title = Some(Text::plain(text)));
        self.text(feed, "description", |feed, text| feed.subtitle = Some(Text::plain(text)));
        self.text(feed, "icon", |feed, text| feed.logo = Some(text));
        self.text(feed, "favicon", |feed, text| feed.icon = Some(text));
        self.text(feed, "language", |feed, text| feed.lang = Some(text));
        self.authors(feed, |feed| &mut feed.authors);
        self.extensions(feed, |feed| &mut feed.extensions);
        for (field, rel) in
            [("home_page_url", "alternate"), ("feed_url", "self"), ("next_url", "next")]
        {
            self.text(feed, field, |feed, href| feed.links.push(link(href, rel)));
        }
        self.each(feed, "hubs", |feed, hub| {
            let Some(hub) = hub.as_object() else { return };
            let is_websub = string(hub, "type").is_none_or(|kind| {
                kind.eq_ignore_ascii_case("websub") || kind.eq_ignore_ascii_case("pubsubhubbub")
            });
            match string(hub, "url") {
                Some(href) if is_websub => feed.links.push(link(href, "hub")),
                // A hub of another protocol, such as rssCloud.
                _ => feed.extensions.push(element("hubs", Value::from(hub.clone()).to_string())),
            }
        });
    }

    fn entry(&mut self, entry: &mut Entry) {
        self.trace.begin(entry, JsonPointer { item: self.item, field: "", index: None });
        self.text(entry, "id", |entry, text| entry.id = text);
        self.text(entry, "title", |entry, text| entry.title = Some(Text::plain(text)));
        self.text(entry, "summary", |entry, text| entry.summary = Some(Text::plain(text)));
        self.text(entry, "language", |entry, text| entry.lang = Some(text));
        self.authors(entry, |entry| &mut entry.authors);
        self.extensions(entry, |entry| &mut entry.extensions);
        self.date(entry, "date_published", |entry| &mut entry.published);
        self.date(entry, "date_modified", |entry| &mut entry.updated);
        self.text(entry, "url", |entry, href| entry.links.push(link(href, "alternate")));
        // `external_url` is a related page, or the page of an item that has no other.
        let rel = if entry.links.is_empty() { "alternate" } else { "related" };
        self.text(entry, "external_url", |entry, href| entry.links.push(link(href, rel)));
        self.text(entry, "content_html", |entry, value| {
            let text = Text { kind: TextKind::Html, value, ..Text::default() };
            entry.content = Some(Content::Text(text));
        });
        self.text(entry, "content_text", |entry, text| match entry.content {
            Some(_) => entry.extensions.push(element("content_text", text)),
            None => entry.content = Some(Content::Text(Text::plain(text))),
        });
        self.text(entry, "image", |entry, url| entry.extensions.push(thumbnail(url)));
        self.each(entry, "tags", |entry, tag| {
            let term = scalar(tag).or_else(|| inner_text(tag));
            entry.categories.extend(term.map(|term| Category { term, ..Category::default() }));
        });
        self.each(entry, "attachments", |entry, attachment| {
            entry.links.extend(attachment.as_object().and_then(enclosure));
        });
    }

    /// Reads a text field, if it is present.
    fn text<F: Traceable>(&mut self, of: &mut F, field: &str, fill: impl FnOnce(&mut F, String)) {
        if let Some(text) = string(self.object, field) {
            let before = self.trace.snapshot(of);
            fill(of, text);
            self.trace.record_changes(
                before,
                of,
                JsonPointer { item: self.item, field, index: None },
            );
        }
    }

    /// Reads a list field, value by value.
    fn each<F: Traceable>(&mut self, of: &mut F, field: &str, fill: impl Fn(&mut F, &Value)) {
        let is_list = self.object.get(field).is_some_and(Value::is_array);
        for (n, value) in list(self.object, field).enumerate() {
            let before = self.trace.snapshot(of);
            fill(of, value);
            let index = is_list.then_some(n);
            self.trace.record_changes(before, of, JsonPointer { item: self.item, field, index });
        }
    }

    /// Reads a date. An invalid date is reported as a repair and kept as an extension.
    fn date(
        &mut self,
        entry: &mut Entry,
        field: &str,
        slot: impl FnOnce(&mut Entry) -> &mut Option<DateTime<FixedOffset>>,
    ) {
        let Some(text) = string(self.object, field) else { return };
        let date = dates::parse(&text);
        if date.is_none() {
            let repair =
                Repair::new(RepairCode::BadDate, text.chars().take(64).collect::<String>());
            self.repairs.push(repair.within(entry.trace_id));
        }
        self.text(entry, field, |entry, text| match date {
            Some(date) => *slot(entry) = Some(date),
            None => entry.extensions.push(element(field, text)),
        });
    }

    /// Reads `authors` of version 1.1 and `author` of 1.0, which many feeds write both.
    fn authors<F: Traceable>(&mut self, of: &mut F, people: impl Fn(&mut F) -> &mut Vec<Person>) {
        for field in ["authors", "author"] {
            self.each(of, field, |of, author| {
                let person = person(author);
                people(of).extend((person != Person::default()).then_some(person));
            });
        }
    }

    /// Keeps the fields without a counterpart in Atom.
    fn extensions<F: Traceable>(&mut self, of: &mut F, kept: impl Fn(&mut F) -> &mut Vec<Element>) {
        for (field, value) in self.object {
            let is_text = !LISTS.contains(&field.as_str());
            let is_odd = is_text && matches!(value, Value::Array(_) | Value::Object(_));
            let read = READ.contains(&field.as_str()) && !KEPT.contains(&field.as_str());
            if (read && !is_odd) || value.is_null() {
                continue;
            }
            let before = self.trace.snapshot(of);
            let text = scalar(value).unwrap_or_else(|| value.to_string());
            kept(of).push(element(field, text));
            self.trace.record_changes(
                before,
                of,
                JsonPointer { item: self.item, field, index: None },
            );
        }
    }
}

fn person(author: &Value) -> Person {
    match author {
        Value::Object(author) => Person {
            name: string(author, "name").unwrap_or_default(),
            email: string(author, "email"),
            uri: string(author, "url"),
            extensions: string(author, "avatar").map(avatar).into_iter().collect(),
            ..Person::default()
        },
        other => Person { name: scalar(other).unwrap_or_default(), ..Person::default() },
    }
}

fn enclosure(attachment: &Map<String, Value>) -> Option<Link> {
    let read = ["url", "mime_type", "title", "size_in_bytes"];
    let others = attachment.iter().filter(|(field, _)| !read.contains(&field.as_str()));
    let attributes = others.filter_map(|(field, value)| {
        Some(Attribute {
            namespace: NAMESPACE.into(),
            prefix: PREFIX.into(),
            name: xml_name(field),
            value: scalar(value)?,
        })
    });
    Some(Link {
        mime: string(attachment, "mime_type"),
        title: string(attachment, "title"),
        length: string(attachment, "size_in_bytes"),
        attributes: attributes.collect(),
        ..link(string(attachment, "url")?, "enclosure")
    })
}

/// Returns the link to a person's picture, as Superfeedr subscribers expect it (seed 003,
/// "author").
fn avatar(href: String) -> Element {
    let attributes = vec![attribute("rel", "avatar".into()), attribute("href", href)];
    Element {
        namespace: "http://www.w3.org/2005/Atom".into(),
        prefix: "atom".into(),
        name: "link".into(),
        attributes,
        children: Vec::new(),
        ..Element::default()
    }
}

/// Returns an item's picture as a Media RSS thumbnail.
fn thumbnail(url: String) -> Element {
    Element {
        namespace: "http://search.yahoo.com/mrss/".into(),
        prefix: "media".into(),
        name: "thumbnail".into(),
        attributes: vec![attribute("url", url)],
        children: Vec::new(),
        ..Element::default()
    }
}

fn attribute(name: &str, value: String) -> Attribute {
    Attribute { name: name.into(), value, ..Attribute::default() }
}

/// Returns the name of a field as one of XML: characters that are not allowed become underscores.
fn xml_name(field: &str) -> String {
    let name: String = field
        .chars()
        .map(|c| if c.is_alphanumeric() || matches!(c, '_' | '-' | '.') { c } else { '_' })
        .collect();
    let is_begun = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    if is_begun { name } else { format!("_{name}") }
}

/// Returns a field as an element.
fn element(field: &str, value: String) -> Element {
    Element {
        namespace: NAMESPACE.into(),
        prefix: PREFIX.into(),
        name: xml_name(field),
        attributes: Vec::new(),
        children: vec![Node::Text(value)],
        ..Element::default()
    }
}

fn link(href: String, rel: &str) -> Link {
    Link { href, rel: rel.into(), ..Link::default() }
}
