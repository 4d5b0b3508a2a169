//! The steps to a period: the bound set by each rule, and the result.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::super::polling::Polling;
use super::super::resource_id::ResourceKind;
use super::budget::Demand;
use super::period::{FAILURE_JITTER, JITTER, LONGEST_JITTER_S, LONGEST_S, Period};
use super::rate::UNREACHED_PER_HOUR;
use super::reason::PeriodReason;
use super::{K_LEAST, ScheduleBounds};

const HOUR_S: u32 = 3_600;
const DAY_S: u32 = 24 * HOUR_S;

/// The minimum rate: one entry per month.
const SLOWEST_PER_HOUR: f64 = 1.0 / 720.0;
/// The time without new entries after which a resource counts as silent.
const SILENT_FROM: Duration = Duration::from_secs(180 * DAY_S as u64);
/// The period of a silent resource: a day.
const SILENT_S: u32 = DAY_S;
/// The minimum number of entries of a document for which a full window is considered.
pub(super) const LEAST_WINDOW: u32 = 3;
/// The number of polls while new entries fill the window once.
const LOOKS_A_WINDOW: f64 = 3.0;
/// The factor for a server that sends the whole document every time.
const UNCONDITIONAL_TIMES: u32 = 3;
/// The factor for a server that sends a large document every time: 15 and 60 minutes, with a
/// minimum of 5 (rule P54).
const LARGE_TIMES: u32 = 12;
const LARGE_BYTES: u32 = 256 * 1_024;

/// The bound set by one rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PeriodStep {
    /// The kind of bound.
    pub bound: PeriodBound,
    /// The bound in seconds.
    pub secs: u32,
    /// The reason.
    pub reason: PeriodReason,
}

/// The kind of a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeriodBound {
    /// The period that the rule aims at.
    Wanted,
    /// A maximum.
    AtMost,
    /// A minimum.
    AtLeast,
}

impl PeriodBound {
    /// Returns the words for people: `at most`.
    pub fn as_str(self) -> &'static str {
        match self {
            PeriodBound::Wanted => "wanted",
            PeriodBound::AtMost => "at most",
            PeriodBound::AtLeast => "at least",
        }
    }
}

/// A period that is being computed.
#[derive(Debug)]
pub(super) struct PeriodSteps {
    taken: Vec<PeriodStep>,
    secs: u32,
    least_s: u32,
    reason: PeriodReason,
    is_failing: bool,
    /// The period in seconds by the rate at the minimum `k`.
    free_s: f64,
    /// The weight of the subscribers.
    weight: f64,
}

impl PeriodSteps {
    /// Returns the current period in seconds.
    pub(super) fn secs(&self) -> u32 {
        self.secs
    }

    fn at_most(&mut self, secs: u32, reason: PeriodReason) {
        if secs < self.secs {
            self.taken.push(PeriodStep { bound: PeriodBound::AtMost, secs, reason });
            (self.secs, self.reason) = (secs, reason);
        }
    }

    /// Raises the period to a minimum that jitter may undercut.
    pub(super) fn lengthen(&mut self, secs: u32, reason: PeriodReason) {
        self.taken.push(PeriodStep { bound: PeriodBound::AtLeast, secs, reason });
        if secs > self.secs || (secs == self.secs && self.is_failing) {
            (self.secs, self.reason) = (secs, reason);
        }
    }

    /// Raises the period to a minimum that jitter may not undercut.
    pub(super) fn at_least(&mut self, secs: u32, reason: PeriodReason) {
        if secs == 0 {
            return;
        }
        self.taken.push(PeriodStep { bound: PeriodBound::AtLeast, secs, reason });
        self.least_s = self.least_s.max(secs);
        if secs > self.secs {
            (self.secs, self.reason) = (secs, reason);
        }
    }

    /// Raises the period of a resource with a reliable upstream, for which polls are a backup, to
    /// once a day (rule P53).
    pub(super) fn rarely(&mut self) {
        self.lengthen(DAY_S, PeriodReason::Pushed);
    }

    /// Increases the jitter after a failure.
    pub(super) fn spread_failures(&mut self) {
        self.is_failing = true;
    }

    /// Returns the period, all steps, and the dependency on `k`.
    pub(super) fn finish(self) -> (Period, Vec<PeriodStep>, Demand) {
        let secs = f64::from(self.secs);
        let jitter_s = if self.is_failing {
            secs * FAILURE_JITTER
        } else {
            (secs * JITTER).min(LONGEST_JITTER_S)
        };
        let PeriodSteps { secs, least_s, reason, .. } = self;
        let period = Period { secs, least_s, jitter_s, reason };
        let demand = Demand::from_period(period, self.free_s, self.weight, least_s);
        (period, self.taken, demand)
    }
}

