//! What `feedgate-feed` brings into a program.

use std::collections::BTreeSet;
use std::process::Command;

use super::root;

/// The most crates of `feedgate-feed` without features, itself and what only its build needs
/// included.
const MOST_CRATES: usize = 59;

#[test]
fn the_reader_of_feeds_brings_few_crates() {
    let mut tree = Command::new(env!("CARGO"));
    tree.args(["tree", "--offline", "--locked", "--package", "feedgate-feed"]);
    tree.args(["--no-default-features", "--edges", "normal,build", "--prefix", "none"]);
    let output = tree.current_dir(root()).output().unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let names: BTreeSet<_> = listed.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.contains("quick-xml"), "{names:?}");
    assert!(
        names.len() <= MOST_CRATES,
        "{} crates; put what not everybody needs behind a feature: {names:?}",
        names.len()
    );
}
