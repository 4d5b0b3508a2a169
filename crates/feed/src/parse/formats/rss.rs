//! RSS in all its versions: 0.90 and 1.0 (RDF), 0.91 to 0.94, 1.1 and 2.0.
//!
//! The versions differ in the position of items and in the elements that exist. Feeds mix them, so
//! all are read alike: items at any position, elements by their local names in whatever namespace
//! the document uses for RSS. Elements without a counterpart in Atom are kept under the vocabulary
//! [`RSS`].

use super::{Reading, elements, items, outline, read_foreign};
use crate::model::{Category, Content, Entry, Feed, FeedFormat, Link};
use crate::own_elements;
use crate::parse::dates;
use crate::parse::hints;
use crate::parse::person::person;
use crate::parse::target::{FeedOrEntry, Target};
use crate::parse::tree::{Tree, XmlChild, XmlElement};
use crate::parse::vocabulary::{RDF, RSS};

/// Elements of a channel that are read elsewhere, or that are mere containers.
const ELSEWHERE: [&str; 5] = ["item", "items", "entry", "channel", "li"];

/// Reads a feed. `root` is the feed element, or the parent of the items if there is none.
pub(super) fn read<'t>(
    tree: &'t Tree<'t>,
    root: XmlElement<'t>,
    reading: &mut Reading<'_>,
) -> Feed {
    let channel = if root.named("channel") { root } else { root.child("channel").unwrap_or(root) };
    let own = Own { root, channel };
    let mut feed = reading.feed_at(channel, version(root));
    let mut target = reading.target(FeedOrEntry::Feed(&mut feed));
    target.begin(channel);
    read_channel(&own, &mut target);
    let is_item = |element: XmlElement<'t>| {
        (element.named("item") && own.holds(element))
            || (element.named("entry") && (element.is_rss() || element.is_atom()))
    };
    let found = items(tree, is_item, reading.repairs);
    feed.entries.reserve(found.len());
    for (element, under) in outline::flattened(found, reading.repairs) {
        let mut entry = Entry { under, ..reading.entry_at(element) };
        let mut target = reading.target(FeedOrEntry::Entry(&mut entry));
        target.begin(element);
        read_item(&own, element, &mut target);
        feed.entries.push(entry);
    }
    feed
}

/// The namespaces that the document uses for RSS.
#[derive(Clone, Copy, Debug)]
struct Own<'t> {
    root: XmlElement<'t>,
    channel: XmlElement<'t>,
}

impl<'t> Own<'t> {
    fn holds(&self, element: XmlElement<'t>) -> bool {
        let same = |other: XmlElement<'t>| {
            !other.is_in(&RDF)
                && !other.namespace().uri().is_empty()
                && other.namespace().uri() == element.namespace().uri()
        };
        element.is_rss() || same(self.root) || same(self.channel)
    }
}

fn version(root: XmlElement<'_>) -> FeedFormat {
    if root.named("rdf") {
        let newest = |element: XmlElement<'_>| element.namespace().uri() == RSS.uri();
        let old = root.elements().any(|child| newest(child) && child.child("dc:date").is_none());
        return if old { FeedFormat::Rss10 } else { FeedFormat::Rdf };
    }
    match root.attr("version").unwrap_or_default() {
        "0.90" => FeedFormat::Rss090,
        "0.91" => FeedFormat::Rss091,
        "0.92" => FeedFormat::Rss092,
        "0.93" => FeedFormat::Rss093,
        "0.94" => FeedFormat::Rss094,
        "1.0" => FeedFormat::Rss10,
        "1.1" => FeedFormat::Rss11,
        _ => FeedFormat::Rss20,
    }
}

fn read_channel<'t>(own: &Own<'t>, target: &mut Target<'_>) {
    read_about(own.channel, target);
    // RSS 0.90 and 1.0 put image and text input beside the channel, 2.0 inside it.
    let beside =
        own.root.elements().filter(|child| *child != own.channel && own.root != own.channel);
    let children: Vec<XmlElement<'t>> = own.channel.elements().chain(beside).collect();
    let is_date = |child: &XmlElement<'_>| dates::parse(&child.text()).is_some();
    let built = children.iter().any(|child| child.named("lastBuildDate") && is_date(child));
    let skipped = |child: XmlElement<'_>| ELSEWHERE.iter().any(|name| child.named(name));
    for child in children.iter().copied().filter(|child| own.holds(*child) && !skipped(*child)) {
        target.read_or_keep(child, |child, target| read_of_channel(child, built, target));
    }
    for child in children.iter().copied().filter(|child| !own.holds(*child)) {
        let atom_entry = child.named("entry") && child.is_atom();
        if !(atom_entry || child.is_in(&RDF)) {
            read_foreign(child, target);
        }
    }
}

