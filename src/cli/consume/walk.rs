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

/// Looks for more that may bring nothing before it is given up: the next address of a
/// document is not the one it had a moment ago.
const IDLE_LOOKS: usize = 3;

/// One document of an archive.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArchivePage {
    /// What stands in it, newest first.
    pub items: Vec<ArchiveItem>,
    /// The document with what came before.
    pub prev: Option<Url>,
}

/// Where documents come from.
pub trait PageSource {
    /// The document at `url`.
    fn get(&mut self, url: &Url) -> impl Future<Output = Result<ArchivePage, Stopped>>;
}

/// What takes entries.
pub trait EntryHandler {
    /// Handles one entry, or its deletion. The position moves past it only after this succeeded.
    fn handle(&self, item: &ArchiveItem) -> impl Future<Output = Result<(), Stopped>>;
}

/// How reading ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaughtUp {
    /// How many entries were taken, and how many that were taken back.
    pub taken: usize,
    /// The document at which the archive begins because it is no longer kept, if nothing had
    /// been taken before.
    pub lost: Option<Url>,
}

/// Why reading stopped. What was taken before stays taken.
#[derive(Debug, thiserror::Error)]
pub enum Stopped {
    /// A document could not be had.
    #[error("cannot read {url}: {reason}")]
    Unreadable {
        /// Which.
        url: String,
        /// Why.
        reason: String,
        /// Whether it may be otherwise soon.
        passing: bool,
    },
    /// A document is no longer kept, and so is none before it.
    #[error("{0} is no longer kept: what was in it is lost")]
    Dropped(Url),
    /// The archive does not hold the entry to begin behind.
    #[error(
        "the archive does not hold the entry {id}, behind which to begin{}; begin with --from \
         another, or with the oldest by removing the state file",
        lost_with(gone.as_ref())
    )]
    PlaceLost {
        /// The id of the entry.
        id: String,
        /// The document that is no longer kept, if the archive was longer once.
        gone: Option<Url>,
    },
    /// The links of the documents lead in a circle.
    #[error("the archive's links lead in a circle at {0}")]
    Circle(Url),
    /// There are more documents than any archive has.
    #[error("the archive has more than {LONGEST_WAY} documents behind the last entry taken")]
    TooLong,
    /// The command did not take an entry.
    #[error("the entry {id} was not taken: {reason}")]
    NotTaken {
        /// Which.
        id: String,
        /// Why.
        reason: String,
    },
    /// The place could not be kept.
    #[error(transparent)]
    ReadPosition(#[from] BadPosition),
}

impl Stopped {
    /// Whether trying again later, and nothing else, may help.
    pub fn is_passing(&self) -> bool {
        matches!(self, Stopped::Unreadable { passing: true, .. } | Stopped::NotTaken { .. })
    }
}

fn lost_with(gone: Option<&Url>) -> String {
    let notice = |url| format!(": {url} is no longer kept, and what was in it is lost");
    gone.map(notice).unwrap_or_default()
}

/// Takes all that is behind the place, oldest first.
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

/// Takes these, which stand newest first, and says how many they were.
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
