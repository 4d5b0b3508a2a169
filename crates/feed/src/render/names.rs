//! The assignment of prefixes to namespaces in one serialized piece.
//!
//! A piece declares the namespaces it uses on its own outermost element and nothing else, so it can
//! be inserted into any document. A known vocabulary gets its usual prefix, whatever the source
//! used.

use std::borrow::Cow;

use crate::iri;
use crate::model::{Attribute, Element, Entry, Feed, Link, Node, Person};
use crate::own_elements::is_own;

use super::table::Table;
use super::xml::push_value;

/// Atom, RFC 4287.
pub(super) const ATOM: &str = "http://www.w3.org/2005/Atom";
/// RSS, in the namespace that UserLand used for a while. Elements of Atom's namespace in places
/// where RFC 4287 allows only foreign ones, such as a link inside an author, are written in this
/// namespace; `parse` does the same with unknown elements of Atom.
pub(super) const RSS: &str = "http://backend.userland.com/rss2";
/// XHTML.
pub(super) const XHTML: &str = "http://www.w3.org/1999/xhtml";
/// The namespace of `xml:lang`, which needs no declaration.
const XML: &str = "http://www.w3.org/XML/1998/namespace";
/// The namespace of declarations, which must not be declared itself (Namespaces in XML `#ns-decl`).
const XMLNS: &str = "http://www.w3.org/2000/xmlns/";
/// The namespace for elements that a document puts into the namespace of `xml:lang`: that namespace
/// has no elements, and strict parsers reject some. Undeclared prefixes get a namespace of the same
/// form.
const XML_ELEMENTS: &str = "urn:undeclared:xml";

/// The usual prefixes of vocabularies.
const USUAL: &[(&str, &str)] = &[
    ("http://activitystrea.ms/spec/1.0/", "as"),
    (RSS, "rss"),
    ("http://purl.org/dc/elements/1.1/", "dc"),
    ("http://purl.org/dc/terms/", "dcterms"),
    ("http://purl.org/rss/1.0/modules/content/", "content"),
    ("http://purl.org/rss/1.0/modules/slash/", "slash"),
    ("http://purl.org/rss/1.0/modules/syndication/", "sy"),
    ("http://purl.org/syndication/history/1.0", "fh"),
    ("http://purl.org/syndication/thread/1.0", "thr"),
    ("http://podlove.org/simple-chapters", "psc"),
    ("http://rssnamespace.org/feedburner/ext/1.0", "feedburner"),
    ("http://rsscloud.org/", "rssCloud"),
    ("http://search.yahoo.com/mrss/", "media"),
    ("http://source.scripting.com/", "source"),
    ("http://wellformedweb.org/CommentAPI/", "wfw"),
    ("http://www.georss.org/georss", "georss"),
    ("http://www.google.com/schemas/play-podcasts/1.0", "googleplay"),
    ("http://www.google.com/schemas/sitemap-news/0.9", "news"),
    ("http://www.itunes.com/dtds/podcast-1.0.dtd", "itunes"),
    ("http://www.opengis.net/gml", "gml"),
    ("http://www.sitemaps.org/schemas/sitemap/0.9", "sitemap"),
    ("http://www.w3.org/2003/01/geo/wgs84_pos#", "geo"),
    ("https://podcastindex.org/namespace/1.0", "podcast"),
    ("https://www.jsonfeed.org/version/1.1/", "json"),
];

/// The prefixes of one serialized piece.
#[derive(Debug, Default)]
pub(super) struct Names<'a> {
    /// The namespaces as declared with their prefixes, in the order of first use.
    held: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// The index in `held` of each namespace, as the source wrote it.
    places: Table<&'a str, usize>,
    /// The index in `held` of each namespace, as declared. Two spellings of the source may become
    /// one URI; with two prefixes for it, an attribute could occur twice in a tag.
    declared: Table<Cow<'a, str>, usize>,
    /// The prefixes in use.
    taken: Table<Cow<'a, str>, ()>,
    /// The number of generated prefixes.
    made_up: usize,
}

