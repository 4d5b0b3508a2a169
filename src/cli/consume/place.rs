//! The place in an archive, in a file that is never half written.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::walk::Place;

/// Remembers the last entry that was taken.
#[derive(Debug)]
pub(super) struct PlaceFile {
    path: Option<PathBuf>,
    id: Option<String>,
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
    /// The place kept at `path`, if there is one; else behind the entry `from`.
    pub(super) fn open(path: Option<PathBuf>, from: Option<String>) -> Result<PlaceFile, BadPlace> {
        let kept = match &path {
            Some(path) => match fs::read_to_string(path) {
                Ok(text) => Some(text.trim().to_owned()).filter(|id| !id.is_empty()),
                Err(err) if err.kind() == io::ErrorKind::NotFound => None,
                Err(reason) => return Err(BadPlace { path: path.clone(), reason }),
            },
            None => None,
        };
        Ok(PlaceFile { path, id: kept.or(from) })
    }
}

impl Place for PlaceFile {
    fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    fn keep(&mut self, id: &str) -> Result<(), BadPlace> {
        self.id = Some(id.to_owned());
        match &self.path {
            Some(path) => {
                replace(path, id).map_err(|reason| BadPlace { path: path.clone(), reason })
            }
            None => Ok(()),
        }
    }
}

/// Whoever reads the file sees the old place or the new one, also after a power cut.
fn replace(path: &Path, id: &str) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let mut file = File::create(&new)?;
    writeln!(file, "{id}")?;
    file.sync_all()?;
    fs::rename(&new, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_was_kept_counts_before_one_that_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = Some(folder.path().join("place"));
        let from = || Some("from".to_owned());
        let mut place = PlaceFile::open(path.clone(), from()).unwrap();
        assert_eq!(place.id(), Some("from"));
        place.keep("tag:a.test:1").unwrap();
        place.keep("tag:a.test:2").unwrap();
        let again = PlaceFile::open(path, from()).unwrap();
        assert_eq!(again.id(), Some("tag:a.test:2"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
        assert_eq!(PlaceFile::open(None, None).unwrap().id(), None);
    }
}
