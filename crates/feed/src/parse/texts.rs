//! Text constructs: their type is the declared one, or is detected if none is declared.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use memchr::{memchr, memchr_iter};
use url::Url;

use super::bases::Bases;
use super::tree::{XmlChild, XmlElement, resolve_into};
use super::vocabulary::{ATOM03, XHTML};
use crate::model::{Text, TextKind};

impl Bases<'_> {
    /// Returns the address at `element`, absolute if an `xml:base` applies.
    pub(super) fn href(&self, element: XmlElement<'_>, address: &str) -> String {
        self.resolved(element, address).unwrap_or_else(|| address.trim().to_owned())
    }

    /// Returns the resolved address; `None` if it stays as it is.
    fn resolved(&self, element: XmlElement<'_>, address: &str) -> Option<String> {
        let address = address.trim();
        let base = self.base(element)?;
        if Url::parse(address).is_ok() {
            return None;
        }
        base.join(address).ok().map(String::from)
    }

    /// Returns the address in a text; `None` if it stays as it is. `#x` alone refers to a position in
    /// the same text, wherever it is displayed.
    fn resolved_in_text(&self, element: XmlElement<'_>, address: &str) -> Option<String> {
        let is_position = address.trim_start().starts_with('#');
        if is_position { None } else { self.resolved(element, address) }
    }

    /// Returns the content of `element` as XHTML.
    pub(super) fn xhtml(&self, element: XmlElement<'_>) -> String {
        element.xhtml(&|at, address| self.resolved_in_text(at, address))
    }

    /// Returns the content of `element` as XML that is self-contained.
    pub(super) fn xml(&self, element: XmlElement<'_>) -> String {
        element.xml(&|at, address| self.resolved_in_text(at, address))
    }

    fn text_of(&self, kind: TextKind, value: String, element: XmlElement<'_>) -> Text {
        let around = element.parent().and_then(XmlElement::lang);
        let own = element.lang().filter(|lang| Some(*lang) != around);
        Text {
            kind,
            value,
            lang: own.map(str::to_owned),
            base: self.base(element).map(String::from),
        }
    }

    /// Reads a text of RSS that is nominally plain, but HTML if it looks like HTML.
    pub(super) fn plain(&self, element: XmlElement<'_>) -> Text {
        if element.has_elements() {
            return self.inline(element);
        }
        let value = element.text().into_owned();
        let kind = if looks_like_html(&value) { TextKind::Html } else { TextKind::Text };
        self.text_of(kind, value, element)
    }

    /// Reads a text of RSS that is nominally HTML, but plain if it cannot be HTML.
    pub(super) fn html(&self, element: XmlElement<'_>) -> Text {
        if element.has_elements() {
            return self.inline(element);
        }
        let value = element.text().into_owned();
        let kind = if is_no_html(&value) { TextKind::Text } else { TextKind::Html };
        self.text_of(kind, value, element)
    }

    /// Reads a text with real elements where escaped markup is expected.
    fn inline(&self, element: XmlElement<'_>) -> Text {
        let escaped = element.children().any(|child| {
            matches!(child, XmlChild::Text(text) if text.contains("</") || text.contains("/>"))
        });
        let value = if escaped { self.unescaped(element) } else { self.xhtml(element) };
        self.text_of(TextKind::Html, value, element)
    }

    /// Returns markup that is partly elements and partly escaped, as one text.
    fn unescaped(&self, element: XmlElement<'_>) -> String {
        let mut text = String::new();
        let written = self.xhtml(element);
        let mut rest = written.as_str();
        while let Some(at) = rest.find('&') {
            text.push_str(&rest[..at]);
            rest = &rest[at..];
            let meant = [("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")];
            match meant.iter().find(|(escaped, _)| rest.starts_with(escaped)) {
                Some((escaped, plain)) => {
                    text.push_str(plain);
                    rest = &rest[escaped.len()..];
                }
                None => {
                    text.push('&');
                    rest = &rest[1..];
                }
            }
        }
        text.push_str(rest);
        text
    }

    /// Reads an Atom text construct, by `type`, and by `mode` before Atom 1.0.
    pub(super) fn atom(&self, element: XmlElement<'_>) -> Text {
        let label = element.attr("type").unwrap_or_default();
        let kind = kind_of(label);
        if let Some(value) = unpacked(element, label) {
            let told = if looks_like_html(&value) { TextKind::Html } else { TextKind::Text };
            return self.text_of(kind.unwrap_or(told), value, element);
        }
        match (kind, element.has_elements()) {
            (Some(TextKind::Html), true) => self.inline(wrapper(element).unwrap_or(element)),
            (_, true) => self.markup(element),
            // `type="xhtml"` without elements: the markup was escaped by mistake.
            (Some(TextKind::Xhtml), false) => self.html(element),
            (kind, false) => {
                self.text_of(kind.unwrap_or_default(), element.text().into_owned(), element)
            }
        }
    }

    /// Reads a text construct with child elements as XHTML, whatever its type is.
    fn markup(&self, element: XmlElement<'_>) -> Text {
        let inside = wrapper(element).unwrap_or(element);
        let mut text = self.text_of(TextKind::Xhtml, self.xhtml(inside), element);
        if inside != element {
            text.base = self.base(inside).map(String::from);
            let around = element.parent().and_then(XmlElement::lang);
            text.lang = inside.lang().filter(|lang| Some(*lang) != around).map(str::to_owned);
        }
        text
    }
}

