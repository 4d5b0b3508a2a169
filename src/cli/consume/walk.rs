//! Reading an archive: back to the last entry that was handled, then forward again.
//!
//! ```text
//! recent ──prev──► 3 ──prev──► 2   the last handled entry is here
//! recent ◄──────── 3 ◄──────── 2   by the addresses seen on the way back
//! ```
//!
//! The way back only finds the position. Entries are handled on the way forward, for which each
//! document is fetched again, so that only one document and a list of addresses are in memory. Only
//! `prev-archive` is followed, because it must exist and name the directly preceding document (RFC
//! 5005, section 4), while `next-archive` may be missing or lead elsewhere.
//!
//! Entries that the publisher adds or archives meanwhile are neither missed nor handled twice:
//! archived documents do not change, and the newest document only grows at its top. The newest
//! document is read last, and if other documents have been inserted before it, these are read
//! first.
//!
//! An archive may contain an entry and later updates of it under the same id (rule N7). The
//! position is one of these versions, not the id; `way::go_back` says where reading continues if none
//! of them has the content of the position.

#[cfg(test)]
mod tests;
mod way;

use url::Url;

use super::item::ArchiveItem;
use super::place::{BadPosition, LastEntry, ReadPosition};

use way::{LONGEST_WAY, Seam, go_back};

/// The number of consecutive passes without a new entry after which reading stops, because the
/// links of a document change at each request.
const IDLE_LOOKS: usize = 3;

/// One document of an archive.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArchivePage {
    /// The items of the document, newest first.
    pub items: Vec<ArchiveItem>,
    /// The link to the document that precedes this one.
    pub prev: Option<Url>,
}

/// A source of documents.
pub trait PageSource {
    /// Returns the document at `url`.
    fn get(&mut self, url: &Url) -> impl Future<Output = Result<ArchivePage, Stopped>>;
}

/// Handles entries.
pub trait EntryHandler {
    /// Handles one entry, or its deletion. The position moves past it only after this succeeded.
    fn handle(&self, item: &ArchiveItem) -> impl Future<Output = Result<(), Stopped>>;
}

/// How reading ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaughtUp {
    /// The number of entries and deletions that were handled.
    pub taken: usize,
    /// The document at which the archive begins because it was deleted by the server, if no entry
    /// had been handled before.
    pub lost: Option<Url>,
}

/// Why reading stopped. Entries that were handled before stay handled.
#[derive(Debug, thiserror::Error)]
pub enum Stopped {
    /// A document could not be read.
    #[error("cannot read {url}: {reason}")]
    Unreadable {
        /// The address of the document.
        url: String,
        /// Why.
        reason: String,
        /// Whether a retry may soon succeed.
        passing: bool,
    },
    /// The server has deleted a document, and the documents before it with it.
    #[error("{0} has been deleted by the server; its entries are lost")]
    Dropped(Url),
    /// The archive does not contain the entry after which reading should begin.
    #[error(
        "the archive does not contain the entry {id}, after which to begin{}; begin with --from \
         another, or with the oldest by removing the state file",
        lost_with(gone.as_ref())
    )]
    PlaceLost {
        /// The id of the entry.
        id: String,
        /// The oldest linked document that the server has deleted, if there is one.
        gone: Option<Url>,
    },
    /// The links of the documents lead in a circle.
    #[error("the links of the archive form a loop at {0}")]
    Circle(Url),
    /// The archive links more documents than the limit.
    #[error("the archive has more than {LONGEST_WAY} documents after the last handled entry")]
    TooLong,
    /// The command did not handle an entry.
    #[error("the entry {id} was not handled: {reason}")]
    NotTaken {
        /// The id of the entry.
        id: String,
        /// Why.
        reason: String,
    },
    /// The reader of standard output has closed it, as `head` does.
    #[error("standard output was closed before the entry {0} was printed")]
    OutputClosed(String),
    /// The position could not be stored.
    #[error(transparent)]
    ReadPosition(#[from] BadPosition),
}

impl Stopped {
    /// Whether a retry alone may succeed.
    pub fn is_passing(&self) -> bool {
        matches!(self, Stopped::Unreadable { passing: true, .. } | Stopped::NotTaken { .. })
    }
}

fn lost_with(gone: Option<&Url>) -> String {
    let notice = |url| format!(": {url} has been deleted by the server, and its entries are lost");
    gone.map(notice).unwrap_or_default()
}

/// Handles all entries after the position, oldest first.
pub async fn catch_up<S: PageSource, P: ReadPosition, T: EntryHandler>(
    pages: &mut S,
    recent: &Url,
    place: &mut P,
    taker: &T,
) -> Result<CaughtUp, Stopped> {
    let mut done = CaughtUp::default();
    let (mut seam, mut idle) = (None, 0);
    loop {
        let before = done.taken;
        let way = go_back(pages, recent, place.mark(), seam.as_ref()).await?;
        done.lost = done.lost.or(way.lost);
        done.taken += take_all(&way.page.items[..way.newer], place, taker).await?;
        if way.url == *recent {
            return Ok(done);
        }
        let mut here = way.url;
        for url in way.ahead.into_iter().rev() {
            let page = pages.get(&url).await?;
            done.taken += take_all(&page.items, place, taker).await?;
            here = url;
        }
        idle = if done.taken == before { idle + 1 } else { 0 };
        if idle > IDLE_LOOKS {
            return Err(Stopped::Circle(here));
        }
        seam = Some(Seam { here, next: way.bottom });
    }
}

/// Handles `items`, which are listed newest first, and returns how many there are.
async fn take_all<P: ReadPosition, T: EntryHandler>(
    items: &[ArchiveItem],
    place: &mut P,
    taker: &T,
) -> Result<usize, Stopped> {
    for item in items.iter().rev() {
        taker.handle(item).await?;
        place.save(LastEntry::from_item(item))?;
    }
    Ok(items.len())
}
