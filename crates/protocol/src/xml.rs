//! A small reader and writer of XML messages, shared by XML-RPC and SOAP.
//!
//! The reader is lenient where that is harmless, because clients are of all ages: wrong or missing
//! charset labels, HTML entities and bare ampersands are accepted. It is strict where leniency
//! would be a risk: a DTD is refused, nesting is limited to [`DEEPEST`] (rule S20), and tags must
//! match.

use encoding_rs::Encoding;
use quick_xml::Reader;
use quick_xml::escape;
use quick_xml::events::{BytesRef, BytesStart, Event};

/// The maximum nesting of elements (rule S20).
pub const DEEPEST: usize = 32;
/// The maximum number of elements in a message: a body of 64 kB has no room for more elements with
/// content.
const MOST_ELEMENTS: usize = 8_192;

/// An element of a message. Namespaces are ignored: message formats are identified by local names,
/// and real clients get namespaces wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageElement {
    /// The local name.
    pub name: String,
    /// The prefix; empty if there is none.
    pub prefix: String,
    /// The attributes by local name.
    pub attributes: Vec<(String, String)>,
    /// The concatenated texts directly inside the element, not trimmed.
    pub text: String,
    /// The child elements, in order.
    pub children: Vec<MessageElement>,
}

impl MessageElement {
    /// Returns the first child with this name.
    pub fn child(&self, name: &str) -> Option<&MessageElement> {
        self.children.iter().find(|child| child.name == name)
    }

    /// Returns all children with this name.
    pub fn children_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a MessageElement> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// Returns the value of the attribute with this local name.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(held, _)| held == name).map(|(_, value)| value.as_str())
    }
}

/// The reason why bytes are not a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadXml {
    /// The document is empty.
    #[error("the body is empty")]
    Empty,
    /// The document is not well-formed.
    #[error("the XML is not well-formed: {0}")]
    Malformed(String),
    /// The document has a document type definition, which no message needs.
    #[error("a document type definition is not allowed")]
    Dtd,
    /// The document exceeds [`DEEPEST`] or the maximum number of elements.
    #[error("the XML is nested too deeply or has too many elements")]
    TooMuch,
}

/// Parses a message and returns its root element.
pub fn read(bytes: &[u8]) -> Result<MessageElement, BadXml> {
    let text = decode(bytes);
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    if text.is_empty() {
        return Err(BadXml::Empty);
    }
    // XML has no such character, but the parser below takes it for text.
    if text.contains('\0') {
        return Err(BadXml::Malformed("the character U+0000 is not allowed".to_owned()));
    }
    Tree::default().read(text)
}

/// Escapes text for an element or an attribute in double quotes. Characters that XML does not allow
/// are dropped. Apostrophes are not escaped, because old clients compare the sentences of rssCloud
/// without decoding them.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' => out.push(c),
            '\r' => out.push_str("&#13;"),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => {}
            _ => out.push(c),
        }
    }
    out
}

/// Returns whether a text is a valid element name: a letter or underscore, followed by letters,
/// digits and `.-_`. SOAP procedures are element names.
pub fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    let first = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    first && chars.all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

/// Decodes a message. Valid UTF-8 is read as UTF-8 whatever the declaration says, because clients
/// declare `us-ascii` or `iso-8859-1` and send UTF-8. Anything else is decoded as declared.
fn decode(bytes: &[u8]) -> String {
    let sniffed = match bytes {
        [0xfe, 0xff, ..] | [0, b'<', ..] => Some(encoding_rs::UTF_16BE),
        [0xff, 0xfe, ..] | [b'<', 0, ..] => Some(encoding_rs::UTF_16LE),
        _ => None,
    };
    if let Some(encoding) = sniffed {
        return encoding.decode(bytes).0.into_owned();
    }
    if let Ok(text) = str::from_utf8(bytes) {
        return text.to_owned();
    }
    let encoding = declared(bytes).unwrap_or(encoding_rs::WINDOWS_1252);
    encoding.decode(bytes).0.into_owned()
}

fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]);
    let declaration = head.split_once("?>")?.0;
    let label = declaration.split_once("encoding")?.1.trim_start().strip_prefix('=')?;
    let label = label.trim_start();
    let quote = label.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    Encoding::for_label(label[1..].split(quote).next()?.as_bytes())
}

#[derive(Default)]
struct Tree {
    open: Vec<MessageElement>,
    root: Option<MessageElement>,
    elements: usize,
}

impl Tree {
    fn read(mut self, text: &str) -> Result<MessageElement, BadXml> {
        let mut reader = Reader::from_str(text);
        reader.config_mut().allow_dangling_amp = true;
        loop {
            match reader.read_event().map_err(|err| BadXml::Malformed(err.to_string()))? {
                Event::Start(start) => self.open(&start)?,
                Event::Empty(start) => {
                    self.open(&start)?;
                    self.close();
                }
                Event::End(_) => self.close(),
                Event::Text(text) => self.text(&text.xml10_content())?,
                Event::CData(text) => self.text(&text.xml10_content())?,
                Event::GeneralRef(reference) => self.text(&resolve(&reference))?,
                Event::DocType(_) => return Err(BadXml::Dtd),
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
                Event::Eof => break,
            }
        }
        match self.root {
            Some(root) if self.open.is_empty() => Ok(root),
            Some(_) | None => Err(BadXml::Malformed("an element is not closed".to_owned())),
        }
    }

