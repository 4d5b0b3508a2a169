//! Plays a policy over a trace and measures its delays.

use std::ops::RangeInclusive;

use chrono::{DateTime, Utc};

use feedgate_core::poll::{Polling, Validators};
use feedgate_core::polling_hints::PollingHints;
use feedgate_core::resource::ResourceKind;
use feedgate_core::schedule::{
    self, K_LEAST, NewRecords, PollFinding, ScheduleBounds, ScheduleInput,
};

use super::policy::Policy;
use super::trace::PublicationTrace;

/// The settings of a simulation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// The time from which polls and delays count, in seconds since 1970.
    pub(super) measured_from_s: i64,
    /// The number of entries in a document.
    pub(super) window: usize,
    /// The minimum period set by the operator.
    pub(super) min_period_s: u32,
    /// The seed of the jitter.
    pub(super) seed: u64,
}

/// The results of a policy.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Score {
    /// Polls per feed and day.
    pub(super) polls_a_day: f64,
    /// The mean delay from publication to discovery, over all entries.
    pub(super) mean_s: f64,
    pub(super) p50_s: f64,
    pub(super) p90_s: f64,
    /// The mean of the mean delays of the feeds.
    pub(super) per_feed_s: f64,
    /// Entries that had left the document before they were found.
    pub(super) missed: usize,
}

/// The results of one feed.
#[derive(Debug, Default)]
struct Tally {
    polls: u64,
    delays_s: Vec<f64>,
    missed: usize,
}

/// Plays `policy`, with its periods multiplied by `scale`.
pub(super) fn play(trace: &PublicationTrace, policy: Policy, scale: f64, rules: &Rules) -> Score {
    let tallies: Vec<Tally> = trace
        .feeds
        .iter()
        .enumerate()
        .map(|(n, times)| {
            let jitter = JitterSource(rules.seed.wrapping_mul(0x9e37_79b9).wrapping_add(n as u64));
            let polling = conditional();
            let player = Player { policy, scale, rules, jitter, polling, is_first: true };
            player.play(times, trace.start_s..=trace.end_s)
        })
        .collect();
    let days = (trace.end_s - rules.measured_from_s) as f64 / 86_400.0;
    score(&tallies, days)
}

