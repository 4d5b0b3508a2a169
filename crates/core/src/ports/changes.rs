//! The port of the lines of changes.xml.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::StoreError;
use crate::ping::{TimeUnit, WeblogChange};

/// A selection of lines of changes.xml by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangesWindow {
    /// The beginning, inclusive.
    pub from: DateTime<Utc>,
    /// The end, exclusive.
    pub until: DateTime<Utc>,
    /// The greatest line number, which excludes lines added while a document is read.
    pub newest: i64,
}

/// A line of changes.xml with its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeLine {
    /// The number; later lines have greater ones.
    pub id: i64,
    /// The line.
    pub change: WeblogChange,
}

/// A stored past hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangesHour {
    /// The unit of `when` in the document.
    pub unit: TimeUnit,
    /// The total number of pings received when the hour was stored.
    pub count: u64,
    /// The number of pages of lines.
    pub parts: usize,
}

/// The lines of changes.xml and related documents: pings, and changes found by polls. All reads are
/// paged.
#[async_trait]
pub trait Changes: Send + Sync {
    /// Returns the number of the newest line, and the total number of pings received.
    async fn newest_change(&self) -> Result<(i64, u64), StoreError>;

    /// Returns a page of the lines in `window`, newest first, after the line `after`; empty at the
    /// end.
    async fn changes(
        &self,
        window: &ChangesWindow,
        after: Option<&ChangeLine>,
    ) -> Result<Vec<ChangeLine>, StoreError>;

    /// Returns the stored hour that begins at this time.
    async fn hour(&self, begins: DateTime<Utc>) -> Result<Option<ChangesHour>, StoreError>;

    /// Returns a page of the lines of an hour, newest first.
    async fn hour_part(
        &self,
        begins: DateTime<Utc>,
        part: usize,
    ) -> Result<Vec<WeblogChange>, StoreError>;

    /// Returns the beginning of the first hour that is not stored yet; `None` if there was never a
    /// line.
    async fn open_hour(&self) -> Result<Option<DateTime<Utc>>, StoreError>;

    /// Stores the hours that ended long enough before `now` for all lines to have been written.
    /// Their documents count in `unit`. Returns the number of hours.
    async fn save_hours(&self, now: DateTime<Utc>, unit: TimeUnit) -> Result<u64, StoreError>;

    /// Deletes lines from before `before` whose hour is stored, and hours from before
    /// `hours_before` if given. Returns the number of lines.
    async fn prune_changes(
        &self,
        before: DateTime<Utc>,
        hours_before: Option<DateTime<Utc>>,
    ) -> Result<u64, StoreError>;
}
