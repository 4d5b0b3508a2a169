//! Resolution of addresses: links, icons, people, and addresses inside texts.
//!
//! `parse` resolves addresses below an `xml:base`. All others are relative to the document (see
//! [`Context::base`]), except where the document states no base and readers know better: addresses in
//! the texts of an entry are relative to its page, and links of an RSS item to the site of the feed
//! (see [`item_links`]). Afterwards nothing depends on a base any more. The bases of a source are
//! kept on the outermost element that has them, because scripts in content may use them.

use crate::context::Context;
use crate::iri;
use crate::model::{
    Attribute, Category, Content, Element, Entry, Feed, Link, Node, Person, Text, TextKind,
};
use crate::repair::{Repair, RepairCode};

use super::html;
use super::item_links::{self, ItemBases};
use super::text::trim_string;

/// Image types allowed in `data:` addresses; other data runs code when the link is followed (rule
/// S22).
const SAFE_IMAGES: &[&str] =
    &["data:image/gif", "data:image/jpeg", "data:image/png", "data:image/webp"];

/// Elements of other vocabularies whose text is an address.
const ADDRESS_ELEMENTS: &[(&str, &str)] = &[
    ("http://wellformedweb.org/CommentAPI/", "comment"),
    ("http://wellformedweb.org/CommentAPI/", "commentRss"),
    (RSS, "docs"),
    (RSS, "comments"),
    (RSS, "url"),
    (RSS, "link"),
    (RSS, "icon"),
    (RSS, "logo"),
];

/// The namespace of kept elements of RSS.
const RSS: &str = "http://backend.userland.com/rss2";

/// The IRI prefix of registered link relations (RFC 4287 `#rfc.section.4.2.7.2`).
const RELATIONS: &str = "http://www.iana.org/assignments/relation/";

/// Makes all addresses absolute.
pub(super) fn make_absolute(mut feed: Feed, context: &Context) -> Feed {
    let base = context.base();
    let mut pass = Pass { base: base.as_str(), repairs: Vec::new() };
    item_links::complete_site(&mut feed.links, &base);
    pass.feed(&mut feed);
    let bases = ItemBases::from_feed(&feed, context);
    for entry in &mut feed.entries {
        if feed.base.is_some() {
            // The text lies outside the element with that base, but will be written inside it.
            entry.base.get_or_insert_with(|| base.to_string());
        }
        item_links::resolve(&mut entry.links, &bases);
        pass.entry(entry, &bases);
    }
    feed.repairs.append(&mut pass.repairs);
    feed
}

struct Pass<'a> {
    /// The base of the document.
    base: &'a str,
    repairs: Vec<Repair>,
}

