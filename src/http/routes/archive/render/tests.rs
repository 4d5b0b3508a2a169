//! Archive documents whose bytes must never change.

use super::*;
use chrono::DateTime;
use feedgate_core::page::Page;
use feedgate_core::record::{RecordKind, Seq};

const ARCHIVE: Archive<'static> = Archive {
    topic: "https://a.test/feed",
    home: "https://gate.test/feeds/7",
    hub: "https://gate.test/hub",
    order: Order::NewestFirst,
    format: DocumentFormat::Atom,
};

/// Returns page `number` of a log with three records on a page.
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
