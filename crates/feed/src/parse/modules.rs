//! The modules that feeds carry. A module with elements that have a counterpart in Atom has
//! one file here, which reads them, and one line in [`READERS`]. Elements of every other
//! module are kept as they are; its namespace is one line in `vocabulary::known`.

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

/// Reads an element into a feed or entry. `false` says that it has no counterpart in Atom,
/// so the caller keeps it as an extension.
pub(super) type ElementReader = fn(XmlElement<'_>, &mut Target<'_>) -> bool;

/// The modules whose elements are read, most frequent first.
static READERS: [(&Vocabulary, ElementReader); 7] = [
    (&DC, dc::read),
    (&CONTENT, content::read),
    (&MEDIA, media::read),
    (&ITUNES, itunes::read),
    (&SY, syndication::read),
    (&DCTERMS, dcterms::read),
    (&GOOGLEPLAY, googleplay::read),
];

/// What reads the elements of a vocabulary; `None` if all of them are kept as they are.
pub(super) fn reader_of(vocabulary: &'static Vocabulary) -> Option<ElementReader> {
    READERS.iter().find(|(known, _)| std::ptr::eq(*known, vocabulary)).map(|(_, read)| *read)
}
