//! Namespaces: their URIs, and the prefixes bound to them.
//!
//! URIs are compared without their scheme, case and trailing `/` or `#`, because feeds get all of
//! these wrong. An undeclared prefix has its usual meaning.

use std::borrow::Cow;
use std::collections::HashMap;

use super::super::vocabulary::{self, Vocabulary};
use crate::iri;

/// The maximum number of bindings in force at one place (rule S16).
const BINDINGS: usize = 128;

/// The maximum length of a namespace URI, in bytes: every entry with an element in it repeats the
/// URI. A namespace with a longer URI is treated as undeclared.
const LONGEST_URI_BYTES: usize = 2048;

/// The maximum length of a namespace name that is not a URI, in bytes: escaping makes it a URI, and
/// takes three bytes for each.
const LONGEST_NAME_BYTES: usize = 512;

/// The maximum length of an undeclared prefix that is distinguished from others, in bytes: it
/// becomes the name of a namespace.
const LONGEST_PREFIX_BYTES: usize = 256;

/// The maximum number of namespaces in one document. Further ones are treated as undeclared.
const SPACES: usize = 4096;

/// A namespace of a document.
#[derive(Debug)]
pub(in super::super) struct Namespace<'t> {
    uri: Cow<'t, str>,
    vocabulary: Option<&'static Vocabulary>,
}

impl Namespace<'_> {
    /// Returns the URI to write: the standard spelling for a known vocabulary.
    pub(in super::super) fn uri(&self) -> &str {
        self.vocabulary.map_or(&self.uri, |known| known.uri())
    }

    /// Returns the vocabulary, if it is known.
    pub(in super::super) fn vocabulary(&self) -> Option<&'static Vocabulary> {
        self.vocabulary
    }

    /// Returns whether this is the namespace of `vocabulary`.
    pub(in super::super) fn is(&self, vocabulary: &'static Vocabulary) -> bool {
        self.vocabulary.is_some_and(|known| std::ptr::eq(known, vocabulary))
    }
}

/// The namespaces of a document, and the bindings in force while it is read.
#[derive(Debug)]
pub(super) struct Namespaces<'t> {
    known: HashMap<Cow<'t, str>, u32>,
    list: Vec<Namespace<'t>>,
    bindings: Vec<(&'t str, u32)>,
    /// Prefixes that were used without a declaration, and the namespaces assumed for them.
    undeclared: Vec<(&'t str, u32)>,
}

impl<'t> Namespaces<'t> {
    pub(super) fn new() -> Namespaces<'t> {
        let mut spaces = Namespaces {
            known: HashMap::new(),
            list: Vec::new(),
            bindings: Vec::new(),
            undeclared: Vec::new(),
        };
        spaces.intern(Cow::Borrowed(""));
        spaces
    }

    pub(super) fn into_list(self) -> Vec<Namespace<'t>> {
        self.list
    }

    /// Returns the number of bindings in force, for [`leave`](Self::leave).
    pub(super) fn mark(&self) -> usize {
        self.bindings.len()
    }

    /// Removes the bindings made since `mark`.
    pub(super) fn leave(&mut self, mark: usize) {
        self.bindings.truncate(mark);
    }

    /// Binds `prefix` (empty for the default namespace) to `uri`.
    pub(super) fn bind(&mut self, prefix: &'t str, uri: Cow<'t, str>) {
        if self.bindings.len() < BINDINGS && is_sayable(&uri) {
            let space = self.intern(uri);
            self.bindings.push((prefix, space));
        }
    }

    /// Returns the namespace of an element with this prefix; without one, the default namespace.
    pub(super) fn of_element(&mut self, prefix: &'t str) -> u32 {
        let bound = self.bindings.iter().rev().find(|(name, _)| is_same_prefix(name, prefix));
        match bound {
            Some((_, space)) => *space,
            None if prefix.is_empty() => 0,
            None => self.undeclared(prefix),
        }
    }

    /// Returns the namespace of an attribute with this prefix; without one, no namespace.
    pub(super) fn of_attribute(&mut self, prefix: &'t str) -> u32 {
        if prefix.is_empty() { 0 } else { self.of_element(prefix) }
    }

    fn undeclared(&mut self, prefix: &'t str) -> u32 {
        if let Some((_, space)) = self.undeclared.iter().find(|(held, _)| *held == prefix) {
            return *space;
        }
        let space = match vocabulary::by_prefix(prefix) {
            Some(usual) => self.intern(Cow::Borrowed(usual.uri())),
            None if prefix.len() > LONGEST_PREFIX_BYTES => 0,
            None => self.intern(Cow::Owned(format!("urn:undeclared:{prefix}"))),
        };
        if self.undeclared.len() < BINDINGS {
            self.undeclared.push((prefix, space));
        }
        space
    }

    /// Returns the prefixes that were used without a declaration.
    pub(super) fn used_undeclared(&self) -> impl Iterator<Item = &'t str> + use<'_, 't> {
        self.undeclared.iter().map(|(prefix, _)| *prefix).filter(|prefix| *prefix != "xml")
    }

    fn intern(&mut self, uri: Cow<'t, str>) -> u32 {
        if let Some(space) = self.known.get(&uri) {
            return *space;
        }
        if self.list.len() >= SPACES {
            return 0;
        }
        // The list is shorter than SPACES, so its length fits into a `u32`.
        let space = u32::try_from(self.list.len()).unwrap_or(0);
        self.list.push(Namespace { vocabulary: vocabulary::by_uri(&uri), uri: uri.clone() });
        self.known.insert(uri, space);
        space
    }
}

/// Returns whether two prefixes are equal. Every element compares its prefix with most bindings, and
/// prefixes are shorter than what a call to compare them costs.
fn is_same_prefix(one: &str, other: &str) -> bool {
    one.len() == other.len() && one.bytes().zip(other.bytes()).all(|(one, other)| one == other)
}

/// Returns whether a namespace name is short enough to be repeated in every entry.
fn is_sayable(uri: &str) -> bool {
    let plain = |c: char| iri::is_unreserved(c) || ":/?@!$&'()*+,;=#%".contains(c);
    let is_uri = || iri::scheme(uri).is_some() && uri.chars().all(plain);
    uri.len() <= LONGEST_NAME_BYTES || (uri.len() <= LONGEST_URI_BYTES && is_uri())
}