/// Reads an element of a channel. `built` tells whether the channel has a readable `lastBuildDate`.
fn read_of_channel(child: XmlElement<'_>, built: bool, target: &mut Target<'_>) -> bool {
    let name = child.lower_name();
    match name.as_ref() {
        "description" | "tagline" | "subtitle" => {
            let text = target.bases.html(child);
            target.set_about(text)
        }
        "managingeditor" => target.add_author(person(&child.text())),
        "language" => match child.filled() {
            Some(lang) => {
                *target.lang() = Some(lang);
                true
            }
            None => true,
        },
        "lastbuilddate" => {
            // `lastBuildDate` wins over a `pubDate` that came first, which is then kept as an
            // extension.
            match target.date(child) {
                Some(date) => {
                    *target.updated() = Some(date);
                    true
                }
                None => false,
            }
        }
        "pubdate" => !built && target.set_updated(child),
        "generator" => elements::set_generator(child, target),
        "image" => read_image(child, target),
        _ => {
            hints::read(child, target);
            read_common(&name, child, target)
        }
    }
}

/// Reads a channel's image: its address is the logo. The element is kept as well if it has more
/// than an address.
fn read_image(image: XmlElement<'_>, target: &mut Target<'_>) -> bool {
    let url = image.child("url").or_else(|| image.child("href"));
    let href = url.and_then(|url| url.filled().map(|text| target.bases.href(url, &text)));
    let href = href.or_else(|| image.attr("href").or(image.attr("url")).map(str::to_owned));
    let href = href.or_else(|| if image.has_elements() { None } else { image.filled() });
    let reference = image.attr_in(&RDF, "resource").is_some();
    if let (Some(feed), Some(href)) = (target.feed(), href)
        && *feed.logo.get_or_insert_with(|| href.clone()) != href
    {
        return false;
    }
    let more = image.elements().any(|child| !child.named("url"));
    !more || reference
}

fn read_item<'t>(own: &Own<'t>, item: XmlElement<'t>, target: &mut Target<'_>) {
    read_about(item, target);
    for child in item.elements().filter(|child| own.holds(*child)) {
        target.read_or_keep(child, read_of_item);
    }
    // The outline is kept once, with its topmost item.
    let is_told = outline::is_below(item);
    let foreign = item.elements().filter(|child| !own.holds(*child));
    for child in foreign.filter(|child| !(is_told && outline::is_below(*child))) {
        read_foreign(child, target);
    }
    permalink(item, target);
    keep_permalink(item, target);
}

/// Reads `rdf:about` as the id.
fn read_about(element: XmlElement<'_>, target: &mut Target<'_>) {
    if let Some(about) = element.attr_in(&RDF, "about").or(element.attr("about")) {
        target.reading(element, |target| *target.id() = about.to_owned());
    }
}

fn read_of_item(child: XmlElement<'_>, target: &mut Target<'_>) -> bool {
    let name = child.lower_name();
    match name.as_ref() {
        "description" | "abstract" => {
            let text = target.bases.html(child);
            target.set_about(text)
        }
        "guid" => {
            let id = child.text().into_owned();
            if !id.is_empty() {
                *target.id() = id;
            }
            true
        }
        "pubdate" => target.set_published(child),
        "enclosure" => {
            let link = Link { rel: "enclosure".into(), ..elements::read_link(child, target) };
            target.add_link(link)
        }
        // Some programs write how many comments there are.
        "comments" if child.text().trim().parse::<u32>().is_ok() => false,
        "comments" => {
            let mut link = elements::read_link(child, target);
            link.rel = "replies".into();
            link.mime.get_or_insert_with(|| "text/html".into());
            target.add_link(link)
        }
        "source" => {
            let source = elements::read_source(child, target);
            let Some(entry) = target.entry().filter(|entry| entry.source.is_none()) else {
                return false;
            };
            entry.source = Some(Box::new(source));
            true
        }
        // Without a type, they are taken for what they look like.
        "content" if is_untyped(child) => {
            let text = target.bases.plain(child);
            target.set_content(Content::Text(text))
        }
        "summary" if is_untyped(child) => {
            let text = target.bases.plain(child);
            target.set_about(text)
        }
        "body" | "fullitem" => {
            let content = elements::body(child, target);
            target.set_content(content)
        }
        _ => read_common(&name, child, target),
    }
}

