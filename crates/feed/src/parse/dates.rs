//! Dates, in every form that feeds have them.
//!
//! [`parse`] reads the forms of RFC 822 and its successors, ISO 8601 and its
//! profiles, C's `asctime`, counts from 1970, and what people write in their own
//! language, with all the ways programs get them wrong. It does not try one form
//! after another: `reader` walks through the text once and gives each word and
//! each number its meaning. What always holds:
//!
//! * Any text is taken, and none makes it panic or take more than linear time.
//! * A date without a zone is in UTC, and so is one whose zone is not known.
//! * A date that cannot be (31 February, 25:00) is no date; nothing is rolled over
//!   but 24:00 and leap seconds.
//! * A weekday is never checked: when it is wrong, the day of the month is right.
//! * Plain ASCII is read without allocating.
//!
//! ```text
//! fold ──► reader ──► parts ──► instant
//!            │  words: names, zones
//!            └─ figures: numeric, clock      epoch: the whole text is one number
//! ```
//!
//! Which of two readings we take where there are two is said in the file that
//! decides: `numeric` (which figure is the month), `zones` (what `CST` is), `names`
//! (what `listopad` is), `epoch` (which unit).

mod clock;
mod cursor;
mod epoch;
mod fold;
mod names;
mod numeric;
mod parts;
mod reader;
mod zones;

#[cfg(test)]
mod tests;

use chrono::DateTime;
use chrono::FixedOffset;

/// Longer texts are prose, not dates; the longest form with a comment in it is half
/// as long.
const LONGEST_BYTES: usize = 200;

/// The instant that `text` names, with the offset it was written with.
///
/// The year is 1 to 9999, also in UTC. `None` if it is no date, or an impossible one.
pub(super) fn parse(text: &str) -> Option<DateTime<FixedOffset>> {
    let text = text.trim();
    if text.is_empty() || text.len() > LONGEST_BYTES {
        return None;
    }
    if text.is_ascii() && !text.contains('&') {
        return read(text);
    }
    read(fold::fold(text).trim())
}

/// Reads text that is ASCII or has been folded.
fn read(text: &str) -> Option<DateTime<FixedOffset>> {
    epoch::read(text).or_else(|| reader::read(text)?.instant())
}
