//! Editions: the state of a document of changes at one moment, and its pages.
//!
//! An edition contains everything that its text depends on, so reading its pages twice gives the
//! same text, which has no more than [`MAX_BYTES`].

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};

use crate::http::kit::viewer_access::ViewerAccess;
use crate::http::routes::changes::render::{push_end, push_head, push_line};
use feedgate_core::ping::{TimeUnit, WeblogChange};
use feedgate_core::store::{ChangeLine, ChangesWindow, StoreError};
use feedgate_store::Store;

/// The state of a document of changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edition {
    /// The source of the lines.
    pub(super) lines: Lines,
    /// The time of the state.
    pub(super) updated: DateTime<Utc>,
    /// The total number of pings ever received.
    pub(super) count: u64,
    /// The unit of `when`.
    pub(super) unit: TimeUnit,
    /// The access of the clients that the edition is for: lines with inner addresses are left out for
    /// all but the operator's networks.
    pub(super) access: ViewerAccess,
}

/// The source of the lines of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lines {
    /// The changes in a window of time, as listed now.
    Listed(ChangesWindow),
    /// The stored document of a completed hour.
    Kept {
        /// The start of the hour.
        begins: DateTime<Utc>,
        /// The number of stored pages.
        parts: usize,
    },
}

impl Edition {
    /// Returns the earliest possible time of the first line.
    pub(super) fn begins(&self) -> DateTime<Utc> {
        match &self.lines {
            Lines::Listed(window) => window.from,
            Lines::Kept { begins, .. } => *begins,
        }
    }

    /// Returns whether the clients of this edition may see a change.
    pub(super) fn sees(&self, change: &WeblogChange) -> bool {
        let addresses = [Some(&change.url), change.feed_url.as_ref()];
        addresses.into_iter().flatten().all(|address| self.access.sees_host_of(address))
    }

    /// Returns the edition that covers only the last `span` of this one.
    pub(super) fn of_last(&self, span: TimeDelta) -> Edition {
        let lines = match &self.lines {
            Lines::Listed(window) => {
                let from = window.from.max(self.updated - span);
                Lines::Listed(ChangesWindow { from, ..*window })
            }
            kept @ Lines::Kept { .. } => kept.clone(),
        };
        Edition { lines, ..self.clone() }
    }

    /// Returns an entity tag that identifies the edition. The tag is weak, because the document may
    /// be sent compressed.
    pub(super) fn etag(&self) -> String {
        let newest = match &self.lines {
            Lines::Listed(window) => window.newest,
            Lines::Kept { .. } => -1,
        };
        let (from, updated) = (self.begins().timestamp_micros(), self.updated.timestamp_micros());
        let access = match self.access {
            ViewerAccess::Public => "",
            ViewerAccess::OperatorNetwork => "-inner",
        };
        format!("W/\"{from:x}-{updated:x}-{newest}-{}{access}\"", self.unit.as_str())
    }
}

/// Reads an edition page by page.
pub(super) struct Pages {
    store: Arc<Store>,
    edition: Edition,
    at: Place,
    text: String,
    head_bytes: usize,
    line_ends: Vec<LineEnd>,
    /// The number of changes read so far, including those that the edition leaves out.
    read: usize,
}

/// The text of an edition.
pub(super) struct EditionText {
    /// The text without its end, which [`end`] returns.
    pub(super) text: String,
    /// The length of what precedes the first line, in bytes.
    pub(super) head_bytes: usize,
    /// The time and the end of each line, newest first.
    pub(super) line_ends: Vec<LineEnd>,
    /// The number of changes that were read, including those that the edition leaves out.
    pub(super) read: usize,
    /// Whether there are more changes than the text lists.
    pub(super) is_cut: bool,
}

/// Where a line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineEnd {
    /// The time of the change.
    pub(super) at: DateTime<Utc>,
    /// The length of the text up to the end of the line, in bytes.
    pub(super) end: usize,
}

/// The most lines of a document. Pings need no account, so that anybody could make a document of
/// any length.
const MAX_LINES: usize = 100_000;
/// The most bytes of a document. The cache has room for every document (`cache::CAPACITY_BYTES`), so
/// that none is rendered for each request.
pub(super) const MAX_BYTES: usize = 16 << 20;
/// The most bytes of what follows the last line.
const MAX_END_BYTES: usize = 256;

enum Place {
    Head,
    After(Option<ChangeLine>),
    Part(usize),
    /// The end; whether there are more changes.
    End(bool),
}

impl Pages {
    /// Reads `edition` from the beginning.
    pub(super) fn read(store: &Arc<Store>, edition: Edition) -> Pages {
        Pages {
            store: Arc::clone(store),
            edition,
            at: Place::Head,
            text: String::new(),
            head_bytes: 0,
            line_ends: Vec::new(),
            read: 0,
        }
    }

    /// Returns the text of the whole edition.
    pub(super) async fn into_text(mut self) -> Result<EditionText, StoreError> {
        loop {
            self.at = match std::mem::replace(&mut self.at, Place::End(false)) {
                Place::Head => {
                    push_head(&mut self.text, self.edition.updated, self.edition.count);
                    self.head_bytes = self.text.len();
                    match self.edition.lines {
                        Lines::Listed(_) => Place::After(None),
                        Lines::Kept { .. } => Place::Part(0),
                    }
                }
                Place::After(last) => self.push_listed(last).await?,
                Place::Part(part) => self.push_kept(part).await?,
                Place::End(is_cut) => {
                    let Pages { text, head_bytes, line_ends, read, .. } = self;
                    return Ok(EditionText { text, head_bytes, line_ends, read, is_cut });
                }
            }
        }
    }

    async fn push_listed(&mut self, last: Option<ChangeLine>) -> Result<Place, StoreError> {
        let Lines::Listed(window) = &self.edition.lines else { return Ok(Place::End(false)) };
        if self.read >= MAX_LINES {
            return Ok(Place::End(true));
        }
        let mut page = self.store.changes(window, last.as_ref()).await?;
        let is_full = self.push(page.iter().map(|line| &line.change));
        Ok(match page.pop() {
            _ if is_full => Place::End(true),
            Some(last) => Place::After(Some(last)),
            None => Place::End(false),
        })
    }

    async fn push_kept(&mut self, part: usize) -> Result<Place, StoreError> {
        let Lines::Kept { begins, parts } = self.edition.lines else {
            return Ok(Place::End(false));
        };
        if part == parts || self.read >= MAX_LINES {
            return Ok(Place::End(part < parts));
        }
        let page = self.store.hour_part(begins, part).await?;
        let is_full = self.push(page.iter());
        Ok(if is_full { Place::End(true) } else { Place::Part(part + 1) })
    }

    /// Appends the lines of the changes, and returns whether there is no room for one of them.
    fn push<'c>(&mut self, page: impl Iterator<Item = &'c WeblogChange>) -> bool {
        let Edition { updated, unit, .. } = self.edition;
        for change in page {
            self.read += 1;
            if !self.edition.sees(change) {
                continue;
            }
            let end = self.text.len();
            push_line(&mut self.text, change, updated, unit);
            if self.text.len() > MAX_BYTES - MAX_END_BYTES {
                self.text.truncate(end);
                return true;
            }
            self.line_ends.push(LineEnd { at: change.at, end: self.text.len() });
        }
        false
    }
}

/// Returns what follows the last line.
pub(super) fn end(is_cut: bool) -> String {
    let mut end = String::new();
    push_end(&mut end, is_cut);
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_the_end_of_a_document() {
        assert!(end(true).len() <= MAX_END_BYTES && end(false).len() < end(true).len());
    }
}
