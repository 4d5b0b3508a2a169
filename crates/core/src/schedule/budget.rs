//! The operator's poll budget: one factor for all resources and all nodes.
//!
//! The period of a resource depends on `k` only where its rate decides the period. So each poll
//! stores how the period depends on `k` ([`Demand`]); the store sums the demands of all resources,
//! and [`steer`] adjusts the factor to the sum. The sum is the rate of polls that *will* result
//! once every resource has been planned with this `k`, not the current one, so that the factor does
//! not run ahead of resources that are polled every few hours.

use super::period::{LONGEST_S, Period};
use super::reason::PeriodReason;
use super::{K_LEAST, ScheduleBounds};

/// The maximum of `k`; periods reach their own bounds long before.
const K_MOST: f64 = K_LEAST * 10_000.0;
/// The bounds of the factor by which one step changes `k`.
const SMALLEST_TURN: f64 = 0.9;
const LARGEST_TURN: f64 = 1.1;

/// Two demands that differ by at most one part in this many count as the same.
const NEAR: u64 = 20;

/// How a resource's period depends on `k`: it is `unit_ms * k / K_LEAST`, but at least
/// `least_s`, and no more than six hours unless `least_s` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The period in milliseconds at the least `k`; 0 if the period does not depend on `k`.
    pub unit_ms: u64,
    /// The minimum of the period in seconds.
    pub least_s: u32,
}

impl Default for Demand {
    /// Returns the assumed demand of a resource that was not planned yet.
    fn default() -> Demand {
        Demand { unit_ms: 0, least_s: 3_600 }
    }
}

impl Demand {
    /// Returns whether a demand is so near to another that the difference does not matter in the
    /// sum of all: a budget is kept to some percent at best, and a rate that only decays changes
    /// less than this a day.
    pub fn is_about(self, other: Demand) -> bool {
        let (less, more) = (self.unit_ms.min(other.unit_ms), self.unit_ms.max(other.unit_ms));
        self.least_s == other.least_s && more - less <= more / NEAR
    }

    /// Returns the period with this `k`, in seconds.
    pub fn period_s(self, k: f64) -> f64 {
        let wanted = self.unit_ms as f64 / 1_000.0 * k / K_LEAST;
        wanted.min(f64::from(LONGEST_S)).max(f64::from(self.least_s))
    }

    /// Returns the demand of a resource with this `period`, where `free_s` is the period in seconds
    /// by its rate at the least `k`, `weight` is the weight of its subscribers, and `floor_s` is
    /// the promised minimum.
    pub(super) fn from_period(period: Period, free_s: f64, weight: f64, floor_s: u32) -> Demand {
        let answers = match period.reason() {
            PeriodReason::Unknown | PeriodReason::Assumed { .. } => true,
            PeriodReason::Rate { .. } | PeriodReason::Rationed { .. } => true,
            PeriodReason::Longest | PeriodReason::Floor | PeriodReason::MinPeriod => true,
            PeriodReason::Unconditional | PeriodReason::UnconditionalLarge => true,
            PeriodReason::Headers | PeriodReason::Ttl | PeriodReason::Syndication => true,
            PeriodReason::Silent | PeriodReason::WindowOverrun | PeriodReason::Window { .. } => {
                false
            }
            PeriodReason::Pushed | PeriodReason::RetryAfter | PeriodReason::SlowDown => false,
            PeriodReason::Failing { .. } | PeriodReason::Dead | PeriodReason::Gone => false,
        };
        if !answers {
            return Demand { unit_ms: 0, least_s: period.as_secs() };
        }
        Demand {
            unit_ms: (free_s / weight.sqrt() * 1_000.0) as u64,
            least_s: floor_s.max((free_s as u32).min(LONGEST_S)),
        }
    }
}

/// Returns the next `k`, where `planned` is the rate of polls per second that results from the
/// present one and `budget` is the rate that the operator allows. With a surplus in the budget, `k`
/// falls to [`K_LEAST`] and no further.
pub fn steer(k: f64, planned: f64, budget: f64) -> f64 {
    let turn = (planned / budget).clamp(SMALLEST_TURN, LARGEST_TURN);
    (k * turn).clamp(K_LEAST, K_MOST)
}

impl ScheduleBounds {
    /// Returns the factor by which the period of a resource with `subscribers` is longer than
    /// usual, and the weight of these subscribers. Subscribers have weight only where the budget
    /// does not suffice for all resources: they decide which resource waits, and never cause more
    /// polls than [`K_LEAST`] does.
    pub(super) fn stretch(&self, subscribers: u32) -> (f64, f64) {
        let weight = 1.0 + f64::from(subscribers).ln_1p();
        ((self.k / weight.sqrt() / K_LEAST).max(1.0), weight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the polls per second of resources with these demands.
    fn planned(demands: &[Demand], k: f64) -> f64 {
        demands.iter().map(|demand| 1.0 / demand.period_s(k)).sum()
    }

    #[test]
    fn what_only_dies_away_is_about_the_same_for_a_day() {
        let demand = |unit_ms, least_s| Demand { unit_ms, least_s };
        #[rustfmt::skip]
        let cases = [
            (demand(0, 3_600),       demand(0, 3_600),         true),
            (demand(0, 3_600),       demand(0, 3_601),         false),
            (demand(600_000, 3_600), demand(630_000, 3_600),   true),
            (demand(630_000, 3_600), demand(600_000, 3_600),   true),
            (demand(600_000, 3_600), demand(640_000, 3_600),   false),
            (demand(0, 3_600),       demand(1, 3_600),         false),
        ];
        for (one, other, want) in cases {
            assert_eq!(one.is_about(other), want, "{one:?} {other:?}");
        }
    }

    #[test]
    fn the_dial_settles_where_the_budget_is_met() {
        let busy = Demand { unit_ms: 600_000, least_s: 600 };
        let held = Demand { unit_ms: 600_000, least_s: 3_600 };
        let ill = Demand { unit_ms: 0, least_s: 3_600 };
        let demands: Vec<Demand> = [busy, held, ill].into_iter().cycle().take(300).collect();
        let free = planned(&demands, K_LEAST);
        for (why, share) in [("plenty", 2.0), ("just enough", 1.0), ("half", 0.5)] {
            let (mut k, budget) = (K_LEAST, free * share);
            for _ in 0..100 {
                k = steer(k, planned(&demands, k), budget);
            }
            let spent = planned(&demands, k);
            assert!(spent <= budget * 1.001, "{why}: {spent} of {budget}");
            assert_eq!(k > K_LEAST, share < 1.0, "{why}: {k}");
            assert!(share > 1.0 || spent > budget * 0.99, "{why}: {spent} of {budget}");
        }
        let (mut k, impossible) = (K_LEAST, free / 1e6);
        for minute in 0..1_000 {
            k = steer(k, planned(&demands, k), impossible);
            assert!(k.is_finite() && k <= K_MOST, "after {minute} minutes: {k}");
        }
        for _ in 0..1_000 {
            k = steer(k, planned(&demands, k), free * 2.0);
        }
        assert_eq!(k, K_LEAST, "and back");
    }
}
