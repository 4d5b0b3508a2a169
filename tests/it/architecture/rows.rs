//! Every row of `docs/contributing/rules.md`, and every section of WebSub that it lists, has a test
//! that cites it: in the comment right before the test, or in a table of the requests in
//! `fixtures/wire`.

use std::collections::BTreeSet;
use std::fs;

use super::sources::{Source, everything, root};
use super::{cited_rules, none};

/// The section of the page with the rows, and that with the sections of WebSub.
const LISTS: [&str; 2] = ["\n## Rows", "\n## WebSub"];

#[test]
fn every_row_has_a_test_that_cites_it() {
    let page = fs::read_to_string(root().join("docs/contributing/rules.md")).unwrap();
    let rows: BTreeSet<String> = LISTS.iter().flat_map(|list| listed(&page, list)).collect();
    assert!(rows.len() >= 90, "the rows were not found: {rows:?}");
    let cited: BTreeSet<String> = everything()
        .flat_map(|source| cited_by_tests(&source))
        .chain(cited_by_requests())
        .collect();
    let missing = rows.difference(&cited);
    let wrong: Vec<_> = missing
        .map(|row| format!("{row}: write a test, and a comment before it that cites {row}"))
        .collect();
    none("rows without a test", &wrong);
    let unknown = cited.difference(&rows).filter(|id| id.starts_with("WebSub"));
    let wrong: Vec<_> =
        unknown.map(|id| format!("{id}: explain it in docs/contributing/rules.md")).collect();
    none("sections that nobody explains", &wrong);
}

#[test]
fn citations_are_read_from_sentences() {
    #[rustfmt::skip]
    let cases: [(&str, &[&str]); 4] = [
        ("/// Rows A-1, S-19 and Q-3.",           &["A-1", "S-19", "Q-3"]),
        ("/// WebSub 5.1.1 and 8.3: kept.",       &["WebSub 5.1.1", "WebSub 8.3"]),
        ("/// Row N-11, and WebSub 7: 2xx of 10", &["N-11", "WebSub 7"]),
        ("/// Rule S4 of 5 tests.",               &[]),
    ];
    for (comment, want) in cases {
        assert_eq!(citations(comment), want, "{comment}");
    }
}

/// What the first column of the tables in a part of the page lists.
fn listed(page: &str, headline: &str) -> Vec<String> {
    let (_, part) = page.split_once(headline).expect("the headline is there");
    let part = part.split("\n## ").next().unwrap();
    part.lines().filter_map(first_cell).flat_map(citations).collect()
}

/// What the tables of `fixtures/wire/README.md` cite. Their requests must exist.
fn cited_by_requests() -> Vec<String> {
    let folder = root().join("fixtures/wire");
    let page = fs::read_to_string(folder.join("README.md")).unwrap();
    let (mut kind, mut cited) = (String::new(), Vec::new());
    for line in page.lines().filter(|line| line.starts_with("| ")) {
        let names: Vec<&str> = line.split('`').skip(1).step_by(2).collect();
        if line.contains(" | requests in `") {
            kind = names[0].to_owned();
            continue;
        }
        for name in names {
            let request = folder.join(format!("{kind}/{name}.request"));
            assert!(request.exists(), "fixtures/wire/README.md: there is no request {kind}/{name}");
        }
        cited.extend(first_cell(line).into_iter().flat_map(citations));
    }
    cited
}

/// What the comments right before the tests of a file cite.
fn cited_by_tests(source: &Source) -> Vec<String> {
    let mut is_test_code = source.name.starts_with("tests/") || source.name.ends_with("/tests.rs");
    let (mut comment, mut all) = (Vec::new(), Vec::new());
    for line in source.text.lines().map(str::trim_start) {
        is_test_code |= line.starts_with("#[cfg(test)]");
        if line.starts_with("///") {
            comment.extend(citations(line));
        } else if !line.starts_with("#[") {
            let is_function = line.starts_with("fn ") || line.starts_with("async fn ");
            let cited = std::mem::take(&mut comment);
            all.extend(cited.into_iter().filter(|_| is_function && is_test_code));
        }
    }
    all
}

fn first_cell(line: &str) -> Option<&str> {
    line.strip_prefix("| ")?.split('|').next()
}

/// Ids of rows, which have a hyphen, unlike those of rules; and sections of WebSub.
fn citations(text: &str) -> Vec<String> {
    let rows = cited_rules(text).into_iter().filter(|id| id.contains('-'));
    rows.chain(sections(text)).collect()
}

/// The sections of WebSub in a text: the numbers that follow its name directly.
fn sections(text: &str) -> Vec<String> {
    let Some((_, after)) = text.split_once("WebSub ") else { return Vec::new() };
    let words = after
        .split(' ')
        .take_while(|word| *word == "and" || word.starts_with(|c: char| c.is_ascii_digit()));
    let mut numbers = Vec::new();
    for word in words.filter(|word| *word != "and") {
        numbers.push(format!("WebSub {}", word.trim_end_matches([',', ':', '.', '|'])));
        if word.ends_with([':', '.']) {
            break;
        }
    }
    numbers
}
