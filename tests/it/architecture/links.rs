//! Links between documents lead to headings that exist. `paths_named_in_documents_exist` checks the
//! files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::none;
use super::sources::{files, root};

#[test]
fn links_lead_to_headings_that_exist() {
    let pages: BTreeMap<PathBuf, String> = files(&root(), "md")
        .into_iter()
        .filter(|path| !path.components().any(|part| part.as_os_str() == "node_modules"))
        .map(|path| (path.clone(), prose(&fs::read_to_string(path).unwrap())))
        .collect();
    let headings: BTreeMap<&PathBuf, BTreeSet<String>> =
        pages.iter().map(|(path, text)| (path, anchors(text))).collect();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (page, text) in &pages {
        for link in links(text) {
            let place = page.strip_prefix(root()).unwrap().display();
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => page.clone(),
                _ => plain_path(&page.parent().unwrap().join(path)),
            };
            count += 1;
            if let Some(headings) = headings.get(&target)
                && !anchor.is_empty()
                && !headings.contains(anchor)
            {
                wrong.push(format!("{place}: {link}: there is no such heading"));
            }
        }
    }
    assert!(count > 300, "{count} links were found");
    none("links that lead nowhere", &wrong);
}

/// The lines of a page that are not in a block of code.
fn prose(text: &str) -> String {
    let mut is_code = false;
    let lines = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    });
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// The relative targets of the links of a page. Links in code are examples.
fn links(text: &str) -> Vec<&str> {
    let parts = text.split("](").skip(1);
    let targets = parts.filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    targets.filter(|target| !target.contains([':', ' ', '`'])).collect()
}

/// The anchors that GitHub gives the headings of a page.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    for line in text.lines() {
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let anchor = anchor(heading);
        let before = times.entry(anchor.clone()).or_default();
        anchors.insert(if *before == 0 { anchor } else { format!("{anchor}-{before}") });
        *before += 1;
    }
    anchors
}

fn anchor(heading: &str) -> String {
    let mut heading = heading.trim().to_lowercase();
    while let Some(at) = heading.find("](") {
        let end = heading[at..].find(')').map_or(heading.len(), |length| at + length + 1);
        heading.replace_range(at..end, "");
    }
    let is_kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    heading.chars().filter(is_kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// A path without `..`.
fn plain_path(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            _ => plain.push(part),
        }
    }
    plain
}

#[test]
fn anchors_are_those_of_github() {
    for (heading, want) in [
        ("Why a poll was late", "why-a-poll-was-late"),
        ("401: the login", "401-the-login"),
        ("`feedgate` and [x](y.md)", "feedgate-and-x"),
    ] {
        assert_eq!(anchor(heading), want);
    }
    let anchors = anchors("# A\n## A\n#no\n");
    assert_eq!(anchors, ["a", "a-1"].map(str::to_owned).into());
}
