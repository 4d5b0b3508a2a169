//! The place in an archive, in a file that is never half written.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::domain::feed::Entry;
use crate::render;

use super::walk::Place;

/// Which entry was taken last. Entries that say the same to the letter under one id are
/// one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// Its id, which its updates have too (rule N7).
    pub(super) id: String,
    /// Tells it from them: the first 16 hex digits of the SHA-256 of it as an Atom entry.
    /// Nothing if only an id was named.
    hash: Option<String>,
}

impl Mark {
    /// Marks `entry`.
    pub(super) fn of(entry: &Entry) -> Mark {
        let hash = Sha256::digest(render::atom::entry(entry).as_bytes());
        Mark { id: entry.id.clone(), hash: Some(hex::encode(&hash[..8])) }
    }

    /// Whether it is this entry that is marked; without a hash, any that has the id.
    pub(super) fn is_of(&self, entry: &Entry) -> bool {
        self.id == entry.id && (self.hash.is_none() || *self == Mark::of(entry))
    }

    /// Reads a line with the id and, unless only that was named, one with the hash.
    fn read(text: &str) -> Option<Mark> {
        let (id, hash) = match text.trim().split_once('\n') {
            Some((id, hash)) => (id.trim_end(), Some(hash.trim().to_owned())),
            None => (text.trim(), None),
        };
        (!id.is_empty()).then(|| Mark { id: id.to_owned(), hash })
    }
}

/// Remembers the last entry that was taken.
#[derive(Debug)]
pub(super) struct PlaceFile {
    path: Option<PathBuf>,
    mark: Option<Mark>,
}

/// The place could not be read or kept.
#[derive(Debug, thiserror::Error)]
#[error("cannot keep the place in {}", path.display())]
pub(super) struct BadPlace {
    path: PathBuf,
    #[source]
    reason: io::Error,
}

impl PlaceFile {
    /// The place kept at `path`, if there is one; else behind the entry with the id `from`.
    pub(super) fn open(path: Option<PathBuf>, from: Option<String>) -> Result<PlaceFile, BadPlace> {
        let kept = match &path {
            Some(path) => match fs::read_to_string(path) {
                Ok(text) => Mark::read(&text),
                Err(err) if err.kind() == io::ErrorKind::NotFound => None,
                Err(reason) => return Err(BadPlace { path: path.clone(), reason }),
            },
            None => None,
        };
        let from = || from.map(|id| Mark { id, hash: None });
        Ok(PlaceFile { path, mark: kept.or_else(from) })
    }
}

impl Place for PlaceFile {
    fn mark(&self) -> Option<&Mark> {
        self.mark.as_ref()
    }

    fn keep(&mut self, mark: Mark) -> Result<(), BadPlace> {
        let mark = self.mark.insert(mark);
        match &self.path {
            Some(path) => {
                replace(path, mark).map_err(|reason| BadPlace { path: path.clone(), reason })
            }
            None => Ok(()),
        }
    }
}

/// Whoever reads the file sees the old place or the new one, also after a power cut.
fn replace(path: &Path, mark: &Mark) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let mut file = File::create(&new)?;
    writeln!(file, "{}\n{}", mark.id, mark.hash.as_deref().unwrap_or_default())?;
    file.sync_all()?;
    fs::rename(&new, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::feed::Text;

    fn entry(title: &str) -> Entry {
        let title = Some(Text::plain(title.to_owned()));
        Entry { id: "tag:a.test:1".to_owned(), title, ..Entry::default() }
    }

    #[test]
    fn a_place_that_was_kept_counts_before_one_that_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = Some(folder.path().join("place"));
        let from = || Some("from".to_owned());
        let mut place = PlaceFile::open(path.clone(), from()).unwrap();
        assert_eq!(place.mark().unwrap().id, "from");
        place.keep(Mark::of(&entry("first"))).unwrap();
        place.keep(Mark::of(&entry("second"))).unwrap();
        let again = PlaceFile::open(path, from()).unwrap();
        assert_eq!(again.mark(), Some(&Mark::of(&entry("second"))));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
        assert_eq!(PlaceFile::open(None, None).unwrap().mark(), None);
    }

    #[test]
    fn n7_a_mark_tells_an_entry_from_its_updates_and_a_mere_id_does_not() {
        let marked = Mark::of(&entry("first"));
        assert!(marked.is_of(&entry("first")) && !marked.is_of(&entry("second")));
        for text in ["tag:a.test:1", "tag:a.test:1\n", "tag:a.test:1\r\n"] {
            let named = Mark::read(text).unwrap();
            assert!(named.is_of(&entry("first")) && named.is_of(&entry("second")), "{text:?}");
        }
        assert_eq!(Mark::read(" \n"), None);
    }
}
