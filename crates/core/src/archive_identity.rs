//! The ids in feeds that this gateway publishes at addresses of its own: those of archives, in which no
//! two entries may have the same id.
//!
//! Whoever gets such a feed gets the same ids, by GET or in notifications.

use std::borrow::Cow;

use sha1::{Digest, Sha1};

use crate::page::{Archived, ArchivedId};
use crate::record::{Record, RecordKind, Seq};
use crate::status::Status;
use feedgate_feed::render::atom;
use feedgate_feed::render::xml::{push_attribute, push_text};

/// The namespace of DCMI metadata terms.
const TERMS: &str = "http://purl.org/dc/terms/";

/// Returns the head of a document about the feed `topic`, made of the stored one. The address of the
/// source, which is `via` in a stored head, is `original` here: in the recent document, `via` is the
/// permanent address, and clients take the first one.
pub fn published_head(topic: &str, feed_head: &str, status: &Status) -> String {
    let minimal;
    let head = if feed_head.is_empty() {
        minimal = atom::head_of_none(topic, Some(status.report()));
        &minimal
    } else {
        feed_head
    };
    let head = head.replace("<link rel=\"via\"", "<link rel=\"original\"");
    with_id(&head, &feed_id(topic))
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

/// Returns a record as it is in the archive of `topic`, by [`archived`] and under the id that it has there.
pub fn archived_record(topic: &str, held: Archived) -> Record {
    let atom = archived(topic, &held).into_owned();
    let is_own = held.is_again && held.record.kind != RecordKind::Deleted;
    let entry_id = if is_own { entry_id(topic, held.record.seq) } else { held.record.entry_id };
    Record { atom, entry_id, ..held.record }
}

/// Returns a record as it is in a plain feed of the collection `topic`, in which entries of several sources may
/// have one id: then the second has the id of the archive. An update has the id of what it updates.
pub fn collected_record(topic: &str, held: Archived) -> Record {
    match held.record.kind {
        RecordKind::Update => held.record,
        _ => archived_record(topic, held),
    }
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

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    const TOPIC: &str = "https://a.test/feed";

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

    #[test]
    fn n7_an_update_has_an_id_of_its_own_and_names_what_it_updates() {
        let mut update = record(5, RecordKind::Update);
        assert_eq!(archived(TOPIC, &update), update.record.atom);
        update.is_again = true;
        let own = |seq| entry_id(TOPIC, Seq(seq));
        let version_of = format!("isVersionOf xmlns:dcterms=\"{TERMS}\">urn:x:5&amp;</dcterms:");
        let cases = [
            (ArchivedId::Source("urn:x:5&".to_owned()), "urn:x:5&amp;".to_owned()),
            (ArchivedId::Own(Seq(4)), own(4)),
        ];
        for (replaces, href) in cases {
            update.replaces = Some(replaces);
            let text = archived(TOPIC, &update);
            assert!(text.contains(&format!("\">\n<id>{}</id>\n<link", own(5))), "{text}");
            let link = format!("<link rel=\"predecessor-version\" href=\"{href}\"/>\n");
            assert!(text.contains(&link) && text.contains(&version_of), "{text}");
        }
        update.record.kind = RecordKind::Deleted;
        assert_eq!(archived(TOPIC, &update), update.record.atom);
    }

    #[test]
    fn ids_are_name_based_uuids() {
        // The values other implementations of RFC 9562 give for these names.
        let topic = "http://www.example.com/";
        assert_eq!(feed_id(topic), "urn:uuid:fcde3c85-2270-590f-9e7c-ee003d65e0e2");
        assert_eq!(entry_id(topic, Seq(12)), "urn:uuid:57058e6c-743b-531d-8bb0-aaa28c9ad197");
    }

    #[test]
    fn a05_a_record_goes_by_the_id_that_it_has_in_the_archive() {
        let id = |held: Archived| archived_record(TOPIC, held).entry_id;
        let mut held = record(5, RecordKind::Update);
        assert_eq!(id(held.clone()), "urn:x:5&");
        held.is_again = true;
        assert_eq!(id(held.clone()), entry_id(TOPIC, Seq(5)));
        assert_eq!(
            collected_record(TOPIC, held.clone()).entry_id,
            "urn:x:5&",
            "as what it updates"
        );
        held.record.kind = RecordKind::Deleted;
        assert_eq!(id(held.clone()), "urn:x:5&");
        held.record.kind = RecordKind::New;
        assert_eq!(collected_record(TOPIC, held).entry_id, entry_id(TOPIC, Seq(5)));
    }
}
