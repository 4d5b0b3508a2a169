//! A map with text keys that is a list while it is short.
//!
//! An entry uses a handful of names, which are compared faster than hashed. A hostile document uses
//! thousands, and must not make look-ups take linear time.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// The number of names from which on they are hashed.
const MANY: usize = 16;

/// A map with text keys.
#[derive(Debug)]
pub(super) struct Table<K, V> {
    few: Vec<(K, V)>,
    many: HashMap<K, V>,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Table { few: Vec::new(), many: HashMap::new() }
    }
}

impl<K: Borrow<str> + Eq + Hash, V> Table<K, V> {
    /// Returns the value for `name`.
    pub(super) fn get(&self, name: &str) -> Option<&V> {
        if self.many.is_empty() {
            return self.few.iter().find(|(held, _)| held.borrow() == name).map(|(_, value)| value);
        }
        self.many.get(name)
    }

    /// Inserts a value for `name`, which must be new.
    pub(super) fn insert(&mut self, name: K, value: V) {
        if !self.many.is_empty() {
            self.many.insert(name, value);
            return;
        }
        self.few.push((name, value));
        if self.few.len() == MANY {
            self.many.extend(self.few.drain(..));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_is_found_however_much_there_is() {
        for size in [1, MANY - 1, MANY, 3 * MANY] {
            let mut table = Table::default();
            (0..size).for_each(|at| table.insert(at.to_string(), at));
            assert!((0..size).all(|at| table.get(&at.to_string()) == Some(&at)), "{size}");
            assert_eq!(table.get("none"), None, "{size}");
        }
    }
}
