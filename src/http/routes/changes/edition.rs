//! Editions: the state of a document of changes at one moment, and its pages.
//!
//! An edition contains everything that its text depends on, so reading its pages twice gives the
//! same text. Only one page is in memory at a time.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::http::kit::viewer_access::ViewerAccess;
use crate::http::routes::changes::render::{push_end, push_head, push_line};
use feedgate_core::ping::{TimeUnit, WeblogChange};
use feedgate_core::ports::{ChangeLine, ChangesWindow, Store, StoreError};

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
    store: Arc<dyn Store>,
    edition: Edition,
    at: Place,
    /// The number of lines read so far.
    pub(super) lines: usize,
    /// The length of what was read so far, in bytes.
    bytes: usize,
}

/// The most lines of a document. Pings need no account, so that anybody could make a document of
/// any length.
const MAX_LINES: usize = 100_000;
/// The length at which a document ends, in bytes.
const MAX_BYTES: usize = 16 << 20;

enum Place {
    Head,
    After(Option<ChangeLine>),
    Part(usize),
    End,
}

impl Pages {
    /// Reads `edition` from the beginning.
    pub(super) fn read(store: &Arc<dyn Store>, edition: Edition) -> Pages {
        Pages { store: Arc::clone(store), edition, at: Place::Head, lines: 0, bytes: 0 }
    }

    /// Returns the next piece of the text; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<String>, StoreError> {
        let mut text = String::new();
        match std::mem::replace(&mut self.at, Place::End) {
            Place::Head => {
                push_head(&mut text, self.edition.updated, self.edition.count);
                self.at = match self.edition.lines {
                    Lines::Listed(_) => Place::After(None),
                    Lines::Kept { .. } => Place::Part(0),
                };
            }
            Place::After(last) => self.listed(&mut text, last).await?,
            Place::Part(part) => self.kept(&mut text, part).await?,
            Place::End => return Ok(None),
        }
        self.bytes += text.len();
        Ok(Some(text))
    }

    /// Returns whether the document is as long as it may be.
    fn is_full(&self) -> bool {
        self.lines >= MAX_LINES || self.bytes >= MAX_BYTES
    }

    async fn listed(
        &mut self,
        text: &mut String,
        last: Option<ChangeLine>,
    ) -> Result<(), StoreError> {
        let Lines::Listed(window) = &self.edition.lines else { return Ok(()) };
        if self.is_full() {
            push_end(text, true);
            return Ok(());
        }
        let mut page = self.store.changes(window, last.as_ref()).await?;
        self.push(text, page.iter().map(|line| &line.change));
        match page.pop() {
            Some(last) => self.at = Place::After(Some(last)),
            None => push_end(text, false),
        }
        Ok(())
    }

    async fn kept(&mut self, text: &mut String, part: usize) -> Result<(), StoreError> {
        let Lines::Kept { begins, parts } = self.edition.lines else { return Ok(()) };
        if part == parts || self.is_full() {
            push_end(text, part < parts);
            return Ok(());
        }
        let page = self.store.hour_part(begins, part).await?;
        self.push(text, page.iter());
        self.at = Place::Part(part + 1);
        Ok(())
    }

    fn push<'c>(&mut self, text: &mut String, page: impl Iterator<Item = &'c WeblogChange>) {
        let Edition { updated, unit, .. } = self.edition;
        for change in page {
            if self.edition.sees(change) {
                push_line(text, change, updated, unit);
            }
            self.lines += 1;
        }
    }
}
