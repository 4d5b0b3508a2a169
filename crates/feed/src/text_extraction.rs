//! Extraction of the visible text from markup.
//!
//! Extraction serves titles, comparison and language detection; it neither lays out nor sanitizes.
//! It never fails: anything that is not a tag is text.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter};

use super::model::{Text, TextKind};

impl Text {
    /// Returns the text without markup, with white space collapsed.
    pub fn to_plain(&self) -> String {
        match self.kind {
            TextKind::Text => collapse(&self.value),
            TextKind::Html | TextKind::Xhtml => plain(&self.value),
        }
    }
}

/// Extracts the text of HTML or XHTML, with white space collapsed.
pub fn plain(html: &str) -> String {
    let mut out = String::with_capacity(html.len());
    // There is no tag after the last `>`.
    let (mut rest, after) = html.split_at(html.rfind('>').map_or(0, |at| at + 1));
    while let Some(at) = rest.find('<') {
        push_decoded(&mut out, &rest[..at]);
        rest = &rest[at..];
        match tag_end(rest) {
            Some(end) => {
                let name = tag_name(rest);
                let opens = !rest.starts_with("</");
                if !is_inline(&name) {
                    out.push(' ');
                }
                rest = &rest[end..];
                if opens && matches!(name.as_str(), "script" | "style") {
                    rest = skip_raw(rest, &name);
                }
            }
            None => {
                out.push('<');
                rest = &rest[1..];
            }
        }
    }
    push_decoded(&mut out, rest);
    push_decoded(&mut out, after);
    collapse(&out)
}

/// Returns `text` without the characters that no XML document may contain (XML 1.0 `#charsets`).
pub fn printable(text: &str) -> Cow<'_, str> {
    if !may_be_unprintable(text) || text.chars().all(is_printable) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().filter(|c| is_printable(*c)).collect())
}

/// A byte order mark, which a decoded document must not contain although XML allows it.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The number of bytes examined together, see [`may_be_unprintable`].
const RUN_BYTES: usize = 256;

/// Returns whether `text` may contain characters that XML forbids, and so needs a full check.
///
/// Forbidden characters are below the space or begin with the byte 0xEF. Every text is checked
/// several times, so the check must be fast: all bytes of a run are examined before the result is
/// used, which compilers vectorize.
pub fn may_be_unprintable(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (runs, rest) = bytes.as_chunks::<RUN_BYTES>();
    // Nearly all bytes below the space are line feeds.
    let is_odd = |run: &[u8; RUN_BYTES]| {
        let odd = |byte: u8| ((byte < b' ') & (byte != b'\n')) | (byte == NONCHARACTER);
        run.iter().fold(false, |found, byte| found | odd(*byte))
    };
    runs.iter().enumerate().any(|(number, run)| {
        is_odd(run)
            && (has_control(run) || has_noncharacter(&bytes[number * RUN_BYTES..], RUN_BYTES))
    }) || has_control(rest)
        || has_noncharacter(rest, rest.len())
}

/// The byte that byte order marks, U+FFFE and U+FFFF begin with in UTF-8, as other characters do.
const NONCHARACTER: u8 = 0xef;

/// Returns whether there is a control character that XML forbids.
fn has_control(bytes: &[u8]) -> bool {
    let control = |byte: u8| (byte < b' ') & (byte != b'\t') & (byte != b'\n') & (byte != b'\r');
    bytes.iter().fold(false, |found, byte| found | control(*byte))
}

/// Returns whether a byte order mark, U+FFFE or U+FFFF begins within so many bytes.
fn has_noncharacter(bytes: &[u8], within: usize) -> bool {
    memchr_iter(NONCHARACTER, &bytes[..within])
        .any(|at| begins_noncharacter(&bytes[at..]) || bytes[at..].starts_with(BYTE_ORDER_MARK))
}

/// Returns whether U+FFFE or U+FFFF begins here.
pub(crate) fn begins_noncharacter(bytes: &[u8]) -> bool {
    matches!(bytes, [0xef, 0xbf, 0xbe | 0xbf, ..])
}

/// Returns whether an XML document may contain `c`.
pub fn is_printable(c: char) -> bool {
    !matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}')
}

/// Decodes the character references in `text`.
pub fn decode(text: &str) -> Cow<'_, str> {
    if memchr(b'&', text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    push_decoded(&mut out, text);
    Cow::Owned(out)
}

