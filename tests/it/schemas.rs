//! What feedgate writes is what `schemas/` says it is.
//!
//! `xmllint` checks XML, many documents in one process; notifications in JSON are checked by
//! JSON Schema, each one that any test receives.

use std::process::Command;
use std::sync::LazyLock;
use std::{fs, path::Path};

use chrono::DateTime;
use feedgate::http::routes::archive::render::{Archive, Order};
use feedgate::http::routes::changes::render::{push_end, push_head, push_line};
use feedgate_core::document_format::DocumentFormat;
use feedgate_core::page::{Archived, ArchivedId, LocatedPage, Page, PageLimits};
use feedgate_core::ping::{TimeUnit, WeblogChange};
use feedgate_core::record::{Record, RecordKind, Seq};
use feedgate_core::status::Status;
use feedgate_feed::render::atom::{self, AtomDocument};

/// Fails with everything that is wrong with these documents, which are names and
/// texts.
pub(crate) fn assert_valid(schema: &str, documents: &[(String, String)]) {
    let wrong = faults(schema, documents);
    assert!(wrong.is_empty(), "not valid by schemas/{schema}:\n{wrong}");
}

/// What `xmllint` finds wrong, in the documents' own names; empty if nothing is.
fn faults(schema: &str, documents: &[(String, String)]) -> String {
    assert!(!documents.is_empty(), "nothing to check");
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas").join(schema);
    let folder = tempfile::tempdir().unwrap();
    let mut check = Command::new("xmllint");
    check.args(["--noout", "--nonet", "--relaxng"]).arg(schema);
    for (name, text) in documents {
        let file = folder.path().join(name.replace('/', "_"));
        fs::write(&file, text).unwrap();
        check.arg(file);
    }
    let answer = check.output().expect(
        "xmllint is needed to check documents against schemas/: install libxml2-utils, \
         or run tests/run, which does",
    );
    let told = String::from_utf8_lossy(&answer.stderr);
    let told = told.replace(&format!("{}/", folder.path().display()), "");
    let faults = told.lines().filter(|line| !line.ends_with(" validates"));
    let faults: Vec<&str> = faults.collect();
    assert!(answer.status.success() || !faults.is_empty(), "xmllint ended with {}", answer.status);
    faults.join("\n")
}

/// Fails with everything that is wrong with a notification in JSON.
pub(crate) fn assert_notification(text: &str) {
    static SCHEMA: LazyLock<jsonschema::Validator> =
        LazyLock::new(|| json_schema("notification.schema.json"));
    assert_valid_json(&SCHEMA, text);
}

/// Fails with everything that is wrong with the body of a request to an alert address.
pub(crate) fn assert_alerts(text: &str) {
    assert_valid_json(&json_schema("alert.schema.json"), text);
}

/// Fails with everything that is wrong with a JSON Feed.
pub(crate) fn assert_json_feed(text: &str) {
    static SCHEMA: LazyLock<jsonschema::Validator> =
        LazyLock::new(|| json_schema("json-feed.schema.json"));
    assert_valid_json(&SCHEMA, text);
}

fn json_schema(name: &str) -> jsonschema::Validator {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas").join(name);
    let schema = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    jsonschema::draft202012::new(&schema).unwrap()
}

fn assert_valid_json(schema: &jsonschema::Validator, text: &str) {
    let document = serde_json::from_str(text).unwrap();
    let faults = schema.iter_errors(&document);
    let faults: Vec<String> =
        faults.map(|fault| format!("{}: {fault}", fault.instance_path())).collect();
    let faults = faults.join("\n");
    assert!(faults.is_empty(), "not valid by its schema:\n{faults}\n{text}");
}

const TOPIC: &str = "https://tides.test/feed?a=1&b=<2>";

fn status() -> Status {
    let at = DateTime::from_timestamp(1_031_356_801, 0);
    Status {
        http_code: 200,
        http_message: "Fetched (ring) 200 & \"fine\"".to_owned(),
        title: "Tides".to_owned(),
        last_fetch: at,
        last_parse: at,
        next_fetch: at,
        last_maintenance_at: at.unwrap(),
        period_s: 900,
        period_reason: "the resource publishes about 1 entry a day".to_owned(),
        popularity: 2.5,
        bozo_rank: 0.25,
        porn_rank: Some(0.0),
        generated_ids: true,
        ..Status::default()
    }
}

fn records(after: i64, last: i64) -> Vec<Record> {
    let contents: [(&str, &[u8]); 3] =
        [("text/plain", b"high"), ("image/png", &[0x89, 0x50]), ("application/json", b"{}")];
    let record = |number: i64| {
        let (content_type, bytes) = contents[usize::try_from(number).unwrap() % contents.len()];
        let at = DateTime::from_timestamp(number, 0).unwrap();
        let (entry_id, atom) = atom::revision(TOPIC, Some(content_type), bytes, at);
        let kind = RecordKind::New;
        Record { seq: Seq(number), at, kind, predecessor: None, entry_id, atom }
    };
    (after + 1..=last).map(record).collect()
}

