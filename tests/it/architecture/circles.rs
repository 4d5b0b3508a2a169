//! No file depends on another that depends on it, unless one is the other's parent.

use std::collections::{BTreeMap, BTreeSet};

use super::none;
use super::sources::{Source, is_word, program};

/// A module by its path inside its crate; empty for the root.
type Module = Vec<String>;

#[test]
fn files_form_no_circles() {
    let mut wrong = Vec::new();
    for (folder, files) in crates() {
        let uses = dependencies(&files);
        for circle in circles(&uses) {
            let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
            let advice = "move what they share into a file that both use";
            wrong.push(format!("{folder}: {} use each other; {advice}", names.join(", ")));
        }
    }
    none("circles of files", &wrong);
}

/// The source files of each crate, by its folder.
fn crates() -> BTreeMap<String, BTreeMap<Module, Source>> {
    let mut crates: BTreeMap<String, BTreeMap<Module, Source>> = BTreeMap::new();
    for source in program() {
        let (folder, path) = source.name.split_once("src/").expect("sources are under src");
        let path = path.trim_end_matches(".rs");
        let module = match path {
            "lib" | "main" => Module::new(),
            path => path.split('/').map(str::to_owned).collect(),
        };
        crates.entry(format!("{folder}src")).or_default().insert(module, source);
    }
    crates
}

/// What each file uses of its crate. Uses of a parent are left out.
fn dependencies(files: &BTreeMap<Module, Source>) -> BTreeMap<Module, BTreeSet<Module>> {
    let mut all = BTreeMap::new();
    for (module, source) in files {
        let code: Vec<&str> = source.lines_without_comments().map(|(_, line)| line).collect();
        let mut used = BTreeSet::new();
        for path in paths(&code.join("\n"), module) {
            let file = nearest(files, path);
            if file != *module && !module.starts_with(&file) {
                used.insert(file);
            }
        }
        all.insert(module.clone(), used);
    }
    all
}

/// The longest beginning of a path that is a file.
fn nearest(files: &BTreeMap<Module, Source>, mut path: Module) -> Module {
    while !path.is_empty() && !files.contains_key(&path) {
        path.pop();
    }
    path
}

/// All paths in `code` that begin at the root of the crate, at a parent, or at a child, made
/// absolute. Groups in braces are taken apart one level deep.
fn paths(code: &str, module: &Module) -> Vec<Module> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find(|c: char| c.is_ascii_lowercase() || c == '_') {
        let is_inner = rest[..at].ends_with(|c: char| is_word(c) || c == '.' || c == ':');
        let end = rest[at..].find(|c: char| !is_word(c) && c != ':').map_or(rest.len(), |n| at + n);
        let path = &rest[at..end];
        let group = rest[end..].strip_prefix('{').and_then(|group| group.split('}').next());
        rest = &rest[end..];
        if !is_inner && path.contains("::") {
            let start = absolute(path.trim_end_matches("::"), module);
            for name in group.into_iter().flat_map(|group| group.split(',')) {
                let first = name.trim().split("::").next().unwrap_or_default();
                let inner = (first != "self").then(|| first.to_owned());
                found.push(start.iter().cloned().chain(inner).collect());
            }
            if group.is_none() {
                found.push(start);
            }
        }
        if rest.is_empty() {
            break;
        }
    }
    found
}

/// A path as written in `module`, from the root of the crate.
fn absolute(path: &str, module: &Module) -> Module {
    let mut base = module.clone();
    let mut names = path.split("::").peekable();
    if names.peek() == Some(&"crate") {
        names.next();
        base.clear();
    }
    while names.peek() == Some(&"super") {
        names.next();
        base.pop();
    }
    base.extend(names.map(str::to_owned));
    base
}

/// Sets of files that can all reachable each other.
fn circles(uses: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<BTreeSet<Module>> {
    let reachable: BTreeMap<&Module, BTreeSet<&Module>> =
        uses.keys().map(|module| (module, reachable(uses, module))).collect();
    let mut found: Vec<BTreeSet<Module>> = Vec::new();
    for (module, reached) in &reachable {
        let mutual = reached.iter().filter(|other| reachable[*other].contains(module));
        let mut circle: BTreeSet<Module> = mutual.map(|other| (*other).clone()).collect();
        circle.insert((*module).clone());
        if circle.len() > 1 && !found.contains(&circle) {
            found.push(circle);
        }
    }
    found
}

/// Everything that can be reached from `start` by going from use to use.
fn reachable<'a>(
    uses: &'a BTreeMap<Module, BTreeSet<Module>>,
    start: &Module,
) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<&Module> = uses[start].iter().collect();
    while let Some(module) = waiting.pop() {
        if reached.insert(module) {
            waiting.extend(&uses[module]);
        }
    }
    reached
}

#[test]
fn a_circle_is_found() {
    let module = |name: &str| vec![name.to_owned()];
    let one = |name: &str| BTreeSet::from([module(name)]);
    let mut uses: BTreeMap<Module, BTreeSet<Module>> =
        [("a", "b"), ("b", "c"), ("c", "b")].map(|(from, to)| (module(from), one(to))).into();
    assert_eq!(circles(&uses), [BTreeSet::from([module("b"), module("c")])]);
    uses.insert(module("c"), BTreeSet::new());
    assert!(circles(&uses).is_empty());
}

#[test]
fn paths_are_read_as_they_are_written() {
    let module = vec!["jobs".to_owned(), "poll".to_owned()];
    let code =
        "use super::runner::{self, Job}; let x = robots::read(crate::net::HttpClient::new());";
    let found: BTreeSet<String> =
        paths(code, &module).into_iter().map(|path| path.join("::")).collect();
    for want in
        ["jobs::runner", "jobs::runner::Job", "jobs::poll::robots::read", "net::HttpClient::new"]
    {
        assert!(found.contains(want), "{want} is missing in {found:?}");
    }
}
