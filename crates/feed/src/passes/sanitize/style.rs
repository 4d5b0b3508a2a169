//! Declarations of a `style` attribute.

use std::iter::Peekable;
use std::str::Chars;

/// Properties that change how a text looks, and neither load anything nor cover other parts of a
/// page.
#[rustfmt::skip]
const PROPERTIES: &[&str] = &[
    "azimuth", "border-collapse", "clear", "color", "cursor", "direction", "display", "elevation",
    "float", "font", "font-family", "font-size", "font-style", "font-variant", "font-weight",
    "height", "letter-spacing", "line-height", "overflow", "pause", "pause-after", "pause-before",
    "pitch", "pitch-range", "richness", "speak", "speak-header", "speak-numeral",
    "speak-punctuation", "speech-rate", "stress", "text-align", "text-decoration", "text-indent",
    "unicode-bidi", "vertical-align", "voice-family", "volume", "white-space", "width",
    "background-color", "border-color", "border-bottom-color", "border-left-color",
    "border-right-color", "border-top-color",
];

/// Families of properties whose values are colors, lengths and some [`KEYWORDS`].
const FAMILIES: &[&str] = &["background", "border", "margin", "padding"];

#[rustfmt::skip]
const KEYWORDS: &[&str] = &[
    "!important", "aqua", "auto", "black", "block", "blue", "bold", "both", "bottom", "brown",
    "center", "collapse", "dashed", "dotted", "fuchsia", "gray", "green", "italic", "left", "lime",
    "maroon", "medium", "navy", "none", "normal", "nowrap", "olive", "pointer", "purple", "red",
    "right", "silver", "solid", "teal", "top", "transparent", "underline", "white", "yellow",
];

const UNITS: &[&str] = &["", "%", "cm", "em", "ex", "in", "mm", "pc", "pt", "px", "rem"];

/// Returns the allowed declarations; empty if there are none, or if the text has characters that no
/// allowed value needs.
pub(super) fn allowed(style: &str) -> String {
    let style = without_urls(style);
    if !is_plain(&style) {
        return String::new();
    }
    let mut kept = Vec::new();
    for declaration in style.split(';').filter(|text| !text.trim().is_empty()) {
        let Some((name, value)) = declaration.split_once(':') else { return String::new() };
        let (name, value) = (name.trim(), value.trim());
        let lower = name.to_ascii_lowercase();
        let family = lower.split('-').next().unwrap_or_default();
        let is_known = PROPERTIES.contains(&lower.as_str())
            || (FAMILIES.contains(&family) && values(value).all(is_simple));
        if is_known && !value.is_empty() {
            kept.push(format!("{name}: {value};"));
        }
    }
    kept.join(" ")
}

/// Replaces `url(…)` by a space.
fn without_urls(style: &str) -> String {
    let lower = style.to_ascii_lowercase();
    let (mut out, mut at) = (String::new(), 0);
    while let Some(found) = lower[at..].find("url") {
        let inside = lower[at + found + 3..].trim_start();
        if !inside.starts_with('(') {
            out.push_str(&style[at..at + found + 3]);
            at += found + 3;
            continue;
        }
        out.push_str(&style[at..at + found]);
        out.push(' ');
        let end = inside.find(')').map_or(inside.len(), |end| end + 1);
        at = lower.len() - inside.len() + end;
    }
    out.push_str(&style[at..]);
    out
}

/// Whether a style is made of words, numbers, colors and names in quotes, without escapes,
/// comments, rules and functions other than colors.
fn is_plain(style: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut chars = style.chars().peekable();
    while let Some(c) = chars.next() {
        let is_fine = match c {
            ':' | ',' | ';' | '#' | '%' | '.' | '!' => true,
            '-' => chars.peek().is_some_and(|c| is_word(*c) || *c == '.'),
            '\'' | '"' => ends_with(&mut chars, c, |c| is_word(c) || c.is_whitespace()),
            '(' => ends_with(&mut chars, ')', |c| {
                c.is_ascii_digit() || c.is_whitespace() || matches!(c, ',' | '%' | '.')
            }),
            c => c.is_ascii_alphanumeric() || c.is_whitespace(),
        };
        if !is_fine {
            return false;
        }
    }
    true
}

/// Reads up to `end`; all characters before it must be `allowed`.
fn ends_with(chars: &mut Peekable<Chars<'_>>, end: char, allowed: impl Fn(char) -> bool) -> bool {
    chars.by_ref().take_while(|c| *c != end).all(allowed)
}

/// Splits a value at white space outside parentheses.
fn values(value: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    let parts = value.split(move |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && c.is_whitespace()
    });
    parts.filter(|part| !part.is_empty())
}

/// Whether a value is a keyword, a color or a length.
fn is_simple(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    if KEYWORDS.contains(&lower.as_str()) || lower.starts_with("rgb(") {
        return true;
    }
    if let Some(digits) = lower.strip_prefix('#') {
        return !digits.is_empty() && digits.chars().all(|c| c.is_ascii_hexdigit());
    }
    let number = lower.trim_start_matches('-');
    let unit = number.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    unit.len() < number.len() && UNITS.contains(&unit)
}
