//! Simplefeed archives (seed 004): the log of a resource as a chain of documents.
//!
//! ```text
//! documents/1 ◄─prev─ documents/2 ◄─prev─ documents/3   = recent
//!             ─next─►             ─next─►
//! ```
//!
//! What holds here: a document is a range of numbers of one log. Once a later one
//! exists it is archived and its bytes never change, because everything in it comes
//! from what never changes: the topic, the place of the archive, the records. The
//! title and description of the source, which do change, stand in the recent document
//! only. All documents of a resource carry the same feed id (RFC 5005 calls them one
//! logical feed).

use sha1::{Digest, Sha1};

use crate::domain::feed::Link;
use crate::domain::record::{Record, Seq};
use crate::domain::status::Status;

use super::atom::{self, Document};

/// Feed history, RFC 5005.
const HISTORY: &str = "http://purl.org/syndication/history/1.0";

/// The archive of one resource.
#[derive(Clone, Copy, Debug)]
pub struct Archive<'a> {
    /// The resource.
    pub topic: &'a str,
    /// Where its documents are: `https://gate.test/feeds/7`, without a slash at the
    /// end.
    pub home: &'a str,
    /// The hub that announces what is new.
    pub hub: &'a str,
    /// The last number in its log.
    pub head: Seq,
    /// How many records a document holds. It must stay the same for ever.
    pub page_size: i64,
}

impl Archive<'_> {
    /// The number of the newest document; there is always a first one.
    pub fn newest(&self) -> i64 {
        ((self.head.0 - 1) / self.page_size + 1).max(1)
    }

    /// The records of document `number`: all after the first number, up to and with
    /// the second. `None` if there is no such document.
    pub fn range(&self, number: i64) -> Option<(Seq, Seq)> {
        let exists = (1..=self.newest()).contains(&number);
        exists.then(|| {
            let after = (number - 1) * self.page_size;
            (Seq(after), Seq((after + self.page_size).min(self.head.0)))
        })
    }

    /// Whether document `number` will never change again.
    pub fn is_archived(&self, number: i64) -> bool {
        number < self.newest()
    }

    /// The address of the recent document.
    pub fn recent_url(&self) -> String {
        format!("{}/recent", self.home)
    }

    /// The permanent address of document `number`.
    pub fn document_url(&self, number: i64) -> String {
        format!("{}/documents/{number}", self.home)
    }

    /// The recent document. `feed_head` is what the store kept of the feed's head;
    /// `records` are those of the newest document, ascending.
    pub fn recent(&self, feed_head: &str, status: &Status, records: &[Record]) -> String {
        let newest = self.newest();
        let mut links = vec![
            link("self", self.recent_url()),
            link("hub", self.hub.to_owned()),
            link("via", self.document_url(newest)),
        ];
        if newest > 1 {
            links.push(link("prev-archive", self.document_url(newest - 1)));
        }
        let minimal;
        let head = if feed_head.is_empty() {
            minimal = atom::head_of_none(self.topic, Some(status));
            &minimal
        } else {
            feed_head
        };
        let head = with_id(head, &feed_id(self.topic));
        self.join(&head, Some(status), &links, records)
    }

    /// Document `number`, with its records, ascending.
    pub fn document(&self, number: i64, records: &[Record]) -> String {
        let updated = records.last().map(|record| record.at).unwrap_or_default();
        let title = format!("Archive of {}", self.topic);
        let mut head = atom::minimal_head(&feed_id(self.topic), &title, self.topic, updated);
        let mut links =
            vec![link("self", self.document_url(number)), link("current", self.recent_url())];
        if number > 1 {
            links.push(link("prev-archive", self.document_url(number - 1)));
        }
        if self.is_archived(number) {
            links.push(link("next-archive", self.document_url(number + 1)));
            head.push_str(&format!("<fh:archive xmlns:fh=\"{HISTORY}\"/>\n"));
        }
        self.join(&head, None, &links, records)
    }

    /// "Entries are ordered by the time they were added to the feed, from newest at
    /// the top" (seed 004).
    fn join(
        &self,
        head: &str,
        status: Option<&Status>,
        links: &[Link],
        records: &[Record],
    ) -> String {
        let entries: Vec<&str> = records.iter().rev().map(|record| record.atom.as_str()).collect();
        atom::document(&Document { head, topic: self.topic, status, links, entries: &entries })
    }
}

