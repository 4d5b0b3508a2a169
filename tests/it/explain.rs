//! What `feedgate normalize --explain` tells, and that it tells everything.
//!
//! Each source under `fixtures/explain` must be explained as the `.explained` beside it
//! says; `UPDATE_FIXTURES=1` writes those, as for the fixtures of `normalize`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use feedgate_feed::repair::{RepairCode, RepairWeight};
use serde_json::Value;

use crate::normalize::{files_under, read};

#[test]
fn sources_are_explained_as_is_said_beside_them() {
    let update = std::env::var_os("UPDATE_FIXTURES").is_some();
    let mut wrong = Vec::new();
    let sources = sources(&["explain"]);
    for source in &sources {
        let beside = source.with_extension("explained");
        let got = serde_json::to_string_pretty(&explained(source).unwrap()).unwrap() + "\n";
        if update {
            fs::write(&beside, got).unwrap();
        } else if fs::read_to_string(&beside).unwrap_or_default() != got {
            wrong.push(format!("--- {}\n{got}", source.display()));
        }
    }
    assert!(wrong.is_empty(), "{} of {} wrong:\n{}", wrong.len(), sources.len(), wrong.join("\n"));
}

#[test]
fn every_field_that_is_written_came_from_somewhere() {
    for source in sources(&["explain", "normalize", "demo"]) {
        let Some(explained) = explained(&source) else { continue };
        let (bytes, context) = read(&source);
        let written = feedgate_feed::normalize(&bytes, &context).unwrap().to_atom();
        let written = Children::of(&written);
        let name = source.display();
        let feed = explained["feed"].as_object().unwrap();
        assert_eq!(told(feed), written.feed, "{name}: the feed");
        let entries = explained["entries"].as_array().unwrap();
        assert_eq!(entries.len(), written.entries.len(), "{name}");
        for (entry, written) in entries.iter().zip(&written.entries) {
            assert!(entry["from"]["path"].is_string(), "{name}: {entry}");
            assert_eq!(&told(entry["fields"].as_object().unwrap()), written, "{name}: {entry}");
        }
    }
}

#[test]
fn what_is_traced_and_watched_is_the_same_feed() {
    for source in sources(&["explain", "normalize", "demo"]) {
        let (bytes, context) = read(&source);
        let plain = feedgate_feed::normalize(&bytes, &context).map(|feed| feed.into_feed());
        let explained = feedgate_feed::explain(&bytes, &context);
        match (plain, explained) {
            (Ok(plain), Ok(explained)) => {
                assert_eq!(explained.feed(), &plain, "{}", source.display());
                let again = feedgate_feed::explain(&bytes, &context).unwrap();
                assert_eq!(explained.to_json(), again.to_json(), "{}", source.display());
            }
            (plain, explained) => assert_eq!(plain.err(), explained.err(), "{}", source.display()),
        }
    }
}

#[test]
fn the_command_writes_it() {
    let source = sources(&["explain"]).remove(0);
    let mut command = Command::new(env!("CARGO_BIN_EXE_feedgate"));
    command.args(["normalize", "--explain", "--url", "https://fixture.test/dir/feed"]);
    let answer = command.arg(&source).env_clear().output().unwrap();
    let told: Value = serde_json::from_slice(&answer.stdout).unwrap();
    assert_eq!(Some(told), explained(&source));
}

#[test]
fn a_language_that_was_guessed_says_so() {
    let text = "The ferry did not leave this morning because the wind was too strong.";
    let rss =
        format!("<rss><channel><item><description>{text}</description></item></channel></rss>");
    let context = feedgate_feed::Context::new("https://a.test/".parse().unwrap());
    for (guess, want) in [(true, "guessed"), (false, "")] {
        let mut explained = feedgate_feed::explain(rss.as_bytes(), &context).unwrap();
        if guess {
            explained.detect_languages();
        }
        let told = explained.to_json();
        let how = told["entries"][0]["fields"]["lang"]["steps"][0]["how"].as_str();
        assert_eq!(how.unwrap_or_default(), want);
    }
}

#[test]
fn every_word_for_what_a_pass_did_is_documented() {
    let docs = docs();
    let mut unknown = BTreeSet::new();
    for source in sources(&["explain", "normalize", "demo"]) {
        let mut values: Vec<Value> = explained(&source).into_iter().collect();
        while let Some(value) = values.pop() {
            if let (Some(pass), Some(how)) = (value["pass"].as_str(), value["how"].as_str())
                && !docs.lines().any(|line| {
                    line.starts_with(&format!("| `{how}` |")) && line.contains(&format!("`{pass}`"))
                })
            {
                unknown.insert(format!("| `{how}` | `{pass}` |"));
            }
            match value {
                Value::Object(fields) => values.extend(fields.into_iter().map(|(_, value)| value)),
                Value::Array(items) => values.extend(items),
                _ => {}
            }
        }
    }
    assert!(unknown.is_empty(), "docs/normalizer.md lacks {unknown:?}");
}

