//! Every row of `docs/contributing/rules.md` has a test that cites it: in the comment right before
//! the test, or in the table of the requests in `fixtures/wire`.

use std::collections::BTreeSet;
use std::fs;

use super::sources::{Source, everything, root};
use super::{cited_rules, none};

#[test]
fn every_row_has_a_test_that_cites_it() {
    let rows = listed_rows();
    assert!(rows.len() >= 80, "the rows were not found: {rows:?}");
    let cited: BTreeSet<String> =
        everything().flat_map(|source| rows_of_tests(&source)).chain(rows_of_requests()).collect();
    let missing = rows.iter().filter(|row| !cited.contains(*row));
    let wrong: Vec<_> =
        missing.map(|row| format!("{row}: write a test, and `/// Row {row}.` before it")).collect();
    none("rows without a test", &wrong);
}

/// The rows that `docs/contributing/rules.md` explains.
fn listed_rows() -> BTreeSet<String> {
    let page = fs::read_to_string(root().join("docs/contributing/rules.md")).unwrap();
    let (_, rows) = page.split_once("\n## Rows").expect("the section is there");
    let rows = rows.split("\n## ").next().unwrap();
    rows.lines().filter_map(first_cell).flat_map(rows_in).collect()
}

/// The rows in the table of `fixtures/wire/README.md`, whose requests must exist.
fn rows_of_requests() -> Vec<String> {
    let folder = root().join("fixtures/wire");
    let page = fs::read_to_string(folder.join("README.md")).unwrap();
    let lines = page.lines().filter(|line| line.starts_with("| ") && line.contains('`'));
    let mut rows = Vec::new();
    for line in lines.filter(|line| !line.starts_with("| rows |")) {
        for name in line.split('`').skip(1).step_by(2) {
            let request = folder.join(format!("superfeedr/{name}.request"));
            assert!(request.exists(), "fixtures/wire/README.md: there is no request {name}");
        }
        rows.extend(first_cell(line).into_iter().flat_map(rows_in));
    }
    rows
}

/// The rows that the comments right before the tests of a file cite.
fn rows_of_tests(source: &Source) -> Vec<String> {
    let mut is_test_code = source.name.starts_with("tests/") || source.name.ends_with("/tests.rs");
    let (mut comment, mut rows) = (Vec::new(), Vec::new());
    for line in source.text.lines().map(str::trim_start) {
        is_test_code |= line.starts_with("#[cfg(test)]");
        if line.starts_with("///") {
            comment.extend(rows_in(line));
        } else if !line.starts_with("#[") {
            let is_function = line.starts_with("fn ") || line.starts_with("async fn ");
            let cited = std::mem::take(&mut comment);
            rows.extend(cited.into_iter().filter(|_| is_function && is_test_code));
        }
    }
    rows
}

fn first_cell(line: &str) -> Option<&str> {
    line.strip_prefix("| ")?.split('|').next()
}

/// Ids of rows, which have a hyphen, unlike those of rules.
fn rows_in(text: &str) -> Vec<String> {
    cited_rules(text).into_iter().filter(|id| id.contains('-')).collect()
}
