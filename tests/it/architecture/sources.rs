//! The source files of the workspace, read as text.

use std::fs;
use std::path::{Path, PathBuf};

pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A source file with its path from the root.
pub(crate) struct Source {
    /// Its path from the root.
    pub(crate) name: String,
    pub(crate) text: String,
}

impl Source {
    /// The top module it belongs to.
    pub(super) fn module(&self) -> String {
        let path = self.name.trim_start_matches("src/");
        path.split('/').next().unwrap().trim_end_matches(".rs").to_owned()
    }

    /// What leads from this file out of its top module.
    pub(super) fn way_out(&self) -> &'static str {
        let depth = self.name.matches('/').count() - usize::from(self.name.ends_with("/mod.rs"));
        match depth {
            1 => "super::",
            2 => "super::super::",
            _ => "super::super::super::",
        }
    }

    /// Numbered lines above the tests at the foot, without comments and blank lines.
    pub(super) fn lines_without_comments(&self) -> impl Iterator<Item = (usize, &str)> {
        let numbered = (1..).zip(self.text.lines());
        numbered
            .take_while(|(_, line)| !line.starts_with("#[cfg(test)]"))
            .filter(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with("//"))
    }
}

/// The sources of the program and its crates.
pub(super) fn program() -> Vec<Source> {
    sources("src").into_iter().chain(sources("crates")).collect()
}

/// The sources of the program, its crates, the packages for other languages, and the tests.
pub(super) fn everything() -> impl Iterator<Item = Source> {
    program().into_iter().chain(sources("packaging/bindings")).chain(sources("tests"))
}

pub(crate) fn sources(folder: &str) -> Vec<Source> {
    let found: Vec<_> = files(&root().join(folder), "rs")
        .into_iter()
        .map(|path| Source {
            name: path.strip_prefix(root()).unwrap().display().to_string(),
            text: fs::read_to_string(&path).unwrap(),
        })
        .collect();
    assert!(!found.is_empty(), "no sources under {folder}");
    found
}

/// Files under `folder` with this extension, what is built or hidden left out.
pub(crate) fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                found.extend(files(&path, extension));
            }
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}
