//! Serialization of an entry as JSON.

use serde_json::{Map, Value, json};

use crate::model::{Content, Element, Entry, Feed, Person, Text};
use crate::own_elements;

use super::super::categories::distinct_categories;
use super::object::object;
use super::parts::{
    GEORSS, child, insert_some, last_short_name, permalink, seconds, standard_links, text,
};
use super::person::actor;
use super::{modules, picture};

/// Returns the entry as an item. An entry without an author gets that of the feed.
pub(in crate::render) fn item(entry: &Entry, feed: &Feed) -> Value {
    let mut item = Map::new();
    item.insert("id".to_owned(), Value::String(entry.id.clone()));
    let title = entry.title.as_ref().map(Text::to_plain).unwrap_or_default();
    item.insert("title".to_owned(), Value::String(title));
    insert_texts(&mut item, entry);
    insert_some(&mut item, "originalId", own_elements::stated_value(&entry.extensions, "id"));
    // Clients read `published` without checking whether it exists.
    insert_some(&mut item, "published", entry.published.or(entry.updated).map(seconds));
    insert_some(&mut item, "updated", entry.updated.map(seconds));
    insert_some(&mut item, "permalinkUrl", permalink(&entry.links));
    let picture = picture::of_entry(entry);
    insert_some(&mut item, "standardLinks", standard_links(&entry.links, picture));
    let author = entry_author(entry, feed);
    insert_some(&mut item, "actor", author.map(|author| actor(author, home_id(entry, feed))));
    insert_some(&mut item, "derived", derived(entry, author));
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
fn entry_author<'a>(entry: &'a Entry, feed: &'a Feed) -> Option<&'a Person> {
    let of_source = entry.source.as_ref().and_then(|source| source.authors.first());
    entry.authors.first().or(of_source).or(feed.authors.first())
}

/// Returns the id of the feed that the entry comes from.
fn home_id<'a>(entry: &'a Entry, feed: &'a Feed) -> &'a str {
    let home = entry.source.as_deref().filter(|source| !source.id.is_empty()).unwrap_or(feed);
    &home.id
}

/// Returns the keys of values that the source does not state.
fn derived(entry: &Entry, author: Option<&Person>) -> Option<Value> {
    let keys = [
        ("published", entry.published.is_none() && entry.updated.is_some()),
        ("updated", own_elements::has_derived(&entry.extensions, "updated")),
        ("actor", author.is_some_and(own_elements::is_derived)),
    ];
    let keys = keys.into_iter().filter(|(_, is_derived)| *is_derived);
    let keys: Vec<Value> = keys.map(|(key, _)| Value::String(key.to_owned())).collect();
    (!keys.is_empty()).then_some(Value::Array(keys))
}

fn categories(entry: &Entry) -> Option<Value> {
    let display = |term: &str, label: Option<&str>| match label {
        Some(label) if term.is_empty() => Value::String(label.to_owned()),
        _ => Value::String(term.to_owned()),
    };
    let distinct = distinct_categories(&entry.categories).into_iter();
    let list: Vec<Value> = distinct.map(|c| display(&c.term, c.label.as_deref())).collect();
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

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use crate::{Context, Normalized, normalize, parse, render};

    fn normalized(document: &str) -> Normalized {
        let context = Context::new("https://tides.test/feed".parse().unwrap());
        normalize(document.as_bytes(), &context).unwrap()
    }

    /// Returns the first item, which must be the same when it is made of the Atom that is stored.
    fn item(document: &str) -> Value {
        let normalized = normalized(document);
        let context = Context::new("https://tides.test/feed".parse().unwrap());
        let stored = parse::parse(normalized.to_atom().as_bytes(), &context).unwrap();
        let item = normalized.to_json()["items"][0].take();
        assert_eq!(render::json::feed(&stored)["items"][0], item, "as stored: {document}");
        item
    }

    fn atom(feed: &str, entry: &str) -> String {
        format!(
            "<feed xmlns='http://www.w3.org/2005/Atom'><title>Tides</title><id>urn:x:f</id>{feed}\
             <entry><id>urn:x:1</id><title>One</title>{entry}</entry></feed>"
        )
    }

    fn rss(item: &str) -> String {
        format!(
            "<rss version='2.0'><channel><title>Tides</title>\
             <lastBuildDate>Fri, 27 Nov 2026 00:00:00 GMT</lastBuildDate>\
             <item><title>One</title>{item}</item></channel></rss>"
        )
    }

    #[test]
    fn n02_an_item_has_a_date_of_publication_and_says_whether_it_is_derived() {
        let author = "<author><name>Ada</name></author>";
        let updated = "<updated>2026-03-01T00:00:00Z</updated>";
        let published = "<published>2026-02-01T00:00:00Z</published>";
        let (march, february, november) = (1_772_323_200, 1_769_904_000, 1_795_737_600);
        let json_feed = r#"{"version": "https://jsonfeed.org/version/1.1", "authors": [{"name": "Ada"}],
            "items": [{"id": "1", "content_text": "x", "date_modified": "2026-03-01T00:00:00Z"}]}"#;
        #[rustfmt::skip]
        let cases = [
            ("both",              atom(author, &format!("{published}{updated}")),        february, None),
            ("only when updated", atom(author, updated),                                 march,    Some(vec!["published"])),
            ("the same in JSON",  json_feed.to_owned(),                                  march,    Some(vec!["published"])),
            ("when created",      rss("<author>a@b.test (Ada)</author><created>2026-03-01T00:00:00Z</created>"), march, None),
            ("none",              rss("<author>a@b.test (Ada)</author>"),                november, Some(vec!["published", "updated"])),
        ];
        for (why, document, date, derived) in cases {
            let item = item(&document);
            assert_eq!(item["published"], date, "{why}");
            let told =
                item.get("derived").map(|keys| serde_json::from_value(keys.clone()).unwrap());
            assert_eq!(
                told,
                derived.map(|keys| keys.into_iter().map(str::to_owned).collect::<Vec<_>>()),
                "{why}"
            );
        }
    }

    #[test]
    fn n03_an_author_is_stated_or_marked_and_atom_and_json_agree() {
        let updated = "<updated>2026-03-01T00:00:00Z</updated>";
        let published = "<published>2026-03-01T00:00:00Z</published>";
        let entry = |more: &str| format!("{updated}{published}{more}");
        let ada = "<author><name>Ada</name></author>";
        let same = "<author><name>Tides</name></author>";
        let source = "<source><id>urn:x:s</id><author><name>Ben</name></author></source>";
        #[rustfmt::skip]
        let cases = [
            ("of the entry",               atom("", &entry(ada)),    "Ada",   false),
            ("of the feed",                atom(ada, &entry("")),    "Ada",   false),
            ("called like the feed",       atom(same, &entry("")),   "Tides", false),
            ("of the source",              atom("", &entry(source)), "Ben",   false),
            ("of nobody",                  atom("", &entry("")),     "Tides", true),
        ];
        for (why, document, name, is_derived) in cases {
            let item = item(&document);
            assert_eq!(item["actor"]["displayName"], name, "{why}");
            assert_eq!(
                item.get("derived").is_some_and(|keys| keys[0] == "actor"),
                is_derived,
                "{why}"
            );
            let atom = normalized(&document).to_atom();
            let (head, entry) = atom.split_once("<entry").unwrap();
            let id = item["actor"]["id"].as_str().unwrap();
            let id = format!(">{id}</id>");
            if is_derived {
                assert!(!entry.contains("<author>"), "{why}: {entry}");
                assert!(head.contains("<derived ") && head.contains(&id), "{why}: {head}");
            } else {
                assert!(entry.contains(&format!("<name>{name}</name>")), "{why}: {entry}");
                assert!(entry.contains(&id) && !entry.contains("<derived "), "{why}: {entry}");
            }
        }
    }

    #[test]
    fn n07_the_id_of_the_source_stands_beside_another() {
        let guid = |id: &str| rss(&format!("<guid isPermaLink='false'>{id}</guid>"));
        #[rustfmt::skip]
        let cases = [
            ("pod1-4",        Some("pod1-4")),
            ("A &amp; b%20",  Some("A & b%20")),
            ("urn:x:1",       None),
        ];
        for (id, original) in cases {
            let item = item(&guid(id));
            assert_eq!(item.get("originalId").and_then(Value::as_str), original, "{id}");
        }
        assert_eq!(item(&guid("pod1-4"))["id"], "urn:guid:pod1-4");
    }
}
