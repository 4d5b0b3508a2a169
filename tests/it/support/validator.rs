//! What a validator of feeds finds wrong with a document of an archive: RFC 4287, RFC 5005
//! and what Simplefeed adds. Every document that a test reads goes through it.

use std::collections::{HashMap, HashSet};

use chrono::DateTime;
use quick_xml::NsReader;
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::ResolveResult;
use url::Url;

const ATOM: &str = "http://www.w3.org/2005/Atom";
const HISTORY: &str = "http://purl.org/syndication/history/1.0";
const TOMBSTONES: &str = "http://purl.org/atompub/tombstones/1.0";

/// Fails with everything that is wrong with the document that was had from `url`.
pub(crate) fn assert_sound(url: &str, text: &str) {
    let wrong = faults(url, text);
    assert!(wrong.is_empty(), "{url} is not sound:\n  {}\n{text}", wrong.join("\n  "));
}

/// An element with what is in it.
#[derive(Debug, Default)]
pub(super) struct Element {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) attributes: HashMap<String, String>,
    pub(super) children: Vec<Element>,
    pub(super) text: String,
}

impl Element {
    pub(super) fn is(&self, namespace: &str, name: &str) -> bool {
        self.namespace == namespace && self.name == name
    }

    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children.iter().filter(move |child| child.is(ATOM, name))
    }

    pub(super) fn attribute(&self, name: &str) -> &str {
        self.attributes.get(name).map_or("", String::as_str)
    }

    /// The targets of links with this relation.
    fn linked<'a>(&'a self, rel: &'a str) -> impl Iterator<Item = &'a str> {
        let links = self.all("link").filter(move |link| link.attribute("rel") == rel);
        links.map(|link| link.attribute("href"))
    }
}

fn faults(url: &str, text: &str) -> Vec<String> {
    let root = match parse(text) {
        Ok(root) => root,
        Err(err) => return vec![format!("it is not well-formed: {err}")],
    };
    let mut wrong = Vec::new();
    if !root.is(ATOM, "feed") {
        wrong.push(format!("its root is {}", root.name));
    }
    check_metadata(&root, "the feed", &mut wrong);
    let selves: Vec<_> = root.linked("self").collect();
    if selves != [url] {
        wrong.push(format!("its self is {selves:?}"));
    }
    for rel in ["next-archive", "prev-archive", "current"] {
        if root.linked(rel).count() > 1 {
            wrong.push(format!("it has several {rel}"));
        }
    }
    let is_archive = root.children.iter().any(|child| child.is(HISTORY, "archive"));
    if is_archive != (root.linked("next-archive").count() == 1) {
        wrong.push("fh:archive and next-archive go together".to_owned());
    }
    if is_archive && root.children.iter().any(|child| child.name == "status") {
        wrong.push("an archived document has a status, which changes".to_owned());
    }
    check_entries(&root, url.contains("order=asc"), &mut wrong);
    wrong
}

fn check_entries(root: &Element, is_ascending: bool, wrong: &mut Vec<String>) {
    let is_entry =
        |child: &&Element| child.is(ATOM, "entry") || child.is(TOMBSTONES, "deleted-entry");
    let first = root.children.iter().position(|child| is_entry(&child));
    let last = root.children.iter().rposition(|child| !is_entry(&child));
    if first.zip(last).is_some_and(|(first, last)| last > first) {
        wrong.push("metadata stands behind entries".to_owned());
    }
    let has_author = root.all("author").count() > 0;
    let mut entries: Vec<_> = root.all("entry").collect();
    if is_ascending {
        entries.reverse();
    }
    let ids: Vec<_> = entries.iter().flat_map(|entry| entry.all("id")).collect();
    let ids: Vec<_> = ids.iter().map(|id| id.text.as_str()).collect();
    if ids.iter().collect::<HashSet<_>>().len() != entries.len() {
        wrong.push(format!("ids are not unique: {ids:?}"));
    }
    for (n, entry) in entries.iter().enumerate() {
        let what = format!("entry {}", ids.get(n).unwrap_or(&"without id"));
        check_metadata(entry, &what, wrong);
        if !has_author && entry.all("author").count() == 0 {
            wrong.push(format!("{what} has no author"));
        }
        for name in ["content", "summary", "published", "rights", "source"] {
            if entry.all(name).count() > 1 {
                wrong.push(format!("{what} has several {name}"));
            }
        }
        // What it replaces was added before it.
        for before in entry.linked("predecessor-version") {
            if ids.iter().position(|id| *id == before).is_some_and(|at| at <= n) {
                wrong.push(format!("{what} stands below what it replaces"));
            }
        }
    }
}

