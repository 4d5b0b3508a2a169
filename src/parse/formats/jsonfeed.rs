//! JSON Feed 1.0 and 1.1.
//!
//! Read leniently: numbers serve as texts, a missing version or title does no harm, one
//! value serves where a list is due. Fields without a home in Atom, and extensions, are
//! kept as elements whose text is the value, as JSON where it is not a string.

use serde_json::{Map, Value};

use crate::domain::feed::{
    Attribute, Category, Content, Element, Entry, Feed, Link, Node, Person, Text, TextKind,
};
use crate::domain::repair::{Code, Repair};
use crate::parse::{MAX_ENTRIES, NotAFeed, dates, json};

/// Where fields without a home in Atom go.
const NAMESPACE: &str = "https://www.jsonfeed.org/version/1.1/";
const PREFIX: &str = "json";

/// Fields that are read into Atom.
#[rustfmt::skip]
const READ: [&str; 31] = [
    "version", "title", "home_page_url", "feed_url", "description", "next_url", "icon", "favicon",
    "author", "authors", "language", "hubs", "items", "id", "url", "external_url", "content_html",
    "content_text", "summary", "date_published", "date_modified", "tags", "attachments", "expired",
    "user_comment", "image", "banner_image", "avatar", "name", "email", "date_created",
];

/// Of those, the ones that are kept as well, because Atom has only part of them.
const KEPT: [&str; 4] = ["expired", "user_comment", "banner_image", "date_created"];

/// Reads a feed out of a JSON text.
pub(in crate::parse) fn read(text: &str, repairs: &mut Vec<Repair>) -> Result<Feed, NotAFeed> {
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(err) => {
            repairs.push(Repair::new(Code::BrokenJson, err.to_string()));
            let mended = serde_json::from_str(&json::mend(text));
            mended.map_err(|_| NotAFeed::Other("broken JSON"))?
        }
    };
    let Value::Object(object) = value else { return Err(NotAFeed::Other("JSON of another kind")) };
    let version = string(&object, "version").unwrap_or_default();
    let known = version.contains("jsonfeed.org/version/")
        || object.get("items").is_some_and(Value::is_array);
    if !known {
        return Err(NotAFeed::Other("JSON of another kind"));
    }
    let mut feed = Feed {
        format: if version.ends_with("/1") { "jsonfeed1.0" } else { "jsonfeed1.1" },
        title: string(&object, "title").map(Text::plain),
        subtitle: string(&object, "description").map(Text::plain),
        logo: string(&object, "icon"),
        icon: string(&object, "favicon"),
        authors: authors(&object),
        lang: string(&object, "language"),
        extensions: extensions(&object),
        ..Feed::default()
    };
    for (field, rel) in [("home_page_url", "alternate"), ("feed_url", "self"), ("next_url", "next")]
    {
        feed.links.extend(string(&object, field).map(|href| link(href, rel)));
    }
    for hub in list(&object, "hubs").filter_map(Value::as_object) {
        feed.links.extend(string(hub, "url").map(|href| link(href, "hub")));
    }
    let items = list(&object, "items").filter_map(Value::as_object);
    feed.entries = items.take(MAX_ENTRIES).map(entry).collect();
    Ok(feed)
}

fn entry(item: &Map<String, Value>) -> Entry {
    let mut entry = Entry {
        id: string(item, "id").unwrap_or_default(),
        title: string(item, "title").map(Text::plain),
        summary: string(item, "summary").map(Text::plain),
        published: string(item, "date_published").and_then(|text| dates::parse(&text)),
        updated: string(item, "date_modified").and_then(|text| dates::parse(&text)),
        authors: authors(item),
        lang: string(item, "language"),
        extensions: extensions(item),
        ..Entry::default()
    };
    entry.links.extend(string(item, "url").map(|href| link(href, "alternate")));
    // What the item links to or is about; its page, if it has no other.
    let rel = if entry.links.is_empty() { "alternate" } else { "related" };
    entry.links.extend(string(item, "external_url").map(|href| link(href, rel)));
    let plain = string(item, "content_text").map(Text::plain);
    match string(item, "content_html") {
        Some(value) => {
            entry.content =
                Some(Content::Text(Text { kind: TextKind::Html, value, ..Text::default() }));
            entry.extensions.extend(plain.map(|text| element("content_text", text.value)));
        }
        None => entry.content = plain.map(Content::Text),
    }
    entry.extensions.extend(string(item, "image").map(thumbnail));
    for term in list(item, "tags").filter_map(scalar) {
        entry.categories.push(Category { term, ..Category::default() });
    }
    for attachment in list(item, "attachments").filter_map(Value::as_object) {
        entry.links.extend(enclosure(attachment));
    }
    entry
}

