//! When a resource is fetched next, and why.
//!
//! One function decides it, [`plan`]: after each poll, for `feedgate poll`, and in `feedgate
//! simulate-schedule`. The input is the result of a fetch; the output is the new polling state, the
//! period with every step that led to it, and the time of the next fetch.
//!
//! The period depends on how often the resource was seen to change: `T = k / sqrt(rate)`, which at
//! a given number of polls gives the least delay per entry (`docs/contributing/polling.md` has the
//! figures). A publisher's polling hints can lengthen the period; they cannot shorten it (rule
//! P13).

mod backoff;
mod budget;
mod failure_class;
mod period;
mod rate;
mod reason;
mod steps;
#[cfg(test)]
mod tests;

use chrono::{DateTime, TimeDelta, Utc};

use super::polling::Polling;
use super::polling_hints::PollingHints;
use super::resource_id::ResourceKind;
use feedgate_feed::model::Feed;

pub use backoff::{PollSetback, is_gone};
pub use budget::{Demand, steer};
pub use failure_class::FailureClass;
pub use period::{LONGEST_S, Period};
pub use reason::PeriodReason;
pub use steps::{PeriodBound, PeriodStep};

/// The minimum of `k` in the square-root rule, in hours·√(entries/h): 24 polls a day on an average
/// feed (measured by simulation; see `docs/contributing/polling.md`). A poll budget that would
/// allow more is not used up, to keep the load on publishers low.
pub const K_LEAST: f64 = 0.19;

/// An entry that was apparently published less than this ago has no date of its own: its date is
/// the time at which it was found (rule N9).
const A_MOMENT: TimeDelta = TimeDelta::seconds(60);

/// The operator's bounds of periods.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScheduleBounds {
    /// The shortest period of any resource, in seconds (rule P54).
    pub min_period_s: u32,
    /// `k` of the square-root rule, at least [`K_LEAST`]; higher where the poll budget does not
    /// suffice.
    pub k: f64,
}

/// A resource as the schedule sees it.
#[derive(Clone, Debug)]
pub struct ScheduleInput {
    /// The kind of the resource, as known from earlier polls.
    pub kind: ResourceKind,
    /// The number of live subscriptions.
    pub subscribers: u32,
    /// Whether an upstream is trusted to push all changes of the resource (rule P53).
    pub pushed: bool,
    /// The polling state. Validators and size are already those of this response.
    pub polling: Polling,
}

/// The result of a fetch, as input of the schedule.
#[derive(Clone, Debug, PartialEq)]
pub enum PollFinding {
    /// The server responded with "not modified".
    NotModified {
        /// The freshness lifetime of the response in seconds, if it has one.
        hint_s: Option<u32>,
    },
    /// The body is the same as before.
    Same {
        /// The freshness lifetime in the headers, in seconds.
        hint_s: u32,
    },
    /// A usable document.
    NewRecords(NewRecords),
    /// No usable response.
    Failure(PollSetback),
}

/// The content of a document, as input of the schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRecords {
    /// The kind of the resource.
    pub kind: ResourceKind,
    /// The publisher's polling hints.
    pub hints: PollingHints,
    /// The number of entries in the document.
    pub entries: usize,
    /// The number of new records.
    pub new: usize,
    /// The publication dates of the entries that have one.
    pub dates: Vec<DateTime<Utc>>,
}

impl NewRecords {
    /// Returns the content of a feed that was found at `at`. `hint_s` is the freshness lifetime in
    /// its headers, in seconds.
    pub fn from_feed(feed: &Feed, hint_s: u32, new: usize, at: DateTime<Utc>) -> NewRecords {
        let dates = feed.entries.iter().filter_map(|entry| entry.published.or(entry.updated));
        let dates = dates.map(|date| date.to_utc()).filter(|date| *date < at - A_MOMENT);
        NewRecords {
            kind: ResourceKind::Feed,
            hints: PollingHints::from_document(hint_s, &feed.hints),
            entries: feed.entries.len(),
            new,
            dates: dates.collect(),
        }
    }

