//! Why a period is what it is: one value for each rule that can decide it.
//!
//! A reason is told to people as a clause (`Display`), and to programs as a word
//! ([`PeriodReason::word`]); both are made of the same value, so that they cannot differ.

use std::fmt;

use super::failure_class::FailureClass;

/// What decides a period, or could have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PeriodReason {
    /// Nothing usable was ever fetched.
    Unknown,
    /// How often it changes.
    Rate {
        /// New records a day.
        per_day: f64,
    },
    /// The same, where the operator's poll budget does not suffice for all.
    Rationed {
        /// New records a day.
        per_day: f64,
        /// How many times longer the period is for that.
        stretch: f64,
    },
    /// The slowest a healthy resource is polled.
    Longest,
    /// Nothing new for half a year.
    Silent,
    /// All that the document held was new: some entries may have come and gone.
    WindowOverrun,
    /// The document holds so few entries that they are soon pushed out.
    Window {
        /// How many.
        entries: u32,
    },
    /// The floor of its kind.
    Floor,
    /// The operator's shortest period.
    MinPeriod,
    /// The server cannot say "not modified".
    Unconditional,
    /// Nor is the document small.
    UnconditionalLarge,
    /// The answer's headers.
    Headers,
    /// `ttl`.
    Ttl,
    /// `sy:updatePeriod`.
    Syndication,
    /// Its hub or cloud tells of changes.
    Pushed,
    /// `Retry-After`.
    RetryAfter,
    /// 429.
    SlowDown,
    /// It failed.
    Failing {
        /// With what.
        class: FailureClass,
        /// How often in a row.
        times: u32,
    },
    /// It has failed for a month.
    Dead,
    /// It said that it is gone, and kept to it.
    Gone,
}

impl PeriodReason {
    /// A word for programs. Never changes once released.
    pub fn word(self) -> &'static str {
        match self {
            PeriodReason::Unknown => "unknown",
            PeriodReason::Rate { .. } => "rate",
            PeriodReason::Rationed { .. } => "budget",
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
            PeriodReason::Unknown => "nothing is known of it yet",
            PeriodReason::Rate { per_day } => return write!(f, "it brings {}", Rate(per_day)),
            PeriodReason::Rationed { per_day, stretch } => {
                return write!(
                    f,
                    "it brings {}, and the operator's poll budget makes periods {stretch:.1} \
                     times as long",
                    Rate(per_day)
                );
            }
            PeriodReason::Longest => "what changes seldom is polled that often all the same",
            PeriodReason::Silent => "nothing new came for half a year",
            PeriodReason::WindowOverrun => {
                "window overrun: everything in the document was new, so entries may have been \
                 missed"
            }
            PeriodReason::Window { entries } => {
                return write!(f, "the document holds only {entries} entries, soon pushed out");
            }
            PeriodReason::Floor => "the shortest period for this kind of resource",
            PeriodReason::MinPeriod => "the operator's shortest period",
            PeriodReason::Unconditional => "its server sends the whole document every time",
            PeriodReason::UnconditionalLarge => {
                "its server sends the whole, large document every time"
            }
            PeriodReason::Headers => "the publisher's headers say that it is good so long",
            PeriodReason::Ttl => "the document's ttl asks for it",
            PeriodReason::Syndication => "the document's sy:updatePeriod asks for it",
            PeriodReason::Pushed => "its hub or cloud tells of changes; polls only make sure",
            PeriodReason::RetryAfter => "the server asked to be left alone so long",
            PeriodReason::SlowDown => "the server said that it is asked too often",
            PeriodReason::Failing { class, times: 1 } => return write!(f, "it failed: {class}"),
            PeriodReason::Failing { class, times } => {
                return write!(f, "it failed {times} times in a row: {class}");
            }
            PeriodReason::Dead => "it has been failing for more than 30 days",
            PeriodReason::Gone => "it has said that it is gone for good",
        };
        f.write_str(text)
    }
}

/// A rate in the unit in which it is at least one.
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