#[test]
fn the_example_in_the_documentation_is_what_is_told() {
    let docs = docs();
    let (_, section) = docs.split_once("## Explaining").unwrap();
    let block = |kind: &str| section.split_once(kind).unwrap().1.split_once("```").unwrap().0;
    let context = feedgate_feed::Context::new("https://tides.test/feed".parse().unwrap());
    let told = feedgate_feed::explain(block("```xml\n").as_bytes(), &context).unwrap();
    assert_holds(&told.to_json(), &serde_json::from_str(block("```json\n")).unwrap());
}

/// Of objects some fields, of lists some values may do.
fn assert_holds(whole: &Value, part: &Value) {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            for (name, part) in part {
                assert_holds(&whole[name], part);
            }
        }
        (Value::Array(whole), Value::Array(part))
            if part.iter().all(|part| part["code"].is_string()) =>
        {
            assert!(part.iter().all(|part| whole.contains(part)), "{whole:?}: {part:?}");
        }
        (Value::Array(whole), Value::Array(part)) => {
            assert_eq!(whole.len(), part.len());
            whole.iter().zip(part).for_each(|(whole, part)| assert_holds(whole, part));
        }
        _ => assert_eq!(whole, part),
    }
}

#[test]
fn n08_every_code_is_documented_with_its_weight_and_kind() {
    let docs = docs();
    let table = docs.split_once("| code | what was wrong |").unwrap().1;
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let listed = rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        (cells[0].trim_matches('`').to_owned(), cells[3].to_owned(), cells[4].to_owned())
    });
    let known = RepairCode::ALL.iter().map(|code| {
        let weight = match code.weight() {
            RepairWeight::Once(0.0) | RepairWeight::Share(0.0) => "0".to_owned(),
            RepairWeight::Once(weight) => weight.to_string(),
            RepairWeight::Share(weight) => format!("{weight} by share"),
        };
        let kind = if code.is_adaptation() { "adapted" } else { "repaired" };
        (code.as_str().to_owned(), weight, kind.to_owned())
    });
    assert_eq!(listed.collect::<Vec<_>>(), known.collect::<Vec<_>>());
}

fn docs() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/normalizer.md")).unwrap()
}

/// The sources of some folders of fixtures; never none.
fn sources(folders: &[&str]) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let all = folders.iter().flat_map(|folder| files_under(&root.join(folder)));
    let is_source = |path: &PathBuf| {
        let end = path.extension().unwrap_or_default();
        !["atom", "explained", "md"].iter().any(|other| end == *other)
    };
    let sources: Vec<PathBuf> = all.filter(is_source).collect();
    assert!(!sources.is_empty(), "no sources under {}", root.display());
    sources
}

/// The explanation of a source, if it is a feed.
fn explained(source: &Path) -> Option<Value> {
    let (bytes, context) = read(source);
    Some(feedgate_feed::explain(&bytes, &context).ok()?.to_json())
}

/// How many fields of each name are told of; each must come from somewhere.
fn told(fields: &serde_json::Map<String, Value>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for (name, field) in fields {
        let from = field["from"]["path"].is_string();
        assert!(from || field["steps"].is_array(), "{name}: {field}");
        let name = name.split(['.', '[']).next().unwrap();
        let element = match name {
            "authors" => "author",
            "contributors" => "contributor",
            "links" => "link",
            "categories" => "category",
            "lang" => "xml:lang",
            "base" => "xml:base",
            name => name,
        };
        let count: &mut usize = counts.entry(element.to_owned()).or_default();
        // Of a source there is one, however much of it is told.
        *count = if name == "source" { 1 } else { *count + 1 };
    }
    counts
}

/// What stands in an Atom document, by name and number: everything that is not of Atom is
/// an extension.
#[derive(Default)]
struct Children {
    feed: BTreeMap<String, usize>,
    entries: Vec<BTreeMap<String, usize>>,
}

impl Children {
    fn of(atom: &str) -> Children {
        const ATOM: [&str; 16] = [
            "id",
            "title",
            "subtitle",
            "summary",
            "content",
            "rights",
            "published",
            "updated",
            "author",
            "contributor",
            "link",
            "category",
            "generator",
            "icon",
            "logo",
            "source",
        ];
        let mut found = Children::default();
        let mut depth = 0;
        let mut rest = atom;
        while let Some((tag, after)) = rest.split_once('<').and_then(|(_, at)| at.split_once('>')) {
            rest = after;
            if tag.starts_with(['?', '!']) {
                continue;
            }
            if tag.starts_with('/') {
                depth -= 1;
                continue;
            }
            let name = tag.split([' ', '/']).next().unwrap();
            match depth {
                0 => found.feed = attributes(tag),
                1 if name == "entry" => found.entries.push(attributes(tag)),
                1 | 2 => {
                    let name = if ATOM.contains(&name) { name } else { "extensions" };
                    let entry = found.entries.last_mut();
                    // What is inside the feed's own elements stands before all entries.
                    if let Some(around) = if depth == 1 { Some(&mut found.feed) } else { entry } {
                        *around.entry(name.to_owned()).or_default() += 1;
                    }
                }
                _ => {}
            }
            depth += i32::from(!tag.ends_with('/'));
        }
        found
    }
}

fn attributes(tag: &str) -> BTreeMap<String, usize> {
    let told = ["xml:lang", "xml:base"].into_iter().filter(|name| tag.contains(*name));
    told.map(|name| (name.to_owned(), 1)).collect()
}
