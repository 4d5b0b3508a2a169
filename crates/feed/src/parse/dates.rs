//! Parsing of dates in every form that occurs in feeds.
//!
//! [`parse`] reads the forms of RFC 822 and its successors, ISO 8601 and its profiles, C's
//! `asctime`, counts from 1970, and dates written for people in many languages, including the
//! common mistakes of programs. The parser does not try a list of formats: `reader` walks through
//! the text once and gives each word and each number its meaning. Invariants:
//!
//! * Any text is accepted as input, and none causes a panic or takes more than linear time.
//! * A date without a zone, or with an unknown zone, is in UTC.
//! * An impossible date (31 February, 25:00) is rejected. Only 31 June and the like, 24:00 and leap
//!   seconds are carried over (see `parts`).
//! * Weekdays are not checked: where the two disagree, the day of the month is right.
//! * ASCII text is parsed without allocating.
//!
//! ```text
//! fold ──► reader ──► parts ──► instant
//!            │  words: names, zones
//!            └─ figures: numeric, clock     epoch: the whole text is one number
//! ```
//!
//! Ambiguous forms are resolved in the file that reads them: `numeric` (which number is the month),
//! `zones` (which zone `CST` is), `names` (which month `listopad` is), `epoch` (which unit).

mod clock;
mod cursor;
mod epoch;
mod fold;
mod names;
mod numeric;
mod parts;
mod reader;
mod usual;
mod zones;

#[cfg(test)]
mod tests;

use chrono::DateTime;
use chrono::FixedOffset;

/// The maximum length of a date, in bytes. The longest form with a comment is half as long; longer
/// texts are prose.
const LONGEST_BYTES: usize = 200;

/// Parses a date, with the offset that it was written with.
///
/// The year is 1 to 9999, also in UTC. Returns `None` if the text is not a date, or an impossible
/// one.
pub(crate) fn parse(text: &str) -> Option<DateTime<FixedOffset>> {
    let text = text.trim();
    if text.is_empty() || text.len() > LONGEST_BYTES {
        return None;
    }
    if let Some(usual) = usual::read(text) {
        return Some(usual);
    }
    if text.is_ascii() && !text.contains('&') {
        return read(text);
    }
    read(fold::fold(text).trim())
}

/// Parses text that is ASCII or has been folded.
fn read(text: &str) -> Option<DateTime<FixedOffset>> {
    epoch::read(text).or_else(|| reader::read(text)?.instant())
}
