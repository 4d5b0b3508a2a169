//! Resolution of the base of relative addresses in a document.
//!
//! An `xml:base` may be relative to the enclosing one, and so on. Resolved bases are cached,
//! because every address below needs them.

use std::cell::RefCell;
use std::collections::HashMap;

use url::Url;

use super::tree::XmlElement;
use crate::context::LONGEST_BASE_BYTES;

/// The maximum number of cached bases. A page of a feed has a few; a malicious document has one in
/// every element, each as long as all enclosing ones together.
const CACHED: usize = 256;

/// The bases that apply in a document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bases<'c> {
    /// The URL of the document.
    pub(super) url: &'c Url,
    /// The cache of resolved bases.
    pub(super) known: &'c KnownBases,
}

/// A cache of absolute `xml:base` values, by element number.
#[derive(Debug, Default)]
pub(super) struct KnownBases(RefCell<HashMap<usize, Url>>);

impl KnownBases {
    fn get(&self, holder: XmlElement<'_>) -> Option<Url> {
        self.0.borrow().get(&holder.number()).cloned()
    }

    fn insert(&self, holder: XmlElement<'_>, base: &Url) {
        let mut known = self.0.borrow_mut();
        if known.len() >= CACHED {
            known.clear();
        }
        known.insert(holder.number(), base.clone());
    }
}

impl Bases<'_> {
    /// Returns the absolute `xml:base` that applies to `element`; `None` if there is none.
    pub(super) fn base(&self, element: XmlElement<'_>) -> Option<Url> {
        let mut around = None;
        let mut unknown = Vec::new();
        let short = |(_, base): &(XmlElement<'_>, &str)| base.len() <= LONGEST_BASE_BYTES;
        for (holder, base) in element.base_sources().filter(short) {
            around = self.known.get(holder);
            if around.is_some() {
                break;
            }
            unknown.push((holder, base));
            if Url::parse(base).is_ok() {
                break;
            }
        }
        if unknown.is_empty() {
            return around;
        }
        let outermost = around.unwrap_or_else(|| self.url.clone());
        Some(unknown.into_iter().rev().fold(outermost, |around, (holder, base)| {
            let joined = around.join(base).ok();
            let joined = joined.filter(|url| url.as_str().len() <= LONGEST_BASE_BYTES);
            let joined = joined.unwrap_or(around);
            self.known.insert(holder, &joined);
            joined
        }))
    }
}
