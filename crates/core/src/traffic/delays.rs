//! The buckets in which delays are counted: each is 4 % longer than the one before, so that a delay is known to 2 %,
//! and the buckets of all nodes and times are the same and add up.

use std::time::Duration;

/// How much longer a bucket is than the one before.
const GROWTH: f64 = 1.04;
/// The delays of the first bucket, in microseconds.
const SHORTEST_US: f64 = 100.0;

/// Returns the bucket of a delay. The longest delay that there is has less than 1,400.
pub(super) fn bucket(delay: Duration) -> u16 {
    let ratio = delay.as_secs_f64() * 1e6 / SHORTEST_US;
    if ratio <= 1.0 { 0 } else { (ratio.ln() / GROWTH.ln()).ceil() as u16 }
}

/// Returns the delay in the middle of a bucket.
pub(super) fn delay(bucket: u16) -> Duration {
    let middle = SHORTEST_US * GROWTH.powf(f64::from(bucket) - 0.5);
    Duration::try_from_secs_f64(middle / 1e6).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::TrafficCounts;
    use super::*;

    #[test]
    fn c02_quantiles_are_true_to_two_per_cent() {
        assert_eq!(TrafficCounts::default().delay(50), None);
        // Delays from a millisecond to a day, most of them short, counted by three nodes.
        let delays: Vec<f64> = (0..10_000_i32).map(|n| 1.001_83_f64.powi(n) * 1e-3).collect();
        let mut nodes = vec![TrafficCounts::default(); 3];
        for (n, delay) in delays.iter().enumerate() {
            nodes[n % 3].add_delay(Duration::from_secs_f64(*delay));
        }
        let mut all = TrafficCounts::default();
        nodes.iter().for_each(|node| all.add(node));
        for percent in [1, 50, 95, 99, 100] {
            let want = delays[delays.len() * percent / 100 - 1];
            let found = all.delay(percent as u64).unwrap().as_secs_f64();
            assert!((found / want - 1.0).abs() < 0.021, "{percent} %: {found} instead of {want}");
        }
        assert!(all.encode().len() < 2_000, "{} bytes", all.encode().len());
        let mut longest = TrafficCounts::default();
        longest.add_delay(Duration::MAX);
        assert!(longest.delay(50).unwrap() > Duration::MAX / 2);
    }
}
