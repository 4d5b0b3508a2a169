//! HTML pages, XML, JSON and other documents that are not feeds.
//!
//! [`read`] detects the kind of a document, computes a digest of its significant content, finds the
//! feeds that a page links to, and extracts the part that a fragment selects: `#.price` selects
//! elements of a page, `#$.store.price` a value in JSON. [`read_mapped`] reads JSON as a feed.
//!
//! The kind is detected from the contents. The declared media type decides only between kinds that
//! the contents leave open (rule P50).

mod discovered_feed;
mod discovery;
mod fragment;
mod json_path;
mod mapping;
mod page_identity;

pub use crate::parse::html::feed_media_type;
pub use discovered_feed::{DiscoveredFeed, describe_feeds};
pub use discovery::WELL_KNOWN_PATHS;
pub use fragment::{Fragment, InvalidFragment};
pub use page_identity::PageIdentity;

use std::fmt;

use hmac_sha256::Hash as Sha256;
use serde_json::Value;

use crate::body::Body;
use crate::context::Context;
use crate::hex;
use crate::model::Feed;
use crate::parse::html::{HtmlElement, ParsedHtml};
use crate::parse::{decode_text, has_too_many_values, parse_items};

use mapping::NotMapped;

/// The maximum length of an extracted part, in bytes. Several elements or values count together.
const LONGEST_BYTES: usize = 10 * 1024 * 1024;
/// The kind of an HTML page.
const PAGE: &str = "an HTML page";

/// The result of reading a document that is not a feed, or a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DocumentContent {
    /// The kind of the document, as words for people: `an HTML page`.
    pub kind: &'static str,
    /// The SHA-256 of the significant content, in lower-case hex. Versions that differ only in
    /// white space, comments, scripts, one-time tokens or the order of JSON members have equal
    /// digests.
    pub digest: String,
    /// The part that the fragment selects, if a fragment was given.
    pub part: Option<Body>,
    /// The feeds that a page links to; empty if a fragment was given.
    pub feeds: Vec<DiscoveredFeed>,
}

impl DocumentContent {
    /// Returns whether the document is an HTML page.
    pub fn is_page(&self) -> bool {
        self.kind == PAGE
    }
}

/// The reason why a fragment selects no part of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FragmentError {
    /// Nothing in the document matches the fragment.
    NotFound {
        /// The kind of the document, as words for people.
        kind: &'static str,
        /// The fragment.
        fragment: String,
    },
    /// The fragment selects parts of documents of another kind.
    Unsupported {
        /// The kind of the document, as words for people.
        kind: &'static str,
        /// The fragment.
        fragment: String,
        /// A sentence that says which fragments select a part of this document.
        hint: &'static str,
    },
    /// The document has items where a mapping says, and none has any of its fields.
    Unmapped {
        /// The fragment.
        fragment: String,
    },
    /// Evaluating the fragment takes too long, or the selected part is too large.
    TooCostly {
        /// The fragment.
        fragment: String,
    },
}

impl fmt::Display for FragmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FragmentError::NotFound { kind, fragment } => {
                write!(f, "nothing in {kind} matches {fragment}")
            }
            FragmentError::Unsupported { kind, fragment, hint } => {
                write!(f, "{fragment} selects nothing in a resource that is {kind}: {hint}")
            }
            FragmentError::Unmapped { fragment } => {
                write!(f, "no item in JSON has any of the fields of {fragment}")
            }
            FragmentError::TooCostly { fragment } => {
                write!(f, "{fragment} takes too long to find, or the part it selects is too large")
            }
        }
    }
}

impl std::error::Error for FragmentError {}

/// A document, parsed according to its kind.
enum Document {
    Json(Value),
    /// JSON with more values than are read.
    LargeJson,
    Page(ParsedHtml),
    Xml(ParsedHtml),
    Text,
    Binary,
}

/// Reads a document that is not a feed. Returns the part that `fragment` selects, or the whole
/// document if there is no fragment.
pub fn read(
    bytes: &[u8],
    context: &Context,
    fragment: Option<&Fragment>,
) -> Result<DocumentContent, FragmentError> {
    let text = decode_text(bytes, context.content_type());
    let document = Document::recognize(bytes, &text, context.content_type());
    match fragment {
        Some(fragment) => document.cut_out(fragment, context.content_type()),
        None => Ok(document.whole(bytes, context)),
    }
}