    /// Returns the content of a resource that is not a feed.
    pub fn of_other(hint_s: u32, new: usize) -> NewRecords {
        NewRecords {
            kind: ResourceKind::Other,
            hints: PollingHints::from_document(hint_s, &feedgate_feed::model::Hints::default()),
            entries: 0,
            new,
            dates: Vec::new(),
        }
    }
}

/// The schedule after a fetch.
#[derive(Clone, Debug, PartialEq)]
pub struct PollPlan {
    /// The new polling state.
    pub polling: Polling,
    /// The time between two polls.
    pub period: Period,
    /// The bound set by each rule, in order.
    pub steps: Vec<PeriodStep>,
    /// How the period depends on `k`.
    pub demand: Demand,
    /// When to fetch next.
    pub next_fetch: DateTime<Utc>,
}

/// Plans the next fetch after one that ended `now`. `jitter` is random from 0 to 1.
pub fn plan(
    held: ScheduleInput,
    found: &PollFinding,
    bounds: &ScheduleBounds,
    now: DateTime<Utc>,
    jitter: f64,
) -> PollPlan {
    let ScheduleInput { kind, subscribers, pushed, mut polling } = held;
    let is_first = polling.rate_at.is_none();
    learn(&mut polling, kind, found, now);
    let kind = match found {
        PollFinding::NewRecords(document) => document.kind,
        _ => kind,
    };
    let mut steps = steps::steady(kind, subscribers, &polling, bounds, now);
    if pushed {
        steps.rarely();
    }
    if let PollFinding::Failure(setback) = found {
        backoff::stay_away(&mut steps, &polling, setback, now);
    }
    let (period, steps, demand) = steps.finish();
    let next_fetch = if is_first && polling.rate_at.is_some() {
        polling.hints.allowed_from(period.next_after_first(now, jitter))
    } else {
        polling.hints.next(period, now, jitter)
    };
    let next_fetch = match found {
        PollFinding::Failure(_) => {
            backoff::keep_plan(&polling, next_fetch, bounds.min_period_s, now)
        }
        _ => next_fetch,
    };
    PollPlan { polling, period, steps, demand, next_fetch }
}

/// Updates the polling state with what was found, except validators and hash.
fn learn(polling: &mut Polling, kind: ResourceKind, found: &PollFinding, now: DateTime<Utc>) {
    let is_first = polling.rate_at.is_none();
    let mut new = 0;
    match found {
        PollFinding::NotModified { hint_s } => {
            polling.hints.not_modified(*hint_s);
            polling.resent = false;
        }
        PollFinding::Same { hint_s } => {
            polling.hints.same_again(*hint_s);
            polling.resent = true;
        }
        PollFinding::NewRecords(document) => {
            polling.hints = document.hints.clone();
            polling.window = document.entries.try_into().unwrap_or(u32::MAX);
            if document.new > 0 {
                let is_known = !is_first && kind == ResourceKind::Feed;
                let overlaps = document.new < document.entries;
                polling.overrun = is_known && !overlaps && polling.window >= steps::LEAST_WINDOW;
            }
            new = document.new;
        }
        PollFinding::Failure(setback) => {
            backoff::count(polling, setback, now);
            return;
        }
    }
    let dates = match found {
        PollFinding::NewRecords(document) if is_first => document.dates.as_slice(),
        _ => &[],
    };
    if is_first {
        polling.entries_per_hour = rate::first_rate(dates.iter().copied(), now);
        let newest = dates.iter().filter(|date| **date <= now).max();
        polling.is_rate_assumed = newest.is_none();
        polling.last_new = Some(newest.copied().unwrap_or(now));
    } else {
        polling.entries_per_hour = rate::rate_after(polling, new, now);
        polling.is_rate_assumed &= new == 0;
        if new > 0 || polling.last_new.is_none() {
            polling.last_new = Some(now);
        }
    }
    polling.rate_at = Some(now);
    backoff::forget(polling);
}