impl Pass<'_> {
    /// Resolves the addresses of a feed without its entries.
    fn feed(&mut self, feed: &mut Feed) {
        let outer = feed.base.as_deref();
        for text in [&mut feed.title, &mut feed.subtitle, &mut feed.rights] {
            make_text_absolute(text.as_mut(), outer, self.base);
        }
        self.people(&mut feed.authors);
        self.people(&mut feed.contributors);
        self.links(&mut feed.links);
        self.categories(&mut feed.categories);
        if let Some(generator) = &mut feed.generator {
            self.optional(&mut generator.uri);
        }
        self.optional(&mut feed.icon);
        self.optional(&mut feed.logo);
        feed.extensions.iter_mut().for_each(|element| self.element(element));
    }

    fn entry(&mut self, entry: &mut Entry, bases: &ItemBases) {
        self.links(&mut entry.links);
        item_links::prefer_original(entry);
        let outer = entry.base.as_deref();
        let page = bases.text_base(entry);
        let page = page.as_deref().unwrap_or(self.base);
        for text in [&mut entry.title, &mut entry.summary, &mut entry.rights] {
            make_text_absolute(text.as_mut(), outer, page);
        }
        match &mut entry.content {
            Some(Content::Text(text)) => make_text_absolute(Some(text), outer, page),
            Some(Content::Src { href, .. }) => {
                self.address(href);
                if !iri::is_complete(href) {
                    entry.content = None;
                }
            }
            Some(Content::Xml { base, .. }) => drop(base.take_if(|b| Some(b.as_str()) == outer)),
            Some(Content::Media { .. }) | None => {}
        }
        self.people(&mut entry.authors);
        self.people(&mut entry.contributors);
        self.categories(&mut entry.categories);
        if let Some(source) = &mut entry.source {
            self.feed(source);
            source.base.take_if(|base| Some(base.as_str()) == outer);
        }
        entry.extensions.iter_mut().for_each(|element| self.element(element));
    }

    fn people(&mut self, people: &mut [Person]) {
        for person in people {
            self.optional(&mut person.uri);
            person.extensions.iter_mut().for_each(|element| self.element(element));
        }
    }

    /// Resolves links, and drops those without an address or with one that runs code.
    fn links(&mut self, links: &mut Vec<Link>) {
        links.retain_mut(|link| {
            trim_string(&mut link.rel);
            if let Some(short) = link.rel.strip_prefix(RELATIONS) {
                link.rel = short.to_owned();
            }
            if link.rel.is_empty() {
                link.rel = "alternate".to_owned();
            }
            if link.href.trim().is_empty() {
                self.drop(link, "an empty address");
                return false;
            }
            self.address(&mut link.href);
            link.extensions.iter_mut().for_each(|element| self.element(element));
            if is_unsafe(&link.href) {
                self.drop(link, "an address that runs code");
                return false;
            }
            if !iri::is_complete(&link.href) {
                self.drop(link, &link.href);
                return false;
            }
            true
        });
    }

    fn drop(&mut self, link: &Link, why: &str) {
        self.repairs.push(Repair::new(RepairCode::LinkDropped, why).within(link.trace_id));
    }

    /// Resolves category schemes. A scheme that is not an address is wrapped in a URN: it still
    /// names a vocabulary, but resolving it would lead nowhere.
    fn categories(&mut self, categories: &mut [Category]) {
        for category in categories {
            let Some(scheme) = &mut category.scheme else { continue };
            let trimmed = scheme.trim();
            if trimmed.is_empty() {
                category.scheme = None;
                continue;
            }
            let joined = iri::join(self.base, trimmed);
            let is_address = iri::is_absolute(trimmed) || trimmed.contains('/');
            *scheme = if is_address && iri::is_complete(&joined) {
                joined.into_owned()
            } else {
                iri::urn("scheme", trimmed)
            };
        }
    }

    /// Resolves the known addresses in elements of other vocabularies.
    fn element(&mut self, element: &mut Element) {
        let holds_address = ADDRESS_ELEMENTS.contains(&(&element.namespace, &element.name));
        if let (true, [Node::Text(text)]) = (holds_address, element.children.as_mut_slice()) {
            self.nonempty(text);
        }
        if element.namespace == RSS && element.name == "info" {
            self.kept_text(element);
        }
        let is_address = |attribute: &&mut Attribute| {
            attribute.namespace.is_empty()
                && matches!(attribute.name.as_str(), "href" | "src" | "url")
        };
        let addresses = element.attributes.iter_mut().filter(is_address);
        addresses.for_each(|attribute| self.nonempty(&mut attribute.value));
        for child in &mut element.children {
            if let Node::Element(child) = child {
                self.element(child);
            }
        }
    }

    /// Resolves the addresses in a text construct that is kept as an element.
    fn kept_text(&self, element: &mut Element) {
        let value = |name: &str| {
            let told = element.attributes.iter().find(|attribute| attribute.name == name);
            told.map(|attribute| attribute.value.clone())
        };
        let is_html = value("type").is_some_and(|kind| kind == "html");
        let base = value("base").unwrap_or_else(|| self.base.to_owned());
        if let (true, [Node::Text(text)]) = (is_html, element.children.as_mut_slice())
            && let Some(absolute) = html::make_absolute(text, &base)
        {
            *text = absolute;
        }
    }

    /// Resolves an optional address, and removes an empty or unusable one.
    fn optional(&mut self, address: &mut Option<String>) {
        if let Some(text) = address.as_mut().filter(|text| !text.trim().is_empty()) {
            self.address(text);
        }
        address.take_if(|address| !iri::is_complete(address));
    }

    fn nonempty(&mut self, address: &mut String) {
        if !address.trim().is_empty() {
            self.address(address);
        }
    }

    fn address(&mut self, address: &mut String) {
        let absolute = iri::join(self.base, address);
        if absolute != *address {
            *address = absolute.into_owned();
        }
    }
}

/// Resolves the addresses in a text. `outer` is the `xml:base` of the feed or entry that the text
/// belongs to; `page` is the base if the text has none of its own.
fn make_text_absolute(text: Option<&mut Text>, outer: Option<&str>, page: &str) {
    let Some(text) = text else { return };
    if text.kind != TextKind::Text {
        let base = text.base.as_deref().unwrap_or(page);
        if let Some(absolute) = html::make_absolute(&text.value, base) {
            text.value = absolute;
        }
    }
    text.base.take_if(|base| Some(base.as_str()) == outer);
}

/// Returns whether following the address runs code (rule S22).
fn is_unsafe(address: &str) -> bool {
    let scheme = iri::scheme(address).unwrap_or_default();
    if scheme.eq_ignore_ascii_case("data") {
        let begins = |safe: &str| {
            let start = address.get(..safe.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(safe))
        };
        return !SAFE_IMAGES.iter().any(|safe| begins(safe));
    }
    ["javascript", "vbscript"].iter().any(|code| scheme.eq_ignore_ascii_case(code))
}