/// Returns the minimum interval between polls of a resource of this kind, in seconds.
fn floor_s(kind: ResourceKind) -> u32 {
    match kind {
        ResourceKind::Feed | ResourceKind::Unknown | ResourceKind::Collection => 60,
        ResourceKind::Other => 300,
    }
}

/// Computes the period of a resource without failures.
pub(super) fn steady(
    kind: ResourceKind,
    subscribers: u32,
    polling: &Polling,
    bounds: &ScheduleBounds,
    now: DateTime<Utc>,
) -> PeriodSteps {
    let mut steps = adaptive(subscribers, polling, bounds);
    steps.at_most(LONGEST_S, PeriodReason::Longest);
    guard_window(&mut steps, polling);
    let silent = polling.last_new.is_some_and(|last| now - last >= SILENT_DELTA);
    if silent {
        steps.lengthen(SILENT_S, PeriodReason::Silent);
    }
    steps.at_least(floor_s(kind), PeriodReason::Floor);
    be_polite(&mut steps, polling, bounds);
    for floor in polling.hints.floors(polling.entries_per_hour) {
        steps.at_least(floor.secs, floor.reason);
    }
    steps
}

const SILENT_DELTA: chrono::TimeDelta = chrono::TimeDelta::seconds(SILENT_FROM.as_secs() as i64);

/// Computes the period by the rate: `T = k / sqrt(rate)`.
fn adaptive(subscribers: u32, polling: &Polling, bounds: &ScheduleBounds) -> PeriodSteps {
    let is_known = polling.rate_at.is_some();
    let rate = if is_known { polling.entries_per_hour } else { UNREACHED_PER_HOUR };
    let (stretch, weight) = bounds.stretch(subscribers);
    let free_s = K_LEAST / rate.max(SLOWEST_PER_HOUR).sqrt() * f64::from(HOUR_S);
    let per_day = rate * 24.0;
    let reason = match (is_known, stretch > 1.0) {
        (false, _) => PeriodReason::Unknown,
        (true, is_rationed) if polling.is_rate_assumed => PeriodReason::Assumed { is_rationed },
        (true, false) => PeriodReason::Rate { per_day },
        (true, true) => PeriodReason::Rationed { per_day, stretch },
    };
    let secs = (free_s * stretch).round() as u32;
    let first = PeriodStep { bound: PeriodBound::Wanted, secs, reason };
    let (taken, least_s, is_failing) = (vec![first], 0, false);
    PeriodSteps { taken, secs, least_s, reason, is_failing, free_s, weight }
}

/// Shortens the period of a document that may drop entries before they are found.
fn guard_window(steps: &mut PeriodSteps, polling: &Polling) {
    let entries = polling.window;
    if entries < LEAST_WINDOW || polling.rate_at.is_none() {
        return;
    }
    if polling.overrun {
        steps.at_most(steps.secs() / 2, PeriodReason::WindowOverrun);
    }
    let hours = f64::from(entries) / (LOOKS_A_WINDOW * polling.entries_per_hour);
    // The conversion saturates, because a rate of zero never fills the window.
    steps.at_most((hours * f64::from(HOUR_S)) as u32, PeriodReason::Window { entries });
}

/// Raises the period by the cost of a poll for the publisher, unless its headers allow shorter ones
/// (rule P54).
fn be_polite(steps: &mut PeriodSteps, polling: &Polling, bounds: &ScheduleBounds) {
    let least = bounds.min_period_s;
    steps.at_least(least, PeriodReason::MinPeriod);
    let is_known = polling.rate_at.is_some();
    let is_cheap = !polling.validators.is_empty() && !polling.resent;
    // A publisher whose headers declare a freshness of a minute expects a request every minute.
    let consents = polling.hints.headers_s > 0 && polling.hints.headers_s <= least;
    if !is_known || is_cheap || consents {
        return;
    }
    let (times, reason) = if polling.body_bytes > LARGE_BYTES {
        (LARGE_TIMES, PeriodReason::UnconditionalLarge)
    } else {
        (UNCONDITIONAL_TIMES, PeriodReason::Unconditional)
    };
    steps.at_least(least.saturating_mul(times), reason);
}
