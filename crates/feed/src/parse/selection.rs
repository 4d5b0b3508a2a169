//! The choice of entries that are read of a document that has too many of them (rule S16).
//!
//! Subscribers want what is new, so the newest entries are read, in whichever order the document lists
//! them. Where dates do not tell which ones are the newest, it is not known at which end of the document
//! a publisher adds: then the entries at both ends are read, half of them each.

use chrono::{DateTime, FixedOffset, Utc};

use super::MAX_ENTRIES;
use crate::repair::{Repair, RepairCode};

/// The first plausible date, the beginning of 1990, and how far ahead a date may be, a day: others are
/// no dates of entries (rule N9). In seconds.
const FIRST_DATE_S: i64 = 631_152_000;
const FAR_S: i64 = 24 * 3_600;

/// What the choice depends on, for one entry. It is small, because a document may have a million of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Choice {
    /// The publication date, or else the date of the last update, in seconds.
    pub(super) date_s: Option<i64>,
    /// The number of entries: more than one if others are nested in it.
    pub(super) entries: u32,
    /// The number of nodes of the tree.
    pub(super) nodes: u32,
}

impl Choice {
    /// Returns the choice for one entry of a format whose nodes are not counted.
    pub(super) fn of_entry(date: Option<DateTime<FixedOffset>>) -> Choice {
        Choice { date_s: date.map(|date| date.timestamp()), entries: 1, nodes: 0 }
    }
}

/// The limits of what is chosen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) entries: usize,
    pub(super) nodes: usize,
}

impl Room {
    /// The room for entries of a format whose nodes are not counted.
    pub(super) const ENTRIES: Room = Room { entries: MAX_ENTRIES, nodes: usize::MAX };
}

/// The entries that are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Selection {
    /// The indices of the entries, ascending.
    pub(super) kept: Vec<usize>,
    /// The number of all entries.
    pub(super) total: usize,
    /// The number of entries before the ones that are left out, if these are in the middle.
    pub(super) gap: Option<usize>,
}

impl Selection {
    /// Chooses among entries in the order of the document. `now` is when the document was received.
    pub(super) fn choose(choices: &[Choice], room: Room, now: Option<DateTime<Utc>>) -> Selection {
        let dates = plausible_dates(choices, now);
        let order = match &dates {
            Some(dates) => newest_first(dates),
            None => from_both_ends(choices.len()),
        };
        let (mut entries, mut nodes) = (0, 0);
        let fits = |at: &usize| {
            entries += choices[*at].entries as usize;
            nodes += choices[*at].nodes as usize;
            entries <= room.entries && nodes <= room.nodes
        };
        let mut kept: Vec<usize> = order.into_iter().take_while(fits).collect();
        kept.sort_unstable();
        let total = choices.iter().map(|choice| choice.entries as usize).sum();
        let is_split = dates.is_none() && kept.len() < choices.len();
        let gap = is_split.then(|| kept.iter().zip(0..).take_while(|(at, n)| **at == *n).count());
        Selection { kept, total, gap }
    }

    /// Returns the repair that reports what is left out. `read` is the number of entries that are read.
    pub(super) fn report(&self, read: usize) -> Repair {
        let which = if self.gap.is_some() { "at both ends" } else { "the newest" };
        let detail = format!("{read} of {} entries are read, {which}", self.total);
        Repair::new(RepairCode::TooManyEntries, detail)
    }
}

/// Returns a date for each entry; `None` if dates do not order the entries, because most have none or
/// all have the same one. An entry without a date has that of the entry before it, or of the first
/// one that has a date.
fn plausible_dates(choices: &[Choice], now: Option<DateTime<Utc>>) -> Option<Vec<i64>> {
    let latest_s = now.map_or(i64::MAX, |now| now.timestamp() + FAR_S);
    let is_plausible = |date_s: &i64| (FIRST_DATE_S..=latest_s).contains(date_s);
    let dates = || choices.iter().map(move |choice| choice.date_s.filter(is_plausible));
    let first = dates().flatten().next()?;
    let is_ordered = dates().flatten().any(|date| date != first);
    if !is_ordered || dates().flatten().count() * 2 < choices.len() {
        return None;
    }
    let filled = dates().scan(first, |before, date| {
        *before = date.unwrap_or(*before);
        Some(*before)
    });
    Some(filled.collect())
}

/// Returns the indices, the newest entry first. Of entries with the same date, those are newer that stand
/// closer to the end at which the dates of the document are newer.
fn newest_first(dates: &[i64]) -> Vec<usize> {
    let rising = dates.windows(2).filter(|pair| pair[0] < pair[1]).count();
    let falling = dates.windows(2).filter(|pair| pair[0] > pair[1]).count();
    let mut order: Vec<usize> = (0..dates.len()).collect();
    if rising > falling {
        order.reverse();
    }
    order.sort_by_key(|at| std::cmp::Reverse(dates[*at]));
    order
}

/// Returns the indices from both ends towards the middle.
fn from_both_ends(count: usize) -> Vec<usize> {
    (0..count).map(|n| if n % 2 == 0 { n / 2 } else { count - 1 - n / 2 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices(days: &[i64]) -> Vec<Choice> {
        let date_s = |day: i64| (12_000 + day) * 86_400;
        let of =
            |day: &i64| Choice { date_s: (*day > 0).then(|| date_s(*day)), entries: 1, nodes: 10 };
        days.iter().map(of).collect()
    }

    #[test]
    fn h15_the_newest_are_chosen_whichever_end_they_stand_at() {
        let now = DateTime::from_timestamp(12_100 * 86_400, 0).unwrap();
        type Case<'c> = (&'c str, &'c [i64], &'c [usize], Option<usize>);
        #[rustfmt::skip]
        let cases: [Case<'_>; 9] = [
            ("newest first",           &[5, 4, 3, 2, 1],    &[0, 1, 2],    None),
            ("oldest first",           &[1, 2, 3, 4, 5],    &[2, 3, 4],    None),
            ("in no order",            &[2, 5, 1, 4, 3],    &[1, 3, 4],    None),
            ("one far ahead",          &[900, 4, 3, 2, 1],  &[0, 1, 2],    None),
            ("the last one far ahead", &[1, 2, 3, 4, 900],  &[2, 3, 4],    None),
            ("one without a date",     &[1, 2, 3, 4, 0],    &[2, 3, 4],    None),
            ("the same day",           &[1, 1, 2, 2, 2, 2], &[3, 4, 5],    None),
            ("no dates",               &[0, 0, 0, 0, 0],    &[0, 1, 4],    Some(2)),
            ("dates that say nothing", &[7, 7, 7, 7, 7],    &[0, 1, 4],    Some(2)),
        ];
        let room = Room { entries: 3, nodes: 99 };
        for (why, days, want, gap) in cases {
            let found = Selection::choose(&choices(days), room, Some(now));
            assert_eq!((found.kept.as_slice(), found.gap), (want, gap), "{why}");
            assert_eq!(found.total, days.len(), "{why}");
        }
        let few = Room { entries: 3, nodes: 20 };
        let found = Selection::choose(&choices(&[1, 2, 3]), few, None);
        assert_eq!(found.kept, [1, 2], "as many as there is room for");
        assert_eq!(found.report(2).detail, "2 of 3 entries are read, the newest");
        let all = Selection::choose(&choices(&[0, 0]), room, None);
        assert_eq!((all.kept, all.gap), (vec![0, 1], None));
    }
}
