//! What Superfeedr's status element says of a resource (seed 003, "Schema & Data Formats").

use chrono::{DateTime, Utc};

/// The fields of the status element, to be written as Atom or JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StatusReport<'a> {
    /// Last HTTP status code; 0 while nothing was fetched or no answer came.
    pub http_code: u16,
    /// "the content of that tag is a more explicit log message for your information".
    pub http_message: &'a str,
    /// The feed's title, as plain text.
    pub title: &'a str,
    /// When the resource was last fetched.
    pub last_fetch: Option<DateTime<Utc>>,
    /// When its content was last parsed: a fetch that finds nothing modified parses nothing.
    pub last_parse: Option<DateTime<Utc>>,
    /// "the resource will be fetched at most before this time".
    pub next_fetch: Option<DateTime<Utc>>,
    /// Seconds between two polls.
    pub period_s: u32,
    /// Why the period is what it is, in plain words; empty if nothing is to be said.
    pub period_reason: &'a str,
    /// When maintenance last measured the resource.
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
}
