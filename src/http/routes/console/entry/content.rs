//! The content of an entry: as people see it, and as Atom and JSON. Also of entries that are not stored.

use std::time::Duration;

use maud::{Markup, html};

use crate::http::kit::html::frame::preview_frame;
use crate::http::kit::rejection::Rejection;
use crate::http::routes::console::visit::Visit;
use feedgate_core::record::Record;
use feedgate_core::redaction;
use feedgate_core::resource::{Resource, ResourceKind};
use feedgate_core::stored_entry::read_back;
use feedgate_feed::model::{Content, Entry, Feed, Text, TextKind};
use feedgate_feed::passes;
use feedgate_feed::render::atom::{self, AtomDocument};
use feedgate_feed::render::json;

/// How long a page waits for memory for an entry.
const ADMISSION_WAIT: Duration = Duration::from_secs(5);
/// The maximum length of each text of an entry on the page, in bytes of the page. The rest of longer ones
/// is left out: browsers become slow, and nobody reads them here.
const LONGEST_BYTES: usize = 256 << 10;

/// The maximum length of a media type, in characters.
const MEDIA_TYPE_CHARS: usize = 100;

/// An entry, read back from its record.
pub(crate) struct EntryContent {
    /// The entry; `None` if the record is a deletion.
    pub(crate) entry: Option<Entry>,
    text: EntryText,
    atom: String,
    json: String,
}

/// The text of an entry.
enum EntryText {
    /// The entry has none.
    Nothing,
    /// Plain text.
    Plain(String),
    /// Markup that was sanitized.
    Markup(String),
    /// Content of another media type.
    Media(String),
    /// Content at another address.
    Elsewhere(String),
}

impl EntryContent {
    /// Reads the entry of a record.
    pub(super) async fn read(
        visit: &Visit,
        resource: &Resource,
        record: &Record,
    ) -> Result<EntryContent, Rejection> {
        let documents = &visit.gateway.documents;
        let memory = documents.admit(record.atom.as_bytes(), ADMISSION_WAIT).await;
        let memory = memory.map_err(Rejection::busy)?;
        let (resource, record) = (resource.clone(), record.clone());
        let read = memory.run_blocking(move || read(&resource, &record)).await;
        read.ok_or_else(|| {
            Rejection::unavailable(&std::io::Error::other("an entry could not be read"))
        })
    }

    /// Returns the content of an entry whose document of ours was read back as `feed`; `atom` is the entry
    /// in it. Texts that take more than `longest_bytes` on the page are cut.
    pub(crate) fn new(
        mut feed: Feed,
        kind: ResourceKind,
        atom: &str,
        longest_bytes: usize,
    ) -> EntryContent {
        let item = json::feed(&feed)["items"][0].take();
        let json = match item {
            serde_json::Value::Null => String::new(),
            item => serde_json::to_string_pretty(&item).unwrap_or_default(),
        };
        let entry = feed.entries.first().cloned();
        let displayed = match kind {
            ResourceKind::Other => entry.as_ref().map(|entry| plain_text(entry, longest_bytes)),
            _ => {
                passes::sanitize(&mut feed);
                feed.entries.first().map(|entry| display_text(entry, longest_bytes))
            }
        };
        EntryContent {
            entry,
            text: displayed.unwrap_or(EntryText::Nothing),
            atom: cut(atom.to_owned(), longest_bytes),
            json: cut(json, longest_bytes),
        }
    }

    /// Returns the text, as people see it.
    pub(crate) fn text_section(&self) -> Markup {
        html! {
            @if self.entry.is_none() {
                p { "The publisher deleted this entry." }
            }
            @match &self.text {
                EntryText::Nothing => {}
                EntryText::Plain(text) => {
                    h2 { "Text" }
                    pre.text tabindex="0" { (text) }
                }
                EntryText::Markup(markup) => {
                    h2 { "Text" }
                    (preview_frame("Text of the entry", markup))
                    p.soft {
                        "Displayed without scripts, forms, and images from other servers."
                    }
                }
                EntryText::Media(mime) => {
                    h2 { "Content" }
                    p { "The content is of the type " code { (mime) } "." }
                }
                EntryText::Elsewhere(href) => {
                    h2 { "Content" }
                    p { "The content is at " (super::address(href)) "." }
                }
            }
        }
    }

