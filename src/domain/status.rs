//! What is known of a resource now, as subscribers see it.
//!
//! The fields are those of Superfeedr's status element (seed 003, "Schema & Data
//! Formats"); `render` gives them their names in Atom and JSON.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// The report on a resource. Only the latest matters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// Last HTTP status code; 0 while nothing was fetched or no answer came.
    pub http_code: u16,
    /// "the content of that tag is a more explicit log message for your information".
    pub http_message: String,
    /// The feed's title, as plain text.
    pub title: String,
    /// When the resource was last fetched.
    pub last_fetch: Option<DateTime<Utc>>,
    /// When its content was last parsed: a fetch that finds nothing modified parses
    /// nothing.
    pub last_parse: Option<DateTime<Utc>>,
    /// "the resource will be fetched at most before this time".
    pub next_fetch: Option<DateTime<Utc>>,
    /// Seconds between two polls.
    pub period_s: u32,
    /// Why the period is what it is, in plain words.
    pub period_reason: String,
    /// When upkeep last measured the resource.
    pub last_maintenance_at: Option<DateTime<Utc>>,
    /// New records since then.
    pub entries_count_since_last_maintenance: u64,
    /// New records in the last maintenance cycle (24 to 48 hours).
    pub velocity: u64,
    /// Starts at 0; the greater, the more popular.
    pub popularity: f64,
    /// 0 to 1: how likely the feed is "valid syntactically but likely invalid
    /// semantically".
    pub bozo_rank: f64,
    /// 0 to 1, where it was estimated.
    pub porn_rank: Option<f64>,
    /// Whether ids of entries had to be generated.
    pub generated_ids: bool,
    /// Grows at each transition: into and out of error, gone, moved.
    pub version: i64,
    /// The error the resource is in, as a stable word; empty while all is well.
    pub error: String,
}

impl Status {
    /// Whether the last poll ended in an error.
    pub fn is_failing(&self) -> bool {
        !self.error.is_empty()
    }
}