/// Returns whether an element has no attribute that says what its content is, or where.
fn is_untyped(element: XmlElement<'_>) -> bool {
    element.attributes().iter().all(|attribute| attribute.prefix == "xml")
}

/// Reads the elements that channels and items share, under their names in RSS and in Atom, because
/// feeds mix them.
fn read_common(name: &str, child: XmlElement<'_>, target: &mut Target<'_>) -> bool {
    match name {
        "title" => {
            let text = target.bases.plain(child);
            target.set_title(text)
        }
        "copyright" | "rights" => {
            let text = target.bases.plain(child);
            target.set_rights(text)
        }
        "keywords" | "tags" => {
            let text = child.text();
            for term in text.split(',').map(str::trim) {
                target.add_category(Category { term: term.to_owned(), ..Category::default() });
            }
            !child.has_elements()
        }
        _ => elements::read_element(child, target),
    }
}

/// Returns the address behind an empty `link`, as programs leave it that read RSS as HTML.
fn address_behind_link(item: XmlElement<'_>) -> Option<&str> {
    let mut children = item.children();
    while let Some(child) = children.next() {
        let XmlChild::Element(link) = child else { continue };
        let is_empty = link.named("link") && link.attributes().is_empty() && link.text().is_empty();
        if is_empty && let Some(XmlChild::Text(text)) = children.next() {
            return text.split_whitespace().next().filter(|address| address.contains("://"));
        }
    }
    None
}

/// Gives an item without a link one: the address behind an empty `link`, or the guid if it is an address.
/// A guid is one unless `isPermaLink` is false, and a relative one only if it is true.
fn permalink(item: XmlElement<'_>, target: &mut Target<'_>) {
    let is_alternate = |link: &Link| link.rel == "alternate" && !link.href.is_empty();
    if !target.links().iter().any(is_alternate)
        && let Some(address) = address_behind_link(item)
    {
        let href = address.to_owned();
        let link = Link { href, rel: "alternate".into(), ..Link::default() };
        target.reading(item, |target| {
            target.add_link(link);
        });
    }
    let Some(guid) = item.elements().find(|child| child.named("guid")) else { return };
    let denied = guid.attr("isPermaLink").is_some_and(|value| !value.eq_ignore_ascii_case("true"));
    let text = guid.text();
    let begins = |scheme: &str| {
        text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    let is_path = || guid.attr("isPermaLink").is_some() && text.trim().contains('/');
    let address = begins("http://") || begins("https://") || is_path();
    let linked = target.links().iter().any(|link| link.rel == "alternate");
    if !denied && address && !linked {
        let href = target.bases.href(guid, &text);
        let link = Link { href, rel: "alternate".into(), ..Link::default() };
        target.reading(guid, |target| {
            target.add_link(link);
        });
    }
}

/// Keeps whether the guid is the address of the page, where that does not follow from the link: RSS that is
/// made of the entry says the same.
fn keep_permalink(item: XmlElement<'_>, target: &mut Target<'_>) {
    let Some(guid) = item.elements().find(|child| child.named("guid")) else { return };
    let text = guid.text();
    let id = text.trim();
    let is_address = id.starts_with("http://") || id.starts_with("https://");
    let denied = guid.attr("isPermaLink").is_some_and(|value| !value.eq_ignore_ascii_case("true"));
    let page = target.links().iter().find(|link| link.rel == "alternate");
    let is_page = page.is_some_and(|page| page.href == id);
    if is_address && is_page == denied {
        target.reading(guid, |target| {
            if let Some(entry) = target.entry() {
                entry.extensions.push(own_elements::stated("permalink", (!denied).to_string()));
            }
        });
    }
}

/// Reads the polling hints of RSS in a feed of another format. The elements are kept as well.
pub(super) fn read_hints(element: XmlElement<'_>, target: &mut Target<'_>) -> bool {
    hints::read(element, target);
    false
}
