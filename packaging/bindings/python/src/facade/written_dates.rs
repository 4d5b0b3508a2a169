//! The dates of a document as it has them: the normalizer keeps instants, and programs that used
//! feedparser may read the text.

use std::collections::HashMap;

use feedgate_feed::chrono::{DateTime, FixedOffset};

use super::dates;

/// The ends of the names of elements that are dates.
const NAMES: [&[u8]; 8] =
    [b"date", b"Date", b"updated", b"published", b"issued", b"modified", b"created", b"Created"];

/// The longest text of a date, in bytes.
const LONGEST_BYTES: usize = 48;

/// The most dates: as many as there are entries, with some each.
const MOST_DATES: usize = 20_000;

/// The texts of dates by instant.
#[derive(Debug, Default)]
pub(super) struct WrittenDates(HashMap<DateTime<FixedOffset>, Box<str>>);

impl WrittenDates {
    /// Finds the dates that are the only text of an element.
    pub(super) fn find(document: &[u8]) -> WrittenDates {
        let mut found = HashMap::new();
        for end in memchr::memmem::find_iter(document, b"</") {
            let after = &document[end + 2..document.len().min(end + 2 + LONGEST_BYTES)];
            let Some(length) = memchr::memchr(b'>', after) else { continue };
            if !NAMES.iter().any(|ending| after[..length].ends_with(ending)) {
                continue;
            }
            let before = &document[end.saturating_sub(LONGEST_BYTES)..end];
            let Some(start) = memchr::memrchr(b'>', before) else { continue };
            let Ok(text) = std::str::from_utf8(&before[start + 1..]) else { continue };
            let text = text.trim();
            if let Some(date) = dates::read(text).filter(|_| found.len() < MOST_DATES) {
                found.entry(date).or_insert_with(|| Box::from(text));
            }
        }
        WrittenDates(found)
    }

    /// Returns the text of a date.
    pub(super) fn text_of(&self, date: DateTime<FixedOffset>) -> Option<&str> {
        self.0.get(&date).map(|text| &**text)
    }
}
