//! What is stored of a feed, read back; and its entries made fit for documents of others.

use std::borrow::Cow;

use tracing::error;

use crate::record::{Record, RecordKind};
use crate::resource::Resource;
use feedgate_feed::Context;
use feedgate_feed::model::{Feed, Link};
use feedgate_feed::parse;
use feedgate_feed::passes;
use feedgate_feed::render::atom::{self, AtomDocument};

/// The feed in a document of ours, made of what is stored of `resource`.
pub fn read_back(resource: &Resource, atom: &str) -> Feed {
    let context = Context::new(resource.topic.fetch_url());
    parse::parse(atom.as_bytes(), &context).unwrap_or_else(|err| {
        error!(resource = resource.id.0, error = %err, "a stored entry cannot be parsed");
        Feed::default()
    })
}

/// Returns the feed of records of `resource`, read back from what is stored.
pub fn read_records(resource: &Resource, records: &[Record]) -> Feed {
    read_back(resource, &records_document(resource, records))
}

/// Returns the document of records of `resource` as they are stored.
pub fn records_document(resource: &Resource, records: &[Record]) -> String {
    let entries: Vec<&str> = records.iter().map(|record| record.atom.as_str()).collect();
    atom::document(&AtomDocument {
        head: &resource.feed_head,
        topic: &resource.topic.displayed(),
        status: None,
        links: &[],
        entries: &entries,
    })
}

/// Returns the head and the entries of a document of ours, which are sanitized if the reader wants
/// them to be (rule S22).
pub fn parts<'a>(
    resource: &'a Resource,
    records: impl Iterator<Item = &'a Record>,
    is_sanitized: bool,
) -> (Cow<'a, str>, Vec<Cow<'a, str>>) {
    if !is_sanitized {
        let entries = records.map(|record| Cow::Borrowed(record.atom.as_str()));
        return (Cow::Borrowed(&resource.feed_head), entries.collect());
    }
    let entries = records.filter_map(|record| sanitized_entry(resource, record));
    (Cow::Owned(sanitized_head(resource, &resource.feed_head)), entries.collect())
}

/// Returns a stored head without anything that could act in a page; an empty one stays empty.
pub fn sanitized_head(resource: &Resource, head: &str) -> String {
    if head.is_empty() {
        return String::new();
    }
    let mut feed = read_part(resource, head, &[]);
    passes::sanitize(&mut feed);
    atom::head(&feed)
}

/// Returns a stored entry without anything that could act in a page. The deletion of an entry has no
/// text. `None` for an entry that cannot be read, which is not known to be harmless.
fn sanitized_entry<'a>(resource: &Resource, record: &'a Record) -> Option<Cow<'a, str>> {
    if record.kind == RecordKind::Deleted {
        return Some(Cow::Borrowed(&record.atom));
    }
    let mut feed = read_part(resource, "", &[&record.atom]);
    passes::sanitize(&mut feed);
    feed.entries.first().map(|entry| Cow::Owned(atom::entry(entry)))
}

/// Reads a part of what is stored of `resource`.
fn read_part(resource: &Resource, head: &str, entries: &[&str]) -> Feed {
    let topic = &resource.topic.displayed();
    read_back(
        resource,
        &atom::document(&AtomDocument { head, topic, status: None, links: &[], entries }),
    )
}

/// A stored entry of `resource` with an `atom:source` that says so, unless it has one
/// (RFC 4287 `#rfc.section.4.2.11`: "if an atom:entry is copied from one feed into another
/// feed").
pub fn sourced(resource: &Resource, entry: &str) -> String {
    let topic = &*resource.topic.displayed();
    let own = Link { rel: "self".to_owned(), href: topic.to_owned(), ..Link::default() };
    // What has no such text has no source; in what has, it may be markup of the content.
    let seen: &[&str] = if entry.contains("<source") { &[entry] } else { &[] };
    let head = &resource.feed_head;
    let text =
        atom::document(&AtomDocument { head, topic, status: None, links: &[own], entries: seen });
    let feed = read_back(resource, &text); // if it cannot be read, the entry stays as it was
    let is_read = feed.entries.len() == seen.len() && !feed.id.is_empty();
    if !is_read || feed.entries.iter().any(|entry| entry.source.is_some()) {
        return entry.to_owned();
    }
    let plain =
        |link: &Link| Link { attributes: Vec::new(), extensions: Vec::new(), ..link.clone() };
    let source = Feed {
        id: feed.id.clone(),
        title: feed.title.clone(),
        updated: feed.updated,
        authors: feed.authors.iter().map(atom::without_foreign_elements).collect(),
        links: feed.links.iter().map(plain).collect(),
        lang: feed.lang.clone(),
        base: feed.base.clone(),
        ..Feed::default()
    };
    atom::with_source(entry, &source)
}