/// Returns the decoded text of a construct in base64, declared by `mode` in Atom 0.3 or by a type
/// that is neither text nor XML.
fn unpacked(element: XmlElement<'_>, label: &str) -> Option<String> {
    let packed = match element.attr("mode") {
        Some(mode) => mode.eq_ignore_ascii_case("base64"),
        None => {
            let readable = label.starts_with("text/") || label.ends_with("xml");
            label.contains('/') && !readable && !element.has_elements()
        }
    };
    packed.then(|| decoded(&element.text()))?
}

/// Returns the `div` that must enclose XHTML in Atom 1.0 and is not part of the content (RFC 4287
/// `#rfc.section.3.1.1.3`). Before Atom 1.0 it was part of the content.
fn wrapper(element: XmlElement<'_>) -> Option<XmlElement<'_>> {
    if element.is_in(&ATOM03) {
        return None;
    }
    let mut elements = element.elements();
    let only = elements.next().filter(|inside| inside.named("div"))?;
    let text = |child| matches!(child, XmlChild::Text(text) if !text.trim().is_empty());
    let alone = elements.next().is_none() && !element.children().any(text);
    let plain = only.attributes().iter().all(|attribute| attribute.prefix == "xml");
    (alone && (plain || only.is_in(&XHTML))).then_some(only)
}

/// Returns the type of text construct that a `type` declares; `None` if it declares something else.
pub(super) fn kind_of(label: &str) -> Option<TextKind> {
    let label = label.split(';').next().unwrap_or_default().trim();
    let is = |names: &[&str]| names.iter().any(|name| label.eq_ignore_ascii_case(name));
    if is(&["", "text", "text/plain", "plain"]) {
        Some(TextKind::Text)
    } else if is(&["html", "text/html"]) {
        Some(TextKind::Html)
    } else if is(&["xhtml", "application/xhtml+xml", "text/xhtml"]) {
        Some(TextKind::Xhtml)
    } else {
        None
    }
}

/// Decodes base64 into text.
pub(super) fn decoded(text: &str) -> Option<String> {
    let packed: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    String::from_utf8(STANDARD.decode(packed).ok()?).ok()
}

/// The HTML elements that occur in texts of feeds.
#[rustfmt::skip]
const HTML_NAMES: [&str; 77] = [
    "a", "abbr", "acronym", "address", "article", "aside", "audio", "b", "bdi", "bdo", "big",
    "blockquote", "br", "button", "caption", "center", "cite", "code", "col", "colgroup", "dd",
    "del", "details", "dfn", "dir", "div", "dl", "dt", "em", "embed", "figcaption", "figure",
    "font", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "i", "iframe",
    "img", "input", "ins", "kbd", "label", "li", "mark", "nav", "ol", "p", "pre", "q", "s", "samp",
    "section", "small", "span", "strike", "strong", "sub", "sup", "table", "tbody", "td", "tfoot",
    "th", "thead", "tr", "tt", "u", "ul", "var",
];

/// Returns whether a text appears to be HTML: it has an end tag or an entity, and no tag or entity
/// unknown to HTML.
pub(super) fn looks_like_html(text: &str) -> bool {
    let tags = Tags::count(text);
    let (entities, unknown) = entities(text);
    (tags.ends > 0 || tags.closed > 0 || entities > 0) && tags.foreign == 0 && unknown == 0
}

/// Returns whether reading a text as HTML would only lose content: it has a `<`, but nothing that
/// could be a tag.
fn is_no_html(text: &str) -> bool {
    let tag = |inside: &str| {
        inside.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?'))
    };
    let Some(first) = memchr(b'<', text.as_bytes()) else { return false };
    // There is no tag after the last `>`.
    let end = text.rfind('>').unwrap_or(first);
    !memchr_iter(b'<', &text.as_bytes()[..end]).any(|at| tag(&text[at + 1..]))
}

/// The number of HTML tags and of other tags in a text.
#[derive(Debug, Default)]
struct Tags {
    known: usize,
    foreign: usize,
    ends: usize,
    closed: usize,
}

impl Tags {
    fn count(text: &str) -> Tags {
        let mut tags = Tags::default();
        let mut close = 0; // the next `>`, searched once for all tags before it
        for at in memchr_iter(b'<', text.as_bytes()) {
            let inside = &text[at + 1..];
            let end = inside.starts_with('/');
            let name = if end { &inside[1..] } else { inside };
            let length = name.bytes().take_while(u8::is_ascii_alphanumeric).count();
            if length == 0 || name.as_bytes()[0].is_ascii_digit() {
                continue;
            }
            let known = HTML_NAMES.iter().any(|held| held.eq_ignore_ascii_case(&name[..length]));
            if close <= at {
                let next = memchr(b'>', &text.as_bytes()[at..]);
                close = next.map_or(usize::MAX, |next| at + next);
            }
            match (known, end, text.get(at..close)) {
                (false, _, _) => tags.foreign += 1,
                (true, true, Some(_)) => tags.ends += 1,
                (true, false, Some(tag)) if tag.ends_with('/') => tags.closed += 1,
                (true, _, Some(_)) => tags.known += 1,
                (true, _, None) => {}
            }
        }
        tags
    }
}

/// Returns the number of entities known to HTML in a text, and the number of unknown ones.
fn entities(text: &str) -> (usize, usize) {
    let mut found = (0, 0);
    for at in memchr_iter(b'&', text.as_bytes()) {
        let inside = &text[at + 1..];
        let length = inside.bytes().take(32).position(|byte| byte == b';').unwrap_or(0);
        let name = inside.get(..length).unwrap_or_default();
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'#') {
            continue;
        }
        if resolve_into(name, &mut String::new()) {
            found.0 += 1;
        } else {
            found.1 += 1;
        }
    }
    found
}

