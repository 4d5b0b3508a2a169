//! Namespaces: which URI is meant, and what a prefix stands for.
//!
//! URIs are compared without their scheme, their case and a trailing `/` or `#`: all of
//! these are got wrong in real feeds. A prefix that nobody declared means what it
//! usually means.

use std::borrow::Cow;
use std::collections::HashMap;

use super::super::vocabulary::{self, Vocabulary};
use crate::iri;

/// Bindings in force at one place (rule S16).
const BINDINGS: usize = 128;

/// The longest name of a namespace: every entry that has an element of it says it again.
/// What is declared longer is taken as undeclared.
const LONGEST_URI_BYTES: usize = 2048;

/// The longest that is no URI: it becomes one by escapes, of three bytes for each.
const LONGEST_NAME_BYTES: usize = 512;

/// The longest prefix that nobody declared and that is told apart from others: it becomes
/// a name of a namespace.
const LONGEST_PREFIX_BYTES: usize = 256;

/// Namespaces in one document. What is declared beyond is taken as undeclared.
const SPACES: usize = 4096;

/// A namespace of a document.
#[derive(Debug)]
pub(in super::super) struct Namespace<'t> {
    uri: Cow<'t, str>,
    vocabulary: Option<&'static Vocabulary>,
}

impl Namespace<'_> {
    /// The URI to write: the right spelling where we know the vocabulary.
    pub(in super::super) fn uri(&self) -> &str {
        self.vocabulary.map_or(&self.uri, |known| known.uri())
    }

    /// The vocabulary, if it is one we know.
    pub(in super::super) fn vocabulary(&self) -> Option<&'static Vocabulary> {
        self.vocabulary
    }

    /// Whether this is that vocabulary.
    pub(in super::super) fn is(&self, vocabulary: &'static Vocabulary) -> bool {
        self.vocabulary.is_some_and(|known| std::ptr::eq(known, vocabulary))
    }
}

/// The namespaces of a document while it is read.
#[derive(Debug)]
pub(super) struct Namespaces<'t> {
    known: HashMap<Cow<'t, str>, u32>,
    list: Vec<Namespace<'t>>,
    bindings: Vec<(&'t str, u32)>,
    /// Prefixes that were used without being declared, and what they were taken for.
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

    /// How many bindings are in force, for [`leave`](Self::leave).
    pub(super) fn mark(&self) -> usize {
        self.bindings.len()
    }

    /// Forgets the bindings made since `mark`.
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

    /// What `prefix` stands for; without one, the default namespace.
    pub(super) fn of_element(&mut self, prefix: &'t str) -> u32 {
        let bound = self.bindings.iter().rev().find(|(name, _)| *name == prefix);
        match bound {
            Some((_, space)) => *space,
            None if prefix.is_empty() => 0,
            None => self.undeclared(prefix),
        }
    }

    /// What the prefix of an attribute stands for; without one, no namespace.
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

    /// Prefixes that were used and should have been declared.
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
        // The list is shorter than SPACES, so its length fits.
        let space = u32::try_from(self.list.len()).unwrap_or(0);
        self.list.push(Namespace { vocabulary: vocabulary::by_uri(&uri), uri: uri.clone() });
        self.known.insert(uri, space);
        space
    }
}

/// Whether the name of a namespace is short enough to be said again and again.
fn is_sayable(uri: &str) -> bool {
    let plain = |c: char| iri::is_unreserved(c) || ":/?@!$&'()*+,;=#%".contains(c);
    let is_uri = || iri::scheme(uri).is_some() && uri.chars().all(plain);
    uri.len() <= LONGEST_NAME_BYTES || (uri.len() <= LONGEST_URI_BYTES && is_uri())
}
