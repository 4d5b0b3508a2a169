//! Atom documents.
//!
//! For any input, the output is well-formed, the same input gives the same bytes, and a serialized
//! entry can be moved into any document, because it declares every prefix it uses. Documents are
//! assembled from stored serialized entries, which are never serialized again.

pub(super) mod parts;
mod revision;
mod status;

use crate::iri;
use crate::model::deleted_entry_id;
use crate::model::{Content, Element, Entry, Feed, Link, Person, Text};
use crate::own_elements;
use crate::render::StatusReport;

use super::names::{ATOM, Names};
use super::xml::{push_attribute, push_element, push_end, push_tag};

pub use revision::revision;

/// The XML declaration at the start of every document.
pub const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n";

/// Link relations that describe the document itself or its place in a series. Those of a source
/// apply to the source's document and are dropped from ours.
const DOCUMENT_RELATIONS: &[&str] = &[
    "self",
    "hub",
    "current",
    "first",
    "last",
    "next",
    "previous",
    "prev",
    "next-archive",
    "prev-archive",
];

/// The components of a document.
#[derive(Clone, Copy, Debug)]
pub struct AtomDocument<'a> {
    /// The serialized [`head`], or the stored one; empty for a resource that has none.
    pub head: &'a str,
    /// The topic that the resource is subscribed to as: `status/@feed`.
    pub topic: &'a str,
    /// The status, as first child of the feed; archive documents have none.
    pub status: Option<StatusReport<'a>>,
    /// Links of the document itself: self, hub, prev-archive and others.
    pub links: &'a [Link],
    /// The serialized entries, in output order.
    pub entries: &'a [&'a str],
}

/// Serializes a feed without its entries: the start tag and the metadata elements, without an end
/// tag.
pub fn head(feed: &Feed) -> String {
    let mut out = String::with_capacity(1_024);
    let names = Names::of_feed(feed);
    push_start(&mut out, "feed", &names, feed.lang.as_deref(), feed.base.as_deref());
    parts::push_feed(&mut out, feed, &names);
    out
}

/// Serializes the [`head`] that is stored for our own documents: links that describe the source's
/// document are left out, and its own address becomes a `via` link.
pub fn stored_head(feed: &Feed) -> String {
    let kept = |link: &Link| match link.rel.as_str() {
        "self" => Some(Link { rel: "via".to_owned(), ..link.clone() }),
        rel if DOCUMENT_RELATIONS.contains(&rel) => None,
        _ => Some(link.clone()),
    };
    let mut ours = Feed { entries: Vec::new(), links: Vec::new(), ..shallow(feed) };
    // Deletions are recorded in the log, once.
    ours.extensions.retain(|element| deleted_entry_id(element).is_none());
    for link in feed.links.iter().filter_map(kept) {
        if !ours.links.contains(&link) {
            ours.links.push(link);
        }
    }
    head(&ours)
}

/// Returns a copy of the feed without its entries.
fn shallow(feed: &Feed) -> Feed {
    Feed {
        format: feed.format,
        id: feed.id.clone(),
        title: feed.title.clone(),
        subtitle: feed.subtitle.clone(),
        rights: feed.rights.clone(),
        updated: feed.updated,
        authors: feed.authors.clone(),
        contributors: feed.contributors.clone(),
        categories: feed.categories.clone(),
        generator: feed.generator.clone(),
        icon: feed.icon.clone(),
        logo: feed.logo.clone(),
        lang: feed.lang.clone(),
        base: feed.base.clone(),
        extensions: feed.extensions.clone(),
        ..Feed::default()
    }
}

/// Serializes the deletion of an entry as one self-contained element (RFC 6721, `#section-3`).
pub fn deletion(element: &Element) -> String {
    let mut out = format!("<at:deleted-entry xmlns:at=\"{}\"", element.namespace);
    for name in ["ref", "when"] {
        let given = element.attributes.iter().find(|attribute| attribute.name == name);
        if let Some(attribute) = given {
            push_attribute(&mut out, name, &attribute.value);
        }
    }
    out.push_str("/>\n");
    out
}

/// Serializes an entry as one self-contained element.
pub fn entry(entry: &Entry) -> String {
    let mut out = String::with_capacity(1_024);
    push_entry(&mut out, entry);
    out
}

/// Returns a person without the elements of other vocabularies: what remains needs no prefix.
pub fn without_foreign_elements(person: &Person) -> Person {
    let own = person.extensions.iter().filter(|element| own_elements::is_own(element));
    Person { extensions: own.cloned().collect(), ..person.clone() }
}

/// Inserts `source` as the last child of a serialized entry, for documents that combine entries of
/// several feeds. The source must not contain anything that needs a prefix.
pub fn with_source(entry: &str, source: &Feed) -> String {
    let (inside, end) = entry.rsplit_once("</entry>").unwrap_or((entry, ""));
    let mut out = String::with_capacity(entry.len() + 512);
    out.push_str(inside);
    parts::push_source(&mut out, source, &Names::default());
    out.push_str("</entry>");
    out.push_str(end);
    out
}