#[test]
fn documents_of_a_resource_are_valid_with_and_without_head_status_and_entries() {
    let mut documents = Vec::new();
    let head = "<feed xmlns=\"http://www.w3.org/2005/Atom\">\n<id>urn:x</id>\n<title type=\"text\">\
                </title>\n<updated>2002-09-07T00:00:01Z</updated>\n<author><name>Ada</name>\n</author>\n";
    let (known, unknown) = (status(), Status::default());
    for (n, head) in [head, ""].into_iter().enumerate() {
        for (m, status) in [None, Some(&known), Some(&unknown)].into_iter().enumerate() {
            for count in [0, 3] {
                let records = records(0, count);
                let entries: Vec<&str> = records.iter().map(|r| r.atom.as_str()).collect();
                let document = AtomDocument {
                    head,
                    topic: TOPIC,
                    status: status.map(Status::report),
                    links: &[],
                    entries: &entries,
                };
                documents.push((format!("document-{n}{m}{count}"), atom::document(&document)));
            }
        }
    }
    assert_valid("atom.rng", &documents);
}

/// The records of a page; every other goes by an id of its own.
fn archived(page: &Page) -> Vec<Archived> {
    let records = records(page.first.0 - 1, page.last.0).into_iter();
    let archived = records.map(|record| {
        let is_again = record.seq.0 % 2 == 0;
        let replaces = is_again.then(|| ArchivedId::Source(record.entry_id.clone()));
        Archived { record, is_again, replaces }
    });
    archived.collect()
}

#[test]
fn archive_documents_are_valid() {
    let home = "https://gate.test/feeds/7";
    let mut documents = Vec::new();
    for head in [0, 2, 3, 7] {
        let (topic, hub) = (TOPIC, "https://gate.test/hub");
        let (order, format) = (Order::NewestFirst, DocumentFormat::Atom);
        let archive = Archive { topic, home, hub, order, format };
        let mut pages = Vec::new();
        for seq in 1..=head {
            let cut = PageLimits { records: 3, bytes: 1 << 20 };
            cut.place(&mut pages, Seq(seq), 1, DateTime::UNIX_EPOCH);
        }
        if pages.is_empty() {
            pages.push(Page::EMPTY);
        }
        let newest = pages.len() as i64;
        for page in pages {
            let records = archived(&page);
            let held = LocatedPage { page, oldest: 1, newest };
            let document = archive.document(&held, &records);
            documents.push((format!("document-{}-of-{head}", page.number), document));
            let recent = archive.recent("", &status(), &held, &records);
            documents.push((format!("recent-{}-of-{head}", page.number), recent));
        }
    }
    assert_valid("atom.rng", &documents);
}

#[test]
fn changes_xml_is_valid() {
    let now = DateTime::from_timestamp(1_168_715_280, 0).unwrap();
    let change = |feed_url: Option<&str>| WeblogChange {
        at: now,
        name: "A & \"b\" \u{7}".to_owned(),
        url: "https://a.test/?x=1&y=2".to_owned(),
        feed_url: feed_url.map(str::to_owned),
    };
    let lists = [vec![], vec![change(None), change(Some("https://a.test/rss"))]];
    let documents = lists.iter().enumerate().map(|(n, list)| {
        let mut text = String::new();
        push_head(&mut text, now, 2);
        list.iter().for_each(|change| push_line(&mut text, change, now, TimeUnit::Minutes));
        push_end(&mut text, n > 0);
        (format!("changes-{n}"), text)
    });
    assert_valid("changes.rng", &documents.collect::<Vec<_>>());
}

#[test]
fn the_schema_turns_down_what_is_not_allowed() {
    let sound = atom::document(&AtomDocument {
        head: "",
        topic: TOPIC,
        status: Some(status().report()),
        links: &[],
        entries: &[&records(0, 1)[0].atom],
    });
    let cases = [
        ("a status element under another name", "<period>900</period>", "<periode>900</periode>"),
        ("a rank beyond 1", "<bozo_rank>0.25", "<bozo_rank>1.25"),
        ("a relative link", "href=\"https://", "href=\"/"),
        ("a date without zone", "1970-01-01T00:00:01Z", "1970-01-01T00:00:01"),
        ("an element that Atom does not have", "<updated>", "<modified>"),
        ("a feed without author", "<author>", "<contributor>"),
    ];
    assert_eq!(faults("atom.rng", &[("sound".to_owned(), sound.clone())]), "");
    for (why, from, to) in cases {
        let end = |tag: &str| tag.replace('<', "</");
        let broken = sound.replace(from, to).replace(&end(from), &end(to));
        assert_ne!(broken, sound, "{why}: nothing was broken");
        let faults = faults("atom.rng", &[("broken".to_owned(), broken)]);
        assert!(!faults.is_empty(), "{why} is let through");
    }
}
