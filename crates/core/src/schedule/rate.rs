//! The rate of new records: a moving average.

use chrono::{DateTime, Utc};

use super::super::polling::Polling;

/// The half-life of the average: a week.
const HALF_LIFE_HOURS: f64 = 7.0 * 24.0;
/// The maximum number of entries that one fetch adds to the rate, so that a bulk import does not
/// accelerate polling for a week.
const MOST_PER_FETCH: f64 = 10.0;

/// The assumed rate of a resource that could not be fetched yet, so that a subscription does not
/// wait for hours after a short failure.
pub(super) const UNREACHED_PER_HOUR: f64 = 1.0;

/// The assumed rate of a feed while nothing is known about it: one entry per day.
const UNKNOWN_PER_HOUR: f64 = 1.0 / 24.0;

/// Returns the rate after the first successful fetch, from the dates of the entries found: the
/// value that the moving average would have if the entries had been found when they were published.
/// Dates in the future are ignored; without any date, an entry a day is assumed.
pub(super) fn first_rate(dates: impl Iterator<Item = DateTime<Utc>>, now: DateTime<Utc>) -> f64 {
    let weight = std::f64::consts::LN_2 / HALF_LIFE_HOURS;
    let hours = dates.map(|date| (now - date).num_seconds() as f64 / 3_600.0);
    let weights: Vec<f64> = hours
        .filter(|hours| *hours >= 0.0)
        .map(|hours| weight * 0.5_f64.powf(hours / HALF_LIFE_HOURS))
        .collect();
    if weights.is_empty() { UNKNOWN_PER_HOUR } else { weights.iter().sum() }
}

/// Returns the moving average of entries per hour after a successful fetch that found `new` ones.
///
/// The first fetch gives no information about a rate, because its entries may be years old; see
/// [`first_rate`].
pub(super) fn rate_after(before: &Polling, new: usize, now: DateTime<Utc>) -> f64 {
    let Some(rate_at) = before.rate_at else { return before.entries_per_hour };
    let hours = (now - rate_at).num_milliseconds().max(0) as f64 / 3_600_000.0;
    let kept = 0.5_f64.powf(hours / HALF_LIFE_HOURS);
    let weight = std::f64::consts::LN_2 / HALF_LIFE_HOURS;
    before.entries_per_hour * kept + (new as f64).min(MOST_PER_FETCH) * weight
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_first_rate_is_read_from_the_dates() {
        let now = DateTime::UNIX_EPOCH + Duration::from_secs(400 * 86_400);
        let hours_ago = |hours: u64| now - Duration::from_secs(hours * 3_600);
        let steady = first_rate((0..4_000).map(|n| hours_ago(n / 2)), now);
        assert!((steady - 2.0).abs() < 0.02, "two an hour for months: {steady}");
        let old = first_rate((0..50).map(|n| hours_ago(5_000 + n)), now);
        assert!(old < 1e-6, "nothing for half a year: {old}");
        let future = [now + Duration::from_secs(60)].into_iter();
        assert_eq!(first_rate(future, now), UNKNOWN_PER_HOUR);
        assert_eq!(first_rate(std::iter::empty(), now), UNKNOWN_PER_HOUR);
    }

    #[test]
    fn a_steady_feed_settles_at_its_rate() {
        let mut polling = Polling { rate_at: Some(DateTime::UNIX_EPOCH), ..Polling::default() };
        for hour in 1..5_000_i64 {
            let now = DateTime::UNIX_EPOCH + Duration::from_secs(hour as u64 * 3_600);
            polling.entries_per_hour = rate_after(&polling, 2, now);
            polling.rate_at = Some(now);
        }
        assert!((polling.entries_per_hour - 2.0).abs() < 0.02, "{}", polling.entries_per_hour);
    }
}
