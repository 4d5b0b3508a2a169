//! The keys under which an index finds the entries that a query may match.
//!
//! The index of stored entries (`crate::search`) looks up keys and decides nothing: what it finds
//! is compared with the query. So two words may share a key, and a key says nothing about the order
//! of words, their case or what is excluded.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

use super::expression::Expression;
use super::places::{HostPattern, LinkPattern};
use super::{EntryText, Query};

/// The most keys of one entry, which are added to the index in one transaction: some tenths of a
/// second. A text with as many different words has more than 100,000 words.
const MAX_KEYS: usize = 10_000;
/// The length of a key: 30 bits, so that hardly any two words of a language share one.
const KEY_LETTERS: usize = 6;
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// A key: a few letters and digits that follow from a word, or from the domain of a site or link.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SearchKey(String);

/// The keys that each matching entry has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequiredKeys {
    /// This key.
    Key(SearchKey),
    /// The keys of all of these, of which there is at least one.
    All(Vec<RequiredKeys>),
    /// The keys of at least one of these.
    Any(Vec<RequiredKeys>),
}

impl SearchKey {
    fn new(text: &str) -> SearchKey {
        let digest = Sha256::digest(text.as_bytes());
        let letters = digest.iter().take(KEY_LETTERS).map(|byte| LETTERS[usize::from(byte % 32)]);
        SearchKey(letters.map(char::from).collect())
    }

    /// Returns the letters and digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl EntryText {
    /// Returns the keys of this entry, at most `most` of them. Those of its site and links come before
    /// those of its words.
    pub fn search_keys(&self, most: usize) -> Vec<SearchKey> {
        let mut keys = BTreeSet::new();
        self.visit_keys(|key| {
            if keys.len() < most.min(MAX_KEYS) {
                keys.insert(SearchKey::new(key));
            }
        });
        keys.into_iter().collect()
    }
}

impl Query {
    /// Returns the keys that each matching entry has.
    pub fn search_keys(&self) -> RequiredKeys {
        let flags = [
            self.flags.site.as_ref().map(HostPattern::site_key),
            self.flags.link.as_ref().map(LinkPattern::link_key),
        ];
        let flags = flags.into_iter().flatten();
        let flags = flags.map(|key| RequiredKeys::Key(SearchKey::new(&key)));
        RequiredKeys::All(flags.chain(self.expression.search_keys()).collect())
    }
}

impl Expression {
    /// Returns the keys of the words that each matching entry has; `None` if no word is required.
    fn search_keys(&self) -> Option<RequiredKeys> {
        match self {
            Expression::Term(term) => {
                let words: BTreeSet<&String> = term.words().iter().collect();
                let keys = words.into_iter().map(|word| RequiredKeys::Key(SearchKey::new(word)));
                Some(RequiredKeys::All(keys.collect()))
            }
            Expression::All(operands) => {
                let keys: Vec<_> = operands.iter().filter_map(Expression::search_keys).collect();
                (!keys.is_empty()).then_some(RequiredKeys::All(keys))
            }
            Expression::Any(operands) => operands
                .iter()
                .map(Expression::search_keys)
                .collect::<Option<_>>()
                .map(RequiredKeys::Any),
            Expression::Not(_) => None,
        }
    }
}

impl RequiredKeys {
    /// Returns an expression over the keys, in which `and` and `or` stand between operands.
    pub fn to_text(&self, and: &str, or: &str) -> String {
        let (operands, operator) = match self {
            RequiredKeys::Key(key) => return key.0.clone(),
            RequiredKeys::All(operands) => (operands, and),
            RequiredKeys::Any(operands) => (operands, or),
        };
        if let [only] = operands.as_slice() {
            return only.to_text(and, or);
        }
        let texts = operands.iter().map(|operand| operand.to_text(and, or));
        format!("({})", texts.collect::<Vec<_>>().join(operator))
    }

    /// Returns whether an entry with these keys has the required ones.
    pub fn are_in(&self, keys: &[SearchKey]) -> bool {
        match self {
            RequiredKeys::Key(key) => keys.contains(key),
            RequiredKeys::All(operands) => operands.iter().all(|operand| operand.are_in(keys)),
            RequiredKeys::Any(operands) => operands.iter().any(|operand| operand.are_in(keys)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q01_required_keys_are_written_as_an_expression() {
        let key = |word: &str| SearchKey::new(word).0;
        let (a, b, c) = (key("a"), key("b"), key("c"));
        #[rustfmt::skip]
        let cases = [
            ("a",                   a.clone()),
            ("a -b",                a.clone()),
            ("a b | c",             format!("({c} | ({a} & {b}))")),
            ("a (b | c -a)",        format!("({a} & ({b} | {c}))")),
            ("\"a b a\"",           format!("({a} & {b})")),
            ("site:a.test -b",      key("site:a.test")),
            ("link:a.test/x c",     format!("({} & {c})", key("link:a.test"))),
        ];
        for (query, want) in cases {
            let keys = Query::parse(query).unwrap().search_keys();
            assert_eq!(keys.to_text(" & ", " | "), want, "{query}");
        }
        assert_eq!(a.len(), KEY_LETTERS);
        assert_ne!(a, b);
    }
}