/// What feeds and entries have alike.
fn check_metadata(element: &Element, what: &str, wrong: &mut Vec<String>) {
    for name in ["id", "title", "updated"] {
        if element.all(name).count() != 1 {
            wrong.push(format!("{what} has {} of {name}", element.all(name).count()));
        }
    }
    for id in element.all("id").filter(|id| Url::parse(&id.text).is_err()) {
        wrong.push(format!("the id of {what} is no absolute IRI: {:?}", id.text));
    }
    for name in ["updated", "published"] {
        for date in element.all(name) {
            if DateTime::parse_from_rfc3339(&date.text).is_err() {
                wrong.push(format!("{name} of {what} is no date of RFC 3339: {:?}", date.text));
            }
        }
    }
    let mut alternates = HashSet::new();
    for link in element.all("link") {
        let (rel, href) = (link.attribute("rel"), link.attribute("href"));
        if Url::parse(href).is_err() {
            wrong.push(format!("{what} links to {href:?}, which is not absolute"));
        }
        let kind = (link.attribute("type"), link.attribute("hreflang"));
        if matches!(rel, "" | "alternate") && !alternates.insert(kind) {
            wrong.push(format!("{what} has two alternates of {kind:?}"));
        }
    }
}

/// Reads a document whole.
pub(super) fn parse(text: &str) -> Result<Element, String> {
    let mut reader = NsReader::from_str(text);
    let mut open = vec![Element::default()];
    loop {
        let (namespace, event) = reader.read_resolved_event().map_err(|err| err.to_string())?;
        let namespace = match namespace {
            ResolveResult::Bound(namespace) => namespace.0.to_owned(),
            _ => String::new(),
        };
        match event {
            Event::Start(start) => open.push(element(namespace, &start)?),
            Event::Empty(start) => {
                let element = element(namespace, &start)?;
                open.last_mut().ok_or("nothing is open")?.children.push(element);
            }
            Event::End(_) => {
                let closed = open.pop().ok_or("nothing is open")?;
                open.last_mut().ok_or("too much is closed")?.children.push(closed);
            }
            Event::Text(text) => {
                open.last_mut().ok_or("nothing is open")?.text.push_str(&text);
            }
            Event::GeneralRef(reference) => {
                let text = match reference.as_ref() {
                    "amp" => "&",
                    "lt" => "<",
                    "gt" => ">",
                    "quot" => "\"",
                    "apos" => "'",
                    _ => "\u{FFFD}",
                };
                open.last_mut().ok_or("nothing is open")?.text.push_str(text);
            }
            Event::Eof => break,
            _ => {}
        }
    }
    let mut document = open.pop().ok_or("nothing is open")?;
    match (open.is_empty(), document.children.len()) {
        (true, 1) => Ok(document.children.remove(0)),
        _ => Err("it has no single root".to_owned()),
    }
}

fn element(namespace: String, start: &BytesStart<'_>) -> Result<Element, String> {
    let name = start.local_name().as_ref().to_owned();
    let mut attributes = HashMap::new();
    for attribute in start.attributes() {
        let attribute = attribute.map_err(|err| err.to_string())?;
        let key = attribute.key.as_ref().to_owned();
        let value = quick_xml::escape::unescape(&attribute.value).map_err(|err| err.to_string())?;
        attributes.insert(key, value.into_owned());
    }
    Ok(Element { namespace, name, attributes, ..Element::default() })
}

#[test]
fn a_document_that_is_not_sound_is_found_out() {
    let url = "https://gate.test/feeds/7/recent";
    let entry = |id: &str, more: &str| {
        format!("<entry><id>{id}</id><title/><updated>2026-01-01T00:00:00Z</updated>{more}</entry>")
    };
    let document = |head: &str, entries: &[String]| {
        format!(
            "<feed xmlns='{ATOM}'><id>urn:x</id><title/><updated>2026-01-01T00:00:00Z</updated>\
             <author><name>A</name></author>{head}{}</feed>",
            entries.concat()
        )
    };
    let own = format!("<link rel='self' href='{url}'/>");
    let replacing = |id: &str| format!("<link rel='predecessor-version' href='{id}'/>");
    let alternate = "<link rel='alternate' type='text/html' href='https://a.test/'/>";
    let (one, two) = (entry("urn:1", ""), entry("urn:2", &replacing("urn:1")));
    let cases = [
        (document(&own, &[two.clone(), one.clone()]), ""),
        (document("", &[]), "its self is []"),
        (document(&own.replace("recent", "x"), &[]), "its self is"),
        (document(&own, &[one.clone(), one.clone()]), "not unique"),
        (document(&own, &[one, two]), "stands below what it replaces"),
        (document(&own, &[entry("1", "")]), "no absolute IRI"),
        (document(&own, &[entry("urn:1", &alternate.repeat(2))]), "two alternates"),
        (document(&own, &[entry("urn:1", "<link href='/x'/>")]), "not absolute"),
        (document(&own, &[entry("urn:1", "<published>today</published>")]), "no date"),
        (document(&own, &[entry("urn:1", "<id>urn:2</id>")]), "2 of id"),
        (document(&format!("{own}<link rel='next-archive' href='{url}'/>"), &[]), "go together"),
        (document(&own, &["<b>".to_owned()]), "not well-formed"),
    ];
    for (text, want) in cases {
        let wrong = faults(url, &text).join("; ");
        assert_eq!(wrong.is_empty(), want.is_empty(), "{wrong}\n{text}");
        assert!(wrong.contains(want), "{want}: {wrong}\n{text}");
    }
}
