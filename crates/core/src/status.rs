//! The status of a resource, as subscribers see it.
//!
//! The fields are those of Superfeedr's status element (seed 003, "Schema & Data
//! Formats"); `render` gives them their names in Atom and JSON.

use std::time::Duration;

use chrono::{DateTime, Utc};
use feedgate_feed::render::StatusReport;
use serde::{Deserialize, Serialize};

use super::daily_counts::DailyCounts;
use super::polling::Polling;

/// The status of a resource. Only the latest is stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// The last HTTP status code; 0 if nothing was fetched or no response was received.
    pub http_code: u16,
    /// "the content of that tag is a more explicit log message for your information".
    pub http_message: String,
    /// The title of the feed, as plain text.
    pub title: String,
    /// When the resource was last fetched.
    pub last_fetch: Option<DateTime<Utc>>,
    /// When the content was last parsed. A response of "not modified" is not parsed.
    pub last_parse: Option<DateTime<Utc>>,
    /// "the resource will be fetched at most before this time".
    pub next_fetch: Option<DateTime<Utc>>,
    /// Seconds between two polls.
    pub period_s: u32,
    /// The reason for the period, as a clause for people.
    pub period_reason: String,
    /// When maintenance last measured the resource, or when the resource was created: its first
    /// maintenance cycle begins then.
    pub last_maintenance_at: DateTime<Utc>,
    /// The number of new records since then.
    pub entries_count_since_last_maintenance: u64,
    /// New records in the last maintenance cycle (24 to 48 hours).
    pub velocity: u64,
    /// The number of new records on each of the last days.
    pub daily: DailyCounts,
    /// The popularity, which starts at 0 and has no maximum.
    pub popularity: f64,
    /// The likelihood from 0 to 1 that the feed is "valid syntactically but likely invalid
    /// semantically".
    pub bozo_rank: f64,
    /// The likelihood from 0 to 1 that the feed is pornographic, if it was estimated.
    pub porn_rank: Option<f64>,
    /// Whether ids of entries had to be generated.
    pub generated_ids: bool,
    /// Incremented at each transition: into and out of an error, gone, moved.
    pub version: i64,
    /// The stable code of the current error; empty if there is none.
    pub error: String,
    /// The health that was last announced to subscribers.
    pub announced: AnnouncedHealth,
    /// The last transitions, at most ten, the oldest first.
    pub transitions: Vec<StatusTransition>,
}

/// The number of transitions that are kept of a resource.
const TRANSITIONS: usize = 10;
/// The longest reason of a transition, in characters.
const REASON_CHARS: usize = 200;

/// A change into or out of an error, or of the fetch URL.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatusTransition {
    /// When a poll found it.
    pub at: DateTime<Utc>,
    /// `ok`, `moved`, or the stable code of the error.
    pub state: String,
    /// The message of the status at that time.
    pub reason: String,
}

/// The health last announced to subscribers (P33). Conditions that may soon pass are not announced,
/// and at most one message is sent per day.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AnnouncedHealth {
    /// Incremented with each announcement.
    pub version: i64,
    /// The announced health.
    pub state: ResourceHealth,
    /// When it was announced.
    pub at: Option<DateTime<Utc>>,
    /// Whether the resource has moved since.
    pub moved: bool,
}

/// The health of a resource, in the terms of announcements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceHealth {
    /// The last poll succeeded.
    #[default]
    Well,
    /// Polls have been failing for a long time.
    Failing,
    /// The resource is permanently gone.
    Gone,
}

/// The number of failed polls before a failure is announced …
const FAILING_POLLS: u32 = 3;
/// … and the time for which polls must have failed, because a false alarm costs more trust than a
/// late one.
const FAILING_FOR: Duration = Duration::from_secs(6 * 3_600);
/// The minimum interval between two announcements of one resource.
const MESSAGE_EVERY: Duration = Duration::from_secs(24 * 3_600);

impl AnnouncedHealth {
    /// Considers the health of the resource at `now`; the version grows if subscribers are to
    /// receive it. A change within a day of the last message is announced later, if
    /// it still holds.
    pub fn consider(&mut self, state: ResourceHealth, now: DateTime<Utc>) {
        let has_changed = state != self.state || self.moved;
        if has_changed && self.at.is_none_or(|at| now >= at + MESSAGE_EVERY) {
            let version = self.version + 1;
            *self = AnnouncedHealth { version, state, at: Some(now), moved: false };
        }
    }
}

impl Status {
    /// Creates the status of a resource that is created at `now`.
    pub fn new(now: DateTime<Utc>) -> Status {
        Status { last_maintenance_at: now, ..Status::default() }
    }

