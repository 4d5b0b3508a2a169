//! Items of RSS.

use url::Url;

use crate::model::{Entry, Feed, Link, Person, Text};
use crate::own_elements;

use super::super::atom::parts;
use super::super::categories::distinct_categories;
use super::super::entry_values::{
    ascii_url, content, enclosures, own_language, page, published, source_id, stated_authors,
    summary, updated,
};
use super::super::names::Names;
use super::super::xml::{push_attribute, push_element, push_end, push_text};
use super::{date, push_category, push_elements, push_filled, push_link, push_podcast_author};

/// Appends an entry.
pub(super) fn push_item(out: &mut String, entry: &Entry, feed: &Feed, names: &Names<'_>) {
    let page = page(&entry.links);
    out.push_str("<item>\n");
    push_filled(out, "title", entry.title.as_ref().map(Text::to_plain).as_deref());
    push_filled(out, "link", page.map(|page| ascii_url(&page.href)).as_deref());
    push_guid(out, entry, page);
    if let Some(published) = published(entry) {
        push_element(out, "pubDate", &date(&published));
    }
    push_texts(out, entry);
    push_authors(out, entry);
    for category in distinct_categories(&entry.categories) {
        push_category(out, &category.term, category.scheme.as_deref());
    }
    let comments = entry.links.iter().find(|link| is_comments(link));
    push_filled(out, "comments", comments.map(|link| ascii_url(&link.href)).as_deref());
    push_enclosures(out, entry);
    push_source(out, entry);
    if let Some(updated) = updated(entry) {
        push_element(out, "atom:updated", &parts::date(&updated));
    }
    let written = [page, comments];
    for link in entry.links.iter().filter(|link| !written.contains(&Some(*link))) {
        if link.rel != "enclosure" {
            push_link(out, link, names);
        }
    }
    push_filled(out, "dc:language", own_language(entry, feed));
    push_filled(out, "dc:rights", entry.rights.as_ref().map(Text::to_plain).as_deref());
    for contributor in &entry.contributors {
        push_filled(out, "dc:contributor", Some(&contributor.name));
    }
    push_elements(out, &entry.extensions, names);
    push_end(out, "item");
}

/// Appends the id. It is a permalink if the source says so, or if it is the address of the page.
fn push_guid(out: &mut String, entry: &Entry, page: Option<&Link>) {
    let id = source_id(entry);
    let is_page = page.is_some_and(|page| page.href == id);
    let stated = own_elements::stated_value(&entry.extensions, "permalink");
    let is_permalink = stated.map_or(is_page, |stated| stated == "true") && is_web_url(&id);
    out.push_str("<guid");
    push_attribute(out, "isPermaLink", if is_permalink { "true" } else { "false" });
    out.push('>');
    push_text(out, &id);
    push_end(out, "guid");
}

/// Appends the texts as HTML. An entry with one text has it in `description`, which all readers show.
fn push_texts(out: &mut String, entry: &Entry) {
    let summary = summary(entry).map(|text| text.into_html());
    let content = content(entry).map(|text| text.into_html());
    let (description, encoded) = match (summary, content) {
        (Some(summary), content) => (Some(summary), content),
        (None, content) => (content, None),
    };
    // An item has a title or a description.
    let is_untitled = entry.title.as_ref().is_none_or(|title| title.to_plain().is_empty());
    match description {
        Some(description) => push_element(out, "description", &description),
        None if is_untitled => push_element(out, "description", ""),
        None => {}
    }
    if let Some(encoded) = encoded {
        push_element(out, "content:encoded", &encoded);
    }
}

/// Appends the authors. Only a single one with an e-mail address has an element in RSS.
fn push_authors(out: &mut String, entry: &Entry) {
    let authors: Vec<&Person> = stated_authors(&entry.authors).collect();
    match authors[..] {
        [Person { name, email: Some(email), .. }] if email.contains('@') => {
            push_element(out, "author", &format!("{email} ({name})"));
        }
        _ => authors.iter().for_each(|author| push_element(out, "dc:creator", &author.name)),
    }
    push_podcast_author(out, &entry.extensions, authors.first().copied());
}

/// Appends the enclosures: the first as RSS has it, which has one at most, the others as links of Atom.
fn push_enclosures(out: &mut String, entry: &Entry) {
    for (n, enclosure) in enclosures(entry).iter().enumerate() {
        let length = enclosure.bytes.map(|bytes| bytes.to_string());
        let (name, url) = if n == 0 { ("enclosure", "url") } else { ("atom:link", "href") };
        out.push('<');
        out.push_str(name);
        if n > 0 {
            push_attribute(out, "rel", "enclosure");
        }
        push_attribute(out, url, &enclosure.url);
        push_attribute(out, "type", enclosure.mime);
        match length.as_deref() {
            Some(length) => push_attribute(out, "length", length),
            // RSS requires a length.
            None if n == 0 => push_attribute(out, "length", "0"),
            None => {}
        }
        out.push_str("/>\n");
    }
}

/// Appends the feed that the entry was copied from, if its address is known.
fn push_source(out: &mut String, entry: &Entry) {
    let Some(source) = entry.source.as_deref() else { return };
    let own = source.links.iter().find(|link| link.rel == "self").map(|link| link.href.as_str());
    let page = page(&source.links).map(|link| link.href.as_str());
    let url = own.into_iter().chain([source.id.as_str()]).chain(page).find(|url| is_web_url(url));
    if let Some(url) = url {
        out.push_str("<source");
        push_attribute(out, "url", &ascii_url(url));
        out.push('>');
        push_text(out, &source.title.as_ref().map(Text::to_plain).unwrap_or_default());
        push_end(out, "source");
    }
}

/// Returns whether a text can be the address of a page.
fn is_web_url(text: &str) -> bool {
    let is_web = text.starts_with("http://") || text.starts_with("https://");
    is_web && text.is_ascii() && Url::parse(text).is_ok()
}

/// Returns whether a link leads to a page with comments.
fn is_comments(link: &Link) -> bool {
    link.rel == "replies" && link.mime.as_deref().is_none_or(|mime| mime.contains("html"))
}
