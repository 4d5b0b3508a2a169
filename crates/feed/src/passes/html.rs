//! Resolution of relative addresses inside HTML.
//!
//! Only relative addresses in attribute values change. Every other byte stays as the source wrote
//! it, so broken markup is not broken further.

mod addresses;
mod relative;

use memchr::memchr;

use addresses::{SRCSET, address_attributes, candidates, is_relative};

use super::tag::{StartTag, name_length};
use crate::{iri, text_extraction};

/// Returns `html` with its relative addresses made absolute; `None` if there are none.
pub(super) fn make_absolute(html: &str, base: &str) -> Option<String> {
    if relative::may_be_in(html) { rewritten(html, base) } else { None }
}

fn rewritten(html: &str, base: &str) -> Option<String> {
    let changes = changes(html, base);
    if changes.is_empty() {
        return None;
    }
    // Texts are kept, so that they must not have more room than they need.
    let added: usize = changes.iter().map(|change| change.value.len()).sum();
    let removed: usize = changes.iter().map(|change| change.end - change.begin).sum();
    let mut out = String::with_capacity(html.len() + added - removed);
    let mut copied = 0;
    for change in &changes {
        out.push_str(&html[copied..change.begin]);
        out.push_str(&change.value);
        copied = change.end;
    }
    out.push_str(&html[copied..]);
    Some(out)
}

/// A new value for a part of a text.
struct Change {
    begin: usize,
    end: usize,
    value: String,
}

/// Returns the new values of the attributes with relative addresses, in their order.
fn changes(html: &str, base: &str) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut at = 0;
    while let Some(found) = memchr(b'<', &html.as_bytes()[at..]) {
        at += found + 1;
        if !html.as_bytes().get(at).is_some_and(u8::is_ascii_alphabetic) {
            continue;
        }
        let mut tag = StartTag { html, at: at + name_length(&html[at..]) };
        while let Some(attribute) = tag.next_attribute() {
            let (begin, end) = attribute.value;
            if let Some(absolute) = resolved(attribute.name, &html[begin..end], base) {
                let value = quoted(&absolute, attribute.is_quoted);
                changes.push(Change { begin, end, value });
            }
        }
        at = tag.at;
    }
    changes
}

/// Returns the new value of an attribute; `None` leaves it unchanged.
fn resolved(name: &str, value: &str, base: &str) -> Option<String> {
    let names = address_attributes(name.as_bytes().last());
    if names.iter().any(|held| held.eq_ignore_ascii_case(name)) {
        let written = value.trim();
        // A scheme has no references, so most addresses need not be decoded.
        if iri::is_absolute(written) {
            return None;
        }
        let decoded = text_extraction::decode(written);
        // `#x` alone refers to a position in the same text, wherever it is displayed.
        let stays = decoded.is_empty() || decoded.starts_with('#') || iri::is_absolute(&decoded);
        return (!stays).then(|| iri::join(base, &decoded).into_owned());
    }
    if name.eq_ignore_ascii_case(SRCSET) {
        let decoded = text_extraction::decode(value);
        if !candidates(&decoded).any(|candidate| is_relative(&candidate)) {
            return None;
        }
        let absolute = candidates(&decoded).map(|candidate| match candidate {
            (address, rest) if is_relative(&candidate) => {
                format!("{}{rest}", iri::join(base, address))
            }
            (address, rest) => format!("{address}{rest}"),
        });
        return Some(absolute.collect::<Vec<_>>().join(", "));
    }
    None
}

/// Returns a value as it is written in a tag.
fn quoted(value: &str, is_quoted: bool) -> String {
    let mark = if is_quoted { "" } else { "\"" };
    let mut out = String::with_capacity(value.len() + 2);
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
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Pieces of markup, sound and broken.
    #[rustfmt::skip]
    const PIECES: [&str; 36] = [
        "<a", "<img", "</a>", ">", "/>", " ", "\n", "href", "HREF", "src", "srcset", "data-src", "usemap",
        "cite", "=", " = ", "\"", "'", "x", "/x", "#x", "http://a.test/", "mailto:", "//b.test", "?a=b", "a.png 1x",
        ", ", "http://a.test/b 2x", "&#x68;ttp:", "&amp;", "é", "\u{a0}", "<", "<!--", "alt", "1",
    ];

    proptest! {
        #[test]
        fn every_relative_address_is_noticed_by_the_quick_look(
            at in prop::collection::vec(0..PIECES.len(), 0..24),
        ) {
            let html: String = at.into_iter().map(|at| PIECES[at]).collect();
            let absolute = rewritten(&html, "http://a.test/d/f");
            prop_assert!(absolute.is_none() || relative::may_be_in(&html), "{}", html);
        }
    }

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
