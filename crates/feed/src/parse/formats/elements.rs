//! The elements of Atom, of versions 1.0 (RFC 4287) and 0.3 alike, because documents mix them.
//!
//! They are read in Atom feeds, and in feeds of other formats that contain them.

mod constructs;

pub(super) use constructs::{body, read_link, set_generator};

use constructs::{
    kept_text, link_beside_content, read_category, read_content, read_created, read_person,
};

use super::read_foreign;
use crate::model::{Feed, FeedFormat, Link};
use crate::parse::target::{FeedOrEntry, Target};
use crate::parse::tree::XmlElement;

/// Reads the metadata of a feed.
pub(super) fn read_head(root: XmlElement<'_>, target: &mut Target<'_>) {
    target.begin(root);
    *target.lang() = root.lang().map(str::to_owned);
    let base = target.bases.base(root).map(String::from);
    if let Some(feed) = target.feed() {
        feed.base = base;
    }
    read_children(root, root, target);
}

/// Reads the children of `around`: first elements of Atom, of no namespace, and of the namespace
/// that `root` uses for Atom; then all others.
pub(super) fn read_children(around: XmlElement<'_>, root: XmlElement<'_>, target: &mut Target<'_>) {
    let own = |element: XmlElement<'_>| {
        element.is_atom()
            || element.namespace().uri().is_empty()
            || (root.named("feed") && element.namespace().uri() == root.namespace().uri())
    };
    let entries =
        |element: XmlElement<'_>| own(element) && (element.named("entry") || element.named("item"));
    for child in around.elements().filter(|child| own(*child) && !entries(*child)) {
        target.read_or_keep(child, read_element);
    }
    for child in around.elements().filter(|child| !own(*child)) {
        read_foreign(child, target);
    }
}

/// Reads an element of Atom. Returns `false` if it has no counterpart in Atom 1.0.
pub(super) fn read_element(element: XmlElement<'_>, target: &mut Target<'_>) -> bool {
    let name = element.lower_name();
    match name.as_ref() {
        "title" => {
            let text = target.bases.atom(element);
            target.set_title(text)
        }
        "rights" | "copyright" => {
            let text = target.bases.atom(element);
            target.set_rights(text)
        }
        "id" => {
            let id = target.bases.href(element, &element.text());
            if target.id().is_empty() {
                target.id().clone_from(&id);
            }
            *target.id() == id
        }
        "updated" | "modified" => target.set_updated(element),
        "published" | "issued" if target.entry().is_some() => target.set_published(element),
        "created" => read_created(element, target),
        "author" => {
            let person = read_person(element, target);
            target.add_author(person)
        }
        "contributor" => {
            let person = read_person(element, target);
            target.add_contributor(person)
        }
        "link" => {
            let link = read_link(element, target);
            target.add_link(link)
        }
        "category" => target.add_category(read_category(element)),
        _ if target.entry().is_some() => read_of_entry(&name, element, target),
        _ => read_of_feed(&name, element, target),
    }
}

fn read_of_entry(name: &str, element: XmlElement<'_>, target: &mut Target<'_>) -> bool {
    match name {
        "summary" => {
            let text = target.bases.atom(element);
            target.set_about(text)
        }
        "content" => {
            let content = read_content(element, target);
            if let Some(link) = link_beside_content(element, target) {
                target.add_link(link);
            }
            target.set_content(content)
        }
        "source" => {
            let source = read_source(element, target);
            let Some(entry) = target.entry() else { return false };
            if entry.source.is_some() {
                return false;
            }
            entry.source = Some(Box::new(source));
            true
        }
        _ => false,
    }
}

fn read_of_feed(name: &str, element: XmlElement<'_>, target: &mut Target<'_>) -> bool {
    match name {
        "subtitle" | "tagline" => {
            let text = target.bases.atom(element);
            target.set_about(text)
        }
        "generator" => set_generator(element, target),
        "info" => {
            let info = kept_text(element, target);
            target.extensions().push(info);
            true
        }
        "icon" | "logo" => {
            let href = target.bases.href(element, &element.text());
            let Some(feed) = target.feed() else { return false };
            let slot = if name == "icon" { &mut feed.icon } else { &mut feed.logo };
            *slot.get_or_insert_with(|| href.clone()) == href
        }
        _ => false,
    }
}

/// Reads the source feed of an entry: `atom:source`, or the single element of RSS.
pub(super) fn read_source(element: XmlElement<'_>, target: &mut Target<'_>) -> Feed {
    if !element.has_elements() {
        return line_source(element, target);
    }
    let mut feed = Feed { format: FeedFormat::Atom10, ..Feed::default() };
    let object = FeedOrEntry::Feed(&mut feed);
    let mut inner = Target::new(object, target.bases, target.repairs, target.trace);
    read_head(element, &mut inner);
    // Attributes that apply to the whole entry are on the parent.
    let around = element.parent();
    feed.lang.take_if(|lang| around.and_then(XmlElement::lang) == Some(lang));
    feed.base.take_if(|base| {
        around
            .and_then(|around| target.bases.base(around))
            .is_some_and(|held| held.as_str() == *base)
    });
    feed
}

/// Reads the single element in which RSS names the source feed of an item.
fn line_source(element: XmlElement<'_>, target: &Target<'_>) -> Feed {
    let mut feed = Feed { format: FeedFormat::Rss20, ..Feed::default() };
    feed.title = element.filled().map(|_| target.bases.plain(element));
    if let Some(url) = element.attr("url").or(element.attr("href")).filter(|url| !url.is_empty()) {
        let href = target.bases.href(element, url);
        feed.links.push(Link { href, rel: "self".into(), ..Link::default() });
    }
    feed
}
