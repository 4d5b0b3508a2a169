//! Every rule of polling and of new entries, and every fault of the hubs before us, has a
//! test that is named for it, and every test that a document names exists.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::architecture::{files, root};

/// The last rule on polling and on new entries, and the last fault.
const LAST: [(char, u32); 3] = [('p', 54), ('n', 13), ('b', 13)];

#[test]
fn every_rule_has_a_test_that_is_named_for_it() {
    let mut tested: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for test in tests() {
        for rule in rules(&test) {
            tested.entry(rule).or_default().push(test.clone());
        }
    }
    let all = LAST.iter().flat_map(|&(kind, last)| (1..=last).map(move |n| (kind, n)));
    let missing: Vec<String> = all
        .map(|(kind, number)| format!("{kind}{number:02}"))
        .filter(|rule| !tested.contains_key(rule))
        .collect();
    assert!(missing.is_empty(), "name a test for each of these rules, as in `p04_…`: {missing:?}");
}

#[test]
fn every_test_that_a_document_names_exists() {
    let known: BTreeSet<String> = tests().into_iter().collect();
    let mut wrong = Vec::new();
    for page in files(&root(), "md") {
        let text = fs::read_to_string(&page).unwrap();
        for quoted in text.split(['`', '\n']) {
            let is_name = quoted.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            let is_pattern = quoted.ends_with('_') || !quoted.contains('_');
            if is_name && !is_pattern && !rules(quoted).is_empty() && !known.contains(quoted) {
                wrong.push(format!("{}: no test is called {quoted}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_row_of_the_comparison_names_a_test() {
    let page = fs::read_to_string(root().join("docs/contributing/polling.md")).unwrap();
    let known: BTreeSet<String> = tests().into_iter().collect();
    let rows: Vec<&str> = table_after(&page, "## Beside others");
    assert_eq!(rows.len(), 28, "one row for each thing that was compared");
    for row in rows {
        let ours = row.split('|').nth(2).unwrap();
        let named = ours.split('`').nth(1).unwrap_or_default();
        assert!(ours.contains('✓') && known.contains(named), "no test proves this row: {row}");
    }
}

/// The rows of the first table after a headline, without its head.
fn table_after<'t>(page: &'t str, headline: &str) -> Vec<&'t str> {
    let (_, after) = page.split_once(headline).expect("the headline is there");
    let rows = after.lines().skip_while(|line| !line.starts_with('|'));
    rows.take_while(|line| line.starts_with('|')).skip(2).collect()
}

/// The names of all tests of this crate, parameters of macros included: what is run on
/// both databases is a function like any other.
fn tests() -> Vec<String> {
    let mut names = Vec::new();
    for folder in ["src", "crates", "tests"] {
        for file in files(&root().join(folder), "rs") {
            names.extend(functions(&file));
        }
    }
    names
}

/// The names of the functions in a file.
fn functions(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap();
    let named = text.lines().filter_map(|line| {
        let line = line.trim_start().trim_start_matches("async ");
        let name = line.strip_prefix("fn ")?.split(['(', '<']).next()?;
        Some(name.to_owned())
    });
    named.collect()
}

/// The rules that a test is named for: `p12_p13_wishes_…` for two of them.
fn rules(test: &str) -> Vec<String> {
    let is_rule = |word: &&str| {
        let number = word.trim_start_matches(['p', 'n', 'b']);
        number.len() == 2 && word.len() == 3 && number.chars().all(|c| c.is_ascii_digit())
    };
    test.split('_').take_while(is_rule).map(str::to_owned).collect()
}
