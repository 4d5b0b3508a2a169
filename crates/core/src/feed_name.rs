//! The names by which people find a feed in a list: the words of its title and of its address.
//!
//! A search finds the feeds in which each of its words begins a word. So a part of an address is
//! found wherever it stands, and an index in the order of words finds it without reading others.

use std::collections::BTreeSet;

use crate::query::words::{folded, normal_form, words};
use crate::redaction;
use crate::topic::Topic;

/// The most words of a title, and of an address, by which a feed is found.
const MOST_WORDS: usize = 16;
/// The most characters of a word, and of the name by which feeds are ordered.
const WORD_CHARS: usize = 40;
const ORDER_CHARS: usize = 80;
/// Words that nearly all addresses have.
const COMMON: [&str; 3] = ["http", "https", "www"];

/// The names of a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedName {
    /// What lists are ordered by: the title in lower case, or the address if there is none.
    pub order: String,
    /// The words by which it is found.
    pub words: BTreeSet<String>,
}

impl FeedName {
    /// Returns the names of a feed. What may be secret in its address is left out.
    pub fn new(topic: &Topic, title: &str) -> FeedName {
        let address = topic.redacted();
        let title = redaction::line(title, ORDER_CHARS);
        let bare = address.split_once("://").map_or(address, |(_, bare)| bare);
        let order =
            if title.is_empty() { redaction::line(bare, ORDER_CHARS) } else { title.clone() };
        let mut found = BTreeSet::new();
        for text in [&title, address] {
            let normal = normal_form(text);
            for word in words(&normal).take(MOST_WORDS) {
                found.extend(name_word(word));
                // The number of `feed2500` is a word, too.
                let digits = word.find(|c: char| c.is_ascii_digit()).filter(|at| *at > 0);
                found.extend(digits.and_then(|at| name_word(&word[at..])));
            }
        }
        FeedName { order: order.to_lowercase(), words: found }
    }
}

/// The words of a search for feeds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameSearch {
    /// The words, longest first.
    pub words: Vec<String>,
}

impl NameSearch {
    /// Returns the words of a text that somebody typed: up to eight, without those of all addresses.
    pub fn parse(text: &str) -> NameSearch {
        let normal = normal_form(text);
        let found: BTreeSet<String> = words(&normal).filter_map(name_word).collect();
        let mut words: Vec<String> = found.into_iter().collect();
        words.sort_by_key(|word| std::cmp::Reverse(word.len()));
        words.truncate(8);
        NameSearch { words }
    }
}

/// Returns a word as it is stored; `None` if it tells feeds not apart.
fn name_word(word: &str) -> Option<String> {
    let word: String = folded(word).chars().take(WORD_CHARS).collect();
    (!word.is_empty() && !COMMON.contains(&word.as_str())).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feed_has_the_words_of_its_title_and_of_its_address() {
        let topic = Topic::parse("https://www.Example.com/blog/feed2500.xml").unwrap();
        let FeedName { order, words } = FeedName::new(&topic, "  The Tides\nof today ");
        assert_eq!(order, "the tides of today");
        let want =
            ["2500", "blog", "com", "example", "feed2500", "of", "the", "tides", "today", "xml"];
        assert_eq!(Vec::from_iter(words), want);
        let FeedName { order, .. } = FeedName::new(&topic, "");
        assert!(order.starts_with("www.example.com/blog"), "{order}");
    }

    #[test]
    fn what_is_secret_in_an_address_is_no_name() {
        let topic = Topic::parse("https://ada:lovelace@example.com/?token=verysecret").unwrap();
        let FeedName { order, words } = FeedName::new(&topic, "");
        assert!(!words.contains("lovelace") && !words.contains("verysecret"), "{words:?}");
        assert!(!order.contains("lovelace") && !order.contains("verysecret"), "{order}");
    }

    #[test]
    fn a_search_has_the_words_that_tell_feeds_apart() {
        let cases: [(&str, &[&str]); 3] = [
            ("https://www.example.com/", &["example", "com"]),
            ("Caf\u{c9} 7", &["caf\u{e9}", "7"]),
            ("https://", &[]),
        ];
        for (text, want) in cases {
            assert_eq!(NameSearch::parse(text).words, want, "{text}");
        }
    }
}
