//! Resolution of relative addresses inside HTML.
//!
//! Only relative addresses in attribute values change. Every other byte stays as the source wrote
//! it, so broken markup is not broken further.

use memchr::memchr;

use super::tag::{StartTag, name_length};
use crate::{iri, text_extraction};

/// Attributes that hold one address, on any element.
const ADDRESSES: &[&str] = &[
    "action",
    "background",
    "cite",
    "classid",
    "codebase",
    "data",
    "formaction",
    "href",
    "longdesc",
    "poster",
    "profile",
    "src",
    "usemap",
];

/// Returns `html` with its relative addresses made absolute; `None` if there are none.
pub(super) fn make_absolute(html: &str, base: &str) -> Option<String> {
    let mut out = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = memchr(b'<', &html.as_bytes()[at..]) {
        at += found + 1;
        if !html.as_bytes().get(at).is_some_and(u8::is_ascii_alphabetic) {
            continue;
        }
        let mut tag = StartTag { html, at: at + name_length(&html[at..]) };
        while let Some(attribute) = tag.next_attribute() {
            let value = &html[attribute.value.0..attribute.value.1];
            if let Some(absolute) = resolved(attribute.name, value, base) {
                out.push_str(&html[copied..attribute.value.0]);
                push_quoted(&mut out, &absolute, attribute.is_quoted);
                copied = attribute.value.1;
            }
        }
        at = tag.at;
    }
    if copied == 0 {
        return None;
    }
    out.push_str(&html[copied..]);
    Some(out)
}

/// Returns the new value of an attribute; `None` leaves it unchanged.
fn resolved(name: &str, value: &str, base: &str) -> Option<String> {
    let known = |held: &str| held.eq_ignore_ascii_case(name);
    if ADDRESSES.iter().any(|held| known(held)) {
        let decoded = text_extraction::decode(value.trim());
        // `#x` alone refers to a position in the same text, wherever it is displayed.
        let stays = decoded.is_empty() || decoded.starts_with('#') || iri::is_absolute(&decoded);
        return (!stays).then(|| iri::join(base, &decoded).into_owned());
    }
    if name.eq_ignore_ascii_case("srcset") {
        let decoded = text_extraction::decode(value);
        let candidates = candidates(&decoded);
        let is_relative =
            |(address, _): &(&str, &str)| !address.is_empty() && !iri::is_absolute(address);
        if !candidates.iter().any(is_relative) {
            return None;
        }
        let absolute = candidates.iter().map(|candidate| match candidate {
            (address, rest) if is_relative(candidate) => {
                format!("{}{rest}", iri::join(base, address))
            }
            (address, rest) => format!("{address}{rest}"),
        });
        return Some(absolute.collect::<Vec<_>>().join(", "));
    }
    None
}

/// Returns the candidates of a `srcset`: addresses, each with its width or density and the white space
/// before it (HTML `#parsing-a-srcset-attribute`).
fn candidates(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut left = text;
    loop {
        left = left.trim_start_matches(|c: char| c == ',' || c.is_whitespace());
        if left.is_empty() {
            return found;
        }
        let (address, rest) = left.split_at(left.find(char::is_whitespace).unwrap_or(left.len()));
        let bare = address.trim_end_matches(',');
        if bare.len() < address.len() {
            found.push((bare, ""));
            left = rest;
            continue;
        }
        let (descriptor, rest) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
        found.push((address, descriptor.trim_end()));
        left = rest;
    }
}

fn push_quoted(out: &mut String, value: &str, is_quoted: bool) {
    let mark = if is_quoted { "" } else { "\"" };
    out.push_str(mark);
    for c in value.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            c => out.push(c),
        }
    }
    out.push_str(mark);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_addresses_become_absolute_and_nothing_else_changes() {
        let cases = [
            ("<a href=\"x\">t</a>", "<a href=\"http://a.test/d/x\">t</a>"),
            ("<IMG SRC='/i.png' alt=\"a b\"/>", "<IMG SRC='http://a.test/i.png' alt=\"a b\"/>"),
            ("<a href=x>t", "<a href=\"http://a.test/d/x\">t"),
            ("<a href = \"?a=1&amp;b=2\">", "<a href = \"http://a.test/d/f?a=1&amp;b=2\">"),
            (
                "<img srcset=\"a.png 1x, http://b/c 2x\">",
                "<img srcset=\"http://a.test/d/a.png 1x, http://b/c 2x\">",
            ),
            (
                "<a title=\"<a href='x'>\" href='y'>",
                "<a title=\"<a href='x'>\" href='http://a.test/d/y'>",
            ),
        ];
        for (html, want) in cases {
            assert_eq!(make_absolute(html, "http://a.test/d/f").as_deref(), Some(want), "{html}");
        }
    }

    #[test]
    fn what_is_absolute_or_no_tag_stays() {
        let cases = [
            "",
            "plain",
            "<a href=\"http://b.test/?a=1&b=2\">",
            "<a href=\"mailto:a@b.test\">",
            "1 < 2 href=x",
            "<a href=\"never closed",
            "<a href=\"\">",
            "<a href=\"#n\">",
            "<img usemap=' #m'>",
            "<",
            "<a",
            "<a =\"'x",
            "<p>é<",
        ];
        for html in cases {
            assert_eq!(make_absolute(html, "http://a.test/d/f"), None, "{html}");
        }
    }
}
