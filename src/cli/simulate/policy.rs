//! The policies that are compared: the schedule of feedgate, and the formulas of other programs as
//! published in their source code.

/// How a program decides when to poll again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    /// The schedule of this program.
    Ours,
    /// Once an hour.
    Fixed,
    /// Miniflux with `POLLING_SCHEDULER=entry_frequency`: a week, divided by the entries
    /// of the last week; 5 minutes to 24 hours.
    EntryFrequency,
    /// CommaFeed's empirical interval: half of the mean gap between the entries in the
    /// document, an hour at most; 4 hours, 2 hours and 1 hour after 30, 14 and 7 silent
    /// days; 5 minutes at least.
    Empirical,
}

const MINUTE_S: f64 = 60.0;
const HOUR_S: f64 = 3_600.0;
const DAY_S: f64 = 86_400.0;

impl Policy {
    /// All policies, that of feedgate first.
    pub(super) const ALL: [Policy; 4] =
        [Policy::Ours, Policy::Fixed, Policy::EntryFrequency, Policy::Empirical];

    pub(super) fn name(self) -> &'static str {
        match self {
            Policy::Ours => "feedgate",
            Policy::Fixed => "fixed, 60 min",
            Policy::EntryFrequency => "miniflux entry_frequency",
            Policy::Empirical => "CommaFeed empirical",
        }
    }

    /// Returns the scale nearest to `scale` that the policy supports: feedgate has a minimum `k`.
    pub(super) fn bounded(self, scale: f64) -> f64 {
        if self == Policy::Ours { scale.max(1.0) } else { scale }
    }

    /// Returns the period of another program in seconds at `now_s`, for a feed that has published
    /// `seen`, the last `window` of which are in the document.
    pub(super) fn period_s(self, seen: &[i64], window: usize, now_s: i64) -> f64 {
        match self {
            Policy::Ours | Policy::Fixed => HOUR_S,
            Policy::EntryFrequency => {
                let week_ago = now_s - 7 * DAY_S as i64;
                let count = seen.len() - seen.partition_point(|at| *at < week_ago);
                (7.0 * DAY_S / (count as f64)).clamp(5.0 * MINUTE_S, DAY_S)
            }
            Policy::Empirical => empirical(&seen[seen.len().saturating_sub(window)..], now_s),
        }
    }
}

fn empirical(document: &[i64], now_s: i64) -> f64 {
    const MOST: f64 = 4.0 * HOUR_S;
    let (Some(first), Some(last)) = (document.first(), document.last()) else { return MOST };
    let silent_days = (now_s - last) as f64 / DAY_S;
    let secs = match silent_days {
        30.0.. => MOST,
        14.0.. => MOST / 2.0,
        7.0.. => MOST / 4.0,
        _ if document.len() < 2 => MOST / 4.0,
        _ => ((last - first) as f64 / (document.len() - 1) as f64 / 2.0).min(MOST / 4.0),
    };
    secs.max(5.0 * MINUTE_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formulas_of_others_are_theirs() {
        let day = 86_400;
        let daily: Vec<i64> = (0..40).map(|n| n * day).collect();
        let hourly: Vec<i64> = (0..200).map(|n| n * 3_600).collect();
        #[rustfmt::skip]
        let cases = [
            ("seven entries in the last week",  Policy::EntryFrequency, &daily,  39 * day + 60,  86_400.0),
            ("168 of them",                     Policy::EntryFrequency, &hourly, 199 * 3_600,     3_578.0),
            ("none",                            Policy::EntryFrequency, &daily,  60 * day,       86_400.0),
            ("half a mean gap",                 Policy::Empirical,      &hourly, 199 * 3_600,     1_800.0),
            ("an hour at most",                 Policy::Empirical,      &daily,  40 * day,        3_600.0),
            ("silent for a week",               Policy::Empirical,      &daily,  46 * day,        3_600.0),
            ("for two",                         Policy::Empirical,      &daily,  53 * day,        7_200.0),
            ("for a month",                     Policy::Empirical,      &daily,  69 * day,       14_400.0),
        ];
        for (why, policy, seen, now_s, want) in cases {
            let period = policy.period_s(seen, 20, now_s);
            assert!((period - want).abs() < 1.0, "{why}: {period}");
        }
    }
}
