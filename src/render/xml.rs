//! Writing XML: escaping, and nothing that XML 1.0 does not allow.
//!
//! What holds here: whatever text is handed in, what comes out is well-formed, and
//! the same text always gives the same bytes. Characters that no XML document may
//! hold are left out (rule S23); there is no CDATA.

use crate::domain::plain::printable;

/// Appends `text` as character data.
pub(super) fn push_text(out: &mut String, text: &str) {
    push_escaped(out, text, |byte| match byte {
        b'&' => Some("&amp;"),
        b'<' => Some("&lt;"),
        b'>' => Some("&gt;"),
        // A bare one would be read back as a line feed (XML 1.0 `#sec-line-ends`).
        b'\r' => Some("&#13;"),
        _ => None,
    });
}

/// Appends `text` as the inside of a double-quoted attribute value.
pub(super) fn push_value(out: &mut String, text: &str) {
    push_escaped(out, text, |byte| match byte {
        b'&' => Some("&amp;"),
        b'<' => Some("&lt;"),
        b'>' => Some("&gt;"),
        b'"' => Some("&quot;"),
        // Bare ones would be read back as spaces (XML 1.0 `#AVNormalize`).
        b'\t' => Some("&#9;"),
        b'\n' => Some("&#10;"),
        b'\r' => Some("&#13;"),
        _ => None,
    });
}

/// Appends ` name="value"`.
pub(super) fn push_attribute(out: &mut String, name: &str, value: &str) {
    out.push(' ');
    out.push_str(name);
    out.push_str("=\"");
    push_value(out, value);
    out.push('"');
}

/// Appends `<name>text</name>` and a line end.
pub(super) fn push_element(out: &mut String, name: &str, text: &str) {
    push_tag(out, name);
    push_text(out, text);
    push_end(out, name);
}

/// Appends `<name>`.
pub(super) fn push_tag(out: &mut String, name: &str) {
    out.push('<');
    out.push_str(name);
    out.push('>');
}

/// Appends `</name>` and a line end.
pub(super) fn push_end(out: &mut String, name: &str) {
    out.push_str("</");
    out.push_str(name);
    out.push_str(">\n");
}

/// Copies runs of plain bytes whole: most text needs no escaping at all.
fn push_escaped(out: &mut String, text: &str, escape: impl Fn(u8) -> Option<&'static str>) {
    let text = printable(text);
    let mut copied = 0;
    for (at, byte) in text.bytes().enumerate() {
        // Every escaped byte is below 0x40, so nothing is cut inside a character.
        if byte >= 0x40 {
            continue;
        }
        if let Some(escaped) = escape(byte) {
            out.push_str(&text[copied..at]);
            out.push_str(escaped);
            copied = at + 1;
        }
    }
    out.push_str(&text[copied..]);
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