/// Reads a JSON document as a feed, as a fragment says that is a mapping ([`Fragment::is_mapping`]). The
/// feed is not normalized.
pub fn read_mapped(
    bytes: &[u8],
    context: &Context,
    fragment: &Fragment,
) -> Result<Feed, FragmentError> {
    let text = decode_text(bytes, context.content_type());
    let document = Document::recognize(bytes, &text, context.content_type());
    let (kind, name) = (document.kind(), || fragment.as_str().to_owned());
    let unsupported = |hint| FragmentError::Unsupported { kind, fragment: name(), hint };
    let value = match document {
        Document::Json(value) => value,
        Document::LargeJson => return Err(FragmentError::TooCostly { fragment: name() }),
        _ => return Err(unsupported("only JSON can be mapped")),
    };
    let mapping = fragment.mapping.as_ref().ok_or_else(|| unsupported("it is no mapping"))?;
    let items = mapping.items(&value, LONGEST_BYTES).map_err(|why| match why {
        NotMapped::NoItems => FragmentError::NotFound { kind, fragment: name() },
        NotMapped::NoFields => FragmentError::Unmapped { fragment: name() },
        NotMapped::TooCostly => FragmentError::TooCostly { fragment: name() },
    })?;
    drop(value);
    Ok(parse_items(items, context))
}

/// Returns the feeds that an HTML page links to, also one with entries of its own.
pub fn linked_feeds(page: &[u8], context: &Context) -> Vec<DiscoveredFeed> {
    let text = decode_text(page, context.content_type());
    discovery::find_feeds(&ParsedHtml::read(&text), context)
}

impl Document {
    fn recognize(bytes: &[u8], text: &str, label: Option<&str>) -> Document {
        let label = label.unwrap_or_default().to_ascii_lowercase();
        let start = text.trim_start();
        let is_called_json = label.contains("json");
        let looks_like_json = start.starts_with(['{', '[']) || is_called_json;
        if looks_like_json && has_too_many_values(start) {
            return Document::LargeJson;
        }
        if let Some(value) = looks_like_json.then(|| json(start)).flatten() {
            return Document::Json(value);
        }
        let head = start[..start.floor_char_boundary(1_024)].to_ascii_lowercase();
        let is_page = head.contains("<!doctype html") || head.contains("<html");
        let is_called_page = label.contains("html");
        if start.starts_with('<') && !is_page && !is_called_page {
            let is_xml = head.starts_with("<?xml") || label.contains("xml");
            if is_xml {
                return Document::Xml(ParsedHtml::read_xml(text));
            }
        }
        match start.starts_with('<') || is_page || is_called_page {
            true => Document::Page(ParsedHtml::read(text)),
            false if bytes.contains(&0) => Document::Binary,
            false => Document::Text,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Document::Json(_) | Document::LargeJson => "JSON",
            Document::Page(_) => PAGE,
            Document::Xml(_) => "XML",
            Document::Text => "text",
            Document::Binary => "neither text nor markup",
        }
    }

    /// Returns the digest and the linked feeds of the whole document.
    fn whole(self, bytes: &[u8], context: &Context) -> DocumentContent {
        let kind = self.kind();
        let (compared, feeds) = match self {
            Document::Json(value) => (canonical(value), Vec::new()),
            Document::Page(page) => {
                (comparable(page.root()), discovery::find_feeds(&page, context))
            }
            Document::Xml(page) => (comparable(page.root()), Vec::new()),
            Document::LargeJson | Document::Text | Document::Binary => (String::new(), Vec::new()),
        };
        let digest = if compared.is_empty() { digest(bytes) } else { digest(compared.as_bytes()) };
        DocumentContent { kind, digest, part: None, feeds }
    }