fn score(tallies: &[Tally], days: f64) -> Score {
    let mut delays: Vec<f64> = tallies.iter().flat_map(|tally| &tally.delays_s).copied().collect();
    delays.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| {
        let place = (delays.len() as f64 * share) as usize;
        delays.get(place.min(delays.len().saturating_sub(1))).copied().unwrap_or(0.0)
    };
    let means: Vec<f64> = tallies
        .iter()
        .filter(|tally| !tally.delays_s.is_empty())
        .map(|tally| mean(&tally.delays_s))
        .collect();
    let polls: u64 = tallies.iter().map(|tally| tally.polls).sum();
    Score {
        polls_a_day: polls as f64 / tallies.len().max(1) as f64 / days,
        mean_s: mean(&delays),
        p50_s: at(0.5),
        p90_s: at(0.9),
        per_feed_s: mean(&means),
        missed: tallies.iter().map(|tally| tally.missed).sum(),
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The state of a feed whose server supports "not modified".
fn conditional() -> Polling {
    let etag = Some(b"\"1\"".to_vec());
    Polling { validators: Validators { etag, ..Validators::default() }, ..Polling::default() }
}

/// One feed, polled by one policy.
struct Player<'a> {
    policy: Policy,
    scale: f64,
    rules: &'a Rules,
    jitter: JitterSource,
    polling: Polling,
    is_first: bool,
}

impl Player<'_> {
    fn play(mut self, times: &[i64], span_s: RangeInclusive<i64>) -> Tally {
        let mut tally = Tally::default();
        let mut known = 0;
        let mut now_s = *span_s.start() as f64;
        while (now_s as i64) <= *span_s.end() {
            let there = times.partition_point(|at| (*at as f64) <= now_s);
            if now_s as i64 >= self.rules.measured_from_s {
                tally.polls += 1;
            }
            let in_document = there.saturating_sub(self.rules.window);
            for (n, at) in times.iter().enumerate().take(there).skip(known) {
                if *at < self.rules.measured_from_s {
                    continue;
                }
                match n < in_document {
                    true => tally.missed += 1,
                    false => tally.delays_s.push(now_s - *at as f64),
                }
            }
            now_s = self.next_s(&times[..there], there - known, now_s);
            known = there;
        }
        tally
    }

    /// When to poll after a poll at `now_s` that found `new` entries.
    fn next_s(&mut self, seen: &[i64], new: usize, now_s: f64) -> f64 {
        let jitter = self.jitter.next_value();
        let is_first = std::mem::take(&mut self.is_first);
        if self.policy == Policy::Ours {
            return self.planned_s(seen, new, now_s, jitter);
        }
        let period = self.policy.period_s(seen, self.rules.window, now_s as i64) * self.scale;
        // The other policies also start at a random time within the first period.
        let wait = if is_first { period * jitter } else { period };
        now_s + wait.max(60.0)
    }

    fn planned_s(&mut self, seen: &[i64], new: usize, now_s: f64, jitter: f64) -> f64 {
        let document = &seen[seen.len().saturating_sub(self.rules.window)..];
        let is_first = self.polling.rate_at.is_none();
        let found = if new == 0 && !is_first {
            PollFinding::NotModified { hint_s: None }
        } else {
            PollFinding::NewRecords(NewRecords {
                kind: ResourceKind::Feed,
                hints: PollingHints::default(),
                entries: document.len(),
                new: new.min(document.len()),
                dates: document.iter().map(|at| time(*at as f64)).collect(),
            })
        };
        let held = ScheduleInput {
            kind: if is_first { ResourceKind::Unknown } else { ResourceKind::Feed },
            subscribers: 0,
            pushed: false,
            polling: std::mem::take(&mut self.polling),
        };
        let bounds =
            ScheduleBounds { min_period_s: self.rules.min_period_s, k: K_LEAST * self.scale };
        let plan = schedule::plan(held, &found, &bounds, time(now_s), jitter);
        self.polling = plan.polling;
        plan.next_fetch.timestamp_millis() as f64 / 1_000.0
    }
}

fn time(secs: f64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis((secs * 1_000.0) as i64).unwrap_or_default()
}

/// Pseudorandom numbers that are the same for the same seed (SplitMix64).
struct JitterSource(u64);

impl JitterSource {
    /// Returns the next number, from 0 to 1.
    fn next_value(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules =
        Rules { measured_from_s: 70 * 86_400, window: 20, min_period_s: 60, seed: 7 };

    /// Feeds that publish every so many minutes for 100 days.
    fn trace(gaps_min: &[i64]) -> PublicationTrace {
        let end_s = 100 * 86_400;
        let feeds = gaps_min.iter().map(|gap| (0..=end_s / (gap * 60)).map(move |n| n * gap * 60));
        PublicationTrace { feeds: feeds.map(Iterator::collect).collect(), start_s: 0, end_s }
    }

    #[test]
    fn a_fixed_period_finds_everything_half_of_it_late() {
        let score = play(&trace(&[7, 61, 333]), Policy::Fixed, 1.0, &RULES);
        assert!((score.polls_a_day - 24.0).abs() < 0.1, "{score:?}");
        assert!((score.mean_s / 1_800.0 - 1.0).abs() < 0.05, "{score:?}");
        let short = Rules { window: 3, ..RULES };
        assert!(play(&trace(&[7]), Policy::Fixed, 1.0, &short).missed > 1_000);
    }

    #[test]
    fn ours_is_the_plan_of_the_schedule_and_the_same_each_time() {
        let trace = trace(&[10, 1_440]);
        let score = play(&trace, Policy::Ours, 1.0, &RULES);
        // 0.19 h / sqrt(6 an hour), and 0.19 h / sqrt(1 a day).
        let want = 86_400.0 / 279.0 + 86_400.0 / 3_351.0;
        assert!((score.polls_a_day * 2.0 / want - 1.0).abs() < 0.05, "{score:?}");
        assert_eq!(play(&trace, Policy::Ours, 1.0, &RULES), score);
        let half = play(&trace, Policy::Ours, 2.0, &RULES);
        assert!((half.polls_a_day / score.polls_a_day - 0.5).abs() < 0.03, "{half:?}");
    }
}
