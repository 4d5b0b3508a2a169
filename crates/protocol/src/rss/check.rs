//! Checks that a document is well-formed XML and a feed, and locates its first fault.
//!
//! The check is stricter than the underlying XML reader: names, characters, entities, prefixes and
//! attributes are checked as well. A document type with declarations is refused, because it would
//! be served to every reader of the feed (rule S14).

use std::borrow::Cow;

use quick_xml::Reader;
use quick_xml::escape;
use quick_xml::events::{BytesRef, BytesStart, Event};

use super::encoding::decode;
pub use super::fault::DocumentFault;
use super::words::{attr_words, place, words};

/// The maximum nesting of elements: the maximum that the feed parser follows (rule S16).
const DEEPEST: usize = 256;

/// The kind of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentKind {
    /// RSS: the root element is `rss` or `rdf:RDF`.
    Rss,
    /// Atom: the root element is `feed`.
    Atom,
    /// OPML: a list of feeds, or an outline.
    Opml,
}

impl DocumentKind {
    /// Returns the media type with which the document is served.
    pub fn media_type(self) -> &'static str {
        match self {
            DocumentKind::Rss => "application/rss+xml",
            DocumentKind::Atom => "application/atom+xml",
            DocumentKind::Opml => "text/x-opml",
        }
    }
}

/// A document that passed the check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedDocument<'b> {
    /// The kind of the document.
    pub kind: DocumentKind,
    /// The text, without a byte order mark.
    pub text: Cow<'b, str>,
    /// Whether the bytes are UTF-8.
    pub is_utf8: bool,
}

/// Checks a document. Returns its first fault if it is not well-formed or not a feed.
pub fn check(bytes: &[u8]) -> Result<CheckedDocument<'_>, DocumentFault> {
    let (text, is_utf8) = decode(bytes)?;
    let kind =
        Checker::new(&text).check().map_err(|(at, what)| DocumentFault::at(&text, at, what))?;
    Ok(CheckedDocument { kind, text, is_utf8 })
}

/// The byte offset of a fault, and its description.
type Wrong = (usize, String);

struct Checker<'t> {
    text: &'t str,
    /// The offset of the current token.
    at: usize,
    /// The prefixes declared by each open element.
    open: Vec<Vec<&'t str>>,
    kind: Option<DocumentKind>,
    has_channel: bool,
    has_doctype: bool,
}

