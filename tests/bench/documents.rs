//! The feeds to read: `FEEDGATE_BENCH_FEEDS`, a list of folders as in `PATH`, or our own
//! fixtures.

use std::fs;
use std::path::{Path, PathBuf};
use std::{env, io};

/// What feeds are called.
const ENDINGS: [&str; 5] = ["xml", "rss", "atom", "rdf", "cdf"];

/// All documents, in the order of their names.
pub(crate) fn load() -> io::Result<Vec<Vec<u8>>> {
    paths()?.iter().map(fs::read).collect()
}

/// Where they are. JSON feeds are left out: there is no XML in them to scan, so they
/// would measure something else in each contender.
pub(crate) fn paths() -> io::Result<Vec<PathBuf>> {
    let folders = match env::var_os("FEEDGATE_BENCH_FEEDS") {
        Some(folders) => env::split_paths(&folders).collect(),
        None => vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")],
    };
    let mut files = Vec::new();
    for folder in &folders {
        collect(folder, &mut files)?;
    }
    files.sort();
    Ok(files)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if path.is_dir() {
            collect(&path, files)?;
        } else if ENDINGS.contains(&ending) {
            files.push(path);
        }
    }
    Ok(())
}