/// The id of all documents of a resource: a name-based UUID of its topic (RFC 9562
/// `#section-5.5`, in the namespace of URLs), the same on every gateway and for ever.
pub fn feed_id(topic: &str) -> String {
    const URL_NAMESPACE: [u8; 16] = [
        0x6b, 0xa7, 0xb8, 0x11, 0x9d, 0xad, 0x11, 0xd1, 0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30,
        0xc8,
    ];
    let digest = Sha1::new().chain_update(URL_NAMESPACE).chain_update(topic).finalize();
    let mut bytes = [0_u8; 16];
    bytes.copy_from_slice(&digest[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x50;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = hex::encode(bytes);
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    format!("urn:uuid:{}", parts.join("-"))
}

/// A head of ours with another id. The id is the first element in it.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::RecordKind;
    use chrono::DateTime;

    fn archive(head: i64) -> Archive<'static> {
        let (topic, home) = ("https://a.test/feed", "https://gate.test/feeds/7");
        Archive { topic, home, hub: "https://gate.test/hub", head: Seq(head), page_size: 3 }
    }

    fn records(after: i64, last: i64) -> Vec<Record> {
        let record = |n: i64| Record {
            seq: Seq(n),
            kind: RecordKind::New,
            predecessor: None,
            at: DateTime::from_timestamp(n, 0).unwrap_or_default(),
            entry_id: format!("urn:x:{n}"),
            atom: format!(
                "<entry xmlns=\"http://www.w3.org/2005/Atom\"><id>urn:x:{n}</id></entry>\n"
            ),
        };
        (after + 1..=last).map(record).collect()
    }

    #[test]
    fn documents_are_ranges_of_the_log() {
        let cases = [
            (0, 1, Some((0, 0))),
            (0, 2, None),
            (2, 1, Some((0, 2))),
            (3, 1, Some((0, 3))),
            (3, 2, None),
            (4, 1, Some((0, 3))),
            (4, 2, Some((3, 4))),
            (4, 0, None),
            (7, 3, Some((6, 7))),
        ];
        for (head, number, want) in cases {
            let got = archive(head).range(number).map(|(after, last)| (after.0, last.0));
            assert_eq!(got, want, "document {number} of a log of {head}");
        }
    }

    #[test]
    fn an_archived_document_never_changes() {
        let then = archive(4).document(1, &records(0, 3));
        let later = archive(400).document(1, &records(0, 3));
        assert_eq!(then, later);
        assert!(then.contains("rel=\"next-archive\""), "{then}");
        assert!(then.contains("<fh:archive "), "{then}");
        assert!(!then.contains("prev-archive") && !then.contains("<status"), "{then}");
    }

    #[test]
    fn links_lead_along_the_chain_as_the_seed_has_it() {
        let middle = archive(8).document(2, &records(3, 6));
        for (rel, href) in [
            ("self", "/documents/2"),
            ("current", "/recent"),
            ("prev-archive", "/documents/1"),
            ("next-archive", "/documents/3"),
        ] {
            let want = format!(
                "<link rel=\"{rel}\" type=\"application/atom+xml\" \
                 href=\"https://gate.test/feeds/7{href}\"/>"
            );
            assert!(middle.contains(&want), "{want} in {middle}");
        }
        let order: Vec<_> = middle.matches("<id>urn:x:").collect();
        assert_eq!(order.len(), 3);
        assert!(middle.find("urn:x:6") < middle.find("urn:x:4"), "newest first: {middle}");

        let newest = archive(8).document(3, &records(6, 8));
        assert!(!newest.contains("next-archive"), "{newest}");
    }

    #[test]
    fn the_recent_document_has_the_status_first_and_the_id_of_the_chain() {
        let head = "<feed xmlns=\"http://www.w3.org/2005/Atom\">\n<id>urn:theirs</id>\n";
        for head in [head, ""] {
            let recent = archive(8).recent(head, &Status::default(), &records(6, 8));
            assert!(recent.contains("2005/Atom\">\n<status "), "{recent}");
            assert!(recent.contains(&format!("<id>{}</id>", feed_id("https://a.test/feed"))));
            assert!(recent.contains("rel=\"via\""), "{recent}");
            assert!(!recent.contains("urn:theirs"), "{recent}");
        }
    }

    #[test]
    fn the_feed_id_is_a_name_based_uuid() {
        // The value other implementations of RFC 9562 give for this name.
        assert_eq!(
            feed_id("http://www.example.com/"),
            "urn:uuid:fcde3c85-2270-590f-9e7c-ee003d65e0e2"
        );
    }
}
