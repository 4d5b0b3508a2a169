//! What we write, read by others: feed-rs and atom_syndication must find in it the
//! entries, ids, titles and links that we put there.
//!
//! They are stricter than we are and see less; what they do see must be the same. Only
//! what we wrote is handed to them, never a source: feed-rs panics on some of those.

use std::collections::BTreeSet;
use std::path::Path;
use std::str::FromStr;

use feedgate_feed::model::{Content, Entry, Text, TextKind};

use crate::normalize::{files_under, read};

/// An entry as a reader sees it.
#[derive(Debug, PartialEq)]
struct Seen {
    id: String,
    title: String,
    /// Relations and addresses.
    links: BTreeSet<(String, String)>,
}

/// A source, what we wrote of it and what is in there.
struct Written {
    name: String,
    atom: String,
    entries: Vec<Seen>,
    has_inline_xml: bool,
}

#[test]
fn atom_syndication_sees_what_we_wrote() {
    for written in everything_written() {
        let feed = atom_syndication::Feed::from_str(&written.atom);
        let feed = feed.unwrap_or_else(|err| panic!("{}: {err}\n{}", written.name, written.atom));
        let seen: Vec<Seen> = feed.entries().iter().map(by_atom_syndication).collect();
        assert_eq!(seen, written.entries, "{}", written.name);
    }
}

#[test]
fn feed_rs_sees_what_we_wrote() {
    // It refuses a whole feed for the sake of inline XML, which RFC 4287 allows.
    for written in everything_written().into_iter().filter(|written| !written.has_inline_xml) {
        let feed = feed_rs::parser::parse(written.atom.as_bytes());
        let feed = feed.unwrap_or_else(|err| panic!("{}: {err}\n{}", written.name, written.atom));
        let seen: Vec<Seen> = feed.entries.iter().map(by_feed_rs).collect();
        assert_eq!(seen, written.entries, "{}", written.name);
    }
}

/// All fixtures that are feeds.
fn everything_written() -> Vec<Written> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let files = ["normalize", "demo"].iter().flat_map(|folder| files_under(&root.join(folder)));
    let written = files.filter_map(|file| {
        let (bytes, context) = read(&file);
        let normalized = feedgate_feed::normalize(&bytes, &context).ok()?;
        let name = file.strip_prefix(&root).unwrap().display().to_string();
        let entries = &normalized.feed().entries;
        let is_xml = |entry: &Entry| matches!(entry.content, Some(Content::Xml { .. }));
        Some(Written {
            name,
            atom: normalized.to_atom(),
            has_inline_xml: entries.iter().any(is_xml),
            entries: entries.iter().map(by_us).collect(),
        })
    });
    let written: Vec<Written> = written.collect();
    assert!(!written.is_empty(), "no feeds under {}", root.display());
    written
}

fn by_us(entry: &Entry) -> Seen {
    let title = entry.title.clone().unwrap_or_default();
    let links = entry.links.iter().map(|link| (link.rel.clone(), link.href.clone()));
    Seen { id: entry.id.clone(), title: plain(title.kind, &title.value), links: links.collect() }
}

fn by_atom_syndication(entry: &atom_syndication::Entry) -> Seen {
    let kind = match entry.title().r#type {
        atom_syndication::TextType::Text => TextKind::Text,
        atom_syndication::TextType::Html => TextKind::Html,
        atom_syndication::TextType::Xhtml => TextKind::Xhtml,
    };
    let links = entry.links().iter().map(|link| (link.rel().to_owned(), link.href().to_owned()));
    Seen { id: entry.id().to_owned(), title: plain(kind, entry.title()), links: links.collect() }
}

fn by_feed_rs(entry: &feed_rs::model::Entry) -> Seen {
    let title = entry.title.as_ref().map(|title| {
        let kind = match title.content_type.subty().as_str() {
            "plain" => TextKind::Text,
            "html" => TextKind::Html,
            _ => TextKind::Xhtml,
        };
        plain(kind, &title.content)
    });
    // It takes elements of some modules for links, and says so.
    let links = entry.links.iter().filter(|link| link.target.is_none()).map(|link| {
        (link.rel.clone().unwrap_or_else(|| "alternate".to_owned()), link.href.clone())
    });
    Seen { id: entry.id.clone(), title: title.unwrap_or_default(), links: links.collect() }
}

/// What there is to read of a text, however it is marked up.
fn plain(kind: TextKind, value: &str) -> String {
    let text = Text { kind, value: value.to_owned(), ..Text::default() };
    text.to_plain().split_whitespace().collect::<Vec<_>>().join(" ")
}