    /// Returns the entry as it is sent, in both formats.
    pub(crate) fn source_section(&self) -> Markup {
        html! {
            details open { summary { "Atom" } pre tabindex="0" { code { (self.atom) } } }
            @if !self.json.is_empty() {
                details { summary { "JSON" } pre tabindex="0" { code { (self.json) } } }
            }
        }
    }
}

fn read(resource: &Resource, record: &Record) -> EntryContent {
    let document = atom::document(&AtomDocument {
        head: &resource.feed_head,
        topic: &resource.topic.displayed(),
        status: None,
        links: &[],
        entries: &[&record.atom],
    });
    EntryContent::new(read_back(resource, &document), resource.kind, &record.atom, LONGEST_BYTES)
}

/// Returns the text of a document that is not a feed.
fn plain_text(entry: &Entry, longest_bytes: usize) -> EntryText {
    let plain = |text: String| EntryText::Plain(cut(text, longest_bytes));
    match &entry.content {
        Some(Content::Text(text)) if text.kind == TextKind::Text => plain(text.value.clone()),
        Some(Content::Text(text)) => plain(text.to_plain()),
        Some(Content::Media { mime, value }) if mime.starts_with("text/") => plain(value.clone()),
        Some(Content::Media { mime, .. } | Content::Xml { mime, .. }) => {
            EntryText::Media(redaction::line(mime, MEDIA_TYPE_CHARS))
        }
        Some(Content::Src { href, .. }) => EntryText::Elsewhere(href.clone()),
        None => EntryText::Nothing,
    }
}

/// Returns the text of a sanitized entry: its content, or else its summary.
fn display_text(entry: &Entry, longest_bytes: usize) -> EntryText {
    match (&entry.content, &entry.summary) {
        (Some(Content::Text(text)), _) if !text.value.trim().is_empty() => {
            text_of(text, longest_bytes)
        }
        (Some(Content::Text(_)) | None, Some(summary)) => text_of(summary, longest_bytes),
        (Some(Content::Text(_)) | None, None) => EntryText::Nothing,
        (Some(_), _) => plain_text(entry, longest_bytes),
    }
}

fn text_of(text: &Text, longest_bytes: usize) -> EntryText {
    match text.kind {
        _ if text.value.trim().is_empty() => EntryText::Nothing,
        TextKind::Text => EntryText::Plain(cut(text.value.clone(), longest_bytes)),
        // A part of markup is not sanitized markup.
        _ if end_of_fitting(&text.value, longest_bytes).is_some() => {
            EntryText::Plain(cut(text.to_plain(), longest_bytes))
        }
        TextKind::Html | TextKind::Xhtml => EntryText::Markup(text.value.clone()),
    }
}

/// Cuts off what exceeds the maximum length.
fn cut(mut text: String, longest_bytes: usize) -> String {
    if let Some(end) = end_of_fitting(&text, longest_bytes) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Returns where a text has to be cut to take so many bytes on a page, where some characters are escaped;
/// `None` if all of it fits.
fn end_of_fitting(text: &str, longest_bytes: usize) -> Option<usize> {
    let mut bytes = 0;
    let place = text.char_indices().find(|(_, c)| {
        bytes += match c {
            '<' | '>' => "&lt;".len(),
            '&' => "&amp;".len(),
            '"' => "&quot;".len(),
            c => c.len_utf8(),
        };
        bytes > longest_bytes
    });
    place.map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_by_what_they_take_on_a_page() {
        #[rustfmt::skip]
        let cases = [
            ("abc",     3, "abc"),
            ("abcd",    3, "abc…"),
            ("<b>a",    9, "<b>…"),
            ("\"\"\"", 12, "\"\"…"),
            ("ä",       1, "…"),
        ];
        for (text, longest_bytes, want) in cases {
            assert_eq!(cut(text.to_owned(), longest_bytes), want);
        }
    }
}
