//! How long to stay away from what fails, by what went wrong.
//!
//! Nothing is given up for ever (rule P30): the longest wait is a month, and a ping or
//! a new subscription is answered by a poll at once.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::super::polling::Polling;
use super::failure_class::FailureClass;
use super::reason::PeriodReason;
use super::steps::PeriodSteps;

const MINUTE_S: u32 = 60;
const HOUR_S: u32 = 3_600;
const DAY_S: u32 = 24 * HOUR_S;

/// A resource that fails may be back tomorrow …
const LONGEST_FAILING_S: u32 = DAY_S;
/// … for a month; then it is asked once a week (rules P29, P30).
const DEAD_FROM: Duration = Duration::from_secs(30 * DAY_S as u64);
const LONGEST_DEAD_S: u32 = 7 * DAY_S;
/// What is gone is asked once a month (rule on 410).
const GONE_S: u32 = 30 * DAY_S;
/// A publisher mends a broken document in hours (rule P31).
const LONGEST_UNUSABLE_S: u32 = 6 * HOUR_S;
/// What a server that asks for less without saying how much less is given, the first
/// time and at most (rule P26).
const SLOW_DOWN_S: u32 = 10 * MINUTE_S;
const LONGEST_SLOW_DOWN_S: u32 = 6 * HOUR_S;
/// The longest that `Retry-After` is believed (rule P25).
const LONGEST_RETRY_AFTER_S: u32 = DAY_S;
/// A resource is believed to be gone once it has said so this often …
const GONE_TIMES: u32 = 3;
/// … and for this long (`docs/contributing/polling.md`, "What answers come to").
const GONE_FOR: Duration = Duration::from_secs(48 * 3_600);

/// Something went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollSetback {
    /// What.
    pub class: FailureClass,
    /// Seconds for which the server asked to be left alone.
    pub retry_after_s: Option<u32>,
}

impl FailureClass {
    /// The first wait at least, in seconds (rule P29: five minutes). What somebody has
    /// to mend by hand is given an hour.
    fn base_s(self) -> u32 {
        match self {
            FailureClass::Tls | FailureClass::Denied | FailureClass::Forbidden => HOUR_S,
            _ => 5 * MINUTE_S,
        }
    }

    /// The longest wait, in seconds, for what has been failing for `failing`.
    fn cap_s(self, failing: Duration) -> u32 {
        match self {
            FailureClass::Unusable => LONGEST_UNUSABLE_S,
            // That no name server answers says nothing of the resource.
            FailureClass::Lookup => LONGEST_FAILING_S,
            _ if failing >= DEAD_FROM => LONGEST_DEAD_S,
            _ => LONGEST_FAILING_S,
        }
    }
}

/// Counts a setback.
pub(super) fn count(polling: &mut Polling, setback: &PollSetback, now: DateTime<Utc>) {
    // "Slow down" is no sign of a dead feed (rule P26).
    if setback.class == FailureClass::SlowDown {
        polling.slow_downs = polling.slow_downs.saturating_add(1);
    } else {
        polling.failures = polling.failures.saturating_add(1);
    }
    polling.failing_since.get_or_insert(now);
    let is_gone = setback.class == FailureClass::Gone;
    polling.gone = if is_gone { polling.gone.saturating_add(1) } else { 0 };
}

/// Everything is well again.
pub(super) fn forget(polling: &mut Polling) {
    (polling.failures, polling.failing_since) = (0, None);
    (polling.gone, polling.slow_downs) = (0, 0);
}

/// Whether a resource is believed to be gone for good.
pub fn is_gone(polling: &Polling, now: DateTime<Utc>) -> bool {
    let since = polling.failing_since.unwrap_or(now);
    polling.gone >= GONE_TIMES && now >= since + GONE_FOR
}

/// Seconds during which nothing at all is requested from the server; 0 for none.
fn leave_alone_s(polling: &Polling, setback: &PollSetback) -> u32 {
    let requested_s = setback.retry_after_s.unwrap_or(0).min(LONGEST_RETRY_AFTER_S);
    if setback.class != FailureClass::SlowDown {
        return requested_s;
    }
    let times = polling.slow_downs.saturating_sub(1).min(16);
    requested_s.max((SLOW_DOWN_S << times).min(LONGEST_SLOW_DOWN_S))
}

/// Lengthens the period of what has failed. `polling` has counted this setback.
pub(super) fn stay_away(
    steps: &mut PeriodSteps,
    polling: &Polling,
    setback: &PollSetback,
    now: DateTime<Utc>,
) {
    let failing = polling
        .failing_since
        .map_or(Duration::ZERO, |since| (now - since).to_std().unwrap_or_default());
    if setback.class != FailureClass::SlowDown {
        let (base, times) = (steps.secs().max(setback.class.base_s()), polling.failures);
        let ladder = base.saturating_mul(1 << times.saturating_sub(1).min(16));
        let cap = setback.class.cap_s(failing);
        let is_dead = cap == LONGEST_DEAD_S;
        let reason = if is_dead {
            PeriodReason::Dead
        } else {
            PeriodReason::Failing { class: setback.class, times }
        };
        steps.spread_failures();
        steps.lengthen(ladder.min(cap), reason);
    }
    if is_gone(polling, now) {
        steps.lengthen(GONE_S, PeriodReason::Gone);
    }
    let is_told = setback.retry_after_s.unwrap_or(0) > 0;
    let reason = if is_told { PeriodReason::RetryAfter } else { PeriodReason::SlowDown };
    steps.at_least(leave_alone_s(polling, setback), reason);
}
