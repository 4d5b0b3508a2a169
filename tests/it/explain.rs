//! What `feedgate normalize --explain` tells, and that it tells everything.

use std::fs;
use std::path::Path;

use feedgate::domain::repair::{Code, Weight};

#[test]
fn every_code_of_a_repair_is_documented_with_its_weight() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/normalizer.md");
    let docs = fs::read_to_string(docs).unwrap();
    let table = docs.split_once("| code | what was wrong |").unwrap().1;
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let listed = rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        (cells[0].trim_matches('`').to_owned(), cells[3].to_owned())
    });
    let known = Code::ALL.iter().map(|code| {
        let weight = match code.weight() {
            Weight::Once(0.0) | Weight::Share(0.0) => "0".to_owned(),
            Weight::Once(weight) => weight.to_string(),
            Weight::Share(weight) => format!("{weight} by share"),
        };
        (code.as_str().to_owned(), weight)
    });
    assert_eq!(listed.collect::<Vec<_>>(), known.collect::<Vec<_>>());
}
