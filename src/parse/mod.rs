//! Bytes → feed.

use crate::domain::feed::Feed;
use crate::domain::source::Context;

/// Why a document gave no feed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAFeed {
    /// There is nothing in it.
    #[error("the document is empty")]
    Empty,
    /// It is something else.
    #[error("not a feed: looks like {0}")]
    Other(&'static str),
}

/// Reads any feed.
pub fn parse(_bytes: &[u8], _context: &Context) -> Result<Feed, NotAFeed> {
    Err(NotAFeed::Empty)
}
