//! Resolution of entities and character references.
//!
//! The five entities of XML, those of HTML and those that a document declares (`declared`) are
//! resolved. Unknown references stay as written.

mod declared;

use std::borrow::Cow;

use encoding_rs::WINDOWS_1252;
use memchr::memchr;
use quick_xml::escape::resolve_html5_entity;

use super::super::decode::is_xml_char;
use super::named;
use crate::parse::faults::Faults;
use crate::parse::mend::{HIGH, HIGH_LAST};
use crate::repair::RepairCode;

pub(super) use declared::DeclaredEntities;

/// The maximum length of an entity name, in bytes.
const NAME_BYTES: usize = 32;

/// Resolves the references in a raw attribute value.
pub(super) fn attribute<'t>(
    raw: &'t str,
    declared: &DeclaredEntities<'_>,
    faults: &mut Faults,
) -> Cow<'t, str> {
    // All bytes are compared before the result is used, which compilers vectorize.
    let may_change = |byte: u8| (byte == b'&') | (byte < b' ');
    if !raw.bytes().fold(false, |found, byte| found | may_change(byte)) {
        return Cow::Borrowed(raw);
    }
    // White space in a value is normalized to spaces, unless it is written as a reference (XML 1.0
    // `#AVNormalize`).
    let raw = match raw.contains(['\n', '\t', '\r']) {
        true => Cow::Owned(raw.replace(['\n', '\t', '\r'], " ")),
        false => Cow::Borrowed(raw),
    };
    let mut text = String::with_capacity(raw.len());
    let mut rest = &*raw;
    while let Some(at) = memchr(b'&', rest.as_bytes()) {
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let end = rest.bytes().take(NAME_BYTES).position(|byte| byte == b';');
        match end {
            Some(end) if declared.resolve_into(&rest[..end], &mut text) => {
                if !declared.is_declared(&rest[..end]) {
                    faults.count(RepairCode::UndeclaredEntity);
                }
                rest = &rest[end + 1..];
            }
            _ => {
                faults.count(RepairCode::BareAmpersand);
                text.push('&');
            }
        }
    }
    text.push_str(rest);
    let half = |c: char| (HIGH..=HIGH_LAST).contains(&u32::from(c));
    if text.contains(half) {
        text = text.replace(half, "\u{fffd}");
    }
    Cow::Owned(text)
}

/// Returns whether a text is the name in a reference, or the number of a character.
fn is_reference_name(name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '#' | '-' | '_' | '.' | ':');
    (1..=NAME_BYTES).contains(&name.len()) && name.chars().all(is_part)
}

/// Appends the characters of the reference `&name;`. Returns `false` if it is unknown.
pub(in super::super) fn resolve_into(name: &str, text: &mut String) -> bool {
    let usual = match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        _ => None,
    };
    if let Some(meant) = usual {
        text.push(meant);
        return true;
    }
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16),
            None => number.parse(),
        };
        return code.is_ok_and(|code| push_code(code, text));
    }
    if let Some(meant) = named::html4(name) {
        text.push(meant);
        return true;
    }
    match resolve_html5_entity(name).or_else(|| lower(name)) {
        Some(meant) => {
            text.push_str(meant);
            true
        }
        None => false,
    }
}

/// Returns the standard spelling of an entity in capitals, such as `&NBSP;`.
fn lower(name: &str) -> Option<&'static str> {
    (name.len() <= NAME_BYTES && name.bytes().all(|byte| byte.is_ascii_uppercase()))
        .then(|| resolve_html5_entity(&name.to_ascii_lowercase()))
        .flatten()
}

fn push_code(code: u32, text: &mut String) -> bool {
    match code {
        // As in HTML, numbers from 0x80 to 0x9F are windows-1252 bytes, because control characters
        // are never intended there.
        0x80..=0x9f => {
            let byte = [code.to_le_bytes()[0]];
            text.push_str(&WINDOWS_1252.decode_without_bom_handling(&byte).0);
        }
        // The first half of a surrogate pair is stored as a private-use character until the second
        // half follows; `mend` replaces those without a second half.
        0xd800..=0xdbff => text.push(char::from_u32(code - 0xd800 + HIGH).unwrap_or('\u{fffd}')),
        0xdc00..=0xdfff => match text.chars().next_back().map(u32::from) {
            Some(high @ HIGH..=HIGH_LAST) => {
                text.pop();
                let pair = 0x1_0000 + ((high - HIGH) << 10) + (code - 0xdc00);
                text.push(char::from_u32(pair).unwrap_or('\u{fffd}'));
            }
            _ => text.push('\u{fffd}'),
        },
        _ => match char::from_u32(code) {
            Some(c) if is_xml_char(c) => text.push(c),
            Some(_) => {}
            None => return false,
        },
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_resolved_or_left_alone() {
        #[rustfmt::skip]
        let cases = [
            ("plain",              "plain"),
            ("a &amp; b",          "a & b"),
            ("caf&eacute;",        "café"),
            ("&NBSP;x",            "\u{a0}x"),
            ("&nosuch; x",         "&nosuch; x"),
            ("AT&T",               "AT&T"),
            ("?a=1&b=2",           "?a=1&b=2"),
            ("&#233;&#xE9;&#XE9;", "ééé"),
            ("&#147;x&#x94;",      "“x”"),
            ("&#0;&#1;x",          "x"),
            ("&#55357;&#56832;",   "😀"),
            ("&#99999999;",        "&#99999999;"),
            ("&#55357;x",          "\u{fffd}x"),
            ("a\n\tb",             "a  b"),
            ("a\n&#10;b",          "a \nb"),
        ];
        for (raw, want) in cases {
            let mut faults = Faults::default();
            assert_eq!(attribute(raw, &DeclaredEntities::new(), &mut faults), want);
        }
    }
}
