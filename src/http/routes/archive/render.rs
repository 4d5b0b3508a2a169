//! Rendering of Simplefeed archives (seed 004): the log of a resource as a chain of documents.
//!
//! ```text
//! documents/1 ◄─prev─ documents/2 ◄─prev─ documents/3   = recent
//!             ─next─►             ─next─►
//! ```
//!
//! A document is a page of one log. Once a later page exists, the document is archived and its
//! bytes never change, because they depend only on what never changes: the topic, the address of
//! the archive, and the records. The title and description of the source, and the status, do change
//! and are part of the recent document only. All documents of a resource have the same feed id (RFC
//! 5005 calls them one logical feed), and no two of their entries have the same id. The rendering
//! itself must never change either, which the fixtures in `fixtures/archive` verify.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use sha1::{Digest, Sha1};

use feedgate_core::page::{Archived, ArchivedId, LocatedPage};
use feedgate_core::record::{Record, RecordKind, Seq};
use feedgate_core::status::Status;
use feedgate_feed::model::Link;

use feedgate_feed::render::atom::{self, AtomDocument};
use feedgate_feed::render::xml::{push_attribute, push_text};

/// The namespace of feed history (RFC 5005).
const HISTORY: &str = "http://purl.org/syndication/history/1.0";
/// The namespace of DCMI metadata terms.
const TERMS: &str = "http://purl.org/dc/terms/";

/// The order of the entries in a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// Newest first: "From newest at the top of the feed to oldest at the bottom" (seed 004).
    #[default]
    NewestFirst,
    /// Oldest first, for clients that process documents from top to bottom. Documents in this order
    /// link to one another, and each has a `via` link.
    OldestFirst,
}

impl Order {
    /// Returns the query at the end of the addresses of documents in this order.
    fn query(self) -> &'static str {
        match self {
            Order::NewestFirst => "",
            Order::OldestFirst => "?order=asc",
        }
    }
}

/// The archive of one resource.
#[derive(Clone, Copy, Debug)]
pub struct Archive<'a> {
    /// The topic of the resource.
    pub topic: &'a str,
    /// The URL of the archive, without a trailing slash: `https://gate.test/feeds/7`.
    pub home: &'a str,
    /// The hub that announces new entries; empty if there is none.
    pub hub: &'a str,
    /// The order of entries.
    pub order: Order,
}

impl Archive<'_> {
    /// Returns the address of the recent document.
    pub fn recent_url(&self) -> String {
        format!("{}/recent{}", self.home, self.order.query())
    }

    /// Returns the address of the newest entries as a plain feed.
    pub fn newest_url(&self) -> String {
        self.home.to_owned()
    }

    /// Returns the permanent address of document `number`.
    pub fn document_url(&self, number: i64) -> String {
        format!("{}/documents/{number}{}", self.home, self.order.query())
    }

    /// Renders the recent document, which is the newest page. `feed_head` is the stored head of the
    /// feed; `records` are those of the page, in ascending order.
    pub fn recent(
        &self,
        feed_head: &str,
        status: &Status,
        held: &LocatedPage,
        records: &[Archived],
    ) -> String {
        let newest = held.page.number;
        let mut links =
            vec![link("self", self.recent_url()), link("via", self.document_url(newest))];
        if !self.hub.is_empty() {
            links.push(link("hub", self.hub.to_owned()));
        }
        if newest > held.oldest {
            links.push(link("prev-archive", self.document_url(newest - 1)));
        }
        let head = self.head(feed_head, status);
        self.join(&head, Some(status), &links, records)
    }

    /// Renders the newest entries as a plain feed, at `address`. `records` are the current entries,
    /// newest first. `before` is the number of the archived document with the entries before them.
    pub fn newest(
        &self,
        head: &str,
        address: &str,
        before: Option<i64>,
        records: &[Record],
    ) -> String {
        let mut links = vec![link("self", address.to_owned())];
        if !self.hub.is_empty() {
            links.push(link("hub", self.hub.to_owned()));
        }
        links.extend(before.map(|number| link("prev-archive", self.document_url(number))));
        let entries: Vec<&str> = records.iter().map(|record| record.atom.as_str()).collect();
        let (topic, links) = (self.topic, &links[..]);
        atom::document(&AtomDocument { head, topic, status: None, links, entries: &entries })
    }

    /// Returns the head of a document about the feed. The address of the source, which is `via` in
    /// a stored head, is `original` here: in the recent document, `via` is the permanent address,
    /// and clients take the first one.
    pub fn head(&self, feed_head: &str, status: &Status) -> String {
        let minimal;
        let head = if feed_head.is_empty() {
            minimal = atom::head_of_none(self.topic, Some(status.report()));
            &minimal
        } else {
            feed_head
        };
        let head = head.replace("<link rel=\"via\"", "<link rel=\"original\"");
        with_id(&head, &feed_id(self.topic))
    }

    /// Renders a page under its permanent address. `records` are those of the page, in ascending
    /// order. An archived document links to the previous one even if that has been deleted, because
    /// its bytes must not change.
    pub fn document(&self, held: &LocatedPage, records: &[Archived]) -> String {
        let number = held.page.number;
        let title = format!("Archive of {}", self.topic);
        let id = feed_id(self.topic);
        let mut head = atom::minimal_head(&id, &title, self.topic, held.page.ended_at);
        let mut links =
            vec![link("self", self.document_url(number)), link("current", self.recent_url())];
        if self.order == Order::OldestFirst {
            links.push(link("via", self.document_url(number)));
        }
        let is_archived = held.is_archived();
        if if is_archived { number > 1 } else { number > held.oldest } {
            links.push(link("prev-archive", self.document_url(number - 1)));
        }
        if is_archived {
            links.push(link("next-archive", self.document_url(number + 1)));
            head.push_str(&format!("<fh:archive xmlns:fh=\"{HISTORY}\"/>\n"));
        }
        self.join(&head, None, &links, records)
    }

    fn join(
        &self,
        head: &str,
        status: Option<&Status>,
        links: &[Link],
        records: &[Archived],
    ) -> String {
        let mut entries: Vec<_> =
            records.iter().map(|record| archived(self.topic, record)).collect();
        if self.order == Order::NewestFirst {
            entries.reverse();
        }
        let entries: Vec<&str> = entries.iter().map(AsRef::as_ref).collect();
        atom::document(&AtomDocument {
            head,
            topic: self.topic,
            status: status.map(Status::report),
            links,
            entries: &entries,
        })
    }
}

