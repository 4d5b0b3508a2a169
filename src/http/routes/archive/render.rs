//! Simplefeed archives (seed 004): the log of a resource as a chain of documents.
//!
//! ```text
//! documents/1 ◄─prev─ documents/2 ◄─prev─ documents/3   = recent
//!             ─next─►             ─next─►
//! ```
//!
//! What holds here: a document is a page of one log. Once a later one exists it is
//! archived and its bytes never change, because everything in it comes from what never
//! changes: the topic, the place of the archive, the records. The title and description of
//! the source, and the status, which do change, stand in the recent document only. All
//! documents of a resource carry the same feed id (RFC 5005 calls them one logical feed),
//! and no two entries of them have the same id. What is written here must come out the
//! same for ever: `fixtures/archive` holds us to it.

use std::borrow::Cow;

use sha1::{Digest, Sha1};

use feedgate_core::page::{Archived, ArchivedId, LocatedPage};
use feedgate_core::record::{RecordKind, Seq};
use feedgate_core::status::Status;
use feedgate_feed::model::Link;

use feedgate_feed::render::atom::{self, AtomDocument};
use feedgate_feed::render::xml::{push_attribute, push_text};

/// Feed history, RFC 5005.
const HISTORY: &str = "http://purl.org/syndication/history/1.0";
/// DCMI metadata terms.
const TERMS: &str = "http://purl.org/dc/terms/";

/// In which order the entries of a document stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// "From newest at the top of the feed to oldest at the bottom" (seed 004).
    #[default]
    NewestFirst,
    /// The other way round, for those who process documents from top to bottom. Its
    /// documents link to one another, and each has a `via`.
    OldestFirst,
}

impl Order {
    /// What addresses of documents in this order end in.
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
    /// The resource.
    pub topic: &'a str,
    /// Where its documents are: `https://gate.test/feeds/7`, without a slash at the
    /// end.
    pub home: &'a str,
    /// The hub that announces what is new; empty if none does.
    pub hub: &'a str,
    /// In which order entries stand.
    pub order: Order,
}

impl Archive<'_> {
    /// The address of the recent document.
    pub fn recent_url(&self) -> String {
        format!("{}/recent{}", self.home, self.order.query())
    }

    /// The permanent address of document `number`.
    pub fn document_url(&self, number: i64) -> String {
        format!("{}/documents/{number}{}", self.home, self.order.query())
    }

    /// The recent document: the newest page. `feed_head` is what the store kept of the
    /// feed's head; `records` are those of the page, ascending.
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
        let minimal;
        let head = if feed_head.is_empty() {
            minimal = atom::head_of_none(self.topic, Some(status.report()));
            &minimal
        } else {
            feed_head
        };
        let head = with_id(head, &feed_id(self.topic));
        self.join(&head, Some(status), &links, records)
    }

    /// A page under its permanent address, with its records, ascending. One that is
    /// archived links to the page before it even if that was dropped since: its bytes
    /// stay as they are.
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

/// A record as it stands in an archive of the log of `topic`, where an entry that has been
/// there before goes by an id of its own. It then tells which entry of the source it is
/// (`dcterms:isVersionOf`) and, if it is an update, which entry of the archive it takes the
/// place of (`predecessor-version`, RFC 5829).
pub fn archived<'a>(topic: &str, archived: &'a Archived) -> Cow<'a, str> {
    let atom = archived.record.atom.as_str();
    if !archived.is_again || archived.record.kind == RecordKind::Deleted {
        return Cow::Borrowed(atom);
    }
    // The id is the first element in an entry of ours, and `<` is escaped in what is
    // before it.
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

/// The id of all documents of a resource: a name-based UUID of its topic (RFC 9562
/// `#section-5.5`, in the namespace of URLs), the same on every gateway and for ever.
pub fn feed_id(topic: &str) -> String {
    format!("urn:uuid:{}", written(name_based(URL_NAMESPACE, topic)))
}

/// The id of its own that a record goes by in the archive of `topic`: a name-based UUID of
/// its number, in the namespace that the UUID of the topic is.
pub fn entry_id(topic: &str, seq: Seq) -> String {
    let namespace = name_based(URL_NAMESPACE, topic);
    format!("urn:uuid:{}", written(name_based(namespace, &seq.to_string())))
}

