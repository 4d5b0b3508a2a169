//! The delay after a failure, by its class.
//!
//! Polling never ends (rule P30): the longest delay is a month, and a ping or a new subscription
//! causes an immediate poll. Only planned polls lengthen the delay: however often a failing resource is
//! polled for other reasons, at most one failure counts for each planned period.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::super::polling::Polling;
use super::failure_class::FailureClass;
use super::reason::PeriodReason;
use super::steps::PeriodSteps;

const MINUTE_S: u32 = 60;
const HOUR_S: u32 = 3_600;
const DAY_S: u32 = 24 * HOUR_S;

/// The longest delay of a resource that has been failing for less than a month: a day, because the
/// resource may recover tomorrow.
const LONGEST_FAILING_S: u32 = DAY_S;
/// The time of failures after which a resource is polled once a week: a month (rules P29, P30).
const DEAD_FROM: Duration = Duration::from_secs(30 * DAY_S as u64);
const LONGEST_DEAD_S: u32 = 7 * DAY_S;
/// A resource that is gone is polled once a month.
const GONE_S: u32 = 30 * DAY_S;
/// The delay for a broken document, which publishers repair within hours (rule P31).
const LONGEST_UNUSABLE_S: u32 = 6 * HOUR_S;
/// The first and the longest delay after 429 without `Retry-After` (rule P26).
const SLOW_DOWN_S: u32 = 10 * MINUTE_S;
const LONGEST_SLOW_DOWN_S: u32 = 6 * HOUR_S;
/// The maximum `Retry-After` that is followed (rule P25).
const LONGEST_RETRY_AFTER_S: u32 = DAY_S;
/// The number of responses of 410 after which a resource counts as gone.
const GONE_TIMES: u32 = 3;
/// The time over which the responses of 410 must have come (`docs/contributing/polling.md`,
/// "Responses and their consequences").
const GONE_FOR: Duration = Duration::from_secs(48 * 3_600);

/// A failed poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollSetback {
    /// The class of the failure.
    pub class: FailureClass,
    /// The `Retry-After` of the response in seconds.
    pub retry_after_s: Option<u32>,
}

impl FailureClass {
    /// Returns the minimum delay in seconds: five minutes, or an hour for failures that need manual
    /// repair (rule P29).
    fn base_s(self) -> u32 {
        match self {
            FailureClass::Tls | FailureClass::Denied | FailureClass::Forbidden => HOUR_S,
            _ => 5 * MINUTE_S,
        }
    }

    /// Returns the maximum delay in seconds after failures for the time `failing`.
    fn cap_s(self, failing: Duration) -> u32 {
        match self {
            FailureClass::Unusable => LONGEST_UNUSABLE_S,
            // A failed DNS lookup says nothing about the resource.
            FailureClass::Lookup => LONGEST_FAILING_S,
            _ if failing >= DEAD_FROM => LONGEST_DEAD_S,
            _ => LONGEST_FAILING_S,
        }
    }
}

/// Counts a failure, unless it is a further one before the next planned poll: anybody may cause such polls,
/// and a resource that fails ten times within a minute is not worse off than one that fails once.
pub(super) fn count(polling: &mut Polling, setback: &PollSetback, now: DateTime<Utc>) {
    let is_ahead = polling.is_ahead_of_plan(now);
    let counted = |times: u32| if is_ahead { times.max(1) } else { times.saturating_add(1) };
    // A 429 is no sign of a dead feed (rule P26). Each one is the response to a request after the pause
    // that the one before led to.
    if setback.class == FailureClass::SlowDown {
        polling.slow_downs = polling.slow_downs.saturating_add(1);
    } else {
        polling.failures = counted(polling.failures);
    }
    polling.failing_since.get_or_insert(now);
    let is_gone = setback.class == FailureClass::Gone;
    polling.gone = if is_gone { counted(polling.gone) } else { 0 };
    let left_alone = TimeDelta::seconds(leave_alone_s(polling, setback).into());
    polling.left_alone_until = (!left_alone.is_zero()).then(|| now + left_alone);
}

/// Resets the failures after a successful poll.
pub(super) fn forget(polling: &mut Polling) {
    (polling.failures, polling.failing_since) = (0, None);
    (polling.gone, polling.slow_downs) = (0, 0);
    polling.left_alone_until = None;
}

/// Returns whether the resource counts as permanently gone.
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

/// Returns when a failing resource is polled next, which a failure at `now` has planned for `next`. A poll
/// ahead of the planned one does not postpone that, except for a minimum of `min_period_s` between
/// the two, and for as long as the server wants to be left alone.
pub(super) fn keep_plan(
    polling: &Polling,
    next: DateTime<Utc>,
    min_period_s: u32,
    now: DateTime<Utc>,
) -> DateTime<Utc> {
    let Some(planned) = polling.planned_at.filter(|_| polling.is_ahead_of_plan(now)) else {
        return next;
    };
    let soonest = now + TimeDelta::seconds(min_period_s.into());
    let planned = planned.max(soonest).max(polling.left_alone_until.unwrap_or(now));
    next.min(planned)
}

/// Lengthens the period of a failing resource. `polling` has counted this failure.
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
