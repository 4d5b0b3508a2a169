//! What may be asked of what changes.xml lists.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::StoreError;
use crate::ping::{TimeUnit, WeblogChange};

/// Lines of changes.xml in a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangesWindow {
    /// From then on.
    pub from: DateTime<Utc>,
    /// Before then.
    pub until: DateTime<Utc>,
    /// No line of a greater number: what came while somebody was reading.
    pub newest: i64,
}

/// A line of changes.xml and its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeLine {
    /// Its number; later lines have greater ones.
    pub id: i64,
    /// What it says.
    pub change: WeblogChange,
}

/// An hour that is over, as it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangesHour {
    /// The unit of `when` in its document.
    pub unit: TimeUnit,
    /// How many pings had ever been received when it was kept.
    pub count: u64,
    /// How many pages of lines it has.
    pub parts: usize,
}

/// What changes.xml and its relatives list: pings, and changes that were seen without
/// one. Nothing is ever read in more than one page of lines.
#[async_trait]
pub trait Changes: Send + Sync {
    /// The number of the newest line, and how many pings were ever received.
    async fn newest_change(&self) -> Result<(i64, u64), StoreError>;

    /// A page of the lines in `window`, newest first, that come after the line `after`;
    /// empty behind the last.
    async fn changes(
        &self,
        window: &ChangesWindow,
        after: Option<&ChangeLine>,
    ) -> Result<Vec<ChangeLine>, StoreError>;

    /// The hour that begins then, if it is kept.
    async fn hour(&self, begins: DateTime<Utc>) -> Result<Option<ChangesHour>, StoreError>;

    /// A page of its lines, newest first.
    async fn hour_part(
        &self,
        begins: DateTime<Utc>,
        part: usize,
    ) -> Result<Vec<WeblogChange>, StoreError>;

    /// The first hour that is not kept yet, by its beginning; `None` if nothing was ever
    /// listed.
    async fn open_hour(&self) -> Result<Option<DateTime<Utc>>, StoreError>;

    /// Keeps the hours that are over at `now`, and have been so long enough for what was
    /// under way in them. Their documents count in `unit`. Returns how many.
    async fn save_hours(&self, now: DateTime<Utc>, unit: TimeUnit) -> Result<u64, StoreError>;

    /// Drops lines from before `before`, but none of an hour that is not kept yet, and
    /// hours from before `hours_before` if that is given. Returns how many lines.
    async fn prune_changes(
        &self,
        before: DateTime<Utc>,
        hours_before: Option<DateTime<Utc>>,
    ) -> Result<u64, StoreError>;
}
