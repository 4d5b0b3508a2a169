//! What a resource holds that is no feed, or the part of it that was asked for, and what
//! of that counts when it is compared with what it was (rule N12).
//!
//! What kind of document it is is told by what is in it, and by its label only where
//! that leaves a choice (rule P50).

use std::borrow::Cow;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::html::{Page, Tag};
use super::offers;
use super::part::Part;
use super::{decode, path, tree};
use crate::body::Body;
use crate::context::Context;
use crate::discovery::Offer;

/// The longest part, several that were found together.
const LONGEST_BYTES: usize = 10 * 1024 * 1024;

/// Content, or a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// What it is, in words.
    pub kind: &'static str,
    /// The same for all content that differs in nothing that counts: SHA-256 in hex.
    pub gate: String,
    /// The part, if one was asked for.
    pub part: Option<Body>,
    /// The feeds that a whole page offers.
    pub offers: Vec<Offer>,
}

/// Why the part that was asked for is not there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPart {
    /// There is nothing of that description.
    #[error("nothing in {kind} matches {part}")]
    Missing {
        /// What the resource is.
        kind: &'static str,
        /// What was asked for.
        part: String,
    },
    /// It is described in words that do not fit the resource.
    #[error("the resource is {kind}, of which {part} names no part: {words}")]
    Unfit {
        /// What the resource is.
        kind: &'static str,
        /// What was asked for.
        part: String,
        /// What would name a part of it.
        words: &'static str,
    },
    /// Looking for it, or sending it, would take too much.
    #[error("{part} takes too long to find in this document, or is too long itself")]
    TooCostly {
        /// What was asked for.
        part: String,
    },
}

/// A document, told by what is in it.
enum Document {
    Json(Value),
    Page(Page),
    Xml(Page),
    Text,
    Binary,
}

/// Reads what is no feed; `part` is what of it was asked for.
pub fn content(bytes: &[u8], context: &Context, part: Option<&Part>) -> Result<Content, NoPart> {
    let text = decode::decode(bytes, context.content_type(), &mut Vec::new());
    let document = Document::of(bytes, &text, context.content_type());
    match part {
        Some(part) => document.part(part, context.content_type()),
        None => Ok(document.whole(bytes, context)),
    }
}

impl Document {
    fn of(bytes: &[u8], text: &str, label: Option<&str>) -> Document {
        let label = label.unwrap_or_default().to_ascii_lowercase();
        let start = text.trim_start();
        let is_called_json = label.contains("json");
        let looks_like_json = start.starts_with(['{', '[']) || is_called_json;
        if let Some(value) = looks_like_json.then(|| json(start)).flatten() {
            return Document::Json(value);
        }
        let head = start[..start.floor_char_boundary(1_024)].to_ascii_lowercase();
        let is_page = head.contains("<!doctype html") || head.contains("<html");
        let is_called_page = label.contains("html");
        if start.starts_with('<') && !is_page && !is_called_page {
            let is_xml = head.starts_with("<?xml") || label.contains("xml");
            if is_xml {
                let tidy = tree::tidy(Cow::Borrowed(text), &mut Vec::new());
                let tree = tree::build(&tidy, &mut Vec::new());
                return Document::Xml(Page::of_xml(tree.document()));
            }
        }
        match start.starts_with('<') || is_page || is_called_page {
            true => Document::Page(Page::read(text)),
            false if bytes.contains(&0) => Document::Binary,
            false => Document::Text,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Document::Json(_) => "JSON",
            Document::Page(_) => "an HTML page",
            Document::Xml(_) => "XML",
            Document::Text => "text",
            Document::Binary => "neither text nor markup",
        }
    }

    /// All of it. Its bytes go out as they came, whatever of them counts.
    fn whole(self, bytes: &[u8], context: &Context) -> Content {
        let kind = self.kind();
        let (gate, offers) = match self {
            Document::Json(value) => (canonical(value), Vec::new()),
            Document::Page(page) => (normal(page.root()), offers::of_page(&page, context)),
            Document::Xml(page) => (normal(page.root()), Vec::new()),
            Document::Text | Document::Binary => (String::new(), Vec::new()),
        };
        let gate = if gate.is_empty() { hash(bytes) } else { hash(gate.as_bytes()) };
        Content { kind, gate, part: None, offers }
    }

