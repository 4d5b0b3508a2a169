//! Why a period is what it is: one value for each rule that can decide it.
//!
//! A reason is told to people as a clause (`Display`), and to programs as a word
//! ([`Reason::word`]); both are made of the same value, so that they cannot differ.

use std::fmt;

use super::backoff::Class;

/// What decides a period, or could have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reason {
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
        class: Class,
        /// How often in a row.
        times: u32,
    },
    /// It has failed for a month.
    Dead,
    /// It said that it is gone, and kept to it.
    Gone,
}

impl Reason {
    /// A word for programs. Never changes once released.
    pub fn word(self) -> &'static str {
        match self {
            Reason::Unknown => "unknown",
            Reason::Rate { .. } => "rate",
            Reason::Rationed { .. } => "budget",
            Reason::Longest => "longest",
            Reason::Silent => "silent",
            Reason::WindowOverrun => "window_overrun",
            Reason::Window { .. } => "window",
            Reason::Floor => "floor",
            Reason::MinPeriod => "min_period",
            Reason::Unconditional | Reason::UnconditionalLarge => "unconditional",
            Reason::Headers => "cache_control",
            Reason::Ttl => "ttl",
            Reason::Syndication => "syndication",
            Reason::Pushed => "push_backup",
            Reason::RetryAfter => "retry_after",
            Reason::SlowDown => "slow_down",
            Reason::Failing { .. } => "failure_backoff",
            Reason::Dead => "dead",
            Reason::Gone => "gone",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match *self {
            Reason::Unknown => "nothing is known of it yet",
            Reason::Rate { per_day } => return write!(f, "it brings {}", Rate(per_day)),
            Reason::Rationed { per_day, stretch } => {
                return write!(
                    f,
                    "it brings {}, and the operator's poll budget makes periods {stretch:.1} \
                     times as long",
                    Rate(per_day)
                );
            }
            Reason::Longest => "what changes seldom is polled that often all the same",
            Reason::Silent => "nothing new came for half a year",
            Reason::WindowOverrun => {
                "window overrun: everything in the document was new, so entries may have been \
                 missed"
            }
            Reason::Window { entries } => {
                return write!(f, "the document holds only {entries} entries, soon pushed out");
            }
            Reason::Floor => "the shortest period for this kind of resource",
            Reason::MinPeriod => "the operator's shortest period",
            Reason::Unconditional => "its server sends the whole document every time",
            Reason::UnconditionalLarge => "its server sends the whole, large document every time",
            Reason::Headers => "the publisher's headers say that it is good so long",
            Reason::Ttl => "the document's ttl asks for it",
            Reason::Syndication => "the document's sy:updatePeriod asks for it",
            Reason::Pushed => "its hub or cloud tells of changes; polls only make sure",
            Reason::RetryAfter => "the server asked to be left alone so long",
            Reason::SlowDown => "the server said that it is asked too often",
            Reason::Failing { class, times: 1 } => return write!(f, "it failed: {class}"),
            Reason::Failing { class, times } => {
                return write!(f, "it failed {times} times in a row: {class}");
            }
            Reason::Dead => "it has been failing for more than 30 days",
            Reason::Gone => "it has said that it is gone for good",
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
