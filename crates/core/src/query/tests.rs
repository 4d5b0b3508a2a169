//! The query language, by the cases of `fixtures/query`, which the tests of `track` share.

use serde_json::Value;
use url::Url;

use super::{EntryText, Query, QueryIndex};
use crate::status::Status;
use feedgate_feed::Context;

const CASES: &str = include_str!("../../../../fixtures/query/cases.json");

/// Reads the entries of the cases as a poll would.
fn entries(cases: &Value) -> Vec<(String, EntryText)> {
    let entries = cases["entries"].as_object().unwrap();
    let read = entries.iter().map(|(name, entry)| {
        let topic = Url::parse(entry["feed"].as_str().unwrap()).unwrap();
        let item = entry["item"].as_str().unwrap();
        let rss = format!("<rss version='2.0'><channel><title>f</title>{item}</channel></rss>");
        let normalized = feedgate_feed::normalize(rss.as_bytes(), &Context::new(topic.clone()))
            .expect("the case is a feed");
        let mut entry_read = normalized.feed().entries[0].clone();
        entry_read.lang = entry["language"].as_str().map(str::to_owned);
        let status = Status {
            popularity: entry["popularity"].as_f64().unwrap_or_default(),
            porn_rank: entry["porn_rank"].as_f64(),
            bozo_rank: entry["bozo_rank"].as_f64().unwrap_or_default(),
            ..Status::default()
        };
        (name.clone(), EntryText::new(&entry_read, &topic, &status))
    });
    let mut read: Vec<_> = read.collect();
    read.sort_by(|(one, _), (other, _)| one.cmp(other));
    read
}

#[test]
fn q03_each_query_matches_the_entries_that_it_describes() {
    let cases: Value = serde_json::from_str(CASES).unwrap();
    let entries = entries(&cases);
    for case in cases["matches"].as_array().unwrap() {
        let text = case["query"].as_str().unwrap();
        let query = Query::parse(text).unwrap_or_else(|err| panic!("{text}: {err}"));
        let matched = entries.iter().filter(|(_, entry)| query.matches(entry));
        let matched: Vec<&str> = matched.map(|(name, _)| name.as_str()).collect();
        let want = case["entries"].as_array().unwrap();
        let want: Vec<&str> = want.iter().map(|name| name.as_str().unwrap()).collect();
        assert_eq!(matched, want, "{text}");
    }
}

#[test]
fn q03_a_normal_form_is_the_same_query() {
    let cases: Value = serde_json::from_str(CASES).unwrap();
    for case in cases["matches"].as_array().unwrap() {
        let query = Query::parse(case["query"].as_str().unwrap()).unwrap();
        assert_eq!(Query::parse(&query.to_string()), Ok(query.clone()), "{query}");
    }
    for same in cases["equal"].as_array().unwrap() {
        let texts = same.as_array().unwrap().iter().map(|text| text.as_str().unwrap());
        let forms: Vec<String> =
            texts.map(|text| Query::parse(text).unwrap().to_string()).collect();
        assert!(forms.iter().all(|form| *form == forms[0]), "{forms:?}");
    }
}

#[test]
fn q03_a_bad_query_is_rejected_with_its_reason() {
    let cases: Value = serde_json::from_str(CASES).unwrap();
    for case in cases["errors"].as_array().unwrap() {
        let text = case["query"].as_str().unwrap();
        let reason = Query::parse(text).map(|query| query.to_string()).unwrap_err().to_string();
        assert_eq!(reason, case["reason"].as_str().unwrap(), "{text}");
    }
    let many = vec!["a"; 101].join(" ");
    assert_eq!(Query::parse(&many).unwrap_err().to_string(), "the query has more than 100 terms");
    let deep = format!("{}a{}", "(".repeat(17), ")".repeat(17));
    let reason = Query::parse(&deep).unwrap_err().to_string();
    assert_eq!(reason, "the query has parentheses more than 16 deep");
    let reason = Query::parse(&"a".repeat(Query::MAX_BYTES + 1)).unwrap_err().to_string();
    assert_eq!(reason, "the query is longer than 1024 bytes");
}

#[test]
fn q02_the_index_finds_what_the_queries_match() {
    let cases: Value = serde_json::from_str(CASES).unwrap();
    let matches = cases["matches"].as_array().unwrap();
    let queries: Vec<Query> =
        matches.iter().map(|case| Query::parse(case["query"].as_str().unwrap()).unwrap()).collect();
    let mut index = QueryIndex::new();
    for (id, query) in queries.iter().enumerate() {
        index.insert(id, query.clone());
    }
    index.insert(0, queries[0].clone());
    assert_eq!(index.len(), queries.len());
    for (name, entry) in entries(&cases) {
        let want: Vec<usize> =
            (0..queries.len()).filter(|id| queries[*id].matches(&entry)).collect();
        assert_eq!(index.matching(&entry), want, "{name}");
    }
    (0..queries.len()).for_each(|id| index.remove(id));
    assert!(index.is_empty());
}

#[test]
fn q01_an_entry_that_matches_has_the_keys_that_the_query_requires() {
    let cases: Value = serde_json::from_str(CASES).unwrap();
    let entries = entries(&cases);
    for case in cases["matches"].as_array().unwrap() {
        let query = Query::parse(case["query"].as_str().unwrap()).unwrap();
        let required = query.search_keys();
        for (name, entry) in entries.iter().filter(|(_, entry)| query.matches(entry)) {
            assert!(required.are_in(&entry.search_keys(usize::MAX)), "{query} {name}");
        }
    }
}
