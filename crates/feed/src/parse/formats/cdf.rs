//! CDF, Microsoft's Channel Definition Format of 1997. Addresses and dates are attributes, and
//! channels may be nested.

use super::{Reading, read_foreign};
use crate::model::{Feed, FeedFormat, Link, Text};
use crate::parse::dates;
use crate::parse::target::{FeedOrEntry, Target};
use crate::parse::tree::{XmlElement, is_item};

/// Returns whether a `channel` is one of CDF, not of RSS.
pub(super) fn is_channel(element: XmlElement<'_>) -> bool {
    let told =
        |child: XmlElement<'_>| child.attr("href").is_some() || child.attr("lastmod").is_some();
    let item = |child: XmlElement<'_>| child.named("item") && told(child);
    let around = element.parent().is_some_and(|parent| parent.named("rss"));
    !around
        && (told(element) || element.elements().any(|child| item(child) || child.named("abstract")))
}

/// Reads a channel.
pub(super) fn read(root: XmlElement<'_>, reading: &mut Reading<'_>) -> Feed {
    let mut feed = reading.feed_at(root, FeedFormat::Cdf);
    let mut target = reading.target(FeedOrEntry::Feed(&mut feed));
    target.begin(root);
    target.reading(root, |target| common(root, target));
    for child in root.elements().filter(|child| !is_listed(*child) && !child.named("channel")) {
        target.reading(child, |target| read_child(child, target));
    }
    for item in
        root.descendants().filter(|element| is_listed(*element)).take(crate::parse::MAX_ENTRIES)
    {
        let mut entry = reading.entry_at(item);
        let mut target = reading.target(FeedOrEntry::Entry(&mut entry));
        target.begin(item);
        target.reading(item, |target| common(item, target));
        for child in item.elements() {
            target.reading(child, |target| read_child(child, target));
        }
        feed.entries.push(entry);
    }
    feed
}

/// Returns whether an element becomes an entry: an item, in whatever namespace, or an entry of a feed.
fn is_listed(element: XmlElement<'_>) -> bool {
    element.named("item") || is_item(element)
}

/// Reads the attributes that channels and items share.
fn common(element: XmlElement<'_>, target: &mut Target<'_>) {
    if let Some(href) = element.attr("href") {
        let href = target.bases.href(element, href);
        target.add_link(Link { href, rel: "alternate".into(), ..Link::default() });
    }
    if let Some(date) = element.attr("lastmod").and_then(dates::parse) {
        *target.updated() = Some(date);
    }
}

/// Reads a text, which may be the attribute `VALUE`.
fn text(element: XmlElement<'_>, target: &Target<'_>) -> Text {
    match element.attr("value") {
        Some(value) if element.text().trim().is_empty() => Text::plain(value.to_owned()),
        _ => target.bases.plain(element),
    }
}

fn read_child(child: XmlElement<'_>, target: &mut Target<'_>) {
    let name = child.lower_name();
    let done = match name.as_ref() {
        "title" => {
            let text = text(child, target);
            target.set_title(text)
        }
        "abstract" => {
            let text = text(child, target);
            target.set_about(text)
        }
        "a" => {
            let href = child.attr("href").map(|href| target.bases.href(child, href));
            let link =
                Link { href: href.unwrap_or_default(), rel: "alternate".into(), ..Link::default() };
            target.add_link(link)
        }
        "logo" => {
            let href = child.attr("href").map(|href| target.bases.href(child, href));
            let icon = child.attr("style").is_some_and(|style| style.eq_ignore_ascii_case("icon"));
            match target.feed() {
                Some(feed) if icon => feed.icon.get_or_insert(href.unwrap_or_default()),
                Some(feed) => feed.logo.get_or_insert(href.unwrap_or_default()),
                None => return target.keep_extension(child),
            };
            true
        }
        _ => false,
    };
    if !done {
        read_foreign(child, target);
    }
}
