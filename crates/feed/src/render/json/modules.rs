//! Serialization of the modules that are kept as they are: Media RSS, Apple's podcast elements and
//! Podcasting 2.0.
//!
//! Each element becomes an object and each name a list of them, however many there are, so that a
//! client needs one way to read any of them: attributes are strings, child elements lists, and the
//! text is `value`. Names are in camel case, as all keys are (seed 003, "JSON").

use serde_json::{Map, Value};

use crate::model::{Element, Node};
use crate::own_elements;

use super::parts::insert_some;

/// Media RSS.
pub(in crate::render) const MEDIA: &str = "http://search.yahoo.com/mrss/";
/// Apple's podcast elements.
pub(in crate::render) const ITUNES: &str = "http://www.itunes.com/dtds/podcast-1.0.dtd";
/// Google Play's podcast elements.
pub(super) const GOOGLEPLAY: &str = "http://www.google.com/schemas/play-podcasts/1.0";
/// Podcasting 2.0.
pub(super) const PODCAST: &str = "https://podcastindex.org/namespace/1.0";

/// The namespaces with their keys.
const KEYS: [(&str, &str); 3] = [(MEDIA, "media"), (ITUNES, "itunes"), (PODCAST, "podcast")];

/// Sets the keys of the modules that `elements`, the extensions of an entry or feed, have.
pub(in crate::render) fn insert(object: &mut Map<String, Value>, elements: &[Element]) {
    for (namespace, key) in KEYS {
        let elements = own_elements::unenclosed(elements.iter());
        let members = lists(elements.filter(|element| element.namespace == namespace));
        insert_some(object, key, (!members.is_empty()).then_some(Value::Object(members)));
    }
}

/// Returns the first description of Media RSS: that of the entry, or of one of its groups.
pub(in crate::render) fn media_description(elements: &[Element]) -> Option<String> {
    let mut media = elements.iter().filter(|element| element.namespace == MEDIA);
    media.find_map(|element| {
        if element.name == "description" {
            return Some(element.text().trim().to_owned()).filter(|text| !text.is_empty());
        }
        let inner: Vec<Element> = child_elements(element).cloned().collect();
        media_description(&inner)
    })
}

/// Returns the elements by name.
fn lists<'a>(elements: impl Iterator<Item = &'a Element>) -> Map<String, Value> {
    let mut lists = Map::new();
    for element in elements {
        let list = lists.entry(camel_case(&element.name)).or_insert_with(|| Value::Array(vec![]));
        if let Value::Array(list) = list {
            list.push(object(element));
        }
    }
    lists
}

fn object(element: &Element) -> Value {
    let mut object = lists(child_elements(element));
    let text = element.text();
    let named = element.attributes.iter().map(|it| (camel_case(&it.name), it.value.clone()));
    let valued = ("value".to_owned(), text.trim().to_owned());
    for (name, value) in named.chain((!valued.1.is_empty()).then_some(valued)) {
        object.entry(name).or_insert(Value::String(value));
    }
    Value::Object(object)
}

fn child_elements(element: &Element) -> impl Iterator<Item = &Element> {
    own_elements::unenclosed(element.children.iter().filter_map(|child| match child {
        Node::Element(child) => Some(child),
        Node::Text(_) => None,
    }))
}

/// Returns `new-feed-url` as `newFeedUrl`.
fn camel_case(name: &str) -> String {
    let mut words = name.split(['-', '_']);
    let mut out = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        out.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        out.push_str(letters.as_str());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n10_what_atom_encloses_has_its_own_place_in_json() {
        let media = |name: &str, children: Vec<Element>| Element {
            namespace: MEDIA.to_owned(),
            name: name.to_owned(),
            children: children.into_iter().map(Node::Element).collect(),
            ..Element::default()
        };
        let enclosed = |name| own_elements::later_media(vec![Node::Element(media(name, vec![]))]);
        let content = media("content", vec![media("title", vec![]), enclosed("community")]);
        let mut json = Map::new();
        insert(&mut json, &[content, enclosed("license")]);
        let inside = serde_json::json!({"title": [{}], "community": [{}]});
        assert_eq!(json["media"], serde_json::json!({"content": [inside], "license": [{}]}));
    }
}
