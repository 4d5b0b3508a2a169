//! Every rule of safety and of delivery has a row in `docs/security.md`, which names tests that
//! exist. Also the rules about what the program is built of, which only its files can show.

use std::collections::BTreeMap;
use std::fs;

use super::none;
use super::sources::root;

/// The last rule of safety, and the last one of delivery.
const LAST: [(char, u32); 2] = [('S', 49), ('D', 18)];

/// Rules of which a part is missing. Their rows begin with "Partly met" and name the part.
const PARTLY_MET: &[&str] = &["S36", "S46"];

/// The macros that run the functions they list as tests.
const RUNNERS: [&str; 3] = ["on_both_stores!(", "on_one_store!(", "in_one_cell!("];

#[test]
fn every_rule_of_safety_and_delivery_names_its_tests() {
    let rows = rows();
    let mut wrong = Vec::new();
    for id in LAST.iter().flat_map(|&(kind, last)| (1..=last).map(move |n| format!("{kind}{n}"))) {
        let Some(row) = rows.get(&id) else {
            wrong.push(format!("{id}: add a row: what is promised, its tests, what is left"));
            continue;
        };
        if row.tests.is_empty() {
            wrong.push(format!("{id}: name a test, as `path::function`"));
        }
        wrong.extend(
            row.tests.iter().filter_map(|test| fault_of(test)).map(|f| format!("{id}: {f}")),
        );
        if row.promise.starts_with("Partly met") != PARTLY_MET.contains(&id.as_str()) {
            wrong.push(format!(
                "{id}: begin the row with \"Partly met\" if PARTLY_MET lists the rule"
            ));
        }
    }
    none("rules of safety and delivery without a sound row in docs/security.md", &wrong);
}

#[test]
fn functions_that_are_no_tests_are_recognized() {
    let text =
        "on_both_stores!(listed);\nasync fn listed(\n#[test]\n/// Why.\nfn marked(\nfn helper(";
    let cases = [("listed", true), ("marked", true), ("helper", false), ("missing", false)];
    for (name, want) in cases {
        assert_eq!(is_test(text, name), want, "{name}");
    }
}

/// RUSTSEC-2026-0194 and 0195 concern quick-xml before 0.41.
#[test]
fn s15_the_xml_tokenizer_is_of_a_sound_version() {
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let versions: Vec<&str> = lock
        .split("[[package]]\n")
        .filter(|package| package.starts_with("name = \"quick-xml\"\n"))
        .filter_map(|package| package.split("version = \"").nth(1)?.split('"').next())
        .collect();
    assert!(!versions.is_empty(), "quick-xml was not found");
    for version in versions {
        let numbers: Vec<u32> = version.split('.').map(|number| number.parse().unwrap()).collect();
        assert!(numbers >= vec![0, 41], "quick-xml {version} has known faults");
    }
}

#[test]
fn s46_the_build_is_locked_and_nothing_of_ours_is_unsafe() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let holds = [
        ("Cargo.toml", "unsafe_code = \"forbid\""),
        (".deny.toml", "unknown-registry = \"deny\""),
        (".deny.toml", "crate = \"openssl-sys\""),
        (".ci/run", "clippy --workspace --all-targets --locked"),
        (".ci/run", "cargo deny check licenses bans sources"),
        ("Dockerfile", "--locked"),
        ("Dockerfile", "\nUSER 10001\n"),
    ];
    for (path, text) in holds {
        assert!(read(path).contains(text), "{path} must contain {text}");
    }
    for name in ["", "crates/feed/", "crates/protocol/", "crates/core/", "crates/store/"] {
        let manifest = read(&format!("{name}Cargo.toml"));
        assert!(
            manifest.contains("[lints]\nworkspace = true"),
            "{name}Cargo.toml: inherit the lints"
        );
    }
}

/// What the page says about a rule.
struct Row {
    promise: String,
    /// Tests as `path::function`.
    tests: Vec<String>,
}

fn rows() -> BTreeMap<String, Row> {
    let page = fs::read_to_string(root().join("docs/security.md")).unwrap();
    let lines = page.lines().filter_map(|line| line.strip_prefix("| "));
    lines
        .filter_map(|line| {
            let cells: Vec<&str> = line.split(" | ").collect();
            let [id, promise, tests, _] = cells[..] else { return None };
            let tests = tests.split('`').skip(1).step_by(2).map(str::to_owned).collect();
            Some((id.to_owned(), Row { promise: promise.to_owned(), tests }))
        })
        .collect()
}

/// Why the page must not name this test; `None` if it exists.
fn fault_of(test: &str) -> Option<String> {
    let Some((path, name)) = test.split_once("::") else {
        return Some(format!("write {test} as path::function"));
    };
    let Ok(text) = fs::read_to_string(root().join(path)) else {
        return Some(format!("there is no file {path}"));
    };
    (!is_test(&text, name)).then(|| format!("there is no test {name} in {path}"))
}

/// Whether a source has a test of this name: a function that is marked as one, or listed in a macro
/// that runs it.
fn is_test(text: &str, name: &str) -> bool {
    let is_listed = RUNNERS.iter().any(|runner| {
        let lists = text.split(runner).skip(1).filter_map(|rest| rest.split(')').next());
        lists.flat_map(|list| list.split(',')).any(|listed| listed.trim() == name)
    });
    let mut lines = text.lines().map(str::trim_start).collect::<Vec<_>>().into_iter().rev();
    let function = format!("fn {name}(");
    let exists = lines.any(|line| line.trim_start_matches("async ").starts_with(&function));
    let above = lines.take_while(|line| line.starts_with("#[") || line.starts_with("//"));
    exists
        && (is_listed
            || above.into_iter().any(|line| line.contains("test]") || line.contains("test(")))
}