    fn cut_out(
        self,
        fragment: &Fragment,
        label: Option<&str>,
    ) -> Result<DocumentContent, FragmentError> {
        let kind = self.kind();
        let name = || fragment.as_str().to_owned();
        let unsupported = |hint| FragmentError::Unsupported { kind, fragment: name(), hint };
        let missing = || FragmentError::NotFound { kind, fragment: name() };
        let costly = || FragmentError::TooCostly { fragment: name() };
        let (compared, bytes, essence) = match &self {
            Document::Json(value) => {
                let path = fragment.path.as_ref();
                let path = path.ok_or_else(|| unsupported("use a JSONPath, such as $.name"))?;
                let found = path.select(value, LONGEST_BYTES);
                let found = found.map_err(|json_path::TooCostly| costly())?.ok_or_else(missing)?;
                let essence = essence(label, "json").unwrap_or("application/json");
                let bytes = found.to_string();
                (canonical(found), bytes, essence.to_owned())
            }
            Document::Page(page) | Document::Xml(page) => {
                let css = fragment.css.as_ref();
                let css = css.ok_or_else(|| unsupported("use a CSS selector, such as .name"))?;
                let found = css.select(page).ok_or_else(costly)?;
                if found.is_empty() {
                    return Err(missing());
                }
                let is_page = matches!(self, Document::Page(_));
                let compared = found.iter().map(|element| element.comparable()).collect();
                let markup = found.iter().map(|element| element.outer_html()).collect();
                let essence = essence(label, "xml").unwrap_or("application/xml");
                match is_page {
                    true => (compared, markup, "text/html; charset=utf-8".to_owned()),
                    false => (compared, as_xml(markup), format!("{essence}; charset=utf-8")),
                }
            }
            Document::LargeJson => return Err(costly()),
            Document::Text | Document::Binary => {
                return Err(unsupported("only pages, XML and JSON have parts"));
            }
        };
        if bytes.len() > LONGEST_BYTES {
            return Err(costly());
        }
        let body = Body { content_type: Some(essence), bytes: bytes.into_bytes() };
        let digest = digest(compared.as_bytes());
        Ok(DocumentContent { kind, digest, part: Some(body), feeds: Vec::new() })
    }
}

/// Rewrites serialized HTML as XML: `&nbsp;`, the one named entity that the serializer writes, is
/// not defined in XML.
fn as_xml(markup: String) -> String {
    markup.replace("&nbsp;", "&#160;")
}

fn json(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

/// Serializes JSON without white space, with members sorted by name.
fn canonical(mut value: Value) -> String {
    value.sort_all_objects();
    value.to_string()
}

fn comparable(root: Option<HtmlElement<'_>>) -> String {
    root.map(HtmlElement::comparable).unwrap_or_default()
}

/// Returns the media type of a `Content-Type` without its parameters, if it is of this kind.
fn essence<'l>(label: Option<&'l str>, kind: &str) -> Option<&'l str> {
    let essence = label?.split(';').next()?.trim();
    essence.to_ascii_lowercase().ends_with(kind).then_some(essence)
}