/// Returns a record as it is written in the archive of `topic`. An entry that the archive contains
/// already gets an id of its own. It then names the entry of the source (`dcterms:isVersionOf`)
/// and, if it is an update, the entry of the archive that it replaces (`predecessor-version`, RFC
/// 5829).
pub fn archived<'a>(topic: &str, archived: &'a Archived) -> Cow<'a, str> {
    let atom = archived.record.atom.as_str();
    if !archived.is_again || archived.record.kind == RecordKind::Deleted {
        return Cow::Borrowed(atom);
    }
    // The id is the first element of a stored entry, and `<` is escaped in everything before it.
    let (Some((before, _)), Some((_, after))) = (atom.split_once("<id>"), atom.split_once("</id>"))
    else {
        return Cow::Borrowed(atom);
    };
    let mut out = String::with_capacity(atom.len() + 512);
    out.push_str(before);
    out.push_str(&format!("<id>{}</id>\n", entry_id(topic, archived.record.seq)));
    if let Some(replaces) = &archived.replaces {
        let href = match replaces {
            ArchivedId::Source(id) => id.clone(),
            ArchivedId::Own(seq) => entry_id(topic, *seq),
        };
        out.push_str("<link rel=\"predecessor-version\"");
        push_attribute(&mut out, "href", &href);
        out.push_str("/>\n");
    }
    out.push_str(&format!("<dcterms:isVersionOf xmlns:dcterms=\"{TERMS}\">"));
    push_text(&mut out, &archived.record.entry_id);
    out.push_str("</dcterms:isVersionOf>");
    out.push_str(after);
    Cow::Owned(out)
}

/// Returns the id of all documents of a resource: a name-based UUID of its topic (RFC 9562
/// `#section-5.5`, in the namespace of URLs), the same on every gateway at any time.
pub fn feed_id(topic: &str) -> String {
    format!("urn:uuid:{}", written(name_based(URL_NAMESPACE, topic)))
}

/// Returns the id of an archived version of an entry: a name-based UUID of the record's number, in
/// the namespace of the topic's UUID.
pub fn entry_id(topic: &str, seq: Seq) -> String {
    let namespace = name_based(URL_NAMESPACE, topic);
    format!("urn:uuid:{}", written(name_based(namespace, &seq.to_string())))
}

/// The namespace of URLs (RFC 9562 `#section-6.6`).
const URL_NAMESPACE: [u8; 16] = [
    0x6b, 0xa7, 0xb8, 0x11, 0x9d, 0xad, 0x11, 0xd1, 0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8,
];

fn name_based(namespace: [u8; 16], name: &str) -> [u8; 16] {
    let digest = Sha1::new().chain_update(namespace).chain_update(name).finalize();
    let mut bytes = [0_u8; 16];
    bytes.copy_from_slice(&digest[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x50;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    bytes
}

fn written(uuid: [u8; 16]) -> String {
    let hex = hex::encode(uuid);
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// Replaces the id in a stored head. The id is its first element.
fn with_id(head: &str, id: &str) -> String {
    match (head.split_once("<id>"), head.split_once("</id>")) {
        (Some((before, _)), Some((_, after))) => format!("{before}<id>{id}</id>{after}"),
        _ => head.to_owned(),
    }
}

fn link(rel: &str, href: String) -> Link {
    let mime = (rel != "hub").then(|| "application/atom+xml".to_owned());
    Link { rel: rel.to_owned(), href, mime, ..Link::default() }
}
