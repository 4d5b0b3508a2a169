//! Each source under `fixtures/normalize` must come out as the `.atom` beside it.
//!
//! To add a case, drop a source in and run `UPDATE_FIXTURES=1 cargo test --test it
//! normalize`; then read the new `.atom` before committing it. A comment in the source
//! says why it is there; another, `Header: name: value`, gives it a response header.

use std::fs;
use std::path::{Path, PathBuf};

use feedgate_feed::Context;
use feedgate_feed::{parse, passes, render};
use url::Url;

use crate::schemas;

#[test]
fn sources_become_the_atom_beside_them() {
    let update = std::env::var_os("UPDATE_FIXTURES").is_some();
    let (expected, sources) = fixtures();
    let mut wrong = Vec::new();
    for source in &sources {
        let beside = source.with_extension("atom");
        let got = match normalized(source) {
            Ok(atom) => atom,
            Err(err) => format!("error: {err}\n"),
        };
        if update {
            fs::write(&beside, got).unwrap();
        } else if fs::read_to_string(&beside).unwrap_or_default() != got {
            wrong.push(format!("--- {}\n{got}", name(source)));
        }
    }
    let orphans =
        expected.iter().filter(|atom| !sources.iter().any(|s| s.with_extension("atom") == **atom));
    wrong.extend(orphans.map(|atom| format!("--- {} has no source\n", name(atom))));

    assert!(wrong.is_empty(), "{} of {} wrong:\n{}", wrong.len(), sources.len(), wrong.join("\n"));
}

#[test]
fn going_through_all_passes_twice_changes_nothing() {
    for source in &fixtures().1 {
        let (bytes, context) = read(source);
        if let Ok(feed) = parse::parse(&bytes, &context) {
            let once = passes::run(feed, &context);
            let twice = passes::run(once.clone(), &context);
            let (once, twice) = (render::atom::feed(&once), render::atom::feed(&twice));
            assert_eq!(once, twice, "{} is not settled", name(source));
        }
    }
}

/// What the feature `serde` of `feedgate-feed` promises: a feed that is stored as JSON comes back
/// whole.
#[test]
fn the_model_survives_serialization() {
    for source in &fixtures().1 {
        let (bytes, context) = read(source);
        let Ok(normalized) = feedgate_feed::normalize(&bytes, &context) else { continue };
        let json = serde_json::to_string(normalized.feed()).unwrap();
        let again: feedgate_feed::Feed = serde_json::from_str(&json).unwrap();
        assert_eq!(&again, normalized.feed(), "{}", name(source));
    }
}

#[test]
fn reading_our_own_output_changes_nothing() {
    // What fuzzing has found is kept as seeds.
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/seeds/settled");
    for source in fixtures().1.iter().chain(&files_under(&seeds)) {
        if let Ok(written) = normalized(source) {
            let mut context = read(source).1;
            context.headers.clear();
            let again = feedgate_feed::normalize(written.as_bytes(), &context).unwrap();
            assert_eq!(again.to_atom(), written, "{} is not canonical", name(source));
        }
    }
}

#[test]
fn every_output_is_valid() {
    let (_, sources) = fixtures();
    let written = sources.iter().filter_map(|source| {
        let atom = normalized(source).ok()?;
        Some((name(source), atom))
    });
    schemas::assert_valid("atom.rng", &written.collect::<Vec<_>>());
}

#[test]
fn what_is_kept_for_our_own_documents_has_no_links_of_the_sources_document() {
    let root = root();
    let (bytes, context) = read(&root.join("atom10/own_links_kept.xml"));
    let feed = feedgate_feed::normalize(&bytes, &context).unwrap().into_feed();
    let head = render::atom::stored_head(&feed);
    for rel in ["self", "hub", "prev-archive"] {
        assert!(!head.contains(&format!("rel=\"{rel}\"")), "{rel}: {head}");
    }
    assert!(head.contains("<link rel=\"via\" href=\"https://tides.test/feed\"/>"), "{head}");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/normalize")
}

/// What is expected, and the sources; never none.
fn fixtures() -> (Vec<PathBuf>, Vec<PathBuf>) {
    let all = files_under(&root()).into_iter().filter(|path| !has_extension(path, "md"));
    let (expected, sources): (Vec<_>, Vec<_>) = all.partition(|path| has_extension(path, "atom"));
    assert!(!sources.is_empty(), "no sources under {}", root().display());
    (expected, sources)
}

pub(crate) fn files_under(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_under(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|extension| extension == wanted)
}

fn name(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn normalized(source: &Path) -> Result<String, parse::NotAFeed> {
    let (bytes, context) = read(source);
    feedgate_feed::normalize(&bytes, &context).map(|normalized| normalized.to_atom())
}

/// A source and what is known of it. Nothing is known of the time, so that the output
/// is the same tomorrow.
pub(crate) fn read(source: &Path) -> (Vec<u8>, Context) {
    let bytes = fs::read(source).unwrap();
    let mut context = Context::new(Url::parse("https://fixture.test/dir/feed").unwrap());
    for line in String::from_utf8_lossy(&bytes).lines() {
        let header = line.trim().strip_prefix("<!-- Header: ").and_then(|h| h.strip_suffix(" -->"));
        if let Some((name, value)) = header.and_then(|header| header.split_once(": ")) {
            context.headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
    }
    (bytes, context)
}
