//! The steps to a period: what each rule says about it, and what comes out.

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

/// Once in a month is as slow as a rate is believed to be.
const SLOWEST_PER_HOUR: f64 = 1.0 / 720.0;
/// What has brought nothing new for so long …
const SILENT_FROM: Duration = Duration::from_secs(180 * DAY_S as u64);
/// … is polled once a day.
const SILENT_S: u32 = DAY_S;
/// The fewest entries in a document whose being pushed out means anything.
pub(super) const LEAST_WINDOW: u32 = 3;
/// How often a document's window is looked at while it fills once.
const LOOKS_A_WINDOW: f64 = 3.0;
/// A server that sends the whole document every time is asked so many times less …
const UNCONDITIONAL_TIMES: u32 = 3;
/// … and so many times less if the document is large (rule P54: 15 and 60 minutes where
/// 5 are the least).
const LARGE_TIMES: u32 = 12;
const LARGE_BYTES: u32 = 256 * 1_024;

/// What one rule says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PeriodStep {
    /// How it bounds the period.
    pub bound: PeriodBound,
    /// At how many seconds.
    pub secs: u32,
    /// Why.
    pub reason: PeriodReason,
}

/// How a rule bounds a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeriodBound {
    /// It would be this by itself.
    Wanted,
    /// It is to be no longer.
    AtMost,
    /// It is to be no shorter.
    AtLeast,
}

/// A period in the making.
#[derive(Debug)]
pub(super) struct PeriodSteps {
    taken: Vec<PeriodStep>,
    secs: u32,
    least_s: u32,
    reason: PeriodReason,
    is_failing: bool,
    /// The seconds by its rate at the least `k`.
    free_s: f64,
    /// That of its subscribers.
    weight: f64,
}

impl PeriodSteps {
    /// What has come out so far.
    pub(super) fn secs(&self) -> u32 {
        self.secs
    }

    fn at_most(&mut self, secs: u32, reason: PeriodReason) {
        if secs < self.secs {
            self.taken.push(PeriodStep { bound: PeriodBound::AtMost, secs, reason });
            (self.secs, self.reason) = (secs, reason);
        }
    }

    /// Longer, but not as a promise to anybody.
    pub(super) fn lengthen(&mut self, secs: u32, reason: PeriodReason) {
        self.taken.push(PeriodStep { bound: PeriodBound::AtLeast, secs, reason });
        if secs > self.secs || (secs == self.secs && self.is_failing) {
            (self.secs, self.reason) = (secs, reason);
        }
    }

    /// Longer, and never undercut by jitter.
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

    /// A poll is but a safety net (rule P53: once a day).
    pub(super) fn rarely(&mut self) {
        self.lengthen(DAY_S, PeriodReason::Pushed);
    }

    /// Spreads what comes after a failure more widely.
    pub(super) fn spread_failures(&mut self) {
        self.is_failing = true;
    }

    /// What came out, every step to it, and how it depends on `k`.
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

/// The least seconds between polls of a resource of this kind.
fn floor_s(kind: ResourceKind) -> u32 {
    match kind {
        ResourceKind::Feed | ResourceKind::Unknown | ResourceKind::Collection => 60,
        ResourceKind::Other => 300,
    }
}

/// The period of a resource that is well, by all the rules.
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

/// `T = k / sqrt(rate)`.
fn adaptive(subscribers: u32, polling: &Polling, bounds: &ScheduleBounds) -> PeriodSteps {
    let is_known = polling.rate_at.is_some();
    let rate = if is_known { polling.entries_per_hour } else { UNREACHED_PER_HOUR };
    let (stretch, weight) = bounds.stretch(subscribers);
    let free_s = K_LEAST / rate.max(SLOWEST_PER_HOUR).sqrt() * f64::from(HOUR_S);
    let per_day = rate * 24.0;
    let reason = match (is_known, stretch > 1.0) {
        (false, _) => PeriodReason::Unknown,
        (true, false) => PeriodReason::Rate { per_day },
        (true, true) => PeriodReason::Rationed { per_day, stretch },
    };
    let secs = (free_s * stretch).round() as u32;
    let first = PeriodStep { bound: PeriodBound::Wanted, secs, reason };
    let (taken, least_s, is_failing) = (vec![first], 0, false);
    PeriodSteps { taken, secs, least_s, reason, is_failing, free_s, weight }
}

/// Comes sooner to a document that may lose entries before they are seen.
fn guard_window(steps: &mut PeriodSteps, polling: &Polling) {
    let entries = polling.window;
    if entries < LEAST_WINDOW || polling.rate_at.is_none() {
        return;
    }
    if polling.overrun {
        steps.at_most(steps.secs() / 2, PeriodReason::WindowOverrun);
    }
    let hours = f64::from(entries) / (LOOKS_A_WINDOW * polling.entries_per_hour);
    // Saturates: a rate of nothing fills no window.
    steps.at_most((hours * f64::from(HOUR_S)) as u32, PeriodReason::Window { entries });
}

/// A floor by how much a poll costs the publisher, where nobody consented to more
/// (rule P54).
fn be_polite(steps: &mut PeriodSteps, polling: &Polling, bounds: &ScheduleBounds) {
    let least = bounds.min_period_s;
    steps.at_least(least, PeriodReason::MinPeriod);
    let is_known = polling.rate_at.is_some();
    let is_cheap = !polling.validators.is_empty() && !polling.resent;
    // A publisher whose headers say "good for a minute" expects a request every minute.
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