fn push_entry(out: &mut String, entry: &Entry) {
    let names = Names::of_entry(entry);
    push_start(out, "entry", &names, entry.lang.as_deref(), entry.base.as_deref());
    parts::push_entry(out, entry, &names);
    push_end(out, "entry");
}

/// Assembles a whole document.
pub fn document(document: &AtomDocument<'_>) -> String {
    let entries: usize = document.entries.iter().map(|entry| entry.len()).sum();
    let mut out = begin(document, entries);
    document.entries.iter().for_each(|entry| out.push_str(entry));
    out.push_str("</feed>\n");
    out
}

/// Writes a document up to its entries, with capacity for `entries_bytes` more.
fn begin(document: &AtomDocument<'_>, entries_bytes: usize) -> String {
    let minimal;
    let head = if document.head.is_empty() {
        minimal = head_of_none(document.topic, document.status);
        &minimal
    } else {
        document.head
    };
    let mut out = String::with_capacity(head.len() + entries_bytes + 2_048);
    out.push_str(DECLARATION);
    // `>` is escaped in attribute values, so the first one ends the start tag.
    let (start, metadata) = head.split_once(">\n").unwrap_or((head, ""));
    out.push_str(start);
    if document.status.is_some_and(|status| status.is_digest) {
        status::push_digest(&mut out, start);
    }
    out.push_str(">\n");
    if let Some(told) = document.status {
        status::push_status(&mut out, document.topic, told);
    }
    out.push_str(metadata);
    let none = Names::default();
    for link in document.links {
        parts::push_link(&mut out, link, &none);
    }
    out
}

/// Serializes a feed with its entries as one document, as printed by `feedgate normalize`.
pub fn feed(feed: &Feed) -> String {
    let head = head(feed);
    let none = AtomDocument { head: &head, topic: "", status: None, links: &[], entries: &[] };
    let mut out = begin(&none, feed.entries.iter().map(room).sum());
    feed.entries.iter().for_each(|entry| push_entry(&mut out, entry));
    out.push_str("</feed>\n");
    out
}

/// Estimates the serialized length of an entry from its texts, so that the buffer is seldom
/// reallocated.
fn room(entry: &Entry) -> usize {
    let content = match &entry.content {
        Some(Content::Text(Text { value, .. }) | Content::Media { value, .. }) => value.len(),
        Some(Content::Xml { value, .. }) => value.len(),
        Some(Content::Src { .. }) | None => 0,
    };
    let summary = entry.summary.as_ref().map_or(0, |text| text.value.len());
    1_024 + content + content / 4 + summary
}

/// Returns the head of a resource without one: it was never fetched successfully, or is not a feed.
pub fn head_of_none(topic: &str, status: Option<StatusReport<'_>>) -> String {
    let title = status.map(|status| status.title).filter(|title| !title.is_empty());
    let updated = status.and_then(|status| status.last_parse).unwrap_or_default();
    let mut head = minimal_head(&iri::encode(topic), title.unwrap_or(topic), topic, updated);
    if head.ends_with(AUTHOR_END) {
        head.truncate(head.len() - AUTHOR_END.len());
        parts::push_own(&mut head, &own_elements::derived_from("host"));
        head.push_str(AUTHOR_END);
    }
    head
}

/// The end of the [`minimal_head`].
const AUTHOR_END: &str = "</author>\n";

/// Serializes a document about `topic` without entries, whose only other content is one empty
/// element: `name` in `namespace`, with these attributes.
pub fn notice(topic: &str, namespace: &str, name: &str, attributes: &[(&str, String)]) -> String {
    let mut out = format!("{DECLARATION}{}", head_of_none(topic, None));
    out.push('<');
    out.push_str(name);
    push_attribute(&mut out, "xmlns", namespace);
    for (attribute, value) in attributes {
        push_attribute(&mut out, attribute, value);
    }
    out.push_str("/>\n</feed>\n");
    out
}

/// Returns the minimum that RFC 4287 requires of a feed. Its author is the host of the topic, which
/// is not marked as derived, because archived documents, which begin with it, never change.
pub fn minimal_head(
    id: &str,
    title: &str,
    topic: &str,
    updated: chrono::DateTime<chrono::Utc>,
) -> String {
    let host = url::Url::parse(topic).ok().and_then(|url| url.host_str().map(str::to_owned));
    let mut out = String::with_capacity(512);
    push_start(&mut out, "feed", &Names::default(), None, None);
    push_element(&mut out, "id", id);
    parts::push_text_construct(&mut out, "title", &Text::plain(title));
    push_element(&mut out, "updated", &parts::date(&updated.fixed_offset()));
    push_tag(&mut out, "author");
    push_element(&mut out, "name", host.as_deref().unwrap_or(topic));
    push_end(&mut out, "author");
    out
}

fn push_start(
    out: &mut String,
    name: &str,
    names: &Names<'_>,
    lang: Option<&str>,
    base: Option<&str>,
) {
    out.push('<');
    out.push_str(name);
    push_attribute(out, "xmlns", ATOM);
    names.declare(out);
    parts::push_lang_and_base(out, lang, base);
    out.push_str(">\n");
}
