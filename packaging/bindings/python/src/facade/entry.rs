//! The dictionary of an entry.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use feedgate_feed::model::{Category, Content, Entry, Feed, Link, Text, TextKind};
use feedgate_feed::passes;
use pyo3::prelude::*;

use super::dictionary::Writer;
use super::namespaces::{OWN, attribute, is_in};
use super::texts::Around;
use super::{dates, elements, head, people, texts};

/// The media type of links without one.
const PAGE: &str = "text/html";

/// The prefix of schemes of categories that are no addresses.
const WRAPPED_SCHEME: &str = "urn:scheme:";

/// Fills the dictionary of an entry.
pub(super) fn fill(feed: &Feed, mut entry: Entry, writer: &Writer<'_, '_>) -> PyResult<()> {
    entry.content.take_if(|content| repeats_summary(&entry.summary, content));
    let binary = entry.content.as_mut().and_then(decode_text);
    let mut alone = Feed { entries: vec![entry], ..Feed::default() };
    if writer.document.sanitizes {
        passes::sanitize(&mut alone);
    }
    let entry = &alone.entries[0];
    // A language of the feed that applies to an entry has been copied to it.
    let around = Around { lang: entry.lang.as_deref(), base: feed.base.as_deref() };
    let around = around.inside(None, entry.base.as_deref());
    fill_sanitized(entry, around, writer)?;
    if let Some(content) = &entry.content {
        texts::set_content(content, binary.as_deref(), around, writer)?;
    }
    if around.lang != feed.lang.as_deref() {
        writer.set_if_some("language", around.lang)?;
    }
    Ok(())
}

fn fill_sanitized(entry: &Entry, around: Around<'_>, writer: &Writer<'_, '_>) -> PyResult<()> {
    set_id(entry, writer)?;
    texts::set("title", entry.title.as_ref(), around, writer)?;
    texts::set("summary", entry.summary.as_ref(), around, writer)?;
    texts::set("rights", entry.rights.as_ref(), around, writer)?;
    set_dates(entry, writer)?;
    people::set_authors(&entry.authors, writer)?;
    people::set_contributors(&entry.contributors, writer)?;
    set_links(&entry.links, writer)?;
    set_tags(&entry.categories, writer)?;
    if let Some(source) = &entry.source {
        let filled = writer.dictionary()?;
        head::fill_source(source, around, &filled)?;
        writer.set_dictionary("source", &filled)?;
    }
    elements::set(&entry.extensions, around, writer)
}

/// Returns whether the content is a copy of the summary, or there is none.
fn repeats_summary(summary: &Option<Text>, content: &Content) -> bool {
    let Content::Text(text) = content else { return false };
    text.value.is_empty() || summary.as_ref() == Some(text)
}

/// Makes a text of content in base64, if it is one. Returns its media type.
fn decode_text(content: &mut Content) -> Option<String> {
    let Content::Media { mime, value } = content else { return None };
    if mime.starts_with("text/") {
        return None;
    }
    let compact: String = value.split_whitespace().collect();
    let value = String::from_utf8(BASE64_STANDARD.decode(compact).ok()?).ok()?;
    let mime = std::mem::take(mime);
    *content = Content::Text(Text { kind: TextKind::Html, value, ..Text::default() });
    Some(mime)
}

/// Sets the id as the source has it.
fn set_id(entry: &Entry, writer: &Writer<'_, '_>) -> PyResult<()> {
    let is_id = |name: &str| name == "id";
    let stated = entry.extensions.iter().find(|element| {
        is_in(element, OWN)
            && element.name == "stated"
            && attribute(element, "as").is_some_and(is_id)
    });
    let id = stated.map_or_else(|| entry.id.clone(), |element| element.text());
    if id.is_empty() || (entry.id_generated && stated.is_none()) {
        return Ok(());
    }
    writer.set("id", &absolute_id(&id, writer))?;
    let is_link = entry.links.iter().any(|link| link.rel == "alternate" && link.href == id);
    writer.set_object("guidislink", is_link && writer.document.is_rss())
}

/// Returns an id of Atom that is a path as the address that it stands for.
fn absolute_id(id: &str, writer: &Writer<'_, '_>) -> String {
    let base =
        writer.document.base.as_ref().filter(|_| id.starts_with('/') && !writer.document.is_rss());
    let joined = base.and_then(|base| base.join(id).ok());
    joined.map_or_else(|| id.to_owned(), String::from)
}

/// Sets the dates that the source has. RSS has no date of changes, so one that is the same as the
/// date of publication was derived from it.
fn set_dates(entry: &Entry, writer: &Writer<'_, '_>) -> PyResult<()> {
    if entry.date_assumed {
        return Ok(());
    }
    if let Some(published) = entry.published {
        dates::set("published", published, writer)?;
    }
    let is_derived = entry.updated == entry.published && writer.document.format() == "rss2.0";
    match entry.updated {
        Some(updated) if !is_derived => dates::set("updated", updated, writer),
        _ => Ok(()),
    }
}

/// Sets `links`, and the first page among them as `link`.
pub(super) fn set_links(links: &[Link], writer: &Writer<'_, '_>) -> PyResult<()> {
    let is_rss = writer.document.is_rss();
    for link in links {
        if is_rss && link.rel == "replies" && link.mime.as_deref() == Some(PAGE) {
            writer.set("comments", &link.href)?;
            continue;
        }
        let filled = writer.dictionary()?;
        filled.set("rel", &link.rel)?;
        let usual = match link.rel.as_str() {
            "enclosure" => None,
            "self" => Some("application/atom+xml"),
            _ => Some(PAGE),
        };
        filled.set_if_some("type", link.mime.as_deref().or(usual))?;
        filled.set("href", &link.href)?;
        filled.set_if_some("hreflang", link.hreflang.as_deref())?;
        filled.set_if_some("title", link.title.as_deref())?;
        filled.set_if_some("length", link.length.as_deref())?;
        for attribute in &link.attributes {
            filled.set(&super::namespaces::attribute_key(attribute), &attribute.value)?;
        }
        writer.append("links", &filled)?;
        let is_page = link.mime.as_deref().is_none_or(|mime| mime.contains("html"));
        if link.rel == "alternate" && is_page && !writer.has("link")? {
            writer.set("link", &link.href)?;
        }
    }
    Ok(())
}

/// Sets `tags`.
pub(super) fn set_tags(categories: &[Category], writer: &Writer<'_, '_>) -> PyResult<()> {
    categories.iter().try_for_each(|category| {
        let scheme = category.scheme.as_deref();
        let scheme = scheme.map(|scheme| scheme.strip_prefix(WRAPPED_SCHEME).unwrap_or(scheme));
        add_tag(&category.term, scheme, category.label.as_deref(), writer)
    })
}

/// Appends a tag.
pub(super) fn add_tag(
    term: &str,
    scheme: Option<&str>,
    label: Option<&str>,
    writer: &Writer<'_, '_>,
) -> PyResult<()> {
    let filled = writer.dictionary()?;
    filled.set("term", term)?;
    filled.set_or_none("scheme", scheme)?;
    filled.set_or_none("label", label)?;
    let tags = writer.list("tags")?;
    if tags.contains(&filled.target)? { Ok(()) } else { tags.append(&filled.target) }
}