impl<'t> Checker<'t> {
    fn new(text: &'t str) -> Checker<'t> {
        Checker {
            text,
            at: 0,
            open: Vec::new(),
            kind: None,
            has_channel: false,
            has_doctype: false,
        }
    }

    fn wrong<T>(&self, what: impl Into<String>) -> Result<T, Wrong> {
        Err((self.at, what.into()))
    }

    fn check(mut self) -> Result<DocumentKind, Wrong> {
        if let Some((at, c)) = self.text.char_indices().find(|(_, c)| !is_allowed(*c)) {
            return Err((at, format!("the character U+{:04X} is not allowed in XML", c as u32)));
        }
        let mut reader = Reader::from_str(self.text);
        reader.config_mut().check_comments = true;
        loop {
            self.at = position(reader.buffer_position());
            let event = reader.read_event();
            let event = event.map_err(|err| (position(reader.error_position()), words(&err)))?;
            match event {
                Event::Start(start) => self.start(&start, false)?,
                Event::Empty(start) => self.start(&start, true)?,
                Event::End(_) => drop(self.open.pop()),
                Event::Text(text) => self.characters(&text.xml10_content())?,
                Event::CData(_) if self.open.is_empty() => {
                    return self.wrong("there is text outside the root element");
                }
                Event::GeneralRef(reference) => self.reference(&reference)?,
                Event::DocType(doctype) => self.doctype(&doctype.xml10_content())?,
                Event::Decl(_) if self.at > 0 => {
                    return self.wrong("the XML declaration must be at the start of the document");
                }
                Event::CData(_) | Event::Decl(_) | Event::Comment(_) | Event::PI(_) => {}
                Event::Eof => break,
            }
        }
        if !self.open.is_empty() {
            return self.wrong("the document ends before its root element is closed");
        }
        match self.kind {
            None => self.wrong("the document has no root element"),
            Some(DocumentKind::Rss) if !self.has_channel => {
                self.wrong("the document has no channel")
            }
            Some(kind) => Ok(kind),
        }
    }

    fn start(&mut self, start: &BytesStart<'_>, is_empty: bool) -> Result<(), Wrong> {
        // A slice of the text, which outlives the reader's event.
        let name = start.name().0.len();
        let tag = &self.text[self.at + 1..self.at + 1 + start.len()];
        let name = &tag[..name];
        if !is_qualified(name) {
            return self.wrong(format!("\"{name}\" is not a valid element name"));
        }
        let mut declared = Vec::new();
        let mut prefixes = vec![prefix(name)];
        for attribute in start.attributes() {
            let attribute =
                attribute.map_err(|err| (self.at + 1 + place(&err), attr_words(&err)))?;
            let from = attribute.key.0.as_ptr().addr() - start.as_ptr().addr();
            let key = &tag[from..from + attribute.key.0.len()];
            self.attribute(key, &attribute.value)?;
            match key.strip_prefix("xmlns:") {
                Some(prefix) => declared.push(prefix),
                None => prefixes.push(prefix(key)),
            }
        }
        self.root(name)?;
        self.has_channel |= self.open.len() <= 1 && local(name) == "channel";
        self.open.push(declared);
        for prefix in prefixes.into_iter().flatten() {
            let is_known = |held: &Vec<&str>| held.contains(&prefix);
            if prefix != "xml" && prefix != "xmlns" && !self.open.iter().any(is_known) {
                return self.wrong(format!("the prefix \"{prefix}\" is not declared"));
            }
        }
        if self.open.len() > DEEPEST {
            return self.wrong(format!("elements are nested more than {DEEPEST} levels deep"));
        }
        if is_empty {
            self.open.pop();
        }
        Ok(())
    }

    /// Checks the root element, which determines the kind of the document.
    fn root(&mut self, name: &str) -> Result<(), Wrong> {
        if !self.open.is_empty() {
            return Ok(());
        }
        if self.kind.is_some() {
            return self.wrong("a second element follows the root element");
        }
        self.kind = Some(match local(name) {
            "rss" | "RDF" => DocumentKind::Rss,
            "feed" => DocumentKind::Atom,
            "opml" => DocumentKind::Opml,
            _ => {
                return self
                    .wrong(format!("\"{name}\" is not a root element of RSS, Atom or OPML"));
            }
        });
        Ok(())
    }

    fn attribute(&self, key: &str, value: &str) -> Result<(), Wrong> {
        if !is_qualified(key) {
            return self.wrong(format!("\"{key}\" is not a valid attribute name"));
        }
        if value.contains('<') {
            return self
                .wrong(format!("the attribute \"{key}\" contains \"<\"; write &lt; instead"));
        }
        for piece in value.split('&').skip(1) {
            let Some((name, _)) = piece.split_once(';') else {
                return self
                    .wrong(format!("the attribute \"{key}\" contains \"&\"; write &amp; instead"));
            };
            self.entity(name)?;
        }
        Ok(())
    }

    fn characters(&self, text: &str) -> Result<(), Wrong> {
        if self.open.is_empty() && !text.trim().is_empty() {
            return self.wrong("there is text outside the root element");
        }
        match text.contains("]]>") {
            true => self.wrong("the text contains \"]]>\"; write ]]&gt; instead"),
            false => Ok(()),
        }
    }

    fn reference(&self, reference: &BytesRef<'_>) -> Result<(), Wrong> {
        if self.open.is_empty() {
            return self.wrong("there is text outside the root element");
        }
        self.entity(&reference.xml10_content())
    }

    /// Checks an entity such as `amp` or `#38`. RSS 0.91 refers to an external document type that
    /// declares the entities of HTML.
    fn entity(&self, name: &str) -> Result<(), Wrong> {
        let is_known = match name.strip_prefix('#') {
            Some(number) => {
                let code = match number.strip_prefix('x') {
                    Some(hex) => u32::from_str_radix(hex, 16).ok(),
                    None => number.parse().ok(),
                };
                code.and_then(char::from_u32).is_some_and(is_allowed)
            }
            None => {
                escape::resolve_xml_entity(name).is_some()
                    || (self.has_doctype && escape::resolve_html5_entity(name).is_some())
            }
        };
        if is_known {
            return Ok(());
        }
        let name: String = name.chars().take(40).collect();
        self.wrong(format!("\"&{name};\" is not an XML entity; write \"&\" as &amp;"))
    }

    fn doctype(&mut self, text: &str) -> Result<(), Wrong> {
        if text.contains('[') {
            return self.wrong("a document type with internal declarations is not allowed");
        }
        self.has_doctype = true;
        Ok(())
    }
}

fn position(byte: u64) -> usize {
    usize::try_from(byte).unwrap_or(usize::MAX)
}

fn prefix(name: &str) -> Option<&str> {
    name.split_once(':').map(|(prefix, _)| prefix)
}

fn local(name: &str) -> &str {
    name.split_once(':').map_or(name, |(_, local)| local)
}

/// Returns whether XML 1.0 allows the character (`#NT-Char`).
fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// Returns whether `name` is a qualified name (Namespaces in XML `#NT-QName`). Every non-ASCII
/// letter is accepted.
fn is_qualified(name: &str) -> bool {
    let begins = |c: char| c.is_alphabetic() || c == '_';
    let plain = |c: char| c.is_alphanumeric() || "._-\u{b7}".contains(c);
    let is_name = |part: &str| part.starts_with(begins) && part.chars().all(plain);
    match name.split_once(':') {
        Some((prefix, local)) => is_name(prefix) && is_name(local),
        None => is_name(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        check(text.as_bytes()).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let rss = |inside: &str| format!("<rss>\n<channel>\n{inside}</channel></rss>");
        #[rustfmt::skip]
        let cases = [
            ("",                                     "line 1, column 1: the document has no root element"),
            ("plain",                                "line 1, column 1: there is text outside the root element"),
            ("<html/>",                              "line 1, column 1: \"html\" is not a root element of RSS, Atom or OPML"),
            ("<rss/>",                               "line 1, column 7: the document has no channel"),
            ("<rss><channel/></rss>x",               "line 1, column 22: there is text outside the root element"),
            ("<rss><channel/></rss><rss/>",          "line 1, column 22: a second element follows the root element"),
            ("<rss><channel>",                       "line 1, column 15: the document ends before its root element is closed"),
            (&rss("<title>x</link>"),                "line 3, column 9: found \"</link>\" where \"</title>\" was expected"),
            (&rss("<title>é & x</title>"),           "line 3, column 10: \"&\" is not escaped; write &amp; instead"),
            (&rss("<title>a&nbsp;b</title>"),        "line 3, column 9: \"&nbsp;\" is not an XML entity; write \"&\" as &amp;"),
            (&rss("<a b='x&y'/>"),                   "line 3, column 1: the attribute \"b\" contains \"&\"; write &amp; instead"),
            (&rss("<a b='<'/>"),                     "line 3, column 1: the attribute \"b\" contains \"<\"; write &lt; instead"),
            (&rss("<a b='1' b='2'/>"),               "line 3, column 10: an attribute appears twice in the tag"),
            (&rss("<a b=1/>"),                       "line 3, column 6: an attribute value is not quoted"),
            (&rss("<media:x/>"),                     "line 3, column 1: the prefix \"media\" is not declared"),
            (&rss("<title>x\u{1}</title>"),          "line 3, column 9: the character U+0001 is not allowed in XML"),
            (&rss("<title>]]></title>"),             "line 3, column 8: the text contains \"]]>\"; write ]]&gt; instead"),
            (&rss("<1a/>"),                          "line 3, column 1: \"1a\" is not a valid element name"),
            ("\n<?xml version='1.0'?><rss/>",        "line 2, column 1: the XML declaration must be at the start of the document"),
            ("<!DOCTYPE rss [<!ENTITY a 'b'>]><rss/>", "line 1, column 1: a document type with internal declarations is not allowed"),
        ];
        for (text, want) in cases {
            assert_eq!(fault(text), want, "{text}");
        }
        assert!(fault(&rss(&"<a>".repeat(DEEPEST))).ends_with("nested more than 256 levels deep"));
    }

    #[test]
    fn sound_feeds_are_taken() {
        #[rustfmt::skip]
        let cases: [(&[u8], DocumentKind, bool); 6] = [
            (b"<?xml version='1.0'?><!-- x --><rss xmlns:a='urn:a'><channel a:b=''><a:c/></channel></rss>\n", DocumentKind::Rss, true),
            (b"<!DOCTYPE rss PUBLIC '-//N//D' 'http://a.test/'><rss><channel>&eacute;</channel></rss>", DocumentKind::Rss, true),
            (b"<r:RDF xmlns:r='urn:r'><channel/></r:RDF>",                                    DocumentKind::Rss,  true),
            (b"<feed xmlns='urn:x' xml:lang='de'>&#38;&#x20AC;<![CDATA[<b>&]]></feed>",        DocumentKind::Atom, true),
            (b"\xef\xbb\xbf<opml/>",                                                          DocumentKind::Opml, true),
            (b"<?xml version='1.0' encoding='iso-8859-1'?><feed>\xe9</feed>",                 DocumentKind::Atom, false),
        ];
        for (bytes, kind, is_utf8) in cases {
            let checked = check(bytes).map_err(|fault| fault.to_string());
            let name = String::from_utf8_lossy(bytes);
            assert_eq!(
                checked.map(|checked| (checked.kind, checked.is_utf8)),
                Ok((kind, is_utf8)),
                "{name}"
            );
        }
    }

    #[test]
    fn bytes_that_are_not_what_they_say_are_refused() {
        let wrong = check(b"<rss>\n\xe9</rss>").unwrap_err();
        assert_eq!((wrong.line, wrong.column), (2, 1), "{wrong}");
        let wrong = check(b"<?xml version='1.0' encoding='martian'?><rss/>").unwrap_err();
        assert!(wrong.what.contains("martian"), "{wrong}");
    }
}