/// The namespace of URLs, RFC 9562 `#section-6.6`.
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
    use chrono::DateTime;
    use feedgate_core::page::Page;
    use feedgate_core::record::Record;

    const ARCHIVE: Archive<'static> = Archive {
        topic: "https://a.test/feed",
        home: "https://gate.test/feeds/7",
        hub: "https://gate.test/hub",
        order: Order::NewestFirst,
    };

    /// Page `number` of pages of three.
    fn held(number: i64, oldest: i64, newest: i64) -> LocatedPage {
        let first = (number - 1) * 3 + 1;
        let page = Page { number, first: Seq(first), last: Seq(first + 2), ..Page::EMPTY };
        LocatedPage { page, oldest, newest }
    }

    fn records(held: &LocatedPage) -> Vec<Archived> {
        (held.page.first.0..=held.page.last.0).map(|n| record(n, RecordKind::New)).collect()
    }

    fn record(n: i64, kind: RecordKind) -> Archived {
        let record = Record {
            seq: Seq(n),
            kind,
            predecessor: None,
            at: DateTime::from_timestamp(n, 0).unwrap_or_default(),
            entry_id: format!("urn:x:{n}&"),
            atom: format!(
                "<entry xmlns=\"http://www.w3.org/2005/Atom\">\n<id>urn:x:{n}&amp;</id>\n\
                 <content>&lt;id></content></entry>\n"
            ),
        };
        Archived { record, is_again: false, replaces: None }
    }

    fn document(held: &LocatedPage) -> String {
        ARCHIVE.document(held, &records(held))
    }

    #[test]
    fn an_archived_document_never_changes() {
        let then = document(&held(1, 1, 2));
        assert_eq!(then, document(&held(1, 1, 200)));
        assert!(then.contains("rel=\"next-archive\""), "{then}");
        assert!(then.contains("<fh:archive "), "{then}");
        assert!(!then.contains("prev-archive") && !then.contains("<status"), "{then}");
        assert_eq!(document(&held(2, 1, 3)), document(&held(2, 2, 3)), "what precedes it is gone");
    }

    #[test]
    fn what_can_still_change_does_not_link_to_a_document_that_is_gone() {
        for (oldest, is_linked) in [(1, true), (2, true), (3, false)] {
            let held = held(3, oldest, 3);
            let recent = ARCHIVE.recent("", &Status::default(), &held, &records(&held));
            for text in [recent, document(&held)] {
                assert_eq!(text.contains("prev-archive"), is_linked, "{text}");
            }
        }
    }

    #[test]
    fn links_lead_along_the_chain_as_the_seed_has_it() {
        let middle = document(&held(2, 1, 3));
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
        assert!(!middle.contains("\"via\""), "{middle}");
        assert!(middle.find("urn:x:6") < middle.find("urn:x:4"), "newest first: {middle}");
        assert!(!document(&held(3, 1, 3)).contains("next-archive"));
    }

    #[test]
    fn documents_in_the_other_order_lead_to_one_another_and_have_a_via() {
        let archive = Archive { order: Order::OldestFirst, ..ARCHIVE };
        let held = held(2, 1, 3);
        let text = archive.document(&held, &records(&held));
        assert!(text.find("urn:x:4") < text.find("urn:x:6"), "oldest first: {text}");
        assert!(text.contains("rel=\"via\""), "{text}");
        let ours = text.matches("href=\"https://gate.test/feeds/7/").count();
        assert_eq!(text.matches("?order=asc\"").count(), ours, "{text}");
    }

    #[test]
    fn the_recent_document_has_the_status_first_and_the_id_of_the_chain() {
        let head = "<feed xmlns=\"http://www.w3.org/2005/Atom\">\n<id>urn:theirs</id>\n";
        for head in [head, ""] {
            let held = held(3, 1, 3);
            let recent = ARCHIVE.recent(head, &Status::default(), &held, &records(&held));
            assert!(recent.contains("2005/Atom\">\n<status "), "{recent}");
            assert!(recent.contains(&format!("<id>{}</id>", feed_id("https://a.test/feed"))));
            assert!(recent.contains("rel=\"via\""), "{recent}");
            assert!(!recent.contains("urn:theirs"), "{recent}");
        }
    }

    #[test]
    fn n7_an_update_has_an_id_of_its_own_and_names_what_it_updates() {
        let mut update = record(5, RecordKind::Update);
        assert_eq!(archived(ARCHIVE.topic, &update), update.record.atom);
        update.is_again = true;
        let own = |seq| entry_id(ARCHIVE.topic, Seq(seq));
        let version_of = format!("isVersionOf xmlns:dcterms=\"{TERMS}\">urn:x:5&amp;</dcterms:");
        let cases = [
            (ArchivedId::Source("urn:x:5&".to_owned()), "urn:x:5&amp;".to_owned()),
            (ArchivedId::Own(Seq(4)), own(4)),
        ];
        for (replaces, href) in cases {
            update.replaces = Some(replaces);
            let text = archived(ARCHIVE.topic, &update);
            assert!(text.contains(&format!("\">\n<id>{}</id>\n<link", own(5))), "{text}");
            let link = format!("<link rel=\"predecessor-version\" href=\"{href}\"/>\n");
            assert!(text.contains(&link) && text.contains(&version_of), "{text}");
        }
        update.record.kind = RecordKind::Deleted;
        assert_eq!(archived(ARCHIVE.topic, &update), update.record.atom);
    }

    #[test]
    fn ids_are_name_based_uuids() {
        // The values other implementations of RFC 9562 give for these names.
        let topic = "http://www.example.com/";
        assert_eq!(feed_id(topic), "urn:uuid:fcde3c85-2270-590f-9e7c-ee003d65e0e2");
        assert_eq!(entry_id(topic, Seq(12)), "urn:uuid:57058e6c-743b-531d-8bb0-aaa28c9ad197");
    }
}
