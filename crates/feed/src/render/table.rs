//! A map from texts that is a list while it is short.
//!
//! An entry uses a handful of names, which are sooner compared than hashed; a hostile
//! document uses thousands, and must not make every look-up take longer than the last.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// From this many names on they are hashed.
const MANY: usize = 16;

/// What is known by a text.
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
    /// What is known by `name`.
    pub(super) fn get(&self, name: &str) -> Option<&V> {
        if self.many.is_empty() {
            return self.few.iter().find(|(held, _)| held.borrow() == name).map(|(_, value)| value);
        }
        self.many.get(name)
    }

    /// Makes `value` known by `name`, which must be new.
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