/// Trims `text` and collapses each run of white space and control characters into a space.
pub fn collapse(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let words = text.split(|c: char| c.is_whitespace() || c.is_control() || !is_printable(c));
    for word in words.filter(|word| !word.is_empty()) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

/// The maximum distance, in bytes, within which a `>` in quotes is distinguished from one that ends
/// a tag. Beyond it the next `>` ends the tag, because a text full of quotes must not be read over
/// and over.
const LONGEST_QUOTED: usize = 2_048;

/// Returns the end of the tag, comment or declaration at the start of `text`; `None` if there is
/// none.
fn tag_end(text: &str) -> Option<usize> {
    if text.starts_with("<!--") {
        return Some(text.find("-->").map_or(text.len(), |at| at + 3));
    }
    let begins = |c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?');
    text[1..].starts_with(begins).then_some(())?;
    let mut quote = None;
    for (at, byte) in text.bytes().take(LONGEST_QUOTED).enumerate() {
        match (quote, byte) {
            (None, b'>') => return Some(at + 1),
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
    }
    // The closing quote is missing, so the first `>` ends the tag.
    text.find('>').map(|at| at + 1)
}

fn tag_name(tag: &str) -> String {
    let name = tag.trim_start_matches(['<', '/']);
    let end = name.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(name.len());
    name[..end].to_ascii_lowercase()
}

/// Returns whether the element is inline, so that it does not separate words.
fn is_inline(name: &str) -> bool {
    matches!(
        name,
        "a" | "abbr"
            | "b"
            | "bdi"
            | "bdo"
            | "big"
            | "cite"
            | "code"
            | "del"
            | "dfn"
            | "em"
            | "font"
            | "i"
            | "ins"
            | "kbd"
            | "mark"
            | "q"
            | "s"
            | "small"
            | "span"
            | "strike"
            | "strong"
            | "sub"
            | "sup"
            | "tt"
            | "u"
            | "var"
            | "wbr"
    )
}

/// Returns the text after the end of a `script` or `style` element.
fn skip_raw<'a>(text: &'a str, name: &str) -> &'a str {
    let mut from = 0;
    while let Some(at) = text[from..].find("</") {
        let end = &text[from + at..];
        if tag_name(end) == name {
            return tag_end(end).map_or("", |end_of| &end[end_of..]);
        }
        from += at + 2;
    }
    ""
}

fn push_decoded(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        match reference(rest) {
            Some((text, length)) => {
                out.push_str(&text);
                rest = &rest[length..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
}

/// Returns the reference at the start of `text`, and its length.
fn reference(text: &str) -> Option<(Cow<'static, str>, usize)> {
    // The longest name in HTML has 31 letters.
    let end = text.bytes().take(40).position(|byte| byte == b';')?;
    let name = &text[1..end];
    let decoded = match name.strip_prefix('#') {
        Some(number) => {
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            Cow::Owned(char::from_u32(code)?.to_string())
        }
        None => Cow::Borrowed(quick_xml::escape::resolve_html5_entity(name)?),
    };
    Some((decoded, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_becomes_what_a_reader_sees() {
        let cases = [
            ("", ""),
            ("a <b>bold</b> word", "a bold word"),
            ("<p>one</p><p>two</p>", "one two"),
            ("f<i>oo</i>", "foo"),
            ("AT&amp;T &eacute; &#233; &#xE9; &nope; & b", "AT&T é é é &nope; & b"),
            ("1 < 2", "1 < 2"),
            ("<a title=\"x > y\">z</a>", "z"),
            ("<script>if (a</b) {}</script>after<style>p{}</style>", "after"),
            ("<!-- note -->x", "x"),
            ("a <", "a <"),
            ("x<br/>y &nbsp; z", "x y z"),
            ("<a ' <a ' x", "<a ' <a ' x"),
            ("<b>a</b> < c & d", "a < c & d"),
        ];
        for (html, want) in cases {
            assert_eq!(plain(html), want, "{html}");
        }
    }

    #[test]
    fn a_megabyte_of_quotes_and_brackets_takes_no_time_to_speak_of() {
        for hostile in ["<a ' ", "<a \">", "<!--", "&amp", "<script", "<"] {
            let html = hostile.repeat(1_000_000 / hostile.len());
            let begun = std::time::Instant::now();
            plain(&html);
            let took = begun.elapsed();
            assert!(took.as_secs() < 10, "{hostile:?} took {took:?}");
        }
    }
}
