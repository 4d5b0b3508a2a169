//! Values of common modules in the forms that their specifications define today, because readers and
//! validators know no others.
//!
//! Elements stay what they were; a form that cannot be converted stays as it was. Only a number of
//! comments that is no number, and a rating that is empty, are removed.

use std::collections::HashMap;

use chrono::SecondsFormat;

use super::{geo, media};
use crate::model::{Element, Feed, Node};
use crate::parse::dates;

const ITUNES: &str = "http://www.itunes.com/dtds/podcast-1.0.dtd";
/// The namespace of elements that no module has.
const RSS: &str = "http://backend.userland.com/rss2";
const SLASH: &str = "http://purl.org/rss/1.0/modules/slash/";
const DC: &str = "http://purl.org/dc/elements/1.1/";
const DCTERMS: &str = "http://purl.org/dc/terms/";

/// Names of Dublin Core that are terms, but none of the fifteen elements.
const TERMS: [&str; 12] = [
    "abstract",
    "alternative",
    "available",
    "conformsTo",
    "created",
    "dateAccepted",
    "dateCopyrighted",
    "dateSubmitted",
    "issued",
    "license",
    "modified",
    "valid",
];

/// The terms whose value is one date.
const DATES: [&str; 4] = ["created", "date", "issued", "modified"];

/// Converts the elements of a feed and of its entries.
pub(super) fn conform(mut feed: Feed) -> Feed {
    conform_feed(&mut feed);
    for entry in &mut feed.entries {
        entry.extensions.retain_mut(is_conformed);
        media::conform(&mut entry.extensions);
        if let Some(source) = &mut entry.source {
            conform_feed(source);
        }
    }
    feed
}

fn conform_feed(feed: &mut Feed) {
    feed.extensions.retain_mut(is_conformed);
    media::conform(&mut feed.extensions);
    move_to_owner(&mut feed.extensions);
}

/// Converts an element. Returns `false` if it says nothing.
fn is_conformed(element: &mut Element) -> bool {
    if element.namespace == ITUNES && element.name == "explicit" {
        return set_text(element, rating);
    }
    if element.namespace == SLASH && element.name == "comments" {
        return set_text(element, |text| Some(count(text).unwrap_or_default()));
    }
    if element.namespace == DC && TERMS.contains(&element.name.as_str()) {
        (element.namespace, element.prefix) = (DCTERMS.to_owned(), "dcterms".to_owned());
    }
    geo::conform(element);
    let is_dublin_core = element.namespace == DC || element.namespace == DCTERMS;
    if is_dublin_core && DATES.contains(&element.name.as_str()) {
        set_text(element, w3c_date);
    }
    true
}

/// Replaces the text of an element without child elements, unless `convert` returns `None`. Returns
/// whether there is any text left.
fn set_text(element: &mut Element, convert: impl Fn(&str) -> Option<String>) -> bool {
    let ([] | [Node::Text(_)]) = element.children[..] else { return true };
    let text = element.text();
    let converted = convert(text.trim()).unwrap_or_else(|| text.clone());
    let is_empty = converted.is_empty();
    if converted != text {
        element.children = vec![Node::Text(converted)];
    }
    !is_empty
}

/// Returns whether an episode is explicit, as Apple writes it since 2019.
fn rating(text: &str) -> Option<String> {
    let is = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(text));
    if is(&["yes", "true", "explicit"]) {
        Some("true".to_owned())
    } else if is(&["no", "false", "clean", "notexplicit"]) {
        Some("false".to_owned())
    } else if text.is_empty() {
        Some(String::new())
    } else {
        None
    }
}

/// Returns the number that a text begins with.
fn count(text: &str) -> Option<String> {
    let is_part = |c: &char| c.is_ascii_digit() || *c == ',';
    let digits: String = text.chars().take_while(is_part).filter(char::is_ascii_digit).collect();
    (!digits.is_empty()).then_some(digits)
}

/// Returns a date as W3CDTF has it. A date of which only the year or month is known stays as it is.
fn w3c_date(text: &str) -> Option<String> {
    let is_whole = text.len() > "2002-09-07".len();
    let date = dates::parse(text).filter(|_| is_whole)?;
    Some(date.to_rfc3339_opts(SecondsFormat::AutoSi, true))
}

