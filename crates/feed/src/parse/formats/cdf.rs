//! CDF, Microsoft's channel definition format of 1997: addresses and dates are
//! attributes, channels may lie in channels.

use super::Reading;
use crate::model::{Entry, Feed, Link};
use crate::parse::dates;
use crate::parse::modules::{Home, Of};
use crate::parse::tree::El;

/// Whether a `channel` is one of CDF rather than of RSS.
pub(super) fn is_channel(element: El<'_>) -> bool {
    let told = |child: El<'_>| child.attr("href").is_some() || child.attr("lastmod").is_some();
    let item = |child: El<'_>| child.named("item") && told(child);
    let around = element.parent().is_some_and(|parent| parent.named("rss"));
    !around
        && (told(element) || element.elements().any(|child| item(child) || child.named("abstract")))
}

/// Reads a channel.
pub(super) fn read(root: El<'_>, reading: &mut Reading<'_>) -> Feed {
    let mut feed = Feed {
        format: "cdf",
        lang: root.lang().map(str::to_owned),
        base: reading.bases.base(root).map(String::from),
        ..Feed::default()
    };
    let mut home = reading.home(Of::Feed(&mut feed));
    home.begin(root);
    home.reading(root, |home| common(root, home));
    for child in root.elements().filter(|child| !child.named("item") && !child.named("channel")) {
        home.reading(child, |home| read_child(child, home));
    }
    for item in
        root.descendants().filter(|element| element.named("item")).take(crate::parse::MAX_ENTRIES)
    {
        let mut entry = Entry {
            lang: item.lang().map(str::to_owned),
            base: reading.bases.base(item).map(String::from),
            ..Entry::default()
        };
        let mut home = reading.home(Of::Entry(&mut entry));
        home.begin(item);
        home.reading(item, |home| common(item, home));
        for child in item.elements() {
            home.reading(child, |home| read_child(child, home));
        }
        feed.entries.push(entry);
    }
    feed
}

/// What a channel and an item say in attributes.
fn common(element: El<'_>, home: &mut Home<'_>) {
    if let Some(href) = element.attr("href") {
        let href = home.bases.href(element, href);
        home.add_link(Link { href, rel: "alternate".into(), ..Link::default() });
    }
    if let Some(date) = element.attr("lastmod").and_then(dates::parse) {
        *home.updated() = Some(date);
    }
}

fn read_child(child: El<'_>, home: &mut Home<'_>) {
    let name = child.lower_name();
    let done = match name.as_ref() {
        "title" => {
            let text = home.bases.plain(child);
            home.set_title(text)
        }
        "abstract" => {
            let text = home.bases.plain(child);
            home.set_about(text)
        }
        "a" => {
            let href = child.attr("href").map(|href| home.bases.href(child, href));
            let link =
                Link { href: href.unwrap_or_default(), rel: "alternate".into(), ..Link::default() };
            home.add_link(link)
        }
        "logo" => {
            let href = child.attr("href").map(|href| home.bases.href(child, href));
            let icon = child.attr("style").is_some_and(|style| style.eq_ignore_ascii_case("icon"));
            match home.feed() {
                Some(feed) if icon => feed.icon.get_or_insert(href.unwrap_or_default()),
                Some(feed) => feed.logo.get_or_insert(href.unwrap_or_default()),
                None => return home.keep(child),
            };
            true
        }
        _ => false,
    };
    if !done {
        home.foreign(child);
    }
}