fn enclosure(attachment: &Map<String, Value>) -> Option<Link> {
    let duration = string(attachment, "duration_in_seconds").map(|value| Attribute {
        namespace: NAMESPACE.into(),
        prefix: PREFIX.into(),
        name: "duration_in_seconds".into(),
        value,
    });
    Some(Link {
        mime: string(attachment, "mime_type"),
        title: string(attachment, "title"),
        length: string(attachment, "size_in_bytes"),
        attributes: duration.into_iter().collect(),
        ..link(string(attachment, "url")?, "enclosure")
    })
}

/// The authors of 1.1 and the one of 1.0, which many write beside each other.
fn authors(object: &Map<String, Value>) -> Vec<Person> {
    let mut people: Vec<Person> = Vec::new();
    for author in list(object, "authors").chain(list(object, "author")) {
        let person = match author {
            Value::Object(author) => Person {
                name: string(author, "name").unwrap_or_default(),
                email: string(author, "email"),
                uri: string(author, "url"),
                extensions: string(author, "avatar").map(avatar).into_iter().collect(),
            },
            other => Person { name: scalar(other).unwrap_or_default(), ..Person::default() },
        };
        if person != Person::default() {
            people.push(person);
        }
    }
    people
}

/// A person's picture, as subscribers know it (seed 003, "author").
fn avatar(href: String) -> Element {
    let attributes = vec![attribute("rel", "avatar".into()), attribute("href", href)];
    Element {
        namespace: "http://www.w3.org/2005/Atom".into(),
        prefix: "atom".into(),
        name: "link".into(),
        attributes,
        children: Vec::new(),
    }
}

/// An item's picture, as Media RSS has it.
fn thumbnail(url: String) -> Element {
    Element {
        namespace: "http://search.yahoo.com/mrss/".into(),
        prefix: "media".into(),
        name: "thumbnail".into(),
        attributes: vec![attribute("url", url)],
        children: Vec::new(),
    }
}

fn attribute(name: &str, value: String) -> Attribute {
    Attribute { name: name.into(), value, ..Attribute::default() }
}

/// What has no home in Atom.
fn extensions(object: &Map<String, Value>) -> Vec<Element> {
    let kept = object.iter().filter(|(name, value)| {
        let read = READ.contains(&name.as_str()) && !KEPT.contains(&name.as_str());
        !read && !value.is_null() && *name != "language"
    });
    kept.map(|(name, value)| element(name, scalar(value).unwrap_or_else(|| value.to_string())))
        .collect()
}

/// A field as an element; what is no name in XML gets underlines.
fn element(field: &str, value: String) -> Element {
    let name: String = field
        .chars()
        .map(|c| if c.is_alphanumeric() || matches!(c, '_' | '-' | '.') { c } else { '_' })
        .collect();
    let name = if name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        name
    } else {
        format!("_{name}")
    };
    Element {
        namespace: NAMESPACE.into(),
        prefix: PREFIX.into(),
        name,
        attributes: Vec::new(),
        children: vec![Node::Text(value)],
    }
}

fn link(href: String, rel: &str) -> Link {
    Link { href, rel: rel.into(), ..Link::default() }
}

/// A field's text, if there is any.
fn string(object: &Map<String, Value>, name: &str) -> Option<String> {
    object.get(name).and_then(scalar)
}

fn scalar(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Bool(truth) => truth.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    let text: String = text.chars().filter(|c| crate::parse::decode::is_xml_char(*c)).collect();
    (!text.is_empty()).then_some(text)
}

/// A field's values; one value serves as a list of one.
fn list<'o>(object: &'o Map<String, Value>, name: &str) -> impl Iterator<Item = &'o Value> {
    match object.get(name) {
        Some(Value::Array(values)) => values.iter(),
        Some(value) => std::slice::from_ref(value).iter(),
        None => [].iter(),
    }
}
