//! RSS documents of authors: checking, editing and writing.
//!
//! Feeds fetched from the web are parsed leniently by the `feed` crate. Here the opposite holds: a
//! document stored for its author must be well-formed XML, because it is served unchanged, and
//! editing preserves everything that this module does not know.

mod check;
mod edit;
mod encoding;
mod fault;
mod item;
mod scan;
mod words;

pub use check::{CheckedDocument, DocumentFault, DocumentKind, check};
pub use edit::{BadFeed, ChannelInfo, EditedFeed, FeedEdit, OutlineLine, add, lines, told};
pub use encoding::as_utf8;
pub use item::{Enclosure, Post, SHORT_CHARS};
