//! The way back through an archive: where the entries that were not handled yet begin.

use std::collections::HashSet;

use url::Url;

use super::{ArchivePage, PageSource, Stopped};
use crate::cli::consume::place::LastEntry;

/// The maximum number of documents on the way back; a longer chain is malicious.
pub(super) const LONGEST_WAY: usize = 500_000;

/// The boundary between the newest archived document whose entries were all handled and the
/// document after it, which was the recent document then. The boundary can be found from either
/// side, whatever has been archived or dropped since.
#[derive(Debug)]
pub(super) struct Seam {
    /// The address of the archived document.
    pub(super) here: Url,
    /// The oldest entry of the document that followed it.
    pub(super) next: Option<LastEntry>,
}

impl Seam {
    /// Returns whether `page` is the document after the boundary.
    fn is_before(&self, page: &ArchivePage) -> bool {
        let bottom = page.items.last().zip(self.next.as_ref());
        page.prev.as_ref() == Some(&self.here)
            || bottom.is_some_and(|(item, next)| next.is_of(item))
    }
}

/// The document at which reading continues, and the documents after it.
#[derive(Debug)]
pub(super) struct Way {
    /// The address of the document.
    pub(super) url: Url,
    /// The document.
    pub(super) page: ArchivePage,
    /// The number of its items that are newer than the last handled entry.
    pub(super) newer: usize,
    /// The documents between this one and the recent document, newest first.
    pub(super) ahead: Vec<Url>,
    /// The oldest entry of the recent document.
    pub(super) bottom: Option<LastEntry>,
    /// The address of the previous document if it is no longer kept and nothing was marked.
    pub(super) lost: Option<Url>,
}

/// Follows the archive back from the recent document to the one with the entry `mark`, to the one
/// after `seam`, or to the oldest if there is neither.
///
/// If several entries match the mark, the newest counts. If only entries with the same id but
/// other content are found, because the archive or the format of entries has changed since, the
/// oldest of them counts: handling an entry twice is better than missing one. A document that is
/// no longer kept ends the search.
pub(super) async fn go_back<S: PageSource>(
    pages: &mut S,
    recent: &Url,
    mark: Option<&LastEntry>,
    seam: Option<&Seam>,
) -> Result<Way, Stopped> {
    let mut seen = HashSet::from([recent.clone()]);
    let mut ahead = Vec::new();
    let mut namesake: Option<(Way, usize)> = None;
    let mut url = recent.clone();
    let mut page = pages.get(recent).await.map_err(not_there)?;
    let bottom = page.items.last().map(LastEntry::from_item);
    loop {
        let found = mark.and_then(|mark| mark.newest_in(&page.items));
        let is_behind_seam = seam.is_some_and(|seam| seam.is_before(&page));
        if let Some(newer) = found.or(is_behind_seam.then_some(page.items.len())) {
            return Ok(Way { url, page, newer, ahead, bottom, lost: None });
        }
        if let Some(newer) = mark.and_then(|mark| mark.oldest_namesake_in(&page.items)) {
            let (url, page) = (url.clone(), page.clone());
            let bottom = bottom.clone();
            let way = Way { url, page, newer, ahead: Vec::new(), bottom, lost: None };
            namesake = Some((way, ahead.len()));
        }
        let before = match page.prev.clone() {
            Some(prev) if !seen.insert(prev.clone()) => return Err(Stopped::Circle(prev)),
            Some(_) if seen.len() > LONGEST_WAY => return Err(Stopped::TooLong),
            Some(prev) => match pages.get(&prev).await {
                Err(Stopped::Dropped(gone)) => Err(Some(gone)),
                before => Ok((prev, before?)),
            },
            None => Err(None),
        };
        match before {
            Ok((before, its)) => {
                if url != *recent {
                    ahead.push(url);
                }
                (url, page) = (before, its);
            }
            Err(gone) => {
                let newer = page.items.len();
                let way = Way { url, page, newer, ahead, bottom, lost: gone };
                return begin(way, mark, namesake);
            }
        }
    }
}

/// Returns where to begin if the archive does not contain the marked entry. `oldest` is the oldest
/// document.
fn begin(
    oldest: Way,
    mark: Option<&LastEntry>,
    namesake: Option<(Way, usize)>,
) -> Result<Way, Stopped> {
    match (mark, namesake) {
        (None, _) => Ok(oldest),
        (Some(_), Some((way, passed))) => {
            let ahead = oldest.ahead.into_iter().take(passed).collect();
            Ok(Way { ahead, ..way })
        }
        (Some(mark), None) => Err(Stopped::PlaceLost { id: mark.id.clone(), gone: oldest.lost }),
    }
}

/// Converts the error of a missing recent document: it is never dropped, so there is no archive.
fn not_there(why: Stopped) -> Stopped {
    match why {
        Stopped::Dropped(url) => Stopped::Unreadable {
            url: url.into(),
            reason: "there is no archive".to_owned(),
            passing: false,
        },
        other => other,
    }
}
