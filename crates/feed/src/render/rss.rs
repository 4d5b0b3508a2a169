//! RSS 2.0 documents of feeds as they are stored in Atom.
//!
//! What RSS has an element for is written in that element, in the form that the W3C's feed validator
//! requires; what only Atom has is written in Atom's namespace; elements of other vocabularies, such as
//! those of podcasts, are written as they are. Prefixes are declared once, at the root, because some
//! readers look for them there. For any input, the output is well-formed.

mod item;

use chrono::{DateTime, Datelike, FixedOffset};

use crate::model::{Element, Feed, Link, Person, Text};
use crate::own_elements;

use super::atom::DECLARATION;
use super::categories::distinct_categories;
use super::element::{push_foreign, push_foreign_attributes};
use super::entry_values::{ascii_url, is_alternate, is_status, page, stated_authors};
use super::json::modules::ITUNES;
use super::json::parts::ACTIVITY;
use super::json::picture;
use super::names::{ATOM, Names, RSS};
use super::xml::{push_attribute, push_element, push_end, push_text};

/// The namespace of `content:encoded`.
const CONTENT: &str = "http://purl.org/rss/1.0/modules/content/";
/// Dublin Core, which has the authors that have no e-mail address.
const DC: &str = "http://purl.org/dc/elements/1.1/";
/// The namespaces that every document declares.
const OWN: [&str; 3] = [CONTENT, DC, ITUNES];
/// The specification, under the address by which the validator knows it.
const SPECIFICATION: &str = "http://www.rssboard.org/rss-specification";

/// Serializes a feed with its entries as one document.
pub fn document(feed: &Feed) -> String {
    let mut own = OWN.to_vec();
    if has_elements_of_rss(feed) {
        own.push(RSS);
    }
    let names = Names::of_document(feed, &own, is_written);
    let mut out = String::with_capacity(4_096 + feed.entries.len() * 2_048);
    out.push_str(DECLARATION);
    out.push_str("<rss version=\"2.0\"");
    push_attribute(&mut out, "xmlns:atom", ATOM);
    names.declare(&mut out);
    out.push_str(">\n<channel>\n");
    push_channel(&mut out, feed, &names);
    for entry in &feed.entries {
        item::push_item(&mut out, entry, feed, &names);
    }
    out.push_str("</channel>\n</rss>\n");
    out
}

/// Returns whether any element has to be written in the namespace that RSS had for a while.
fn has_elements_of_rss(feed: &Feed) -> bool {
    let entries = feed.entries.iter().flat_map(|entry| &entry.extensions);
    feed.extensions.iter().chain(entries).any(|it| matches!(it.namespace.as_str(), "" | ATOM))
}

/// Appends the metadata of a feed.
fn push_channel(out: &mut String, feed: &Feed, names: &Names<'_>) {
    let home = home(feed);
    let title = feed.title.as_ref().map(Text::to_plain).filter(|title| !title.is_empty());
    let title = title.as_deref().unwrap_or(&home);
    let about = feed.subtitle.as_ref().map(Text::to_plain).filter(|about| !about.is_empty());
    push_element(out, "title", title);
    push_element(out, "link", &home);
    push_element(out, "description", about.as_deref().unwrap_or(title));
    push_filled(out, "language", feed.lang.as_deref());
    push_filled(out, "copyright", feed.rights.as_ref().map(Text::to_plain).as_deref());
    push_editors(out, feed);
    if let Some(updated) = &feed.updated {
        push_element(out, "lastBuildDate", &date(updated));
    }
    for category in distinct_categories(&feed.categories) {
        push_category(out, &category.term, category.scheme.as_deref());
    }
    let generator = feed.generator.as_ref().map(|generator| generator.name.as_str());
    push_filled(out, "generator", generator);
    push_element(out, "docs", SPECIFICATION);
    if let Some(minutes) = feed.extensions.iter().find_map(ttl_min) {
        push_element(out, "ttl", &minutes.to_string());
    }
    push_image(out, feed, title, &home);
    if !feed.id.is_empty() {
        push_element(out, "atom:id", &feed.id);
    }
    push_filled(out, "atom:icon", feed.icon.as_deref());
    push_links(out, &feed.links, names);
    push_elements(out, &feed.extensions, names);
}

/// Appends elements of other vocabularies.
fn push_elements(out: &mut String, elements: &[Element], names: &Names<'_>) {
    let written = elements.iter().filter(|element| is_written(element));
    written.for_each(|element| push_foreign(out, element, names));
}

