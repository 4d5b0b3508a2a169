//! JSON documents with Superfeedr's field names (seed 003).
//!
//! Times are seconds since 1970. Numbers are written as numbers. Unknown values are left out,
//! except in the status and the title of a link, because clients read these keys without checking
//! whether they exist. `schemas/notification.schema.json` describes the documents.

pub(super) mod item;
pub(super) mod modules;
mod object;
pub(super) mod parts;
mod person;
pub(super) mod picture;

use serde_json::{Map, Value, json};

use crate::model::{Feed, Text};
use crate::render::StatusReport;

use parts::{insert_some, seconds, standard_links};

/// Returns a whole document: `feed` as read from stored Atom, with its entries in the given order.
pub fn document(feed: &Feed, topic: &str, status: StatusReport<'_>) -> Value {
    let mut document = head(feed, topic, status);
    document.insert("items".to_owned(), items(feed));
    Value::Object(document)
}

/// Returns a feed without the status of a resource.
pub fn feed(feed: &Feed) -> Value {
    let mut document = metadata(feed, "");
    document.insert("items".to_owned(), items(feed));
    Value::Object(document)
}

/// Returns a document with the status only. It has no `items` key; its absence tells clients that
/// the resource has a problem.
pub fn status_only(feed: &Feed, topic: &str, status: StatusReport<'_>) -> Value {
    Value::Object(head(feed, topic, status))
}

fn head(feed: &Feed, topic: &str, status: StatusReport<'_>) -> Map<String, Value> {
    let mut head = Map::new();
    head.insert("status".to_owned(), status_object(topic, status));
    head.append(&mut metadata(feed, status.title));
    head
}

fn items(feed: &Feed) -> Value {
    feed.entries.iter().map(|entry| item::item(entry, feed)).collect()
}

/// Returns the metadata. `title` is used for a feed that has no title.
fn metadata(feed: &Feed, title: &str) -> Map<String, Value> {
    let mut head = Map::new();
    let title = feed.title.as_ref().map_or_else(|| title.to_owned(), Text::to_plain);
    head.insert("title".to_owned(), Value::String(title));
    insert_some(&mut head, "subtitle", feed.subtitle.as_ref().map(Text::to_plain));
    insert_some(&mut head, "id", Some(&feed.id).filter(|id| !id.is_empty()).cloned());
    insert_some(&mut head, "updated", feed.updated.map(seconds));
    insert_some(&mut head, "permalinkUrl", parts::permalink(&feed.links));
    let picture = picture::of_feed(feed);
    insert_some(&mut head, "standardLinks", standard_links(&feed.links, picture));
    modules::insert(&mut head, &feed.extensions);
    head
}

pub(super) fn status_object(topic: &str, status: StatusReport<'_>) -> Value {
    let at = |time: Option<chrono::DateTime<chrono::Utc>>| time.map(|time| time.timestamp());
    let mut object = json!({
        "code": status.http_code,
        "feed": topic,
        "http": status.http_message,
        "title": status.title,
        "period": status.period_s,
        "lastParse": at(status.last_parse),
        "lastFetch": at(status.last_fetch),
        "lastMaintenanceAt": status.last_maintenance_at.timestamp(),
        "nextFetch": at(status.next_fetch),
        "entriesCountSinceLastMaintenance": status.entries_count_since_last_maintenance,
        "velocity": status.velocity,
        "popularity": status.popularity,
        "bozoRank": status.bozo_rank,
    });
    if let Some(object) = object.as_object_mut() {
        let reason = Some(status.period_reason).filter(|reason| !reason.is_empty());
        insert_some(object, "periodReason", reason);
        insert_some(object, "pornRank", status.porn_rank);
        insert_some(object, "generatedIds", status.generated_ids.then_some(true));
        insert_some(object, "digest", status.is_digest.then_some(true));
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Category, Content, Element, Entry, Link, Node, Person};
    use chrono::DateTime;

    fn element(name: &str, children: Vec<Node>) -> Element {
        Element {
            namespace: parts::ACTIVITY.to_owned(),
            prefix: "as".to_owned(),
            name: name.to_owned(),
            children,
            ..Element::default()
        }
    }

    fn sample() -> Feed {
        let at = DateTime::from_timestamp(1_366_549_240, 0).map(|at| at.fixed_offset());
        let link = |rel: &str, href: &str| Link {
            rel: rel.to_owned(),
            href: href.to_owned(),
            ..Link::default()
        };
        let verb = Node::Text("http://activitystrea.ms/schema/1.0/post".to_owned());
        let point = Element {
            namespace: parts::GEORSS.to_owned(),
            name: "point".to_owned(),
            children: vec![Node::Text("47.597553 -122.15925".to_owned())],
            ..Element::default()
        };
        let entry = Entry {
            id: "urn:x:1".to_owned(),
            title: Some(Text::plain("One")),
            content: Some(Content::Text(Text::plain("text"))),
            published: at,
            updated: at,
            authors: vec![Person { name: "Jo".to_owned(), ..Person::default() }],
            categories: vec![Category { term: "rain".to_owned(), ..Category::default() }],
            links: vec![
                link("alternate", "https://a.test/1"),
                link("enclosure", "https://a.test/m"),
            ],
            lang: Some("en".to_owned()),
            extensions: vec![element("verb", vec![verb]), point],
            ..Entry::default()
        };
        Feed { id: "urn:x".to_owned(), entries: vec![entry], ..Feed::default() }
    }

    #[test]
    fn an_entry_has_superfeedrs_names() {
        let document = document(&sample(), "https://a.test/feed", StatusReport::default());
        let want = json!({
            "id": "urn:x:1",
            "title": "One",
            "content": "text",
            "published": 1_366_549_240,
            "updated": 1_366_549_240,
            "permalinkUrl": "https://a.test/1",
            "standardLinks": {
                "alternate": [{"href": "https://a.test/1", "type": "text/html", "title": null}],
                "enclosure": [{"href": "https://a.test/m", "title": null}],
            },
            "actor": {
                "displayName": "Jo",
                "id": "tag:feedgate,2026:person:de90a387ee8c624a046061cd3ace95bb",
            },
            "categories": ["rain"],
            "verb": "post",
            "geo": {"type": "point", "coordinates": [47.597553, -122.15925]},
            "language": "en",
        });
        assert_eq!(document["items"][0], want);
        assert_eq!(document["status"]["feed"], "https://a.test/feed");
        assert_eq!(document["status"]["period"], 0);
    }

    #[test]
    fn a_notice_has_no_items_and_an_empty_document_has_none_in_them() {
        let none = Feed::default();
        let notice = status_only(&none, "https://a.test/", StatusReport::default());
        assert_eq!(notice.get("items"), None);
        assert!(notice["status"].get("generatedIds").is_none());
        let empty = document(&none, "https://a.test/", StatusReport::default());
        assert_eq!(empty["items"], json!([]));
    }
}
