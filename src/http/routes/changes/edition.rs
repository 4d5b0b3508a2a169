//! A document at one moment, and its pages.
//!
//! An edition says all that its text depends on: who reads its pages twice reads the same.
//! A page of lines is all that is ever held of it.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::http::routes::changes::render::{END, push_head, push_line};
use feedgate_core::ping::{TimeUnit, WeblogChange};
use feedgate_core::ports::{ChangeLine, ChangesWindow, Store, StoreError};

/// What one text of a document depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edition {
    /// Which lines it has.
    pub(super) lines: Lines,
    /// As of when it is.
    pub(super) updated: DateTime<Utc>,
    /// How many pings were ever received.
    pub(super) count: u64,
    /// The unit of `when`.
    pub(super) unit: TimeUnit,
}

/// Where the lines come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lines {
    /// They are read as they stand.
    Listed(ChangesWindow),
    /// They are those of an hour that is over.
    Kept {
        /// When it began.
        begins: DateTime<Utc>,
        /// How many pages it has.
        parts: usize,
    },
}

impl Edition {
    /// When its first line may have come at the earliest.
    pub(super) fn begins(&self) -> DateTime<Utc> {
        match &self.lines {
            Lines::Listed(window) => window.from,
            Lines::Kept { begins, .. } => *begins,
        }
    }

    /// Tells this edition from every other. Weak, because it may be sent compressed.
    pub(super) fn etag(&self) -> String {
        let newest = match &self.lines {
            Lines::Listed(window) => window.newest,
            Lines::Kept { .. } => -1,
        };
        let (from, updated) = (self.begins().timestamp_micros(), self.updated.timestamp_micros());
        format!("W/\"{from:x}-{updated:x}-{newest}-{}\"", self.unit.as_str())
    }
}

/// Reads an edition from its beginning to its end.
pub(super) struct Pages {
    store: Arc<dyn Store>,
    edition: Edition,
    at: Place,
    /// How many lines were read.
    pub(super) lines: usize,
}

enum Place {
    Head,
    After(Option<ChangeLine>),
    Part(usize),
    End,
}

impl Pages {
    /// Reads `edition` from the beginning.
    pub(super) fn read(store: &Arc<dyn Store>, edition: Edition) -> Pages {
        Pages { store: Arc::clone(store), edition, at: Place::Head, lines: 0 }
    }

    /// The next piece of the text; `None` behind the last.
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
        Ok(Some(text))
    }

    async fn listed(
        &mut self,
        text: &mut String,
        last: Option<ChangeLine>,
    ) -> Result<(), StoreError> {
        let Lines::Listed(window) = &self.edition.lines else { return Ok(()) };
        let mut page = self.store.changes(window, last.as_ref()).await?;
        self.push(text, page.iter().map(|line| &line.change));
        match page.pop() {
            Some(last) => self.at = Place::After(Some(last)),
            None => text.push_str(END),
        }
        Ok(())
    }

    async fn kept(&mut self, text: &mut String, part: usize) -> Result<(), StoreError> {
        let Lines::Kept { begins, parts } = self.edition.lines else { return Ok(()) };
        if part == parts {
            text.push_str(END);
            return Ok(());
        }
        let page = self.store.hour_part(begins, part).await?;
        self.push(text, page.iter());
        self.at = Place::Part(part + 1);
        Ok(())
    }

    fn push<'c>(&mut self, text: &mut String, page: impl Iterator<Item = &'c WeblogChange>) {
        let (updated, unit) = (self.edition.updated, self.edition.unit);
        for change in page {
            push_line(text, change, updated, unit);
            self.lines += 1;
        }
    }
}
