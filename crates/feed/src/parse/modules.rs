//! The extension modules of feeds. A module with elements that have a counterpart in Atom has one
//! file here, which reads them, and one line in [`READERS`]. The elements of all other modules are
//! kept as they are; such a module is one line in `vocabulary::known`.
//!
//! A value that several modules write in different forms, such as a location, is not read here but
//! completed by a pass (`passes/geo.rs`). The usual prefix of a namespace in the output is in
//! `render/names.rs`.

mod content;
mod dc;
mod dcterms;
mod googleplay;
mod itunes;
mod media;
mod syndication;

use super::target::Target;
use super::tree::XmlElement;
use super::vocabulary::{CONTENT, DC, DCTERMS, GOOGLEPLAY, ITUNES, MEDIA, SY, Vocabulary};

/// Reads an element into a feed or entry. Returns `false` if the element has no counterpart in
/// Atom, so that the caller keeps it as an extension.
pub(super) type ElementReader = fn(XmlElement<'_>, &mut Target<'_>) -> bool;

/// The readers of modules, most frequent first.
static READERS: [(&Vocabulary, ElementReader); 7] = [
    (&DC, dc::read),
    (&CONTENT, content::read),
    (&MEDIA, media::read),
    (&ITUNES, itunes::read),
    (&SY, syndication::read),
    (&DCTERMS, dcterms::read),
    (&GOOGLEPLAY, googleplay::read),
];

/// Returns the reader for the elements of a vocabulary; `None` if all of them are kept as they are.
pub(super) fn reader_of(vocabulary: &'static Vocabulary) -> Option<ElementReader> {
    READERS.iter().find(|(known, _)| std::ptr::eq(*known, vocabulary)).map(|(_, read)| *read)
}
