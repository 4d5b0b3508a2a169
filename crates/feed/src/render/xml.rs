//! Writing of XML: escaping, and removal of characters that XML 1.0 forbids.
//!
//! For any input, the output is well-formed, and the same text always gives the same bytes.
//! Characters that no XML document may contain are left out (rule S23). CDATA is not used.

use memchr::{memchr, memchr3_iter};

use crate::text_extraction::{begins_noncharacter, may_be_unprintable};

/// Where a text is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// As character data.
    Content,
    /// In the value of an attribute.
    Value,
}

/// Appends `text` as character data.
pub fn push_text(out: &mut String, text: &str) {
    push_escaped(out, text, Place::Content);
}

/// Appends `text` as the content of a double-quoted attribute value.
pub fn push_value(out: &mut String, text: &str) {
    push_escaped(out, text, Place::Value);
}

/// Appends ` name="value"`.
pub fn push_attribute(out: &mut String, name: &str, value: &str) {
    out.push(' ');
    out.push_str(name);
    out.push_str("=\"");
    push_value(out, value);
    out.push('"');
}

/// Appends `<name>text</name>` and a line end.
pub fn push_element(out: &mut String, name: &str, text: &str) {
    push_tag(out, name);
    push_text(out, text);
    push_end(out, name);
}

/// Appends `<name>`.
pub fn push_tag(out: &mut String, name: &str) {
    out.push('<');
    out.push_str(name);
    out.push('>');
}

/// Appends `</name>` and a line end.
pub fn push_end(out: &mut String, name: &str) {
    out.push_str("</");
    out.push_str(name);
    out.push_str(">\n");
}

/// Appends `text`, escaped.
fn push_escaped(out: &mut String, text: &str, place: Place) {
    let bytes = text.as_bytes();
    let is_short = place == Place::Value || bytes.len() <= SHORT_BYTES;
    if is_short && is_plain(bytes) {
        out.push_str(text);
    } else if is_short || may_have_rare(text) {
        let special = bytes.iter().enumerate().filter(|(_, byte)| is_special(**byte, place));
        push_runs(out, text, special.map(|(at, _)| at));
    } else {
        // The fast path: nearly all long texts take it.
        push_runs(out, text, memchr3_iter(b'&', b'<', b'>', bytes));
    }
}

/// Returns whether nothing in a text is changed, wherever it is written.
fn is_plain(bytes: &[u8]) -> bool {
    let odd = |byte: u8| {
        (byte < b' ')
            | (byte == b'"')
            | (byte == b'&')
            | (byte == b'<')
            | (byte == b'>')
            | (byte == NONCHARACTER)
    };
    !bytes.iter().fold(false, |found, byte| found | odd(*byte))
}

/// Returns whether a text may have anything but brackets and ampersands that does not stay as it is.
fn may_have_rare(text: &str) -> bool {
    memchr(b'\r', text.as_bytes()).is_some() || may_be_unprintable(text)
}

/// The length up to which all bytes of a text are compared at once.
const SHORT_BYTES: usize = 64;

/// Appends `text` with the characters at `places` escaped or left out. The runs between them are copied
/// whole, because most text needs no escaping.
fn push_runs(out: &mut String, text: &str, places: impl Iterator<Item = usize>) {
    let bytes = text.as_bytes();
    let mut copied = 0;
    for at in places {
        let byte = bytes[at];
        let length = if byte == NONCHARACTER { NONCHARACTER_BYTES } else { 1 };
        if byte == NONCHARACTER && !begins_noncharacter(&bytes[at..]) {
            continue;
        }
        out.push_str(&text[copied..at]);
        push_special(out, byte);
        copied = at + length;
    }
    out.push_str(&text[copied..]);
}

/// The byte that U+FFFE and U+FFFF begin with in UTF-8, as other characters do.
const NONCHARACTER: u8 = 0xef;

/// The length of these in UTF-8.
const NONCHARACTER_BYTES: usize = 3;

/// Returns whether a byte is escaped, or begins a character that may be left out.
fn is_special(byte: u8, place: Place) -> bool {
    let in_value = byte == b'"' || byte < b' ';
    let in_content = byte < b' ' && !matches!(byte, b'\t' | b'\n');
    matches!(byte, b'&' | b'<' | b'>' | NONCHARACTER)
        || if place == Place::Value { in_value } else { in_content }
}

/// Appends what is written for a special byte. Characters that XML forbids are left out.
#[inline]
fn push_special(out: &mut String, byte: u8) {
    match byte {
        b'&' => out.push_str("&amp;"),
        b'<' => out.push_str("&lt;"),
        b'>' => out.push_str("&gt;"),
        b'"' => out.push_str("&quot;"),
        // An unescaped tab or line feed in a value would be read back as a space (XML 1.0
        // `#AVNormalize`).
        b'\t' => out.push_str("&#9;"),
        b'\n' => out.push_str("&#10;"),
        // An unescaped carriage return would be read back as a line feed (XML 1.0
        // `#sec-line-ends`).
        b'\r' => out.push_str("&#13;"),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_meaning_in_xml_is_escaped_and_what_is_forbidden_left_out() {
        let cases = [
            ("a < b && c > d", "a &lt; b &amp;&amp; c &gt; d"),
            ("bell\u{7}, \u{fffe}end\u{0}", "bell, end"),
            ("]]>", "]]&gt;"),
            ("line\nline\r", "line\nline&#13;"),
            ("\u{1f600} é", "\u{1f600} é"),
        ];
        for (text, want) in cases {
            let mut out = String::new();
            push_text(&mut out, text);
            assert_eq!(out, want, "{text:?}");
        }
    }

    #[test]
    fn an_attribute_cannot_be_left() {
        let mut out = String::new();
        push_attribute(&mut out, "title", "\" onload=\"x\n");
        assert_eq!(out, " title=\"&quot; onload=&quot;x&#10;\"");
    }
}
