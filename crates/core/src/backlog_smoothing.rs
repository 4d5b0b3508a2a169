//! Recovery after a standstill: overdue polls are spread out so that they do not all start at
//! once (P46).

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::resource_id::ResourceId;

/// Up to this many overdue resources are polled without being spread out.
pub const FEW: usize = 100;
/// A backlog is released at this rate at least, in polls per second, because the normal rate of
/// a small gateway would take hours.
const LEAST_PER_S: f64 = 10.0;
/// The machine was suspended, or the clock was set, if the clock advanced by this much more, or less, than the
/// time that passed while the machine ran.
const JUMP: TimeDelta = TimeDelta::seconds(10);

/// An overdue resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Overdue {
    /// The resource.
    pub id: ResourceId,
    /// When it was due.
    pub due_at: DateTime<Utc>,
    /// The poll period in seconds.
    pub period_s: u32,
    /// The number of subscribers.
    pub subscribers: u32,
    /// Whether a ping reported a change.
    pub pinged: bool,
}

impl Overdue {
    /// The urgency: the number of periods the resource is late, weighted by its subscribers.
    fn urgency(&self, now: DateTime<Utc>) -> f64 {
        let late_s = (now - self.due_at).as_seconds_f64().max(0.0);
        let weight = 1.0 + f64::from(self.subscribers).ln_1p();
        late_s / f64::from(self.period_s.max(60)) * weight
    }
}

/// Assigns a poll time to each resource: pinged resources first, then the most urgent, at no more
/// than twice the normal rate. A resource is polled once, however many polls it has missed.
pub fn release(
    mut overdue: Vec<Overdue>,
    polls_per_day: f64,
    now: DateTime<Utc>,
) -> Vec<(ResourceId, DateTime<Utc>)> {
    if overdue.len() <= FEW {
        return Vec::new();
    }
    let order = |one: &Overdue| (!one.pinged, -one.urgency(now));
    overdue.sort_by(|a, b| {
        let ((a_last, a), (b_last, b)) = (order(a), order(b));
        a_last.cmp(&b_last).then(a.total_cmp(&b))
    });
    let per_s = (2.0 * polls_per_day / 86_400.0).max(LEAST_PER_S);
    let at = |n: usize| now + TimeDelta::microseconds((n as f64 / per_s * 1e6) as i64);
    overdue.iter().enumerate().map(|(n, one)| (one.id, at(n))).collect()
}

/// Compares the clock with the time that has passed.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClockWatch {
    last: Option<(Duration, DateTime<Utc>)>,
}

/// The result of [`ClockWatch::check`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockComparison {
    /// The first check. How long the process may have been suspended before it is unknown.
    First,
    /// The clock advanced by the time that passed.
    Steady,
    /// The clock was set, or the machine was suspended.
    Jumped,
}

impl ClockWatch {
    /// Compares `now` with the last check. `passed` is the monotonic time since a fixed moment.
    pub fn check(&mut self, passed: Duration, now: DateTime<Utc>) -> ClockComparison {
        let Some((passed_then, then)) = self.last.replace((passed, now)) else {
            return ClockComparison::First;
        };
        let passed = TimeDelta::from_std(passed.saturating_sub(passed_then)).unwrap_or_default();
        let ahead = (now - then) - passed;
        if ahead.abs() > JUMP { ClockComparison::Jumped } else { ClockComparison::Steady }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(secs)
    }

    fn overdue(id: i64, late_s: i64, period_s: u32, subscribers: u32) -> Overdue {
        let (id, due_at) = (ResourceId(id), at(-late_s));
        Overdue { id, due_at, period_s, subscribers, pinged: false }
    }

    #[test]
    fn p46_the_pinged_and_the_most_urgent_go_first() {
        let mut backlog: Vec<Overdue> = (100..300).map(|id| overdue(id, 60, 3_600, 1)).collect();
        backlog.push(overdue(1, 3_600, 3_600, 1));
        backlog.push(overdue(2, 3_600, 600, 1)); // missed six polls
        backlog.push(overdue(3, 3_600, 3_600, 1_000));
        backlog.push(Overdue { pinged: true, ..overdue(4, 1, 3_600, 1) });
        let released = release(backlog, 0.0, at(0));
        let first: Vec<i64> = released.iter().take(4).map(|(id, _)| id.0).collect();
        assert_eq!(first, [4, 2, 3, 1]);
        assert_eq!(released.len(), 204, "one poll for each, however many it missed");
    }

    #[test]
    fn p46_no_more_than_twice_the_normal_rate_is_let_go() {
        let backlog = |many: i64| (0..many).map(|id| overdue(id, 60, 3_600, 1)).collect::<Vec<_>>();
        let normal = 24.0 * 20_000.0; // polls a day of 20,000 resources: 5.6 a second
        let last = |many, normal| release(backlog(many), normal, at(0)).last().unwrap().1;
        assert_eq!((last(20_000, normal) - at(0)).num_seconds(), 1_799, "in half an hour");
        assert_eq!((last(6_000, 100.0) - at(0)).num_seconds(), 599, "a small one in ten minutes");
        assert_eq!(release(backlog(100), normal, at(0)), [], "a few are no backlog");
    }

    #[test]
    fn p47_a_clock_that_was_set_is_noticed() {
        #[rustfmt::skip]
        let cases = [
            ("it goes on",            10,  10,     ClockComparison::Steady),
            ("it drifts",            100,  105,    ClockComparison::Steady),
            ("a minute back",         10,  -50,    ClockComparison::Jumped),
            ("it was set forward",    10,  400,    ClockComparison::Jumped),
            ("it was set back",       10,  -400,   ClockComparison::Jumped),
            ("we were asleep",         1,  86_400, ClockComparison::Jumped),
        ];
        for (why, passed, wall, want) in cases {
            let mut clock = ClockWatch::default();
            assert_eq!(clock.check(Duration::from_secs(5), at(0)), ClockComparison::First);
            assert_eq!(clock.check(Duration::from_secs(5 + passed), at(wall)), want, "{why}");
        }
    }

    #[test]
    fn p47_each_look_is_compared_with_the_one_before() {
        let mut clock = ClockWatch::default();
        #[rustfmt::skip]
        let looks = [
            ("the first",         0,     0, ClockComparison::First),
            ("it runs on",       20,    21, ClockComparison::Steady),
            ("an hour ahead",    40, 3_600, ClockComparison::Jumped),
            ("and back",         60,    60, ClockComparison::Jumped),
            ("and on",           80,    80, ClockComparison::Steady),
        ];
        for (why, passed, wall, want) in looks {
            assert_eq!(clock.check(Duration::from_secs(passed), at(wall)), want, "{why}");
        }
    }
}
