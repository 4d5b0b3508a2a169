//! Names are the field's, and one name means one thing (`docs/contributing/style.md`).

use std::collections::BTreeMap;
use std::fs;

use super::none;
use super::sources::{Source, files, program, root, sources};

/// Words that were dropped, and what is said instead. They are looked for in identifiers:
/// `shelf` is found in `Shelf`, `SHELF_BYTES` and `on_the_shelf`.
const DROPPED: &[(&str, &str)] = &[
    ("doors", "router"),
    ("at hand", "fast path"),
    ("stranger", "anonymous"),
    ("strangers", "anonymous rate limit"),
    ("patient", "write timeout"),
    ("harmless", "ignore_failure"),
    ("heed", "report_refusal"),
    ("aside", "run_blocking, or stage"),
    ("sighted", "observe_redirect"),
    ("herd", "backlog"),
    ("lookback", "outage detector"),
    ("novelty", "change detection"),
    ("settler", "delivery-result batcher"),
    ("recorder", "poll-result batcher"),
    ("onward", "ping forwarding"),
    ("sinks", "ping targets"),
    ("wish", "subscription request"),
    ("trouble", "failure"),
    ("chore", "maintenance task"),
    ("upkeep", "maintenance"),
];

/// Settings, metrics and codes that were renamed, as they stand in texts.
const RENAMED: &[(&str, &str)] = &[
    ("_CLAIM_S", "JOB_LEASE_S"),
    ("_DRAIN_S", "SHUTDOWN_GRACE_S"),
    ("HOST_SPACING_MS", "HOST_MIN_INTERVAL_MS"),
    ("EVENTS_OF_A_KIND", "MAX_EVENTS_PER_KIND"),
    ("_KEEP_", "_RETENTION_"),
    ("CLOUD_EXPIRES", "RSSCLOUD_TELL_EXPIRY"),
    ("LIMIT_GROUPS", "HOST_RATE_GROUPS"),
    ("STRANGER_CALLS", "ANONYMOUS_REQUESTS_PER_MIN"),
    ("PING_ONWARD", "PING_FORWARDING"),
    ("feedgate_cut_off", "feedgate_network_outage"),
    ("onward_pings", "forwarded_pings"),
    ("`no_part`", "fragment_not_found"),
    ("`own_outage`", "node_offline"),
    ("`kept_failing`", "too_many_failures"),
    ("`too_long`", "body_too_large"),
    ("\"no_part\"", "fragment_not_found"),
    ("\"own_outage\"", "node_offline"),
    ("\"kept_failing\"", "too_many_failures"),
    ("\"too_long\"", "body_too_large"),
];

/// Functions that are called only this say nothing to somebody who searches.
const BARE: &[&str] = &["heed", "put", "give", "bring", "aside"];

#[test]
fn dropped_words_are_not_used_in_names() {
    let mut wrong = Vec::new();
    for source in program() {
        for (number, line) in source.lines_without_comments() {
            let code = without_strings(line);
            for identifier in code.split(|c: char| !c.is_alphanumeric() && c != '_') {
                let words = words(identifier);
                let found =
                    DROPPED.iter().find(|(dropped, _)| words.contains(&format!(" {dropped} ")));
                if let Some((_, instead)) = found {
                    let place = format!("{}:{number}", source.name);
                    wrong.push(format!("{place}: `{identifier}`; the word is {instead}"));
                }
            }
        }
    }
    none("private words in names", &wrong);
}

#[test]
fn renamed_settings_metrics_and_codes_are_gone() {
    let mut wrong = Vec::new();
    for extension in ["rs", "md", "toml", "sql"] {
        for file in files(&root(), extension) {
            let name = file.strip_prefix(root()).unwrap().display().to_string();
            if name == "tests/it/architecture/words.rs" {
                continue;
            }
            let text = fs::read_to_string(&file).unwrap();
            for (number, line) in (1..).zip(text.lines()) {
                for (_, instead) in RENAMED.iter().filter(|(old, _)| line.contains(old)) {
                    wrong.push(format!("{name}:{number}: it is called {instead} now"));
                }
            }
        }
    }
    none("old names of settings, metrics and codes", &wrong);
}

#[test]
fn functions_say_what_they_do_to_what() {
    let mut wrong = Vec::new();
    for source in program() {
        for (number, line) in source.lines_without_comments() {
            let Some((_, after)) = line.split_once("fn ") else { continue };
            let name = after.split(['(', '<']).next().unwrap_or_default();
            if BARE.contains(&name) {
                let advice = "say what is done to what, as in `mark_subscriptions_due`";
                wrong.push(format!("{}:{number}: `fn {name}`; {advice}", source.name));
            }
        }
    }
    none("functions whose names say too little", &wrong);
}

#[test]
fn public_types_of_the_crates_have_names_of_their_own() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in sources("crates") {
        for (number, name) in public_types(&source) {
            places.entry(name).or_default().push(format!("{}:{number}", source.name));
        }
    }
    let doubled = places.iter().filter(|(_, places)| places.len() > 1);
    let wrong: Vec<String> = doubled
        .map(|(name, places)| format!("{name} is {}; rename all but one", places.join(" and ")))
        .collect();
    none("public types that share a name", &wrong);
}

/// The public types that a file defines at its top level.
fn public_types(source: &Source) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in source.lines_without_comments() {
        let Some(rest) = line.strip_prefix("pub") else { continue };
        let rest = rest.trim_start_matches("(crate)").trim_start_matches("(super)").trim_start();
        let kinds = ["struct ", "enum ", "trait ", "type "];
        if let Some(name) = kinds.iter().find_map(|kind| rest.strip_prefix(kind)) {
            let end = name.find(|c: char| !c.is_alphanumeric()).unwrap_or(name.len());
            found.push((number, name[..end].to_owned()));
        }
    }
    found
}

#[test]
fn modules_are_files_beside_their_folders() {
    let old = program().into_iter().filter(|source| source.name.ends_with("/mod.rs"));
    let wrong: Vec<String> =
        old.map(|source| format!("{}: move it to `foo.rs` beside `foo/`", source.name)).collect();
    none("files called mod.rs", &wrong);
}

/// The words of an identifier in lower case, each between spaces: `DoorsOpen` and
/// `doors_open` are both ` doors open `.
fn words(identifier: &str) -> String {
    let mut words = String::from(" ");
    let mut was_lower = false;
    for c in identifier.chars() {
        if c == '_' || (c.is_uppercase() && was_lower) {
            words.push(' ');
        }
        if c != '_' {
            words.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase() || c.is_ascii_digit();
    }
    words.push(' ');
    words
}

/// A line of code without what stands between double quotes.
fn without_strings(line: &str) -> String {
    let mut code = String::new();
    let mut rest = line;
    while let Some(at) = rest.find('"') {
        code.push_str(&rest[..at]);
        let inside = &rest[at + 1..];
        let end = (0..inside.len())
            .find(|&n| inside.as_bytes()[n] == b'"' && !inside[..n].ends_with('\\'));
        rest = end.map_or("", |end| &inside[end + 1..]);
    }
    code + rest
}

#[test]
fn words_of_names_are_told_apart() {
    assert_eq!(words("DoorsOpen"), " doors open ");
    assert_eq!(words("FETCH_AT_ONCE"), " fetch at once ");
    assert_eq!(without_strings(r#"let a = "door \" shelf", b"#), "let a = , b");
}