    /// The fields that subscribers are shown.
    pub fn report(&self) -> StatusReport<'_> {
        StatusReport {
            http_code: self.http_code,
            http_message: &self.http_message,
            title: &self.title,
            last_fetch: self.last_fetch,
            last_parse: self.last_parse,
            next_fetch: self.next_fetch,
            period_s: self.period_s,
            period_reason: &self.period_reason,
            last_maintenance_at: self.last_maintenance_at,
            entries_count_since_last_maintenance: self.entries_count_since_last_maintenance,
            velocity: self.velocity,
            popularity: self.popularity,
            bozo_rank: self.bozo_rank,
            porn_rank: self.porn_rank,
            generated_ids: self.generated_ids,
            is_digest: false,
        }
    }

    /// Returns the health, given the polling state. While a failure may soon pass, the announced
    /// health remains.
    pub fn state(&self, polling: &Polling, now: DateTime<Utc>) -> ResourceHealth {
        let since = polling.failing_since.unwrap_or(now);
        match self.error.as_str() {
            "" => ResourceHealth::Well,
            "gone" => ResourceHealth::Gone,
            _ if polling.failures >= FAILING_POLLS && now >= since + FAILING_FOR => {
                ResourceHealth::Failing
            }
            _ => self.announced.state,
        }
    }

    /// Records that the resource has a new fetch URL from `now` on.
    pub fn has_moved(&mut self, now: DateTime<Utc>) {
        self.change("moved", now);
        self.announced.moved = true;
        self.announced.consider(self.announced.state, now);
    }

    /// Records a transition at `now` to `state`.
    pub fn change(&mut self, state: &str, now: DateTime<Utc>) {
        self.version += 1;
        let over = (self.transitions.len() + 1).saturating_sub(TRANSITIONS);
        self.transitions.drain(..over);
        let reason = self.http_message.chars().take(REASON_CHARS).collect();
        self.transitions.push(StatusTransition { at: now, state: state.to_owned(), reason });
    }

    /// Whether the last poll ended in an error.
    pub fn is_failing(&self) -> bool {
        !self.error.is_empty()
    }

    /// Whether the resource is gone for good, as far as its server says.
    pub fn is_gone(&self) -> bool {
        self.error == "gone"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The versions after each poll of a resource: hour, error, and the version that is
    /// announced then.
    type Story = &'static [(i64, &'static str, i64)];

    #[test]
    fn p33_only_what_lasts_is_announced_and_once_a_day() {
        #[rustfmt::skip]
        let cases: [(&str, Story); 6] = [
            ("a hiccup",                     &[(0, "", 0), (1, "x", 0), (2, "x", 0), (3, "", 0)]),
            ("many failures in a short time", &[(0, "x", 0), (1, "x", 0), (2, "x", 0), (5, "x", 0), (5, "", 0)]),
            ("few failures in a long time",  &[(0, "x", 0), (9, "x", 0), (10, "", 0)]),
            ("what lasts, and once",         &[(0, "x", 0), (3, "x", 0), (6, "x", 1), (9, "x", 1), (40, "x", 1)]),
            ("well again, but a day later",  &[(0, "x", 0), (3, "x", 0), (6, "x", 1), (9, "", 1), (29, "", 1), (30, "", 2), (60, "", 2)]),
            ("and gone after it failed",     &[(0, "x", 0), (3, "x", 0), (9, "x", 1), (49, "gone", 2), (99, "gone", 2)]),
        ];
        for (why, story) in cases {
            let (mut status, mut polling) = (Status::default(), Polling::default());
            for (hour, error, want) in story {
                let now = DateTime::UNIX_EPOCH + Duration::from_secs(*hour as u64 * 3_600);
                (*error).clone_into(&mut status.error);
                if error.is_empty() {
                    polling = Polling::default();
                } else {
                    polling.failures += 1;
                    polling.failing_since.get_or_insert(now);
                }
                let state = status.state(&polling, now);
                status.announced.consider(state, now);
                assert_eq!(status.announced.version, *want, "{why}, hour {hour}");
            }
        }
    }

    #[test]
    fn p33_a_move_is_announced_too() {
        let at = |hours: u64| DateTime::UNIX_EPOCH + Duration::from_secs(hours * 3_600);
        let mut status = Status::default();
        status.has_moved(at(0));
        assert_eq!((status.version, status.announced.version), (1, 1));
        status.has_moved(at(1));
        assert_eq!((status.version, status.announced.version), (2, 1), "not twice a day");
        status.announced.consider(ResourceHealth::Well, at(24));
        assert_eq!(status.announced.version, 2, "but later");
    }
    #[test]
    fn the_last_transitions_are_kept() {
        let mut status = Status { http_message: "x".repeat(5_000), ..Status::default() };
        for n in 0..25 {
            let state = if n % 2 == 0 { "timeout" } else { "ok" };
            status.change(state, DateTime::UNIX_EPOCH + Duration::from_secs(n));
        }
        assert_eq!((status.version, status.transitions.len()), (25, TRANSITIONS));
        let last = &status.transitions[TRANSITIONS - 1];
        assert_eq!((last.at.timestamp(), last.state.as_str()), (24, "timeout"));
        assert_eq!(last.reason.len(), REASON_CHARS);
        assert_eq!(status.transitions[0].at.timestamp(), 15);
    }
}
