//! An inverted index of queries: finds those that an entry matches, without looking at the others.
//!
//! Every query is filed under keys of which each matching entry has at least one. Only queries that
//! are filed under a key of the entry are compared with it, so the cost of an entry does not depend
//! on the number of queries that have no word in common with it.

use std::collections::HashMap;
use std::hash::Hash;

use super::{EntryText, Query};

/// An index of queries, each with an id.
#[derive(Clone, Debug)]
pub struct QueryIndex<Id> {
    queries: HashMap<Id, FiledQuery>,
    by_key: HashMap<String, Vec<Id>>,
}

#[derive(Clone, Debug)]
struct FiledQuery {
    query: Query,
    /// The keys under which the query is filed.
    keys: Vec<String>,
}

impl<Id: Copy + Eq + Hash + Ord> QueryIndex<Id> {
    /// Returns an index without queries.
    pub fn new() -> QueryIndex<Id> {
        QueryIndex { queries: HashMap::new(), by_key: HashMap::new() }
    }

    /// Returns the number of queries.
    pub fn len(&self) -> usize {
        self.queries.len()
    }

    /// Returns whether there are no queries.
    pub fn is_empty(&self) -> bool {
        self.queries.is_empty()
    }

    /// Adds a query, in place of the one with this id. It is filed under the keys that the fewest
    /// other queries have.
    pub fn insert(&mut self, id: Id, query: Query) {
        self.remove(id);
        let cost = |key: &str| self.by_key.get(key).map_or(0, Vec::len);
        let keys = query.required_keys(&cost).unwrap_or_default();
        for key in &keys {
            self.by_key.entry(key.clone()).or_default().push(id);
        }
        self.queries.insert(id, FiledQuery { query, keys });
    }

    /// Removes a query.
    pub fn remove(&mut self, id: Id) {
        let Some(filed) = self.queries.remove(&id) else { return };
        for key in filed.keys {
            if let Some(ids) = self.by_key.get_mut(&key) {
                ids.retain(|other| *other != id);
                if ids.is_empty() {
                    self.by_key.remove(&key);
                }
            }
        }
    }

    /// Returns the queries that an entry matches, ascending.
    pub fn matching(&self, entry: &EntryText) -> Vec<Id> {
        let mut candidates = Vec::new();
        entry.visit_keys(|key| {
            if let Some(ids) = self.by_key.get(key) {
                candidates.extend_from_slice(ids);
            }
        });
        candidates.sort_unstable();
        candidates.dedup();
        candidates
            .retain(|id| self.queries.get(id).is_some_and(|filed| filed.query.matches(entry)));
        candidates
    }
}

impl<Id: Copy + Eq + Hash + Ord> Default for QueryIndex<Id> {
    fn default() -> QueryIndex<Id> {
        QueryIndex::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q02_a_query_is_filed_under_its_rarest_word() {
        let mut index = QueryIndex::new();
        for id in 0..1_000 {
            index.insert(id, Query::parse(&format!("apple w{id}")).unwrap());
        }
        let longest = index.by_key.values().map(Vec::len).max();
        assert!(longest <= Some(1), "{longest:?} queries are under one key");
        let either = Query::parse("(apple | pear) (w1 | w2)").unwrap();
        index.insert(1_000, either);
        assert_eq!(index.by_key["pear"], [1_000]);
        (0..=1_000).for_each(|id| index.remove(id));
        assert!(index.by_key.is_empty(), "keys of queries that are gone");
    }
}
