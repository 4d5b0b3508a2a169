//! RSS as feedgate writes it, and what it demands of a document it is given to keep.
//!
//! Reading strangers' feeds is `parse`'s work, and lenient. Here it is the other way
//! round: a document that is kept for its author must be sound XML, because it is served
//! as it is; and one that is edited keeps everything that is not known here.

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