impl<'a> Names<'a> {
    /// Creates the prefixes for an entry.
    pub(super) fn of_entry(entry: &'a Entry) -> Names<'a> {
        let mut names = Names::default();
        names.add_people(&entry.authors);
        names.add_people(&entry.contributors);
        names.add_links(&entry.links);
        if let Some(source) = &entry.source {
            names.add_feed(source);
        }
        names.add_elements(&entry.extensions);
        names
    }

    /// Creates the prefixes for a feed without its entries.
    pub(super) fn of_feed(feed: &'a Feed) -> Names<'a> {
        let mut names = Names::default();
        names.add_feed(feed);
        names
    }

    /// Creates the prefixes for a whole document in another format, in which `atom` is that of Atom. The
    /// vocabularies `own` are those that the format itself uses; elements that are not written need no prefix.
    pub(super) fn of_document(
        feed: &'a Feed,
        own: &[&'a str],
        is_written: fn(&Element) -> bool,
    ) -> Names<'a> {
        let mut names = Names::default();
        names.taken.insert(Cow::Borrowed("atom"), ());
        for &namespace in own {
            names.add(namespace, "");
        }
        let entries = feed.entries.iter().map(|entry| (&entry.links, &entry.extensions));
        for (links, elements) in [(&feed.links, &feed.extensions)].into_iter().chain(entries) {
            names.add_links(links);
            for element in elements.iter().filter(|element| is_written(element)) {
                names.add_elements(std::slice::from_ref(element));
            }
        }
        names
    }

    fn add_feed(&mut self, feed: &'a Feed) {
        self.add_people(&feed.authors);
        self.add_people(&feed.contributors);
        self.add_links(&feed.links);
        self.add_elements(&feed.extensions);
    }

    fn add_people(&mut self, people: &'a [Person]) {
        for person in people {
            for element in person.extensions.iter().filter(|element| !is_own(element)) {
                self.add_elements(std::slice::from_ref(element));
            }
        }
    }

    fn add_links(&mut self, links: &'a [Link]) {
        for link in links {
            for attribute in &link.attributes {
                match attribute.namespace.as_str() {
                    "" | ATOM => self.add(RSS, ""),
                    namespace => self.add(namespace, &attribute.prefix),
                }
            }
            self.add_elements(&link.extensions);
        }
    }

    /// Adds the namespaces of extensions and their descendants; elements of Atom are moved to RSS.
    /// The order is that of serialization, so that parsing the output gives the same order.
    fn add_elements(&mut self, elements: &'a [Element]) {
        for element in elements {
            if element.namespace == ATOM {
                self.add(RSS, "");
            }
            self.add_element(element);
        }
    }

    fn add_element(&mut self, element: &'a Element) {
        self.add(namespace_of(element), &element.prefix);
        self.add_attributes(&element.attributes);
        for child in &element.children {
            if let Node::Element(child) = child {
                self.add_element(child);
            }
        }
    }

    fn add_attributes(&mut self, attributes: &'a [Attribute]) {
        for attribute in attributes {
            self.add(&attribute.namespace, &attribute.prefix);
        }
    }

    /// Assigns a prefix to `namespace`; `wanted` is the prefix in the source.
    fn add(&mut self, namespace: &'a str, wanted: &'a str) {
        if matches!(namespace, "" | ATOM | XML) || self.prefix(namespace).is_some() {
            return;
        }
        let usual = USUAL.iter().find(|(known, _)| *known == namespace).map(|(_, usual)| *usual);
        let uri = if usual.is_some() { Cow::Borrowed(namespace) } else { as_uri(namespace) };
        if let Some(place) = self.declared.get(&uri) {
            self.places.insert(namespace, *place);
            return;
        }
        let wanted = usual.unwrap_or(wanted);
        // The usual prefix of a vocabulary is reserved for that vocabulary: the namespace that a
        // source uses first must not change the prefixes of others.
        let reserved = usual.is_none() && USUAL.iter().any(|(_, taken)| *taken == wanted);
        let usable = !reserved && is_name(wanted) && !begins_with_xml(wanted);
        let prefix = if usable && self.taken.get(wanted).is_none() {
            Cow::Borrowed(wanted)
        } else {
            Cow::Owned(self.make_up())
        };
        self.taken.insert(prefix.clone(), ());
        self.places.insert(namespace, self.held.len());
        self.declared.insert(uri.clone(), self.held.len());
        self.held.push((uri, prefix));
    }

    /// Generates an unused prefix.
    fn make_up(&mut self) -> String {
        loop {
            self.made_up += 1;
            let prefix = format!("ns{}", self.made_up);
            if self.taken.get(&prefix).is_none() {
                return prefix;
            }
        }
    }

    /// Returns the prefix of `namespace`, if it has one.
    pub(super) fn prefix(&self, namespace: &str) -> Option<&str> {
        if namespace == XML {
            return Some("xml");
        }
        self.places.get(namespace).map(|place| self.held[*place].1.as_ref())
    }

    /// Appends the declarations to an open start tag.
    pub(super) fn declare(&self, out: &mut String) {
        for (namespace, prefix) in &self.held {
            out.push_str(" xmlns:");
            out.push_str(prefix);
            out.push_str("=\"");
            push_value(out, namespace);
            out.push('"');
        }
    }
}

/// Returns whether XML reserves the prefix.
fn begins_with_xml(prefix: &str) -> bool {
    prefix.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("xml"))
}

/// Returns the namespace in which an element is written.
pub(super) fn namespace_of(element: &Element) -> &str {
    match element.namespace.as_str() {
        XML => XML_ELEMENTS,
        namespace => namespace,
    }
}

/// Returns the name of a namespace as a URI, as XML parsers require (Namespaces in XML `#iri-use`).
/// A name that is not a URI is wrapped.
fn as_uri(namespace: &str) -> Cow<'_, str> {
    if iri::scheme(namespace).is_none() || namespace == XMLNS {
        return Cow::Owned(iri::urn("namespace", namespace));
    }
    let hex = |after: &str| after.len() > 1 && after.bytes().take(2).all(|b| b.is_ascii_hexdigit());
    let escapes_sound = namespace.split('%').skip(1).all(hex);
    let is_plain = |c: char| match c {
        '%' => escapes_sound,
        c => iri::is_unreserved(c) || ":/?@!$&'()*+,;=".contains(c),
    };
    // The first `#` begins the fragment, which cannot contain another one.
    let (before, fragment) = namespace.split_once('#').unwrap_or((namespace, ""));
    if before.chars().chain(fragment.chars()).all(is_plain) {
        return Cow::Borrowed(namespace);
    }
    let mut uri = iri::percent_encode(before, is_plain);
    if before.len() < namespace.len() {
        uri.push('#');
        uri.push_str(&iri::percent_encode(fragment, is_plain));
    }
    Cow::Owned(uri)
}

