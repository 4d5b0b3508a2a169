//! The prefixes that feedparser has for namespaces, whatever the document uses.

use std::borrow::Cow;

use feedgate_feed::model::{Attribute, Element};

/// Elements that the normalizer adds.
pub(super) const OWN: &str = "tag:feedgate,2026:entry";
/// RSS, whose elements have no prefix.
pub(super) const RSS: &str = "http://backend.userland.com/rss2";
/// Activity Streams in Atom.
pub(super) const ACTIVITY: &str = "http://activitystrea.ms/spec/1.0/";
/// RDF.
pub(super) const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";

const PREFIXES: [(&str, &str); 24] = [
    (RSS, ""),
    ("http://www.w3.org/2005/Atom", ""),
    ("http://backend.userland.com/creativeCommonsRssModule", "creativeCommons"),
    ("http://creativecommons.org/ns#license", "cc"),
    ("http://cyber.law.harvard.edu/rss/creativeCommonsRssModule.html", "creativeCommons"),
    ("http://podlove.org/simple-chapters", "psc"),
    ("http://purl.org/dc/elements/1.1/", "dc"),
    ("http://purl.org/dc/terms/", "dcterms"),
    ("http://purl.org/rss/1.0/modules/content/", "content"),
    ("http://purl.org/rss/1.0/modules/slash/", "slash"),
    ("http://purl.org/rss/1.0/modules/syndication/", "sy"),
    ("http://purl.org/syndication/thread/1.0", "thr"),
    ("http://rssnamespace.org/feedburner/ext/1.0", "feedburner"),
    ("http://search.yahoo.com/mrss/", "media"),
    ("http://web.resource.org/cc/", "cc"),
    ("http://webns.net/mvcb/", "admin"),
    ("http://wellformedweb.org/CommentAPI/", "wfw"),
    ("http://www.georss.org/georss", "georss"),
    ("http://www.itunes.com/dtds/podcast-1.0.dtd", "itunes"),
    ("http://www.opengis.net/gml", "gml"),
    (RDF, "rdf"),
    ("http://www.w3.org/2003/01/geo/wgs84_pos#", "geo"),
    ("http://www.w3.org/1999/xlink", "xlink"),
    ("http://www.w3.org/XML/1998/namespace", "xml"),
];

/// Returns whether an element is in a namespace.
pub(super) fn is_in(element: &Element, namespace: &str) -> bool {
    element.namespace == namespace
}

/// Returns the prefix of a namespace, or else that of the document, in lower case.
fn prefix(namespace: &str, written: &str) -> Cow<'static, str> {
    if namespace.is_empty() {
        return Cow::Borrowed("");
    }
    let known = PREFIXES.iter().find(|(uri, _)| *uri == namespace);
    known.map_or_else(|| Cow::Owned(written.to_lowercase()), |(_, prefix)| Cow::Borrowed(*prefix))
}

/// Returns the prefix and the name of an element, in lower case.
pub(super) fn names(element: &Element) -> (Cow<'static, str>, String) {
    (prefix(&element.namespace, &element.prefix), element.name.to_ascii_lowercase())
}

/// Returns the key of an attribute: its name, with the prefix of its namespace.
pub(super) fn attribute_key(attribute: &Attribute) -> String {
    let name = attribute.name.to_ascii_lowercase();
    match &*prefix(&attribute.namespace, &attribute.prefix) {
        "" => name,
        prefix => format!("{prefix}:{name}"),
    }
}

/// Returns the value of an attribute without a namespace.
pub(super) fn attribute<'e>(element: &'e Element, name: &str) -> Option<&'e str> {
    let is_named = |held: &&Attribute| held.name.eq_ignore_ascii_case(name);
    element.attributes.iter().find(is_named).map(|held| held.value.as_str())
}
