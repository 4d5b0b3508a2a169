//! The elements that the normalizer adds to what a document says: what the source stated where the
//! output differs, which values are derived, and the ids of authors.
//!
//! ```text
//! <fg:stated as="id">episode-14</fg:stated>          the source's value of a field that was changed
//! <fg:derived as="updated"/>                         a field that the source does not have
//! <author><name>Tides</name><derived from="title"/></author>   an author that the source does not name
//! <author><name>Ada</name><id>tag:…</id></author>              what identifies an author
//! <fg:media><media:community>…</media:community></fg:media>    elements of a later version of Media RSS
//! ```
//!
//! Inside a person they are written without a prefix, because clients of Superfeedr look for an `id`.

use hmac_sha256::Hash as Sha256;

use crate::hex;
use crate::model::{Attribute, Element, Node, Person};

/// The namespaces in which the id of a person is stated: Atom, and those in which it is kept.
const PERSON_IDS: [&str; 4] = [
    "http://www.w3.org/2005/Atom",
    "http://backend.userland.com/rss2",
    "http://activitystrea.ms/spec/1.0/",
    NAMESPACE,
];

/// The namespace of these elements.
pub(crate) const NAMESPACE: &str = "tag:feedgate,2026:entry";
/// Their usual prefix.
pub(crate) const PREFIX: &str = "fg";

/// The attributes of these elements: the name of a field.
pub(crate) const ATTRIBUTES: [&str; 2] = ["as", "from"];

/// The prefix of generated ids of persons (RFC 4151), which name the program and not the gateway.
const PERSON: &str = "tag:feedgate,2026:person:";

/// Returns the element that holds the source's value of a field.
pub(crate) fn stated(field: &str, value: String) -> Element {
    Element { children: vec![Node::Text(value)], ..element_about("stated", "as", field) }
}

/// Returns the element that marks a field as derived.
pub(crate) fn derived(field: &str) -> Element {
    element_about("derived", "as", field)
}

/// Returns the element that marks a person as derived from another field.
pub(crate) fn derived_from(field: &str) -> Element {
    element_about("derived", "from", field)
}

/// Returns the element that encloses elements of a version of Media RSS that validators do not know.
pub(crate) fn later_media(children: Vec<Node>) -> Element {
    Element { children, ..element("media") }
}

/// Returns the elements, with those of [`later_media`] in place of the element that encloses them.
pub(crate) fn unenclosed<'e>(
    elements: impl Iterator<Item = &'e Element>,
) -> impl Iterator<Item = &'e Element> {
    elements.flat_map(|element| {
        let is_enclosing = is(element, "media");
        let inside = element.children.iter().filter(move |_| is_enclosing);
        let inside = inside.filter_map(|child| match child {
            Node::Element(child) => Some(child),
            Node::Text(_) => None,
        });
        (!is_enclosing).then_some(element).into_iter().chain(inside)
    })
}

/// Returns whether a person is marked as derived.
pub(crate) fn is_derived(person: &Person) -> bool {
    person.extensions.iter().any(|element| is(element, "derived"))
}

/// Returns whether a field is marked as derived.
pub(crate) fn has_derived(extensions: &[Element], field: &str) -> bool {
    extensions.iter().any(|element| is(element, "derived") && names(element, field))
}

/// Returns the source's value of a field that was changed.
pub(crate) fn stated_value(extensions: &[Element], field: &str) -> Option<String> {
    extensions.iter().find(|element| is_stated(element, field)).map(Element::text)
}

/// Returns whether an element holds the source's value of a field.
pub(crate) fn is_stated(element: &Element, field: &str) -> bool {
    is(element, "stated") && names(element, field)
}

/// Returns whether an element is one of these.
pub(crate) fn is_own(element: &Element) -> bool {
    element.namespace == NAMESPACE
}

fn is(element: &Element, name: &str) -> bool {
    is_own(element) && element.name == name
}

fn names(element: &Element, field: &str) -> bool {
    element.attributes.iter().any(|attribute| attribute.name == "as" && attribute.value == field)
}

fn element(name: &str) -> Element {
    Element {
        namespace: NAMESPACE.to_owned(),
        prefix: PREFIX.to_owned(),
        name: name.to_owned(),
        ..Element::default()
    }
}

fn element_about(name: &str, attribute: &str, field: &str) -> Element {
    let (name_of_attribute, value) = (attribute.to_owned(), field.to_owned());
    let attribute = Attribute { name: name_of_attribute, value, ..Attribute::default() };
    Element { attributes: vec![attribute], ..element(name) }
}

/// Returns the element that identifies a person.
pub(crate) fn person_id(id: String) -> Element {
    Element { children: vec![Node::Text(id)], ..element("id") }
}

/// Returns whether an element of a person identifies it.
pub(crate) fn is_person_id(element: &Element) -> bool {
    element.name == "id"
        && PERSON_IDS.contains(&element.namespace.as_str())
        && !element.text().trim().is_empty()
}

/// Returns the id that a person has.
pub(crate) fn stated_person_id(person: &Person) -> Option<String> {
    let id = person.extensions.iter().find(|element| is_person_id(element))?;
    Some(id.text().trim().to_owned())
}

/// Returns the id of a person without one: the URI, which identifies the person everywhere, or else
/// a hash that stays the same as long as the feed uses the same name. `home` is the hash of the feed
/// that names the person.
pub(crate) fn generated_person_id(person: &Person, home: FeedHash) -> String {
    if let Some(uri) = person.uri.as_ref().filter(|uri| !uri.is_empty()) {
        return uri.clone();
    }
    let mut hasher = home.0;
    hasher.update(person.name.as_bytes());
    hasher.update([0x1f]);
    format!("{PERSON}{}", hex::encode(&hasher.finalize()[..16]))
}

/// The hash of the id of a feed. It is made once for all people whom the feed names, because an id may be long.
#[derive(Clone, Copy)]
pub(crate) struct FeedHash(Sha256);

impl FeedHash {
    /// Hashes the id of a feed.
    pub(crate) fn of_id(feed_id: &str) -> FeedHash {
        let mut hasher = Sha256::new();
        hasher.update(feed_id.as_bytes());
        hasher.update([0x1f]);
        FeedHash(hasher)
    }
}