    fn part(self, part: &Part, label: Option<&str>) -> Result<Content, NoPart> {
        let kind = self.kind();
        let name = || part.as_str().to_owned();
        let unfit = |words| NoPart::Unfit { kind, part: name(), words };
        let missing = || NoPart::Missing { kind, part: name() };
        let costly = || NoPart::TooCostly { part: name() };
        let (counts, bytes, essence) = match &self {
            Document::Json(value) => {
                let path = part.path.as_ref();
                let path = path.ok_or_else(|| unfit("a JSONPath does, such as $.name"))?;
                let found = path.select(value, LONGEST_BYTES);
                let found = found.map_err(|path::TooCostly| costly())?.ok_or_else(missing)?;
                let essence = essence(label, "json").unwrap_or("application/json");
                let bytes = found.to_string();
                (canonical(found), bytes, essence.to_owned())
            }
            Document::Page(page) | Document::Xml(page) => {
                let css = part.css.as_ref();
                let css = css.ok_or_else(|| unfit("a CSS selector does, such as .name"))?;
                let found = css.select(page).ok_or_else(costly)?;
                if found.is_empty() {
                    return Err(missing());
                }
                let is_page = matches!(self, Document::Page(_));
                let counts = found.iter().map(|tag| tag.normal()).collect();
                let markup = found.iter().map(|tag| tag.outer()).collect();
                let essence = essence(label, "xml").unwrap_or("application/xml");
                match is_page {
                    true => (counts, markup, "text/html; charset=utf-8".to_owned()),
                    false => (counts, as_xml(markup), format!("{essence}; charset=utf-8")),
                }
            }
            Document::Text | Document::Binary => return Err(unfit("it has none")),
        };
        if bytes.len() > LONGEST_BYTES {
            return Err(costly());
        }
        let body = Body { content_type: Some(essence), bytes: bytes.into_bytes() };
        let gate = hash(counts.as_bytes());
        Ok(Content { kind, gate, part: Some(body), offers: Vec::new() })
    }
}

/// The serializer writes HTML, whose one name for a character is unknown to XML.
fn as_xml(markup: String) -> String {
    markup.replace("&nbsp;", "&#160;")
}

fn json(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

/// JSON without white space, members in the order of their names.
fn canonical(mut value: Value) -> String {
    value.sort_all_objects();
    value.to_string()
}

fn normal(root: Option<Tag<'_>>) -> String {
    root.map(Tag::normal).unwrap_or_default()
}

/// The media type of a label, without parameters, if it is of this kind.
fn essence<'l>(label: Option<&'l str>, kind: &str) -> Option<&'l str> {
    let essence = label?.split(';').next()?.trim();
    essence.to_ascii_lowercase().ends_with(kind).then_some(essence)
}

fn hash(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;

    fn read(text: &str, label: &str, fragment: Option<&str>) -> Result<Content, NoPart> {
        let mut context = Context::of(Url::parse("https://tides.test/x").unwrap());
        context.headers.push(("content-type".to_owned(), label.to_owned()));
        let part = fragment.map(|fragment| Part::parse(fragment).unwrap());
        content(text.as_bytes(), &context, part.as_ref())
    }

    #[test]
    fn p50_a_document_is_told_by_what_is_in_it() {
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
            assert_eq!(read(text, label, None).unwrap().kind, want, "{text}");
        }
    }

    #[test]
    fn n12_what_does_not_count_is_no_change() {
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
            let gate = |text| read(text, "", None).unwrap().gate;
            assert_eq!(gate(one) == gate(other), is_same, "{why}");
        }
    }

    #[test]
    fn a_part_goes_out_as_it_stands_there() {
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
            let body = read(text, label, Some(fragment)).unwrap().part.unwrap();
            assert_eq!(String::from_utf8(body.bytes).unwrap(), want, "{fragment}");
            assert_eq!(body.content_type.as_deref(), Some(content_type), "{fragment}");
        }
    }

    #[test]
    fn a_part_that_is_not_there_is_told_of() {
        #[rustfmt::skip]
        let cases = [
            ("<html><p>x", ".h-entry", "nothing in an HTML page matches .h-entry"),
            ("{\"a\": 1}", "$.b",      "nothing in JSON matches $.b"),
            ("{\"a\": 1}", "a > b",    "the resource is JSON, of which a > b names no part: a JSONPath does, such as $.name"),
            ("<html><p>x", "$.b",      "the resource is an HTML page, of which $.b names no part: a CSS selector does, such as .name"),
            ("high water", ".x",       "the resource is text, of which .x names no part: it has none"),
        ];
        for (text, fragment, want) in cases {
            assert_eq!(read(text, "", Some(fragment)).unwrap_err().to_string(), want);
        }
    }
}
