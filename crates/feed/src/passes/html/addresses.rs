//! The attributes of HTML that hold addresses.

use crate::iri;

/// Returns the attributes that hold one address, on any element, and whose names end with a letter:
/// markup has many attributes, and few of them hold addresses.
pub(super) fn address_attributes(last: Option<&u8>) -> &'static [&'static str] {
    match last.map(u8::to_ascii_lowercase) {
        Some(b'a') => &["data"],
        Some(b'c') => &["longdesc", "src"],
        Some(b'd') => &["background", "classid"],
        Some(b'e') => &["cite", "codebase", "profile"],
        Some(b'f') => &["href"],
        Some(b'n') => &["action", "formaction"],
        Some(b'p') => &["usemap"],
        Some(b'r') => &["poster"],
        _ => &[],
    }
}

/// The attribute that holds several addresses.
pub(super) const SRCSET: &str = "srcset";

/// Returns whether the address of a candidate of a `srcset` is relative.
pub(super) fn is_relative((address, _): &(&str, &str)) -> bool {
    !address.is_empty() && !iri::is_absolute(address)
}

/// Returns the candidates of a `srcset`: addresses, each with its width or density and the white space
/// before it (HTML `#parsing-a-srcset-attribute`).
pub(super) fn candidates(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut left = text;
    std::iter::from_fn(move || {
        left = left.trim_start_matches(|c: char| c == ',' || c.is_whitespace());
        if left.is_empty() {
            return None;
        }
        let (address, rest) = left.split_at(left.find(char::is_whitespace).unwrap_or(left.len()));
        let bare = address.trim_end_matches(',');
        if bare.len() < address.len() {
            left = rest;
            return Some((bare, ""));
        }
        let (descriptor, rest) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
        left = rest;
        Some((address, descriptor.trim_end()))
    })
}