fn digest(bytes: &[u8]) -> String {
    hex::encode(&Sha256::hash(bytes))
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;

    fn read_text(
        text: &str,
        label: &str,
        fragment: Option<&str>,
    ) -> Result<DocumentContent, FragmentError> {
        let mut context = Context::new(Url::parse("https://tides.test/x").unwrap());
        context.headers.push(("content-type".to_owned(), label.to_owned()));
        let fragment = fragment.map(|text| Fragment::parse(text).unwrap());
        super::read(text.as_bytes(), &context, fragment.as_ref())
    }

    #[test]
    fn p50_a_document_is_recognized_by_its_contents() {
        #[rustfmt::skip]
        let cases = [
            ("{\"a\": 1}",                       "text/html",        "JSON"),
            ("\u{feff} [1]",                     "",                 "JSON"),
            ("42",                               "application/json", "JSON"),
            ("<!doctype html><p>x",              "application/json", "an HTML page"),
            ("<html><p>x",                       "text/xml",         "an HTML page"),
            ("<p>x",                             "",                 "an HTML page"),
            ("<?xml version='1.0'?><tide/>",     "text/plain",       "XML"),
            ("<tide/>",                          "application/xml",  "XML"),
            ("high water",                       "text/plain",       "text"),
            ("{high water}",                     "application/json", "text"),
            ("GIF89a\0\u{1}",                    "image/gif",        "neither text nor markup"),
        ];
        for (text, label, want) in cases {
            assert_eq!(read_text(text, label, None).unwrap().kind, want, "{text}");
        }
    }

    #[test]
    fn n12_only_what_counts_changes_the_digest() {
        #[rustfmt::skip]
        let cases = [
            ("order and white space",   "{\"a\":1,\"b\":[2]}",  "{ \"b\": [ 2 ], \"a\": 1 }", true),
            ("in whatever depth",       "[{\"a\":1,\"b\":2}]",  "[{\"b\":2,\"a\":1}]",      true),
            ("order of an array",       "[1,2]",                "[2,1]",                    false),
            ("a value",                 "{\"a\":1}",            "{\"a\":2}",                false),
            ("space in XML",            "<?xml version='1.0'?><t><a b='1' c='2'/></t>", "<?xml version='1.0'?>\n<t> <!-- x --><a c='2' b='1'/></t>", true),
            ("text in XML",             "<?xml version='1.0'?><t>1</t>", "<?xml version='1.0'?><t>2</t>", false),
            ("a script of a page",      "<html><p>x<script>1</script>", "<html><p>x<script>2</script>", true),
            ("space in plain text",     "a b",                  "a  b",                     false),
        ];
        for (why, one, other, is_same) in cases {
            let digest = |text| read_text(text, "", None).unwrap().digest;
            assert_eq!(digest(one) == digest(other), is_same, "{why}");
        }
    }

    #[test]
    fn a_part_is_cut_out_as_it_is_written() {
        const PAGE: &str = "<html><body><nav>x</nav><p class=h-entry>A &amp; b\u{a0}c</p>\n\
            <div><p class='h-entry x'>D</p></div>";
        const XML: &str =
            "<?xml version='1.0'?><t xmlns:d='u'><d:loc A='1'>x\u{a0}y</d:loc><d:loc/></t>";
        #[rustfmt::skip]
        let cases = [
            (PAGE, "text/html; charset=iso-8859-1", ".h-entry",
                "<p class=\"h-entry\">A &amp; b&nbsp;c</p><p class=\"h-entry x\">D</p>", "text/html; charset=utf-8"),
            (XML, "text/xml", "d\\:loc[A]", "<d:loc A=\"1\">x&#160;y</d:loc>", "text/xml; charset=utf-8"),
            ("{\"b\": {\"z\": 1.50, \"a\": \"é\"}}", "application/json", "$.b", "{\"z\":1.5,\"a\":\"é\"}", "application/json"),
            ("{\"b\": [1, 2]}", "application/ld+json; x=y", "b[*]", "[1,2]", "application/ld+json"),
            ("{\"b\": 7}", "text/plain", "%24.b", "7", "application/json"),
        ];
        for (text, label, fragment, want, content_type) in cases {
            let body = read_text(text, label, Some(fragment)).unwrap().part.unwrap();
            assert_eq!(String::from_utf8(body.bytes).unwrap(), want, "{fragment}");
            assert_eq!(body.content_type.as_deref(), Some(content_type), "{fragment}");
        }
    }

    #[test]
    fn a_part_that_cannot_be_cut_out_is_an_error_that_says_why() {
        #[rustfmt::skip]
        let cases = [
            ("<html><p>x", ".h-entry", "nothing in an HTML page matches .h-entry"),
            ("{\"a\": 1}", "$.b",      "nothing in JSON matches $.b"),
            ("{\"a\": 1}", "a > b",    "a > b selects nothing in a resource that is JSON: use a JSONPath, such as $.name"),
            ("<html><p>x", "$.b",      "$.b selects nothing in a resource that is an HTML page: use a CSS selector, such as .name"),
            ("high water", ".x",       ".x selects nothing in a resource that is text: only pages, XML and JSON have parts"),
        ];
        for (text, fragment, want) in cases {
            assert_eq!(read_text(text, "", Some(fragment)).unwrap_err().to_string(), want);
        }
    }
}
