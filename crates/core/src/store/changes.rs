//! The lines of changes.xml.

use chrono::{DateTime, Utc};

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