/// Returns whether `text` can be a local name or a prefix (Namespaces in XML `#NT-NCName`; of the
/// non-ASCII characters, letters and digits).
pub(super) fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(begins_name) && chars.all(continues_name)
}

/// Returns `text` as a name. Characters that are not allowed become underscores.
pub(super) fn as_name(text: &str) -> Cow<'_, str> {
    if is_name(text) {
        return Cow::Borrowed(text);
    }
    let mut name: String = text.chars().map(|c| if continues_name(c) { c } else { '_' }).collect();
    if !name.starts_with(begins_name) {
        name.insert(0, '_');
    }
    Cow::Owned(name)
}

// The ranges of XML 1.0 `#NT-NameStartChar`, without the colon.
fn begins_name(c: char) -> bool {
    matches!(c, 'A'..='Z' | 'a'..='z' | '_' | '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}'
        | '\u{f8}'..='\u{2ff}' | '\u{370}'..='\u{37d}' | '\u{37f}'..='\u{1fff}'
        | '\u{200c}'..='\u{200d}' | '\u{2070}'..='\u{218f}' | '\u{2c00}'..='\u{2fef}'
        | '\u{3001}'..='\u{d7ff}' | '\u{f900}'..='\u{fdcf}' | '\u{fdf0}'..='\u{fffd}'
        | '\u{10000}'..='\u{effff}')
}

fn continues_name(c: char) -> bool {
    begins_name(c)
        || matches!(c, '0'..='9' | '-' | '.' | '\u{b7}' | '\u{300}'..='\u{36f}' | '\u{203f}'..='\u{2040}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_vocabularies_keep_their_prefix_and_clashes_are_told_apart() {
        let element = |namespace: &str, prefix: &str| Element {
            namespace: namespace.to_owned(),
            prefix: prefix.to_owned(),
            name: "x".to_owned(),
            ..Element::default()
        };
        let elements = [
            element("urn:a", "dc"),
            element("http://purl.org/dc/elements/1.1/", "dublin"),
            element("urn:b", "p"),
            element("urn:c", "p"),
            element("urn:d", "xmlish"),
            element("", ""),
        ];
        let mut names = Names::default();
        names.add_elements(&elements);
        let mut out = String::new();
        names.declare(&mut out);
        assert_eq!(
            out,
            " xmlns:ns1=\"urn:a\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\" \
             xmlns:p=\"urn:b\" xmlns:ns2=\"urn:c\" xmlns:ns3=\"urn:d\""
        );
    }

    #[test]
    fn namespaces_that_become_one_uri_have_one_prefix() {
        let attribute = |namespace: &str, prefix: &str| Attribute {
            namespace: namespace.to_owned(),
            prefix: prefix.to_owned(),
            name: "x".to_owned(),
            value: String::new(),
        };
        let attributes = [attribute("urn:é", "p"), attribute("urn:%C3%A9", "q")];
        let mut names = Names::default();
        names.add_attributes(&attributes);
        let prefixes = attributes.each_ref().map(|held| names.prefix(&held.namespace));
        assert_eq!(prefixes, [Some("p"), Some("p")]);
    }

    #[test]
    fn a_namespace_becomes_a_uri() {
        let cases = [
            ("http://a.test/ns#", "http://a.test/ns#"),
            ("http://a.test/\n/ns", "http://a.test/%0A/ns"),
            ("urn:é", "urn:%C3%A9"),
            ("urn:100%", "urn:100%25"),
            ("tides/1.0", "urn:namespace:tides%2F1.0"),
            (XMLNS, "urn:namespace:http:%2F%2Fwww.w3.org%2F2000%2Fxmlns%2F"),
        ];
        for (namespace, want) in cases {
            assert_eq!(as_uri(namespace), want, "{namespace:?}");
        }
    }

    #[test]
    fn anything_becomes_a_name() {
        for (text, want) in [("a", "a"), ("1a", "_1a"), ("a b:c", "a_b_c"), ("", "_"), ("é", "é")]
        {
            assert_eq!(as_name(text), want, "{text:?}");
        }
    }
}