/// Returns whether an element is written as it is: what it says is not said in an element of RSS.
fn is_written(element: &Element) -> bool {
    let is_in_guid = ["id", "permalink"].iter().any(|it| own_elements::is_stated(element, it));
    !is_in_guid && !is_status(element) && !is_default_verb(element) && ttl_min(element).is_none()
}

/// Returns whether an element says that an entry was posted, which is so of entries of RSS.
fn is_default_verb(element: &Element) -> bool {
    element.namespace == ACTIVITY && element.name == "verb" && element.text().ends_with("/post")
}

/// Returns the address of the web site of a feed, which RSS requires; without one, that of the feed.
fn home(feed: &Feed) -> String {
    let named = |rel: &str| feed.links.iter().find(|link| link.rel == rel);
    let site = page(&feed.links).or_else(|| named("via")).or_else(|| named("original"));
    let link = site.or_else(|| named("self")).map(|link| link.href.as_str());
    ascii_url(link.unwrap_or(&feed.id)).into_owned()
}

/// Appends the authors of a feed. Only one with an e-mail address has an element in RSS.
fn push_editors(out: &mut String, feed: &Feed) {
    let authors: Vec<&Person> = stated_authors(&feed.authors).collect();
    match authors[..] {
        [Person { name, email: Some(email), .. }] if email.contains('@') => {
            push_element(out, "managingEditor", &format!("{email} ({name})"));
        }
        _ => authors.iter().for_each(|author| push_element(out, "dc:creator", &author.name)),
    }
    push_podcast_author(out, &feed.extensions, authors.first().copied());
}

/// Appends the author of a podcast, or of an episode, under the name that podcast software reads.
fn push_podcast_author(out: &mut String, elements: &[Element], author: Option<&Person>) {
    let of_podcasts = || elements.iter().filter(|element| element.namespace == ITUNES);
    let is_podcast = of_podcasts().next().is_some() && of_podcasts().all(|it| it.name != "author");
    if let Some(author) = author.filter(|_| is_podcast) {
        push_element(out, "itunes:author", &author.name);
    }
}

/// Appends the image of a feed, whose title and link are those of the feed.
fn push_image(out: &mut String, feed: &Feed, title: &str, home: &str) {
    let picture = picture::of_feed(feed).map(|picture| picture.href);
    if let Some(url) = feed.logo.as_deref().map(str::to_owned).or(picture) {
        out.push_str("<image>\n");
        push_element(out, "url", &ascii_url(&url));
        push_element(out, "title", title);
        push_element(out, "link", home);
        push_end(out, "image");
    }
}

/// Returns the minutes that an element of RSS lets caches keep the feed.
fn ttl_min(element: &Element) -> Option<u32> {
    let is_ttl = element.namespace == RSS && element.name == "ttl";
    is_ttl.then(|| element.text().trim().parse().ok()).flatten()
}

/// Appends the links that have no element in RSS.
fn push_links(out: &mut String, links: &[Link], names: &Names<'_>) {
    let page = page(links);
    for link in links.iter().filter(|link| page != Some(*link)) {
        push_link(out, link, names);
    }
}

/// Appends a link in Atom's namespace.
fn push_link(out: &mut String, link: &Link, names: &Names<'_>) {
    out.push_str("<atom:link");
    push_attribute(out, "rel", if is_alternate(link) { "alternate" } else { &link.rel });
    for (name, value) in [
        ("type", &link.mime),
        ("hreflang", &link.hreflang),
        ("title", &link.title),
        ("length", &link.length),
    ] {
        if let Some(value) = value {
            push_attribute(out, name, value);
        }
    }
    push_attribute(out, "href", &ascii_url(&link.href));
    push_foreign_attributes(out, &link.attributes, names);
    out.push_str("/>\n");
}

/// Appends a category.
fn push_category(out: &mut String, term: &str, domain: Option<&str>) {
    out.push_str("<category");
    if let Some(domain) = domain {
        push_attribute(out, "domain", domain);
    }
    out.push('>');
    push_text(out, term);
    push_end(out, "category");
}

/// Appends an element if there is a text for it.
fn push_filled(out: &mut String, name: &str, text: Option<&str>) {
    if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
        push_element(out, name, text);
    }
}

/// Formats a date as RSS requires (RFC 822 with four digits of the year), in GMT. Years out of their range
/// become 1970.
fn date(date: &DateTime<FixedOffset>) -> String {
    let date = date.to_utc();
    let date = if (1..=9_999).contains(&date.year()) { date } else { DateTime::UNIX_EPOCH };
    date.format("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

#[cfg(test)]
mod tests;
