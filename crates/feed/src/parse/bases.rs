//! What addresses of a document are relative to.
//!
//! An `xml:base` may be relative to the one around it, and so on; what each comes to is
//! kept, because every address below it asks again.

use std::cell::RefCell;
use std::collections::HashMap;

use url::Url;

use super::tree::El;
use crate::context::LONGEST_BASE_BYTES;

/// How many are kept. A page of a feed has a few; a document made to hurt has one in every
/// element, and each is as long as all around it together.
const KEPT: usize = 256;

/// The bases of a document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bases<'c> {
    /// The URL the document came from.
    pub(super) url: &'c Url,
    /// What is known of the document already.
    pub(super) known: &'c Known,
}

/// What the `xml:base` of elements come to, absolute.
#[derive(Debug, Default)]
pub(super) struct Known(RefCell<HashMap<u32, Url>>);

impl Known {
    fn get(&self, holder: El<'_>) -> Option<Url> {
        self.0.borrow().get(&holder.place()).cloned()
    }

    fn keep(&self, holder: El<'_>, base: &Url) {
        let mut known = self.0.borrow_mut();
        if known.len() >= KEPT {
            known.clear();
        }
        known.insert(holder.place(), base.clone());
    }
}

impl Bases<'_> {
    /// The `xml:base` in force at `element`, absolute; `None` where there is none.
    pub(super) fn base(&self, element: El<'_>) -> Option<Url> {
        let mut around = None;
        let mut unknown = Vec::new();
        let short = |(_, base): &(El<'_>, &str)| base.len() <= LONGEST_BASE_BYTES;
        for (holder, base) in element.told_bases().filter(short) {
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
            self.known.keep(holder, &joined);
            joined
        }))
    }
}
