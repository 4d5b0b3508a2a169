//! Values of entries in the form that RSS and JSON Feed have in common, and Atom does not.

use std::borrow::Cow;

use chrono::{DateTime, FixedOffset};
use url::Url;

use crate::iri;
use crate::model::{Content, Element, Entry, Feed, Link, Person, Text, TextKind};
use crate::own_elements;
use crate::text_extraction::printable;

use super::json::modules::{self, ITUNES, MEDIA};
use super::json::parts::{attribute, text};
use super::xml::push_text;

/// The media type of an enclosure that has none: RSS and JSON Feed require one.
const UNKNOWN_MEDIA: &str = "application/octet-stream";
/// Superfeedr's namespace, in which documents of a gateway have the status of a feed.
const SUPERFEEDR: &str = "http://superfeedr.com/xmpp-pubsub-ext";

/// A text of an entry.
#[derive(Debug, PartialEq)]
pub(super) enum TextValue<'e> {
    /// Plain text.
    Plain(Cow<'e, str>),
    /// HTML.
    Html(Cow<'e, str>),
}

impl<'e> TextValue<'e> {
    /// Returns a text construct.
    pub(super) fn new(text: &'e Text) -> TextValue<'e> {
        match text.kind {
            TextKind::Text => TextValue::Plain(Cow::Borrowed(&text.value)),
            TextKind::Html | TextKind::Xhtml => TextValue::Html(Cow::Borrowed(&text.value)),
        }
    }

    /// Returns the text as HTML.
    pub(super) fn into_html(self) -> Cow<'e, str> {
        match self {
            TextValue::Html(html) => html,
            TextValue::Plain(text) => {
                let mut html = String::with_capacity(text.len() + 16);
                push_text(&mut html, &text);
                Cow::Owned(html)
            }
        }
    }
}

/// Returns the content of an entry. One that is neither text nor markup, or lies elsewhere, has none.
pub(super) fn content(entry: &Entry) -> Option<TextValue<'_>> {
    match entry.content.as_ref()? {
        Content::Text(text) => Some(TextValue::new(text)),
        Content::Media { mime, value } if mime.starts_with("text/") => {
            Some(TextValue::Plain(Cow::Borrowed(value)))
        }
        Content::Xml { value, .. } => Some(TextValue::Html(Cow::Borrowed(value))),
        Content::Media { .. } | Content::Src { .. } => None,
    }
}

/// Returns the summary of an entry. One without any text, such as a video of YouTube, has the description
/// of Media RSS.
pub(super) fn summary(entry: &Entry) -> Option<TextValue<'_>> {
    if let Some(summary) = &entry.summary {
        return Some(TextValue::new(summary));
    }
    let described = entry.content.is_none().then(|| modules::media_description(&entry.extensions));
    described.flatten().map(|text| TextValue::Plain(Cow::Owned(text)))
}

/// Returns the id of an entry as its source wrote it: Atom requires an IRI, and other ids are wrapped in
/// one. An id that was changed to tell entries apart that share one stays changed, and so does one with
/// characters that XML forbids.
pub(super) fn source_id(entry: &Entry) -> Cow<'_, str> {
    let stated = own_elements::stated_value(&entry.extensions, "id");
    let is_wrapped = |stated: &String| {
        let id = stated.trim();
        let is_sound = !id.is_empty() && printable(id) == id;
        let is_uuid = entry.id.strip_prefix("urn:uuid:") == Some(id);
        is_sound && (is_uuid || entry.id == iri::urn("guid", id))
    };
    match stated.filter(is_wrapped) {
        Some(stated) => Cow::Owned(stated),
        None => Cow::Borrowed(&entry.id),
    }
}

/// Returns the page of an entry or a feed: its first `alternate` link, of HTML if there is one.
pub(super) fn page(links: &[Link]) -> Option<&Link> {
    let is_html = |link: &&Link| link.mime.as_deref().is_none_or(|mime| mime.contains("html"));
    let mut alternates = links.iter().filter(|link| is_alternate(link));
    alternates.clone().find(is_html).or_else(|| alternates.next())
}

/// Returns whether a link is an `alternate` one.
pub(super) fn is_alternate(link: &Link) -> bool {
    matches!(link.rel.as_str(), "" | "alternate")
}

/// Returns the authors that a source states.
pub(super) fn stated_authors(authors: &[Person]) -> impl Iterator<Item = &Person> {
    authors.iter().filter(|person| !own_elements::is_derived(person) && !person.name.is_empty())
}

/// A file that belongs to an entry.
#[derive(Debug, PartialEq)]
pub(super) struct EnclosedFile<'e> {
    /// The address.
    pub(super) url: Cow<'e, str>,
    /// The media type.
    pub(super) mime: &'e str,
    /// The title.
    pub(super) title: Option<&'e str>,
    /// The length in bytes; `None` if it is unknown.
    pub(super) bytes: Option<u64>,
}

