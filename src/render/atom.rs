//! Atom, as the single schema.

use crate::domain::feed::{Entry, Feed, Link};
use crate::domain::status::Status;

/// What a document is joined from.
#[derive(Clone, Copy, Debug)]
pub struct Document<'a> {
    /// [`head`], or what the store kept of it; empty for a resource that has none.
    pub head: &'a str,
    /// The resource, as it is subscribed to: `status/@feed`.
    pub topic: &'a str,
    /// The first child of the feed; archive documents have none.
    pub status: Option<&'a Status>,
    /// Links of the document itself: self, hub, prev-archive and the like.
    pub links: &'a [Link],
    /// Serialized entries, in the order in which they are to stand.
    pub entries: &'a [&'a str],
}

/// A feed without its entries: the start tag and the metadata elements.
pub fn head(_feed: &Feed) -> String {
    String::new()
}

/// An entry as one self-contained element.
pub fn entry(_entry: &Entry) -> String {
    String::new()
}

/// A whole document.
pub fn document(_document: &Document<'_>) -> String {
    String::new()
}
