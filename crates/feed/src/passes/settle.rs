//! The remaining requirements of RFC 4287, after all other passes.

use std::collections::{HashMap, HashSet};

use crate::model::{Content, Entry, Feed, Link, Text};

use super::repeats::remove_duplicates;

/// The namespace of `xml:lang` and `xml:base`.
const XML: &str = "http://www.w3.org/XML/1998/namespace";

/// The media type of pages.
const PAGE: &str = "text/html";

/// Makes every entry valid in an Atom document.
pub(super) fn make_valid(mut feed: Feed) -> Feed {
    make_links_valid(&mut feed.links);
    for entry in &mut feed.entries {
        make_links_valid(&mut entry.links);
        if let Some(source) = &mut entry.source {
            make_links_valid(&mut source.links);
        }
        require_content(entry);
        require_summary(entry);
    }
    feed
}

/// Removes duplicate links. Of several alternates of one type and language, which Atom forbids (RFC
/// 4287 `#rfc.section.4.1.1`), the first is kept and the others become `related`. Alternates come first,
/// because clients take the first link for that of the entry.
fn make_links_valid(links: &mut Vec<Link>) {
    // `hreflang` holds the language, and `xml:base` has been applied.
    for link in &mut *links {
        link.attributes.retain(|attribute| attribute.namespace != XML);
    }
    if links.iter().filter(|link| link.rel == "alternate").count() > 1 {
        relate_alternates(links);
    }
    remove_duplicates(links);
    type_alternates(links);
    links.sort_by_key(|link| link.rel != "alternate"); // stable
}

/// Says of an alternate link without a type that it leads to a page: "MimeType of the link destination
/// (text/html by default)" (seed 003). It stays as it is where another one of that type and language
/// stands beside it.
fn type_alternates(links: &mut [Link]) {
    let is_alternate = |link: &&Link| link.rel == "alternate";
    let pages = links.iter().filter(is_alternate).filter(|link| link.mime.as_deref() == Some(PAGE));
    let mut languages: HashSet<Option<String>> = pages.map(|link| link.hreflang.clone()).collect();
    for link in links.iter_mut().filter(|link| link.rel == "alternate" && link.mime.is_none()) {
        if languages.insert(link.hreflang.clone()) {
            link.mime = Some(PAGE.to_owned());
        }
    }
}

fn relate_alternates(links: &mut [Link]) {
    let mut alternates: HashMap<(Option<String>, Option<String>), String> = HashMap::new();
    for link in links {
        if link.rel == "alternate" {
            let kind = (link.mime.clone(), link.hreflang.clone());
            let first = alternates.entry(kind).or_insert_with(|| link.href.clone());
            if *first != link.href {
                link.rel = "related".to_owned();
            }
        }
    }
}

/// Uses the summary as content if there is neither content nor an alternate link: "atom:entry
/// elements that contain no child atom:content element MUST contain at least one atom:link element
/// with a rel attribute value of "alternate"" (RFC 4287 `#rfc.section.4.1.2`).
fn require_content(entry: &mut Entry) {
    let linked = entry.links.iter().any(|link| link.rel == "alternate");
    if entry.content.is_none() && !linked {
        entry.content = Some(Content::Text(entry.summary.clone().unwrap_or_default()));
    }
}

/// Adds the summary that is required for content that is not inline text (RFC 4287
/// `#rfc.section.4.1.1.1`), from the title if there is nothing better.
fn require_summary(entry: &mut Entry) {
    let is_elsewhere = match &entry.content {
        Some(Content::Src { .. }) => true,
        Some(Content::Media { mime, .. }) => !mime.starts_with("text/"),
        _ => false,
    };
    if is_elsewhere && entry.summary.is_none() {
        let title = entry.title.as_ref().map(Text::to_plain);
        entry.summary = Some(Text::plain(title.unwrap_or_default()));
    }
}
