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

use feedgate_core::archive_identity::{archived, feed_id, published_head};
use feedgate_core::document_format::DocumentFormat;
use feedgate_core::page::{Archived, LocatedPage};
use feedgate_core::record::Record;
use feedgate_core::status::Status;
use feedgate_feed::model::Link;
use feedgate_feed::render::atom::{self, AtomDocument};

/// The namespace of feed history (RFC 5005).
const HISTORY: &str = "http://purl.org/syndication/history/1.0";

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
    /// The format in which the documents are published. They are rendered in Atom, and converted.
    pub format: DocumentFormat,
}

impl Archive<'_> {
    /// Returns the address of the recent document.
    pub fn recent_url(&self) -> String {
        format!("{}/recent{}{}", self.home, self.format.extension(), self.order.query())
    }

    /// Returns the address of the newest entries as a plain feed.
    pub fn newest_url(&self) -> String {
        format!("{}{}", self.home, self.format.extension())
    }

    /// Returns the permanent address of document `number`.
    pub fn document_url(&self, number: i64) -> String {
        let (extension, query) = (self.format.extension(), self.order.query());
        format!("{}/documents/{number}{extension}{query}", self.home)
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
            vec![self.link("self", self.recent_url()), self.link("via", self.document_url(newest))];
        if !self.hub.is_empty() {
            links.push(self.link("hub", self.hub.to_owned()));
        }
        if newest > held.oldest {
            links.push(self.link("prev-archive", self.document_url(newest - 1)));
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
        let mut links = vec![self.link("self", address.to_owned())];
        if !self.hub.is_empty() {
            links.push(self.link("hub", self.hub.to_owned()));
        }
        links.extend(before.map(|number| self.link("prev-archive", self.document_url(number))));
        let entries: Vec<&str> = records.iter().map(|record| record.atom.as_str()).collect();
        let (topic, links) = (self.topic, &links[..]);
        atom::document(&AtomDocument { head, topic, status: None, links, entries: &entries })
    }

    /// Returns the head of a document about the feed.
    pub fn head(&self, feed_head: &str, status: &Status) -> String {
        published_head(self.topic, feed_head, status)
    }

    /// Renders a page under its permanent address. `records` are those of the page, in ascending
    /// order. An archived document links to the previous one even if that has been deleted, because
    /// its bytes must not change.
    pub fn document(&self, held: &LocatedPage, records: &[Archived]) -> String {
        let number = held.page.number;
        let title = format!("Archive of {}", self.topic);
        let id = feed_id(self.topic);
        let mut head = atom::minimal_head(&id, &title, self.topic, held.page.ended_at);
        let mut links = vec![
            self.link("self", self.document_url(number)),
            self.link("current", self.recent_url()),
        ];
        if self.order == Order::OldestFirst {
            links.push(self.link("via", self.document_url(number)));
        }
        let is_archived = held.is_archived();
        if if is_archived { number > 1 } else { number > held.oldest } {
            links.push(self.link("prev-archive", self.document_url(number - 1)));
        }
        if is_archived {
            links.push(self.link("next-archive", self.document_url(number + 1)));
            head.push_str(&format!("<fh:archive xmlns:fh=\"{HISTORY}\"/>\n"));
        }
        self.join(&head, None, &links, records)
    }

    /// Returns a link to a document in the same format, or to the hub.
    fn link(&self, rel: &str, href: String) -> Link {
        let mime = (rel != "hub").then(|| self.format.media_type().to_owned());
        Link { rel: rel.to_owned(), href, mime, ..Link::default() }
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