/// Returns the enclosures of an entry, and its content if that lies elsewhere.
pub(super) fn enclosures(entry: &Entry) -> Vec<EnclosedFile<'_>> {
    let links = entry.links.iter().filter(|link| link.rel == "enclosure");
    let mut enclosures: Vec<EnclosedFile<'_>> = links
        .map(|link| EnclosedFile {
            url: ascii_url(&link.href),
            mime: link.mime.as_deref().unwrap_or(UNKNOWN_MEDIA),
            title: link.title.as_deref(),
            bytes: link.length.as_deref().and_then(|length| length.trim().parse().ok()),
        })
        .collect();
    if let Some(Content::Src { mime, href }) = &entry.content {
        let (url, mime) = (ascii_url(href), mime.as_deref().unwrap_or(UNKNOWN_MEDIA));
        enclosures.push(EnclosedFile { url, mime, title: None, bytes: None });
    }
    enclosures
}

/// Returns how long the recording of an entry is, in seconds, by Apple's podcast elements or Media RSS.
pub(super) fn duration_s(entry: &Entry) -> Option<u64> {
    let named = |namespace: &str, name: &str| {
        entry.extensions.iter().find(|it| it.namespace == namespace && it.name == name)
    };
    let podcast = named(ITUNES, "duration").and_then(|element| clock_s(&text(element)));
    let media =
        || named(MEDIA, "content").and_then(|element| clock_s(attribute(element, "duration")?));
    podcast.or_else(media)
}

/// Reads a duration: `1:02:03`, `62:03` or a number of seconds.
fn clock_s(text: &str) -> Option<u64> {
    let text = text.trim();
    let whole = |part: &str| part.split('.').next().unwrap_or_default().parse::<u64>().ok();
    let parts: Vec<u64> = text.split(':').map(whole).collect::<Option<_>>()?;
    let seconds = parts.iter().try_fold(0_u64, |sum, part| sum.checked_mul(60)?.checked_add(*part));
    seconds.filter(|_| parts.len() <= 3)
}

/// Returns when an entry was published, or updated if that is not known.
pub(super) fn published(entry: &Entry) -> Option<DateTime<FixedOffset>> {
    entry.published.or(entry.updated)
}

/// Returns the time of the last update of an entry, if it was updated after it was published.
pub(super) fn updated(entry: &Entry) -> Option<DateTime<FixedOffset>> {
    entry.updated.filter(|updated| entry.published.is_some_and(|published| *updated != published))
}

/// Returns whether an element is the status of the feed in a document of a gateway.
pub(super) fn is_status(element: &Element) -> bool {
    element.namespace == SUPERFEEDR && element.name == "status"
}

/// Returns the language of an entry, if it differs from that of the feed.
pub(super) fn own_language<'e>(entry: &'e Entry, feed: &Feed) -> Option<&'e str> {
    entry.lang.as_deref().filter(|lang| !lang.is_empty() && feed.lang.as_deref() != Some(*lang))
}

/// Returns an address with ASCII characters only, as URLs have; other addresses stay byte for byte.
pub(super) fn ascii_url(iri: &str) -> Cow<'_, str> {
    if iri.is_ascii() {
        return Cow::Borrowed(iri);
    }
    match Url::parse(iri) {
        Ok(url) => Cow::Owned(url.into()),
        Err(_) => Cow::Owned(iri::percent_encode(iri, |c| c.is_ascii())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_podcasts_write_them() {
        #[rustfmt::skip]
        let cases = [
            ("187", Some(187)), ("3:21", Some(201)), ("01:02:03", Some(3_723)), (" 90.5 ", Some(90)),
            ("", None), ("1:2:3:4", None), ("an hour", None), ("-5", None),
            ("99999999999999999999", None),
        ];
        for (text, want) in cases {
            assert_eq!(clock_s(text), want, "{text}");
        }
    }

    #[test]
    fn an_id_is_that_of_the_source_unless_it_tells_entries_apart() {
        let uuid = "0d7b9cf4-6f2a-4a7e-9b52-1d6f2f3a9c11";
        let of_uuid = format!("urn:uuid:{uuid}");
        #[rustfmt::skip]
        let cases = [
            ("https://a.test/1",   None,         "https://a.test/1"),
            ("urn:guid:14",        Some("14"),   "14"),
            ("urn:guid:%C3%A9%201", Some("é 1"), "é 1"),
            (&*of_uuid,            Some(uuid),   uuid),
            ("urn:guid:14:abcdef", Some("14"),   "urn:guid:14:abcdef"),
            ("https://a.test/1",   Some("x"),    "https://a.test/1"),
            ("urn:guid:%00",       Some("\0"),   "urn:guid:%00"),
        ];
        for (id, stated, want) in cases {
            let stated = stated.map(|stated| own_elements::stated("id", stated.to_owned()));
            let extensions = stated.into_iter().collect();
            let entry = Entry { id: id.to_owned(), extensions, ..Entry::default() };
            assert_eq!(source_id(&entry), want, "{id}");
        }
    }

    #[test]
    fn addresses_are_urls() {
        #[rustfmt::skip]
        let cases = [
            ("https://a.test/%7e?a=[1]", "https://a.test/%7e?a=[1]"),
            ("https://a.test/é",         "https://a.test/%C3%A9"),
            ("urn:é",                    "urn:%C3%A9"),
        ];
        for (iri, want) in cases {
            assert_eq!(ascii_url(iri), want, "{iri}");
        }
    }
}