/// Media types by file extension: a page declares no media types for its media.
#[cfg(feature = "html")]
#[rustfmt::skip]
const MEDIA: [(&str, &str); 15] = [
    ("jpg", "image/jpeg"), ("jpeg", "image/jpeg"), ("png", "image/png"), ("gif", "image/gif"),
    ("webp", "image/webp"), ("avif", "image/avif"), ("svg", "image/svg+xml"),
    ("mp4", "video/mp4"), ("webm", "video/webm"), ("mov", "video/quicktime"),
    ("mp3", "audio/mpeg"), ("m4a", "audio/mp4"), ("ogg", "audio/ogg"), ("opus", "audio/ogg"),
    ("wav", "audio/wav"),
];

/// Returns the media type that the file extension of an address suggests.
#[cfg(feature = "html")]
pub(super) fn media_type_of(href: &str) -> Option<&'static str> {
    let path = href.split(['?', '#']).next().unwrap_or_default();
    let end = path.rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase());
    let known = MEDIA.iter().find(|(name, _)| end.as_deref() == Some(name));
    known.map(|(_, mime)| *mime)
}

/// Collapses runs of white space, for values that must be one line.
pub(super) fn line(text: &str) -> Cow<'_, str> {
    if !text.contains(['\n', '\t', '\r']) && !text.contains("  ") {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_is_told_by_evidence() {
        #[rustfmt::skip]
        let cases = [
            ("plain",                      false),
            ("1 < 2",                      false),
            ("<b>bold</b>",                true),
            ("a<br/>b",                    true),
            ("<title>of a page</title>",   false),
            ("the <b> element",            false),
            ("AT&amp;T",                   true),
            ("AT&T",                       false),
            ("&nosuch;",                   false),
            ("<b>x</b> <blink>",           false),
        ];
        for (text, want) in cases {
            assert_eq!(looks_like_html(text), want, "{text}");
        }
    }

    #[test]
    fn a_description_is_html_unless_it_would_lose_something() {
        for (text, want) in [
            ("plain", false),
            ("x <y", true),
            ("if a<b then", true),
            ("a <blink>b", false),
            ("x <- y", true),
        ] {
            assert_eq!(is_no_html(text), want, "{text}");
        }
    }
}
