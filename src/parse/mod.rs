//! Bytes → feed: any feed, however broken.
//!
//! ```text
//! bytes ──► decode ──► text ──► tidy, build ──► tree ──► formats, modules ──► feed
//! ```
//!
//! * Text that holds at least one recognizable item never fails; what had to be mended
//!   is told as repairs (`docs/normalizer.md` lists their codes).
//! * What has a home in Atom is mapped, everything else is kept as extensions. Nothing is
//!   dropped silently: what a limit cuts off is told as a repair as well.
//! * Nothing recurses over input, nothing a document declares for itself is expanded, and
//!   no network is touched (rules S14, S16).
//!
//! A format is one file in `formats`, a module one file in `modules`.

mod dates;
mod decode;
mod formats;
mod hints;
mod json;
mod modules;
mod person;
mod texts;
mod tree;
mod vocabulary;

use crate::domain::feed::Feed;
use crate::domain::source::Context;

/// Entries read from one document (rule S16).
const MAX_ENTRIES: usize = 5000;

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
pub fn parse(bytes: &[u8], context: &Context) -> Result<Feed, NotAFeed> {
    let mut repairs = Vec::new();
    let text = decode::decode(bytes, context.content_type(), &mut repairs);
    let mut feed = match text.trim_start().chars().next() {
        None => return Err(NotAFeed::Empty),
        Some('{' | '[') => formats::read_json(&text, &mut repairs)?,
        Some(c)
            if c != '<'
                && let Some(text) = json::argument(&text) =>
        {
            formats::read_json(text, &mut repairs)?
        }
        Some(_) => {
            let text = tree::tidy(text, &mut repairs);
            let tree = tree::build(&text, &mut repairs);
            let url = context.base();
            let bases = texts::Bases { url: &url };
            formats::read(&tree, bases, &mut repairs)?
        }
    };
    feed.repairs = repairs;
    Ok(feed)
}