    fn open(&mut self, start: &BytesStart<'_>) -> Result<(), BadXml> {
        self.elements += 1;
        if self.open.len() >= DEEPEST || self.elements > MOST_ELEMENTS {
            return Err(BadXml::TooMuch);
        }
        if self.root.is_some() {
            return Err(BadXml::Malformed("a second element follows the root element".to_owned()));
        }
        let written = start.name();
        let (prefix, _) = written.0.rsplit_once(':').unwrap_or_default();
        let (prefix, name) = (prefix.to_owned(), local(written.0).to_owned());
        let mut written = start.html_attributes();
        let attributes = written.with_checks(false).flatten().map(|attribute| {
            let value = escape::unescape(&attribute.value);
            let value = value.map_or_else(|_| attribute.value.to_string(), |v| v.into_owned());
            (local(attribute.key.0).to_owned(), value)
        });
        let attributes = attributes.collect();
        self.open.push(MessageElement { name, prefix, attributes, ..MessageElement::default() });
        Ok(())
    }

    fn close(&mut self) {
        let Some(element) = self.open.pop() else { return };
        match self.open.last_mut() {
            Some(parent) => parent.children.push(element),
            None => self.root = Some(element),
        }
    }

    fn text(&mut self, text: &str) -> Result<(), BadXml> {
        match self.open.last_mut() {
            Some(element) => element.text.push_str(text),
            None if text.trim().is_empty() => {}
            None => return Err(BadXml::Malformed("text outside the root element".to_owned())),
        }
        Ok(())
    }
}

fn local(name: &str) -> &str {
    name.rsplit(':').next().unwrap_or(name)
}

/// Returns the text of a reference. An unknown reference stays as written.
fn resolve(reference: &BytesRef<'_>) -> String {
    if let Ok(Some(c)) = reference.resolve_char_ref() {
        return c.to_string();
    }
    let name = reference.xml10_content();
    match escape::resolve_html5_entity(&name) {
        Some(text) => text.to_owned(),
        None => format!("&{name};"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_what_the_sender_meant() {
        #[rustfmt::skip]
        let cases: [(&str, &[u8], &str); 9] = [
            ("utf-8",                      "<a>Größe</a>".as_bytes(),                                        "Größe"),
            ("latin-1, declared",          b"<?xml version='1.0' encoding='ISO-8859-1'?><a>Gr\xf6\xdfe</a>", "Größe"),
            ("latin-1, undeclared",        b"<a>Gr\xf6\xdfe</a>",                                            "Größe"),
            ("utf-8, declared as ascii",   "<?xml version='1.0' encoding='us-ascii'?><a>ö</a>".as_bytes(),   "ö"),
            ("a byte order mark",          "\u{feff}<a>x</a>".as_bytes(),                                    "x"),
            ("numeric references",         b"<a>&#38;&#x20AC;</a>",                                          "&€"),
            ("HTML entities",              b"<a>caf&eacute; &nowhere;</a>",                                  "café &nowhere;"),
            ("a bare ampersand",           b"<a>Fish & Chips</a>",                                           "Fish & Chips"),
            ("CDATA and a comment within", b"  <a>a<![CDATA[<b>]]><!-- no -->c</a>",                         "a<b>c"),
        ];
        for (why, bytes, want) in cases {
            assert_eq!(read(bytes).unwrap().text, want, "{why}");
        }
    }

    #[test]
    fn utf_16_is_read() {
        let bytes: Vec<u8> = "<a>ö</a>".encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(read(&bytes).unwrap().text, "ö");
    }

    #[test]
    fn what_could_harm_is_refused() {
        let deep = "<a>".repeat(10_000);
        let many = format!("<a>{}</a>", "<b/>".repeat(10_000));
        let entity = "<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><a>&b;</a>";
        assert_eq!(read(deep.as_bytes()), Err(BadXml::TooMuch));
        assert_eq!(read(many.as_bytes()), Err(BadXml::TooMuch));
        assert_eq!(read(entity.as_bytes()), Err(BadXml::Dtd));
        assert_eq!(read(b" \n"), Err(BadXml::Empty));
        for text in ["<a>", "<a></b>", "<a/>x", "<a/><b/>", "x"] {
            assert!(matches!(read(text.as_bytes()), Err(BadXml::Malformed(_))), "{text}");
        }
    }

    #[test]
    fn what_is_written_can_be_read() {
        let text = "a<b>&\"c'\u{1}\u{ffff}d";
        assert_eq!(
            read(format!("<a>{}</a>", escaped(text)).as_bytes()).unwrap().text,
            "a<b>&\"c'd"
        );
    }

    #[test]
    fn names_are_told_from_markup() {
        for (text, want) in [("a.b-c_d1", true), ("1a", false), ("", false), ("a><b", false)] {
            assert_eq!(is_name(text), want, "{text}");
        }
    }
}
