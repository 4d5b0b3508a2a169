//! The entries of a first document that were published after a subscription was made (rule N5).
//!
//! A subscription may be made long before its resource can be read for the first time. Then the first
//! document contains what existed before, which is sent to nobody, and what was published since. Only
//! the date of an entry tells them apart.

use chrono::{DateTime, TimeDelta, Timelike, Utc};

use super::{Candidate, FeedDocument};

/// The precision of most dates. An entry of the second in which a subscription was made is sent: in
/// doubt an entry is new.
const SECOND: TimeDelta = TimeDelta::seconds(1);
/// The precision of dates whose seconds are zero.
const MINUTE: TimeDelta = TimeDelta::seconds(60);

impl FeedDocument {
    /// Returns the time such that the entry is new to subscriptions that were made before it; `None` if
    /// the entry has no date. The clock of the publisher is corrected.
    pub fn new_to_earlier_than(&self, candidate: &Candidate) -> Option<DateTime<Utc>> {
        published_until(candidate, self.clock_ahead)
    }

    /// Moves the entries that are new to a subscription made at `since` behind all others, in the order
    /// in which they were published.
    pub fn put_published_since_last(&mut self, since: DateTime<Utc>) {
        let ahead = self.clock_ahead;
        // The place of the gap says nothing any more.
        self.gap = None;
        // The sort is stable, and `None` comes first.
        self.candidates.sort_by_key(|candidate| {
            let is_new = published_until(candidate, ahead).is_some_and(|until| until > since);
            candidate.date().filter(|_| is_new)
        });
    }
}

/// Returns the end of the second or the minute in which an entry was published.
fn published_until(candidate: &Candidate, clock_ahead: TimeDelta) -> Option<DateTime<Utc>> {
    let date = candidate.date()?;
    let precision = if date.second() == 0 { MINUTE } else { SECOND };
    date.checked_sub_signed(clock_ahead)?.checked_add_signed(precision)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(clock_ahead_s: i64, dates: &[Option<i64>]) -> FeedDocument {
        let candidates = dates.iter().enumerate().map(|(n, date)| Candidate {
            published: date.map(|secs| DateTime::UNIX_EPOCH + TimeDelta::seconds(secs)),
            ..Candidate::of_id(&n.to_string(), String::new())
        });
        FeedDocument {
            candidates: candidates.collect(),
            clock_ahead: TimeDelta::seconds(clock_ahead_s),
            ..FeedDocument::default()
        }
    }

    /// The entries that are new to a subscription made at 1000.5 s, in order.
    fn new(clock_ahead_s: i64, dates: &[Option<i64>]) -> Vec<String> {
        let since = DateTime::UNIX_EPOCH + TimeDelta::milliseconds(1_000_500);
        let mut document = document(clock_ahead_s, dates);
        document.put_published_since_last(since);
        let is_new =
            |one: &&Candidate| document.new_to_earlier_than(one).is_some_and(|until| until > since);
        let new = document.candidates.iter().filter(is_new).count();
        let (_, last) = document.candidates.split_at(dates.len() - new);
        assert!(last.iter().all(|one| is_new(&one)), "{dates:?}: they are the last");
        last.iter().map(|one| one.entry_id.clone()).collect()
    }

    /// Why, how far the clock of the publisher is ahead, the dates of the entries, and those that are new.
    type Case = (&'static str, i64, &'static [Option<i64>], &'static [&'static str]);

    #[test]
    fn h14_what_was_published_after_a_subscription_is_told_by_its_date() {
        #[rustfmt::skip]
        let cases: [Case; 9] = [
            ("before and after",            0, &[Some(1), Some(999), Some(1_001)],  &["2"]),
            ("in the same second",          0, &[Some(999), Some(1_000)],           &["1"]),
            ("in the same minute",          0, &[Some(900), Some(960)],             &["1"]),
            ("without a date",              0, &[None, Some(1_001), None],          &["1"]),
            ("in another order",            0, &[Some(1_009), Some(1), Some(1_005)], &["2", "0"]),
            ("one at the full minute",      0, &[Some(1_021), Some(1_020), Some(1_025)], &["1", "0", "2"]),
            ("a little ahead of us",        0, &[Some(1), Some(1_300)],             &["1"]),
            ("the publisher's clock is an hour ahead",  3_600, &[Some(4_500), Some(4_601)],  &["1"]),
            ("the publisher's clock is an hour behind", -3_600, &[Some(-2_900), Some(-2_599)], &["1"]),
        ];
        for (why, ahead, dates, want) in cases {
            assert_eq!(new(ahead, dates), want, "{why}");
        }
    }
}
