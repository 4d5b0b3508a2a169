//! Names are the field's, and one name means one thing (`docs/contributing/style.md`).

use std::collections::BTreeMap;
use std::fs;

use super::code_only::code_only;
use super::none;
use super::sources::{Source, everything, files, is_word, program, root};

/// Words that were dropped, and what is said instead. They are looked for in identifiers, also
/// in those of tests: `shelf` is found in `Shelf`, `SHELF_BYTES` and `on_the_shelf`. The name of a
/// test is a sentence, so these words may occur in it (see [`is_sentence`]).
const DROPPED: &[(&str, &str)] = &[
    ("door", "endpoint, or path"),
    ("doors", "router"),
    ("at hand", "fast path"),
    ("asked", "requested, hints, or conditions"),
    ("said", "text, or value"),
    ("heard", "received"),
    ("shelf", "document cache"),
    ("mind", "check_clock"),
    ("meaning", "semantic digest"),
    ("shown", "displayed, or redacted"),
    ("judge", "classify"),
    ("judgement", "change set"),
    ("hurry", "reschedule now"),
    ("news", "new entries, or event"),
    ("dice", "jitter"),
    ("sink", "ping target"),
    ("sinks", "ping targets"),
    ("reach", "audience"),
    ("chore", "maintenance task"),
    ("chores", "maintenance tasks"),
    ("at once", "concurrency, or batch"),
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
    ("wish", "subscription request"),
    ("trouble", "failure"),
    ("mood", "behavior"),
    ("upkeep", "maintenance"),
];

/// Identifiers of other crates in which a dropped word occurs: html5ever builds trees in "sinks".
const FOREIGN: &[&str] = &["HtmlTreeSink", "TendrilSink"];

/// Fields of other crates whose name is a dropped word, as they stand in the code.
const FOREIGN_FIELDS: &[&str] = &["parser.tokenizer.sink.sink"];

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
    ("_AT_ONCE", "_CONCURRENCY"),
    ("feedgate_cut_off", "feedgate_network_outage"),
    ("onward_pings", "forwarded_pings"),
    ("`no_part`", "fragment_not_found"),
    ("`own_outage`", "node_offline"),
    ("`kept_failing`", "too_many_failures"),
    ("`too_long`", "body_too_large"),
    ("callback_busy", "rate_limited"),
    ("\"no_part\"", "fragment_not_found"),
    ("\"own_outage\"", "node_offline"),
    ("\"kept_failing\"", "too_many_failures"),
    ("\"too_long\"", "body_too_large"),
];

/// Functions that are called only this say nothing to somebody who searches.
const BARE: &[&str] = &[
    "of", "answer", "keep", "take", "hold", "tell", "say", "look", "heed", "put", "give", "bring",
    "aside",
];

/// Names of this many words or more are sentences.
const SENTENCE_WORDS: usize = 5;

#[test]
fn dropped_words_are_not_used_in_names() {
    let dropped: Vec<_> =
        DROPPED.iter().map(|(word, instead)| (format!(" {word} "), instead)).collect();
    let mut wrong = Vec::new();
    for source in everything() {
        let is_of_tests = source.name.starts_with("tests/");
        let mut is_test = is_of_tests;
        for (number, line) in (1..).zip(code_only(&source.text).lines()) {
            let code = without_foreign_fields(line);
            for identifier in code.split(|c: char| !is_word(c)) {
                if FOREIGN.contains(&identifier) || (is_test && is_sentence(identifier)) {
                    continue;
                }
                let words = words(identifier);
                let found = dropped.iter().find(|(dropped, _)| words.contains(dropped));
                if let Some((_, instead)) = found {
                    let place = format!("{}:{number}", source.name);
                    wrong.push(format!("{place}: `{identifier}`; the word is {instead}"));
                }
            }
            is_test = is_of_tests
                || is_test_attribute(line)
                || (is_test && line.trim().starts_with("#["));
        }
    }
    none("private words in names", &wrong);
}

/// Whether the line before a function makes it a test.
fn is_test_attribute(line: &str) -> bool {
    ["#[test]", "#[tokio::test"].iter().any(|attribute| line.trim().starts_with(attribute))
}

/// Whether an identifier is a sentence, as the name of a test is.
fn is_sentence(identifier: &str) -> bool {
    identifier.split('_').filter(|word| !word.is_empty()).count() >= SENTENCE_WORDS
}

fn without_foreign_fields(code: &str) -> String {
    FOREIGN_FIELDS.iter().fold(code.to_owned(), |code, field| code.replace(field, ""))
}

/// Files that have to name what was renamed: this list, and the entries on what users must change.
const NAMES_OLD: &[&str] = &["tests/it/architecture/words.rs", "docs/changelog.md"];

#[test]
fn renamed_settings_metrics_and_codes_are_gone() {
    let mut wrong = Vec::new();
    for extension in ["rs", "md", "toml", "sql"] {
        for file in files(&root(), extension) {
            let name = file.strip_prefix(root()).unwrap().display().to_string();
            if NAMES_OLD.contains(&name.as_str()) {
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
        for (number, line) in (1..).zip(code_only(&source.text).lines()) {
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
fn public_types_have_names_of_their_own() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in program() {
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
        let rest = match rest.strip_prefix('(').and_then(|scope| scope.split_once(')')) {
            Some((_, rest)) => rest.trim_start(),
            None => rest.trim_start(),
        };
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

#[test]
fn words_of_names_are_told_apart() {
    assert_eq!(words("DoorsOpen"), " doors open ");
    assert_eq!(words("FETCH_AT_ONCE"), " fetch at once ");
}
