//! The members of a batch: how they are stored, and how a statement finds the batch of a subscription.
//!
//! They are stored in the row of the batch, as a text with their numbers: `,7,8,12,`. So they cost no rows
//! of their own, and a statement can search them on both databases. The numbers of the first and of the
//! last member at the time when the batch was made are columns with an index. They are at most
//! [`GREATEST_SPAN`] apart, so that a bounded part of the index is read for a subscription.

use crate::engine::row::Row;
use crate::engine::sql::Value;
use feedgate_core::ports::{ClaimLimits, StoreError};

/// The most members of a batch: an eighth of what is claimed together for a fast host, so that most claims
/// take whole batches.
const MOST_MEMBERS: usize = ClaimLimits::LARGEST_PORTION / 8;
/// The number of members of the batch that is claimed first: as many as are claimed for a host whose speed
/// is unknown, so that no batch is split for it.
const FIRST_CLAIMED: usize = ClaimLimits::FIRST_PORTION;
/// How far apart the ids of two members of a batch may be: a lookup reads the index entries of all batches
/// whose last member is so far away, some `GREATEST_SPAN / MOST_MEMBERS` (64) for a resource with
/// subscribers on one host. `has_member!` has the same number.
const GREATEST_SPAN: i64 = 8_192;

/// The condition that `$batch`, a row of `deliveries`, is the batch of the subscription `$id` to
/// `$resource`. On SQLite, which plans without statistics, the statement must name the index with `indexed by
/// deliveries_members`.
macro_rules! has_member {
    ($batch:literal, $resource:literal, $id:literal) => {
        concat!(
            $batch,
            ".resource_id = ",
            $resource,
            " and ",
            $batch,
            ".last_member >= ",
            $id,
            " and ",
            $batch,
            ".last_member <= ",
            $id,
            " + 8192 and ",
            $batch,
            ".first_member <= ",
            $id,
            " and ",
            $batch,
            ".members like '%,' || ",
            $id,
            " || ',%'"
        )
    };
}
pub(crate) use has_member;

/// The condition that the subscription `$id` to `$resource` is in no batch.
macro_rules! is_in_no_batch {
    ($resource:literal, $id:literal) => {
        concat!(
            "not exists (select 1 from deliveries b {sqlite indexed by deliveries_members} where ",
            $crate::delivery::batch_members::has_member!("b", $resource, $id),
            ")"
        )
    };
}
pub(crate) use is_in_no_batch;

/// The ids of the members of a batch, in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Members(Vec<i64>);

impl Members {
    /// Divides subscriptions into batches, as few as possible, except that the last [`FIRST_CLAIMED`] have
    /// their own. It is claimed first: batches are numbered by negated ids, and the lowest number comes first
    /// among those with the same due time.
    pub(super) fn divide(mut ids: Vec<i64>) -> Vec<Members> {
        ids.sort_unstable();
        let first_claimed = ids.split_off(ids.len().saturating_sub(FIRST_CLAIMED));
        [ids, first_claimed].into_iter().flat_map(Members::fill_batches).collect()
    }

    /// Fills one batch after another, in the order of the ids.
    fn fill_batches(ids: Vec<i64>) -> Vec<Members> {
        let mut batches: Vec<Members> = Vec::new();
        for id in ids {
            match batches.last_mut() {
                Some(last) if last.has_room_for(id) => last.0.push(id),
                _ => batches.push(Members(vec![id])),
            }
        }
        batches
    }

    fn has_room_for(&self, id: i64) -> bool {
        let first = self.0.first().copied().unwrap_or(id);
        self.0.len() < MOST_MEMBERS && id - first <= GREATEST_SPAN
    }

    /// Reads the next column.
    pub(super) fn read(row: &mut Row) -> Result<Members, StoreError> {
        Members::parse(&row.text()?)
    }

    /// Reads a stored text.
    pub(crate) fn parse(text: &str) -> Result<Members, StoreError> {
        let unreadable =
            |_| StoreError::Corrupt(format!("{text:?} is not a list of batch members"));
        let numbers = text.split(',').filter(|number| !number.is_empty());
        numbers.map(str::parse).collect::<Result<_, _>>().map(Members).map_err(unreadable)
    }

    /// Returns the stored form.
    pub(super) fn to_text(&self) -> String {
        let mut text = String::from(",");
        for number in &self.0 {
            text.push_str(&number.to_string());
            text.push(',');
        }
        text
    }

    /// Returns the ids in ascending order.
    pub(crate) fn ids(&self) -> &[i64] {
        &self.0
    }

    /// Returns the first and the last id of each range of consecutive ids.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (i64, i64)> {
        consecutive_ranges(&self.0)
    }

    /// Keeps only the members for which `is_kept` returns true.
    pub(super) fn retain(&mut self, mut is_kept: impl FnMut(i64) -> bool) {
        self.0.retain(|number| is_kept(*number));
    }
}

/// Returns the first and the last of each range of consecutive ids, which are in ascending order. The
/// subscriptions of a range are found with one search of the index.
pub(super) fn consecutive_ranges(ids: &[i64]) -> impl Iterator<Item = (i64, i64)> {
    ids.chunk_by(|one, next| next - one == 1).map(|range| (range[0], range[range.len() - 1]))
}

/// Returns where to search the index of batches for members with ids from `first` to `last`: the least
/// `last_member`, the greatest, and the greatest `first_member`.
pub(super) fn search_range(first: i64, last: i64) -> [Value; 3] {
    [first, last.saturating_add(GREATEST_SPAN), last].map(Value::Int)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_stored_as_a_text() {
        for (numbers, text) in [(vec![], ","), (vec![7], ",7,"), (vec![7, 8, 12], ",7,8,12,")] {
            let members = Members(numbers);
            assert_eq!(members.to_text(), text);
            assert_eq!(Members::parse(text).unwrap(), members);
        }
        assert!(Members::parse(",seven,").is_err());
    }

    #[test]
    fn consecutive_members_are_a_range() {
        for (ids, expected) in [
            (vec![], vec![]),
            (vec![7], vec![(7, 7)]),
            (vec![7, 8, 9, 12, 14, 15], vec![(7, 9), (12, 12), (14, 15)]),
        ] {
            assert_eq!(Members(ids).ranges().collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn batches_have_a_bounded_number_of_members_that_are_near_each_other() {
        let divided = Members::divide((1..=300).rev().collect());
        let counts: Vec<_> = divided.iter().map(|members| members.ids().len()).collect();
        assert_eq!(counts, [128, 128, 28, 16]);
        assert_eq!(Members::divide((1..=16).collect()).len(), 1);
        let far = Members::divide(vec![8_194, 1, 8_193, 9_000]);
        assert_eq!(far, [Members(vec![1, 8_193]), Members(vec![8_194, 9_000])]);
        assert!(has_member!("b", "r", "s").contains(&format!("s + {GREATEST_SPAN} ")));
    }
}
