//! The content of Superfeedr's status element (seed 003, "Schema & Data Formats").

use chrono::{DateTime, Utc};

/// The status of a resource, serialized as Atom or JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StatusReport<'a> {
    /// The last HTTP status code; 0 before the first fetch, or if there was no response.
    pub http_code: u16,
    /// A message about the last fetch: "the content of that tag is a more explicit log message for
    /// your information".
    pub http_message: &'a str,
    /// The title of the feed, as plain text.
    pub title: &'a str,
    /// The time of the last fetch.
    pub last_fetch: Option<DateTime<Utc>>,
    /// The time at which content was last parsed. A fetch that returns "not modified" parses
    /// nothing.
    pub last_parse: Option<DateTime<Utc>>,
    /// The time of the next fetch: "the resource will be fetched at most before this time".
    pub next_fetch: Option<DateTime<Utc>>,
    /// The seconds between two polls.
    pub period_s: u32,
    /// The reason for the period, as words for people; empty if there is nothing to explain.
    pub period_reason: &'a str,
    /// The time at which maintenance last measured the resource, or at which the resource was
    /// created. It is always present, because clients read it without checking whether it is.
    pub last_maintenance_at: DateTime<Utc>,
    /// The number of new records since the last maintenance.
    pub entries_count_since_last_maintenance: u64,
    /// The number of new records in the last maintenance cycle (24 to 48 hours).
    pub velocity: u64,
    /// The popularity, from 0 upwards.
    pub popularity: f64,
    /// The likelihood, from 0 to 1, that the feed is "valid syntactically but likely invalid
    /// semantically".
    pub bozo_rank: f64,
    /// The likelihood of adult content, from 0 to 1, if it was estimated.
    pub porn_rank: Option<f64>,
    /// Whether the id of any entry was generated.
    pub generated_ids: bool,
    /// Whether the document repeats the newest entries as a digest.
    pub is_digest: bool,
}
