//! A quick look for relative addresses in HTML.
//!
//! Most markup has none, and need not be read tag by tag. What always holds: if an attribute of a tag
//! has a relative address, [`may_be_in`] finds it; it may also find what is no attribute.

use memchr::{memchr, memchr_iter};

use super::super::tag::ends_name;
use super::addresses::{SRCSET, address_attributes, candidates, is_relative};
use crate::{iri, text_extraction};

/// Returns whether `html` may have a relative address in an attribute.
pub(super) fn may_be_in(html: &str) -> bool {
    let bytes = html.as_bytes();
    memchr_iter(b'=', bytes).any(|at| {
        let before = bytes[..at].trim_ascii_end();
        let after = html[at + 1..].trim_ascii_start();
        match kind_of(before) {
            Kind::Other => false,
            Kind::Address => may_be_relative(after),
            Kind::Candidates => may_have_relative_candidate(after),
        }
    })
}

/// What the value of an attribute is.
enum Kind {
    Address,
    Candidates,
    Other,
}

/// Returns what the value of the attribute is whose name `text` ends with.
fn kind_of(text: &[u8]) -> Kind {
    let ends_with = |name: &str| {
        let begin = text.len().checked_sub(name.len());
        begin.is_some_and(|begin| {
            text[begin..].eq_ignore_ascii_case(name.as_bytes())
                && begin.checked_sub(1).is_none_or(|before| ends_name(text[before]))
        })
    };
    if address_attributes(text.last()).iter().any(|name| ends_with(name)) {
        Kind::Address
    } else if ends_with(SRCSET) {
        Kind::Candidates
    } else {
        Kind::Other
    }
}

/// Returns whether the value of an attribute, which `text` begins with, may be a relative address.
fn may_be_relative(text: &str) -> bool {
    let value = text.strip_prefix(['"', '\'']).unwrap_or(text).trim_ascii_start();
    !(value.starts_with('#') || iri::is_absolute(value))
}

/// Returns whether the `srcset` that `text` begins with may have a relative address.
fn may_have_relative_candidate(text: &str) -> bool {
    let quote = text.bytes().next().filter(|byte| matches!(byte, b'"' | b'\''));
    let Some(quote) = quote else { return true };
    let Some(end) = memchr(quote, &text.as_bytes()[1..]) else { return true };
    let decoded = text_extraction::decode(&text[1..=end]);
    candidates(&decoded).any(|candidate| is_relative(&candidate))
}
