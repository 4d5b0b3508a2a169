//! Removal of duplicate items.

use std::collections::HashSet;
use std::hash::Hash;

/// The number of items up to which comparing them is faster than hashing.
const FEW: usize = 8;

/// Drops every item that equals one before it. Takes linear time, because a document may have a
/// hundred thousand links.
pub(super) fn remove_duplicates<T: Eq + Hash>(items: &mut Vec<T>) {
    if items.len() <= FEW {
        let mut at = 1;
        while at < items.len() {
            if items[..at].contains(&items[at]) {
                items.remove(at);
            } else {
                at += 1;
            }
        }
        return;
    }
    let mut seen = HashSet::with_capacity(items.len());
    let first: Vec<bool> = items.iter().map(|item| seen.insert(item)).collect();
    let mut first = first.into_iter();
    items.retain(|_| first.next().unwrap_or(true));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_each_stays_where_it_is() {
        for times in [1, FEW] {
            let mut items = ["b", "a", "b", "c", "a"].repeat(times);
            remove_duplicates(&mut items);
            assert_eq!(items, ["b", "a", "c"]);
        }
    }
}
