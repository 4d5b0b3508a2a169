//! Writing of XML: escaping, and removal of characters that XML 1.0 forbids.
//!
//! For any input, the output is well-formed, and the same text always gives the same bytes.
//! Characters that no XML document may contain are left out (rule S23). CDATA is not used.

use memchr::{memchr, memchr3_iter};

use crate::text_extraction::printable;

/// The length up to which a text is examined byte by byte.
const SHORT_BYTES: usize = 64;

/// A byte that stays as it is in character data.
const IN_TEXT: u8 = 1;
/// A byte that stays as it is in the value of an attribute.
const IN_VALUE: u8 = 2;

/// Where each byte stays as it is. Any other is escaped, or begins a character that may be left out.
const PLAIN: [u8; 256] = {
    let mut plain = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        plain[byte] = match byte as u8 {
            b'&' | b'<' | b'>' | 0xef => 0,
            b'"' | b'\t' | b'\n' => IN_TEXT,
            0..b' ' => 0,
            _ => IN_TEXT | IN_VALUE,
        };
        byte += 1;
    }
    plain
};

/// Returns whether nothing in `text` needs to be changed.
fn is_plain(text: &str, within: u8) -> bool {
    text.bytes().all(|byte| PLAIN[usize::from(byte)] & within != 0)
}

/// Appends `text` as character data.
pub fn push_text(out: &mut String, text: &str) {
    if text.len() <= SHORT_BYTES && is_plain(text, IN_TEXT) {
        return out.push_str(text);
    }
    let text = printable(text);
    let bytes = text.as_bytes();
    if memchr(b'\r', bytes).is_some() {
        let special = |byte: &u8| matches!(byte, b'&' | b'<' | b'>' | b'\r');
        push_escaped(out, &text, positions(bytes, special));
    } else {
        // The fast path: nearly all texts take it.
        push_escaped(out, &text, memchr3_iter(b'&', b'<', b'>', bytes));
    }
}

/// Appends `text` as the content of a double-quoted attribute value.
pub fn push_value(out: &mut String, text: &str) {
    if is_plain(text, IN_VALUE) {
        return out.push_str(text);
    }
    let text = printable(text);
    let special = |byte: &u8| matches!(byte, b'&' | b'<' | b'>' | b'"' | b'\t' | b'\n' | b'\r');
    push_escaped(out, &text, positions(text.as_bytes(), special));
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

fn positions(bytes: &[u8], special: impl Fn(&u8) -> bool) -> impl Iterator<Item = usize> {
    bytes.iter().enumerate().filter(move |(_, byte)| special(byte)).map(|(at, _)| at)
}

/// Appends `text` with the characters at `places` escaped. The runs between them are copied whole,
/// because most text needs no escaping.
fn push_escaped(out: &mut String, text: &str, places: impl Iterator<Item = usize>) {
    let mut copied = 0;
    for at in places {
        out.push_str(&text[copied..at]);
        out.push_str(escaped(text.as_bytes()[at]));
        copied = at + 1;
    }
    out.push_str(&text[copied..]);
}

fn escaped(byte: u8) -> &'static str {
    match byte {
        b'&' => "&amp;",
        b'<' => "&lt;",
        b'>' => "&gt;",
        b'"' => "&quot;",
        // An unescaped tab or line feed in a value would be read back as a space (XML 1.0
        // `#AVNormalize`).
        b'\t' => "&#9;",
        b'\n' => "&#10;",
        // An unescaped carriage return would be read back as a line feed (XML 1.0
        // `#sec-line-ends`).
        _ => "&#13;",
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
