//! The reasons for a poll period: one value for each rule that can decide it.
//!
//! A reason is a clause for people (`Display`) and a word for programs ([`PeriodReason::word`]). Both
//! are derived from the same value, so that they cannot differ.

use std::fmt;

use super::failure_class::FailureClass;

/// The rule that decides a period, or a bound of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PeriodReason {
    /// No usable response has been received yet.
    Unknown,
    /// The rate at which the resource changes.
    Rate {
        /// New records a day.
        per_day: f64,
    },
    /// An assumed rate, because no dates of entries were known at first, and nothing new has been found.
    Assumed {
        /// Whether the poll budget does not suffice for all resources.
        is_rationed: bool,
    },
    /// The rate, if the poll budget does not suffice for all resources.
    Rationed {
        /// New records a day.
        per_day: f64,
        /// The factor by which the budget lengthens the period.
        stretch: f64,
    },
    /// The longest period of a resource without failures.
    Longest,
    /// No new entries for half a year.
    Silent,
    /// All entries of the document were new, so that others may have been missed.
    WindowOverrun,
    /// The document contains so few entries that new ones soon replace them.
    Window {
        /// The number of entries.
        entries: u32,
    },
    /// The minimum for the kind of the resource.
    Floor,
    /// The minimum set by the operator.
    MinPeriod,
    /// The server does not support conditional requests.
    Unconditional,
    /// The server does not support conditional requests, and the document is large.
    UnconditionalLarge,
    /// The caching headers of the response.
    Headers,
    /// `ttl`.
    Ttl,
    /// `sy:updatePeriod`.
    Syndication,
    /// A hub or cloud notifies the gateway of changes.
    Pushed,
    /// `Retry-After`.
    RetryAfter,
    /// 429.
    SlowDown,
    /// The last polls failed.
    Failing {
        /// The class of the failure.
        class: FailureClass,
        /// The number of consecutive failures.
        times: u32,
    },
    /// All polls have failed for a month.
    Dead,
    /// The server has repeatedly reported that the resource is gone.
    Gone,
}

impl PeriodReason {
    /// Returns the word for programs. Never changes once released.
    pub fn word(self) -> &'static str {
        match self {
            PeriodReason::Unknown => "unknown",
            PeriodReason::Rate { .. } | PeriodReason::Assumed { is_rationed: false } => "rate",
            PeriodReason::Rationed { .. } | PeriodReason::Assumed { is_rationed: true } => "budget",
            PeriodReason::Longest => "longest",
            PeriodReason::Silent => "silent",
            PeriodReason::WindowOverrun => "window_overrun",
            PeriodReason::Window { .. } => "window",
            PeriodReason::Floor => "floor",
            PeriodReason::MinPeriod => "min_period",
            PeriodReason::Unconditional | PeriodReason::UnconditionalLarge => "unconditional",
            PeriodReason::Headers => "cache_control",
            PeriodReason::Ttl => "ttl",
            PeriodReason::Syndication => "syndication",
            PeriodReason::Pushed => "push_backup",
            PeriodReason::RetryAfter => "retry_after",
            PeriodReason::SlowDown => "slow_down",
            PeriodReason::Failing { .. } => "failure_backoff",
            PeriodReason::Dead => "dead",
            PeriodReason::Gone => "gone",
        }
    }
}

impl fmt::Display for PeriodReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match *self {
            PeriodReason::Unknown => "nothing is known about the resource yet",
            PeriodReason::Rate { per_day } => {
                return write!(f, "the resource publishes {}", Rate(per_day));
            }
            PeriodReason::Rationed { per_day, stretch } => {
                return write!(
                    f,
                    "the resource publishes {}, and the poll budget makes periods {stretch:.1} times as \
                     long",
                    Rate(per_day)
                );
            }
            PeriodReason::Assumed { is_rationed: false } => {
                "nothing new has been found yet; at first, one change a day is assumed"
            }
            PeriodReason::Assumed { is_rationed: true } => {
                "nothing new has been found yet; at first, one change a day is assumed, and the poll budget \
                 makes periods longer"
            }
            PeriodReason::Longest => "the longest period of a resource without failures",
            PeriodReason::Silent => "no new entries for half a year",
            PeriodReason::WindowOverrun => {
                "window overrun: everything in the document was new, so entries may have been \
                 missed"
            }
            PeriodReason::Window { entries } => {
                return write!(
                    f,
                    "the document has only {entries} entries, which new ones soon replace"
                );
            }
            PeriodReason::Floor => "the shortest period for this kind of resource",
            PeriodReason::MinPeriod => "the shortest period allowed by the operator",
            PeriodReason::Unconditional => "the server sends the whole document every time",
            PeriodReason::UnconditionalLarge => {
                "the server sends the whole document every time, and it is large"
            }
            PeriodReason::Headers => "the HTTP headers declare the document fresh for this long",
            PeriodReason::Ttl => "the ttl of the document requests it",
            PeriodReason::Syndication => "the sy:updatePeriod of the document requests it",
            PeriodReason::Pushed => "a hub or cloud sends changes, and polls are only a backup",
            PeriodReason::RetryAfter => "the server requested this pause by Retry-After",
            PeriodReason::SlowDown => "the server reported too many requests",
            PeriodReason::Failing { class, times: 1 } => {
                return write!(f, "the last poll failed: {class}");
            }
            PeriodReason::Failing { class, times } => {
                return write!(f, "the last {times} polls failed: {class}");
            }
            PeriodReason::Dead => "polls have been failing for more than 30 days",
            PeriodReason::Gone => "the server reported that the resource is gone",
        };
        f.write_str(text)
    }
}

/// A rate, displayed in the unit in which it is at least one.
struct Rate(f64);

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, unit) = match self.0 {
            day if day >= 0.95 => (day, "day"),
            day if day * 7.0 >= 0.95 => (day * 7.0, "week"),
            day if day * 30.0 >= 1.05 => (day * 30.0, "month"),
            _ => return f.write_str("less than one entry a month"),
        };
        let entries = if count >= 9.95 { format!("{count:.0}") } else { format!("{count:.1}") };
        let entries = entries.strip_suffix(".0").unwrap_or(&entries);
        let noun = if entries == "1" { "entry" } else { "entries" };
        write!(f, "about {entries} {noun} a {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_told_in_the_unit_in_which_it_is_at_least_one() {
        for (per_day, want) in [
            (240.0, "about 240 entries a day"),
            (9.96, "about 10 entries a day"),
            (2.54, "about 2.5 entries a day"),
            (1.0, "about 1 entry a day"),
            (0.5, "about 3.5 entries a week"),
            (1.0 / 7.0, "about 1 entry a week"),
            (0.1, "about 3 entries a month"),
            (1.0 / 30.0, "less than one entry a month"),
            (0.0, "less than one entry a month"),
        ] {
            assert_eq!(Rate(per_day).to_string(), want);
        }
    }
}