/// Moves the name and e-mail address of the owner of a podcast into the element for the owner.
fn move_to_owner(extensions: &mut Vec<Element>) {
    let is_named = |element: &Element, name: &str| {
        element.namespace == ITUNES && element.name.eq_ignore_ascii_case(name)
    };
    let is_part = |element: &Element| is_named(element, "email") || is_named(element, "name");
    if !extensions.iter().any(|element| is_named(element, "email")) {
        return;
    }
    let (parts, mut others): (Vec<_>, Vec<_>) = extensions.drain(..).partition(is_part);
    if !others.iter().any(|element| is_named(element, "owner")) {
        others.push(Element {
            namespace: ITUNES.to_owned(),
            prefix: "itunes".to_owned(),
            name: "owner".to_owned(),
            trace_id: parts.first().map(|part| part.trace_id).unwrap_or_default(),
            ..Element::default()
        });
    }
    let mut left = Vec::new();
    if let Some(owner) = others.iter_mut().find(|element| is_named(element, "owner")) {
        let mut known: HashMap<String, String> = HashMap::new();
        for child in &owner.children {
            if let Node::Element(child) = child
                && is_part(child)
            {
                let name = child.name.to_ascii_lowercase();
                known.entry(name).or_insert_with(|| child.text().trim().to_owned());
            }
        }
        for mut part in parts {
            let (name, text) = (part.name.to_ascii_lowercase(), part.text().trim().to_owned());
            match known.get(&name) {
                None => {
                    known.insert(name, text);
                    owner.children.push(Node::Element(part));
                }
                Some(known) if *known == text => {}
                Some(_) => {
                    (part.namespace, part.prefix) = (RSS.to_owned(), "rss".to_owned());
                    left.push(part);
                }
            }
        }
    }
    others.append(&mut left);
    *extensions = others;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(namespace: &str, name: &str, text: &str) -> Element {
        let children = if text.is_empty() { vec![] } else { vec![Node::Text(text.to_owned())] };
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        Element { namespace, name, children, ..Element::default() }
    }

    #[test]
    fn n10_values_have_the_forms_that_validators_know() {
        #[rustfmt::skip]
        let cases = [
            (ITUNES,  "explicit", "yes",           Some((ITUNES,  "true"))),
            (ITUNES,  "explicit", " Clean ",       Some((ITUNES,  "false"))),
            (ITUNES,  "explicit", "no",            Some((ITUNES,  "false"))),
            (ITUNES,  "explicit", "true",          Some((ITUNES,  "true"))),
            (ITUNES,  "explicit", "mature",        Some((ITUNES,  "mature"))),
            (ITUNES,  "explicit", "",              None),
            (ITUNES,  "block",    "yes",           Some((ITUNES,  "yes"))),
            (SLASH,   "comments", "7",             Some((SLASH,   "7"))),
            (SLASH,   "comments", " 1,234 so far", Some((SLASH,   "1234"))),
            (SLASH,   "comments", "none",          None),
            (SLASH,   "comments", "",              None),
            (DC,      "modified", "Sat, 07 Sep 2002 02:00:01 +0200", Some((DCTERMS, "2002-09-07T02:00:01+02:00"))),
            (DC,      "modified", "2002-09-07",    Some((DCTERMS, "2002-09-07"))),
            (DC,      "modified", "yesterday",     Some((DCTERMS, "yesterday"))),
            (DC,      "license",  "CC0",           Some((DCTERMS, "CC0"))),
            (DC,      "relation", "x",             Some((DC,      "x"))),
            (DCTERMS, "created",  "7 Sep 2002 00:00:01 GMT", Some((DCTERMS, "2002-09-07T00:00:01Z"))),
        ];
        for (namespace, name, text, want) in cases {
            let mut element = element(namespace, name, text);
            let is_kept = is_conformed(&mut element);
            let got = (element.namespace.as_str(), &*element.text());
            assert_eq!(is_kept.then_some(got), want, "{name} {text:?}");
        }
    }

    #[test]
    fn n10_the_owner_of_a_podcast_has_the_address_of_the_channel() {
        let owner = |children: Vec<Element>| Element {
            children: children.into_iter().map(Node::Element).collect(),
            ..element(ITUNES, "owner", "")
        };
        let email = || element(ITUNES, "email", "ada@tides.test");
        let name = || element(ITUNES, "name", "Ada");
        let kept = || element(RSS, "email", "ada@tides.test");
        let other = || element(ITUNES, "email", "bo@tides.test");
        let cases = [
            (vec![email()], vec![owner(vec![email()])]),
            (vec![name(), email()], vec![owner(vec![name(), email()])]),
            (vec![email(), owner(vec![name()])], vec![owner(vec![name(), email()])]),
            (vec![owner(vec![email()]), email()], vec![owner(vec![email()])]),
            (vec![owner(vec![other()]), email()], vec![owner(vec![other()]), kept()]),
            (vec![name()], vec![name()]),
        ];
        for (mut given, mut want) in cases {
            move_to_owner(&mut given);
            want.iter_mut().chain(&mut given).for_each(|element| element.prefix.clear());
            assert_eq!(given, want);
        }
    }
}
