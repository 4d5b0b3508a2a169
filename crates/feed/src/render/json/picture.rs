//! The picture of an entry or feed, which is `standardLinks.picture` in JSON (seed 003, "Entries").
//!
//! A link with the relation `picture` is the picture. Without one, the picture is looked for in
//! the modules that have one, the smallest images first: a thumbnail, the image of a podcast, the
//! content of Media RSS, any other image, an enclosure.

use crate::model::{Element, Entry, Feed, Link};

use super::modules::{GOOGLEPLAY, ITUNES, MEDIA, PODCAST};
use super::parts::{attribute, children, text};

/// The relations of links to a picture.
pub(in crate::render) const PICTURE_RELATIONS: [&str; 4] = ["picture", "image", "avatar", "photo"];
/// The names of elements of other modules that are the picture of an entry.
const IMAGES: [&str; 6] =
    ["image", "thumbnail", "cover", "featuredImage", "post-thumbnail", "banner_image"];

/// Returns the picture of an entry that has no link to one.
pub(in crate::render) fn of_entry(entry: &Entry) -> Option<Link> {
    if entry.links.iter().any(|link| link.rel == "picture") {
        return None;
    }
    let found = in_modules(&entry.extensions);
    found.or_else(|| entry.links.iter().find(|link| is_image_enclosure(link)).cloned()).map(picture)
}

/// Returns the picture of a feed that has no link to one: its logo, or that of a module.
pub(in crate::render) fn of_feed(feed: &Feed) -> Option<Link> {
    if feed.links.iter().any(|link| link.rel == "picture") {
        return None;
    }
    let logo = feed.logo.as_deref().filter(|href| is_web_url(href));
    let logo = logo.map(|href| Link { href: href.to_owned(), ..Link::default() });
    logo.or_else(|| in_modules(&feed.extensions)).map(picture)
}

/// Returns what a link to a picture keeps of a link.
fn picture(link: Link) -> Link {
    Link { rel: "picture".to_owned(), length: None, hreflang: None, ..link }
}

fn is_image_enclosure(link: &Link) -> bool {
    link.rel == "enclosure" && link.mime.as_deref().is_some_and(is_image) && is_web_url(&link.href)
}

fn in_modules(elements: &[Element]) -> Option<Link> {
    type Rule = fn(&Element) -> bool;
    let rules: [Rule; 4] = [
        |it| it.namespace == MEDIA && it.name == "thumbnail",
        |it| {
            let is_podcast = [ITUNES, GOOGLEPLAY, PODCAST].contains(&it.namespace.as_str());
            is_podcast && matches!(it.name.as_str(), "image" | "images")
        },
        |it| {
            let is_picture = attribute(it, "medium") == Some("image")
                || attribute(it, "type").is_some_and(is_image);
            it.namespace == MEDIA && it.name == "content" && is_picture
        },
        |it| it.namespace != MEDIA && IMAGES.contains(&it.name.as_str()),
    ];
    rules.iter().find_map(|rule| find(elements, *rule))
}

/// Returns the first element for which `rule` holds and that has an address, parents first.
fn find(elements: &[Element], rule: fn(&Element) -> bool) -> Option<Link> {
    elements.iter().find_map(|element| {
        let found = if rule(element) { link(element) } else { None };
        found.or_else(|| {
            let is_group = element.namespace == MEDIA;
            if is_group { find(&children(element), rule) } else { None }
        })
    })
}

/// Returns the address of an image element with its media type.
fn link(element: &Element) -> Option<Link> {
    let attributes = ["url", "href", "src", "resource"].iter();
    let named = attributes.filter_map(|name| {
        let found = element.attributes.iter().find(|attribute| attribute.name == *name);
        found.map(|attribute| attribute.value.clone())
    });
    // `srcset` lists addresses with their widths.
    let listed = attribute(element, "srcset").and_then(|list| list.split_whitespace().next());
    let child = children(element).into_iter().find(|child| child.name == "url");
    let candidates = named
        .chain(listed.map(|url| url.trim_end_matches(',').to_owned()))
        .chain(child.as_ref().map(text))
        .chain([text(element)]);
    let href = candidates.map(|url| url.trim().to_owned()).find(|url| is_web_url(url))?;
    let mime = attribute(element, "type").filter(|mime| is_image(mime)).map(str::to_owned);
    Some(Link { href, mime, ..Link::default() })
}

fn is_image(mime: &str) -> bool {
    mime.trim_start().get(..6).is_some_and(|start| start.eq_ignore_ascii_case("image/"))
}

fn is_web_url(text: &str) -> bool {
    let starts = |scheme: &str| {
        text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    (starts("http://") || starts("https://")) && !text.contains(char::is_whitespace)
}
