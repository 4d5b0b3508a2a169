//! The rules that keep the house in order, as tests. Each message says what to do
//! instead.
//!
//! They read the sources as text: coarse, but quick, and wrong only where somebody
//! tries to be clever.

mod circles;
mod code_only;
mod crates;
mod links;
mod rows;
mod security;
mod sources;
mod words;

use std::collections::BTreeSet;
use std::fs;

use sources::{everything, is_word, program};

pub(crate) use sources::{Source, files, root, sources};

/// The modules of the program from the ground up. A module may use lower floors only. The
/// crates below them are held apart by Cargo.
const FLOORS: &[&[&str]] = &[
    &["fair_shares"],
    &["byte_cache", "clock", "disk_space", "document_budget", "lane_slots"],
    &["net"],
    &["metrics", "event_log", "fetch_traces", "head_watch", "site_icons", "verification_limits"],
    &["jobs"],
    &["subscriptions"],
    &["authoring", "tokens"],
    &["http"],
    &["config"],
    &["app"],
    &["cli", "main", "lib"],
];

/// The crates, each with those of ours that it may use.
const CRATES: &[(&str, &[&str])] = &[
    ("feed", &[]),
    ("protocol", &[]),
    ("core", &["feedgate-feed", "feedgate-protocol"]),
    ("store", &["feedgate-feed", "feedgate-protocol", "feedgate-core"]),
];

/// The most lines of code in a file; comments, blank lines and the tests at its foot
/// do not count.
const LONGEST_FILE_LINES: usize = 350;

#[test]
fn imports_only_go_down() {
    let mut wrong = Vec::new();
    for source in sources("src") {
        let module = source.module();
        let here = floor(&module);
        for (number, line) in source.lines_without_comments() {
            for used in line.split("crate::").skip(1) {
                let used: String = used.chars().take_while(|&c| is_word(c)).collect();
                let place = format!("{}:{number}", source.name);
                if used.is_empty() {
                    wrong.push(format!("{place}: write one `use` per module"));
                } else if used != module && floor(&used) >= here {
                    let advice = "move what is shared to a lower floor, or hand it in from above";
                    wrong.push(format!("{place}: {module} uses {used}; {advice}"));
                }
            }
            if line.contains(source.way_out()) {
                let place = format!("{}:{number}", source.name);
                wrong.push(format!("{place}: write `crate::`, so that this test sees it"));
            }
        }
    }
    none("imports that do not go down", &wrong);
}

#[test]
fn crates_use_lower_crates_only() {
    let mut wrong = Vec::new();
    for (name, below) in CRATES {
        let manifest =
            fs::read_to_string(root().join(format!("crates/{name}/Cargo.toml"))).unwrap();
        let used = manifest.lines().filter(|line| line.starts_with("feedgate-"));
        for used in used.filter_map(|line| line.split(['.', ' ']).next()) {
            if !below.contains(&used) {
                let advice = "move what is shared to a lower crate, or hand it in from above";
                wrong.push(format!("crates/{name}/Cargo.toml uses {used}; {advice}"));
            }
        }
    }
    none("crates that use higher ones", &wrong);
}

#[test]
fn every_module_has_its_floor() {
    let known: BTreeSet<&str> = FLOORS.iter().flat_map(|floor| floor.iter().copied()).collect();
    let modules: BTreeSet<String> = sources("src").iter().map(Source::module).collect();
    let unknown = modules.iter().filter(|module| !known.contains(module.as_str()));
    let wrong: Vec<_> = unknown
        .map(|module| {
            format!(
                "{module}: put it on a floor, in FLOORS and in docs/contributing/architecture.md"
            )
        })
        .collect();
    none("modules without a floor", &wrong);
}

#[test]
fn no_file_is_too_long() {
    let mut wrong = Vec::new();
    for source in everything() {
        let lines = source.lines_without_comments().count();
        if lines > LONGEST_FILE_LINES {
            wrong.push(format!(
                "{}: {lines} lines of code; split it by subject to stay under {LONGEST_FILE_LINES}",
                source.name
            ));
        }
    }
    none("files that are too long", &wrong);
}

#[test]
fn every_file_says_what_it_is_for() {
    let all = everything();
    let silent = all.filter(|source| !source.text.starts_with("//! "));
    let wrong: Vec<_> = silent
        .map(|source| {
            format!("{}: begin with `//!`: what it is for and what always holds", source.name)
        })
        .collect();
    none("files without a module doc", &wrong);
}

#[test]
fn one_place_makes_http_clients() {
    let mut wrong = Vec::new();
    for source in program().into_iter().filter(|source| source.name != "src/net/guarded_client.rs")
    {
        let inside = source.name.starts_with("src/net");
        for (number, line) in source.lines_without_comments() {
            let asks = line.contains("reqwest::") && !inside;
            let makes = line.contains("reqwest::Client") || line.contains("reqwest::get");
            if asks || makes || line.contains("hyper_util::client") {
                let advice =
                    "go through `net::HttpClient`, which carries the egress guard and limits";
                wrong.push(format!("{}:{number}: {advice}", source.name));
            }
        }
    }
    none("ways out past the guard", &wrong);
}

#[test]
fn sql_stays_in_the_store() {
    let mut wrong = Vec::new();
    for source in program() {
        if source.name.starts_with("crates/store/") {
            continue;
        }
        for (number, line) in source.lines_without_comments() {
            if line.contains("rusqlite::") || line.contains("tokio_postgres::") {
                let advice = "add a method of `Store` in crates/store/src";
                wrong.push(format!("{}:{number}: {advice}", source.name));
            }
        }
    }
    none("databases used outside of the store", &wrong);
}

