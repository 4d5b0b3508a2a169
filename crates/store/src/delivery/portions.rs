//! Portions: parts of backlogs that are claimed together, and how much of each.

use chrono::{DateTime, Utc};
use foldhash::{HashSet, HashSetExt as _};

use crate::delivery::backlogs::BacklogId;
use crate::engine::claims::searched_queue::Picked;
use feedgate_core::claim::ClaimToken;

/// A part of a backlog that is claimed together.
#[derive(Clone, Debug)]
pub(crate) struct Portion {
    pub(crate) id: BacklogId,
    pub(crate) host: String,
    /// The claim under which the backlog is held; `None` if it is yet to be claimed.
    pub(crate) held: Option<ClaimToken>,
    /// The last subscription before the portion.
    pub(crate) after: i64,
    /// The most subscriptions.
    pub(crate) most: usize,
    /// Subscriptions that are in hand already, or were given back for a while.
    pub(crate) without: HashSet<i64>,
    /// When the first of those is tried again that wait for a retry.
    pub(crate) next_retry: Option<DateTime<Utc>>,
}

/// A portion that was read.
#[derive(Clone, Debug)]
pub(crate) struct ReadPortion {
    pub(crate) id: BacklogId,
    pub(crate) host: String,
    pub(crate) token: ClaimToken,
    /// The last subscription that was read.
    pub(crate) after: i64,
    pub(crate) is_at_end: bool,
    /// Whether there were some, but none that could be read.
    pub(crate) is_unreadable: bool,
    pub(crate) next_retry: Option<DateTime<Utc>>,
    /// The numbers of the subscriptions that were claimed.
    pub(crate) claimed: Vec<i64>,
}

/// Returns the elements of two lists in turn.
pub(super) fn alternate<T>(first: Vec<T>, second: Vec<T>) -> impl Iterator<Item = T> {
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let mut is_second = true;
    std::iter::from_fn(move || {
        is_second = !is_second;
        match is_second {
            true => second.next().or_else(|| first.next()),
            false => first.next().or_else(|| second.next()),
        }
    })
}

/// Divides `limit` among portions with so many subscriptions each: the smallest get what they have, and
/// the others as much as each other. Portions without a share are left out.
pub(super) fn share(candidates: Vec<(Portion, usize)>, limit: usize) -> Vec<Portion> {
    let mut sizes: Vec<usize> = candidates.iter().take(limit).map(|(_, size)| *size).collect();
    sizes.sort_unstable();
    let (mut left, mut most) = (limit, 0);
    for (place, size) in sizes.iter().enumerate() {
        most = left / (sizes.len() - place);
        if *size > most {
            break;
        }
        left -= size;
    }
    let shares = candidates
        .into_iter()
        .take(limit)
        .map(|(portion, size)| Portion { most: size.min(most.max(1)), ..portion });
    shares.collect()
}

impl Portion {
    /// Returns the first portion of a backlog that is due.
    pub(super) fn of_due(id: BacklogId, host: &str) -> Portion {
        let host = host.to_owned();
        let without = HashSet::new();
        Portion { id, host, held: None, after: 0, most: 0, without, next_retry: None }
    }

    /// Returns how many rows are read: one more than are claimed shows whether it is the last portion.
    pub(super) fn most_rows(&self) -> usize {
        self.most.saturating_add(self.without.len() + 1)
    }
}

impl From<Picked> for Portion {
    fn from(picked: Picked) -> Portion {
        let id = BacklogId { resource: picked.resource, number: picked.number };
        Portion { most: picked.count, ..Portion::of_due(id, &picked.host) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_portion_is_shared_among_backlogs() {
        for (limit, sizes, expected) in [
            (16, vec![100], vec![16]),
            (16, vec![100, 100], vec![8, 8]),
            (16, vec![1, 100, 2], vec![1, 13, 2]),
            (2, vec![100, 100, 100], vec![1, 1]),
            (16, vec![3, 4], vec![3, 4]),
            (16, vec![], vec![]),
        ] {
            let candidates = sizes.iter().zip(1..).map(|(size, number)| {
                (Portion::of_due(BacklogId { resource: 1, number }, "host"), *size)
            });
            let shared = share(candidates.collect(), limit);
            let most: Vec<_> = shared.iter().map(|portion| portion.most).collect();
            assert_eq!(most, expected, "{limit} among {sizes:?}");
        }
    }
}
