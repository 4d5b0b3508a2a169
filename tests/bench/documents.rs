//! The feeds to read: `FEEDGATE_BENCH_FEEDS`, a list of folders as in `PATH`, or our own
//! fixtures.

use std::fs;
use std::path::{Path, PathBuf};
use std::{env, io};

use super::megabytes;

/// What feeds are called.
const ENDINGS: [&str; 5] = ["xml", "rss", "atom", "rdf", "cdf"];

/// The formats, by the tags that their documents begin with.
const FORMATS: [(&str, &[&str]); 3] = [
    ("RSS", &["<rss"]),
    ("Atom", &["<feed ", "<feed>", "<feed\n", "<feed\r"]),
    ("RDF", &["<rdf:RDF", "<RDF"]),
];

/// How far the first tag is searched for.
const BEGINNING_BYTES: usize = 4_096;

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

/// The composition of the documents: their number, formats and sizes.
pub(crate) fn describe(documents: &[Vec<u8>]) -> String {
    let mut sizes: Vec<usize> = documents.iter().map(Vec::len).collect();
    sizes.sort_unstable();
    let kilobytes = |at: usize| sizes.get(at).map_or(0, |bytes| bytes.div_ceil(1_000));
    let formats = FORMATS.iter().map(|(format, roots)| {
        let is_begun = |document: &&Vec<u8>| {
            let begin = String::from_utf8_lossy(&document[..document.len().min(BEGINNING_BYTES)]);
            roots.iter().any(|root| begin.contains(root))
        };
        format!("{} {format}", documents.iter().filter(is_begun).count())
    });
    format!(
        "{} documents ({}), {:.2} MB; {} to {} kB, median {} kB",
        documents.len(),
        formats.collect::<Vec<_>>().join(", "),
        megabytes(sizes.iter().sum()),
        kilobytes(0),
        kilobytes(sizes.len().saturating_sub(1)),
        kilobytes(sizes.len() / 2),
    )
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