#[test]
fn error_codes_are_documented() {
    let page = fs::read_to_string(root().join("docs/errors.md")).unwrap();
    let mut codes = BTreeSet::new();
    for source in program() {
        codes.extend(codes_of(&source));
    }
    assert!(codes.len() >= 10, "the codes were not found: {codes:?}");
    let missing = codes.iter().filter(|(code, _)| !page.contains(&format!("`{code}`")));
    let wrong: Vec<_> = missing
        .map(|(code, file)| format!("{file}: add `{code}` to docs/errors.md: when, and what to do"))
        .collect();
    none("undocumented error codes", &wrong);
}

/// The words that the `fn code` functions of a file can return.
fn codes_of(source: &Source) -> Vec<(String, String)> {
    let mut codes = Vec::new();
    let mut inside = false;
    for (_, line) in source.lines_without_comments() {
        if line.contains("fn code(") && line.contains("&'static str") {
            inside = true;
        } else if inside && line.contains("=> \"") {
            codes.extend(line.split('"').nth(1).map(|code| (code.to_owned(), source.name.clone())));
        } else if line == "    }" {
            inside = false;
        }
    }
    codes
}

#[test]
fn cited_rules_are_explained() {
    let explained: BTreeSet<String> =
        ["docs/contributing/rules.md", "docs/contributing/polling.md"]
            .iter()
            .flat_map(|page| cited_rules(&fs::read_to_string(root().join(page)).unwrap()))
            .collect();
    let mut wrong = Vec::new();
    for source in everything() {
        let comments = source.text.lines().filter(|line| line.trim_start().starts_with("//"));
        for id in comments.flat_map(cited_rules).filter(|id| !explained.contains(id)) {
            wrong.push(format!("{}: say in docs/contributing/rules.md what {id} is", source.name));
        }
    }
    none("rules that nobody explains", &wrong);
}

/// Ids of rules (`S4`) and rows (`A-13`) in a text.
fn cited_rules(text: &str) -> Vec<String> {
    let is_id = |word: &&str| {
        let number = word.trim_start_matches(|c: char| c.is_ascii_uppercase());
        let number = number.strip_prefix('-').unwrap_or(number);
        let kinds = ["A", "B", "D", "L", "N", "P", "Q", "R", "S", "U"];
        kinds.contains(&&word[..word.len().min(1)])
            && word.len() - number.len() <= 2
            && !number.is_empty()
            && number.len() <= 2
            && number.chars().all(|c| c.is_ascii_digit())
    };
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    words.filter(is_id).map(str::to_owned).collect()
}

#[test]
fn paths_named_in_documents_exist() {
    let mut wrong = Vec::new();
    for page in files(&root(), "md") {
        let text = fs::read_to_string(&page).unwrap();
        let name = page.strip_prefix(root()).unwrap().display().to_string();
        let beside = page.parent().unwrap();
        for path in quoted_paths(&text) {
            if !root().join(&path).exists() {
                wrong.push(format!("{name}: `{path}` does not exist; correct or drop it"));
            }
        }
        for path in linked_paths(&text) {
            if !beside.join(&path).exists() {
                wrong.push(format!("{name}: the link to {path} leads nowhere; correct or drop it"));
            }
        }
    }
    none("paths that do not exist", &wrong);
}

/// Paths of the repository between backticks, outside of code blocks.
fn quoted_paths(text: &str) -> Vec<String> {
    const TOPS: &[&str] = &[
        "src/",
        "crates/",
        "tests/",
        "docs/",
        "fixtures/",
        "schemas/",
        "migrations/",
        ".ci/",
        ".config/",
    ];
    let mut paths = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        for quoted in line.split('`').skip(1).step_by(2).filter(|_| !fenced) {
            let path = quoted.split([' ', '#', ':']).next().unwrap();
            let is_pattern = path.contains(['*', '{', '<', '…']) || path.contains("NAME");
            if TOPS.iter().any(|top| path.starts_with(top)) && !is_pattern {
                paths.push(path.to_owned());
            }
        }
    }
    paths
}

/// Relative targets of Markdown links.
fn linked_paths(text: &str) -> Vec<String> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets
        .filter(|target| !target.contains("://") && !target.starts_with('#'))
        .map(|target| target.split('#').next().unwrap().to_owned())
        .collect()
}

#[test]
fn nothing_names_a_machine() {
    // Built from halves, so that this file does not hold what it looks for.
    let tops = [("/wo", "rk/"), ("/ro", "ot/"), ("/ho", "me/"), ("/Use", "rs/")];
    let banned: Vec<String> = tops.iter().map(|(a, b)| format!("{a}{b}")).collect();
    let mut wrong = Vec::new();
    for extension in ["rs", "md", "toml", "sql", "sh", "xml", "json", "rnc", "rng"] {
        for file in files(&root(), extension) {
            let Ok(text) = fs::read_to_string(&file) else { continue };
            for (number, line) in text.lines().enumerate() {
                if banned.iter().any(|path| starts_a_path(line, path)) {
                    let name = file.strip_prefix(root()).unwrap().display();
                    let advice = "name no path of one machine; use a path of the repository";
                    wrong.push(format!("{name}:{}: {advice}", number + 1));
                }
            }
        }
    }
    none("paths of one machine", &wrong);
}

/// Whether `path` stands in `line` other than inside a longer path or URL.
fn starts_a_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !is_word(c) && !matches!(c, '.' | '/' | '}' | ']' | '-'))
    })
}

fn none(what: &str, wrong: &[String]) {
    assert!(wrong.is_empty(), "{what}:\n{}", wrong.join("\n"));
}

fn floor(module: &str) -> usize {
    // A word that is no module, such as a macro, is on no floor and harms nobody.
    FLOORS.iter().position(|floor| floor.contains(&module)).map_or(0, |at| at + 1)
}
