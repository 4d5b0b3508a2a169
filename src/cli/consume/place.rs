//! The position in an archive, stored in a file that is replaced atomically.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::item::ArchiveItem;

/// Stores which entry was handled last.
pub trait ReadPosition {
    /// The last entry that was handled, if there is one.
    fn mark(&self) -> Option<&LastEntry>;

    /// Saves the position of the last entry that was handled.
    fn save(&mut self, mark: LastEntry) -> Result<(), BadPosition>;
}

/// The entry or deletion that was handled last. Items with the same id and identical content are
/// one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastEntry {
    /// The id, which updates of the entry share (N7).
    pub id: String,
    /// The hash of this version ([`ArchiveItem::hash`]), or `None` if only the id was given.
    hash: Option<String>,
}

impl LastEntry {
    /// The position at `item`.
    pub fn from_item(item: &ArchiveItem) -> LastEntry {
        LastEntry { id: item.id().to_owned(), hash: Some(item.hash()) }
    }

    /// Returns how many of `items`, newest first, precede the newest one that matches.
    pub(super) fn newest_in(&self, items: &[ArchiveItem]) -> Option<usize> {
        items.iter().position(|item| self.is_of(item))
    }

    /// Returns how many of `items`, newest first, precede the oldest entry with the same id and any
    /// content. A deletion of the entry does not count.
    pub(super) fn oldest_namesake_in(&self, items: &[ArchiveItem]) -> Option<usize> {
        items.iter().rposition(|item| !item.is_deleted() && item.id() == self.id)
    }

    /// Whether this is the position. Without a hash, any entry with the id matches.
    pub(super) fn is_of(&self, item: &ArchiveItem) -> bool {
        self.id == item.id() && (self.hash.is_none() || *self == LastEntry::from_item(item))
    }

    /// Parses a line with the id and, unless only the id was given, a line with the hash.
    fn read(text: &str) -> Option<LastEntry> {
        let (id, hash) = match text.trim().split_once('\n') {
            Some((id, hash)) => (id.trim_end(), Some(hash.trim().to_owned())),
            None => (text.trim(), None),
        };
        (!id.is_empty()).then(|| LastEntry { id: id.to_owned(), hash })
    }
}

/// Stores the last entry that was handled in a file.
#[derive(Debug)]
pub struct PositionFile {
    path: Option<PathBuf>,
    mark: Option<LastEntry>,
}

/// The position could not be read or stored.
#[derive(Debug, thiserror::Error)]
#[error("cannot store the position in {}", path.display())]
pub struct BadPosition {
    path: PathBuf,
    #[source]
    reason: io::Error,
}

impl PositionFile {
    /// Returns the position stored at `path`, if there is one, or else the position after the entry
    /// with the id `from`.
    pub fn open(path: Option<PathBuf>, from: Option<String>) -> Result<PositionFile, BadPosition> {
        let kept = match &path {
            Some(path) => match fs::read_to_string(path) {
                Ok(text) => LastEntry::read(&text),
                Err(err) if err.kind() == io::ErrorKind::NotFound => None,
                Err(reason) => return Err(BadPosition { path: path.clone(), reason }),
            },
            None => None,
        };
        let from = || from.map(|id| LastEntry { id, hash: None });
        Ok(PositionFile { path, mark: kept.or_else(from) })
    }
}

impl ReadPosition for PositionFile {
    fn mark(&self) -> Option<&LastEntry> {
        self.mark.as_ref()
    }

    fn save(&mut self, mark: LastEntry) -> Result<(), BadPosition> {
        let mark = self.mark.insert(mark);
        match &self.path {
            Some(path) => {
                replace(path, mark).map_err(|reason| BadPosition { path: path.clone(), reason })
            }
            None => Ok(()),
        }
    }
}

/// A reader of the file sees either the old or the new position, even after a power failure.
fn replace(path: &Path, mark: &LastEntry) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let mut file = File::create(&new)?;
    writeln!(file, "{}\n{}", mark.id, mark.hash.as_deref().unwrap_or_default())?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    // The new file is durable only when its folder has been synced.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedgate_core::change_detection::Deletion;
    use feedgate_feed::model::{Attribute, Element, Entry, Text};

    const ID: &str = "tag:a.test:1";

    fn entry(title: &str) -> ArchiveItem {
        let title = Some(Text::plain(title.to_owned()));
        ArchiveItem::from_entry(Entry { id: ID.to_owned(), title, ..Entry::default() })
    }

    fn taken_back() -> ArchiveItem {
        let attribute =
            Attribute { name: "ref".to_owned(), value: ID.to_owned(), ..Attribute::default() };
        let element = Element {
            namespace: "http://purl.org/atompub/tombstones/1.0".to_owned(),
            name: "deleted-entry".to_owned(),
            attributes: vec![attribute],
            ..Element::default()
        };
        ArchiveItem::Deleted(Box::new(Deletion::from_element(&element).unwrap()))
    }

    #[test]
    fn a_place_that_was_kept_counts_before_one_that_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = Some(folder.path().join("place"));
        let from = || Some("from".to_owned());
        let mut place = PositionFile::open(path.clone(), from()).unwrap();
        assert_eq!(place.mark().unwrap().id, "from");
        place.save(LastEntry::from_item(&entry("first"))).unwrap();
        place.save(LastEntry::from_item(&entry("second"))).unwrap();
        let again = PositionFile::open(path, from()).unwrap();
        assert_eq!(again.mark(), Some(&LastEntry::from_item(&entry("second"))));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
        assert_eq!(PositionFile::open(None, None).unwrap().mark(), None);
    }

    #[test]
    fn n7_a_mark_tells_an_entry_from_its_updates_and_its_end_and_a_mere_id_does_not() {
        let marked = LastEntry::from_item(&entry("first"));
        assert!(marked.is_of(&entry("first")) && !marked.is_of(&entry("second")));
        assert!(
            !marked.is_of(&taken_back())
                && !LastEntry::from_item(&taken_back()).is_of(&entry("first"))
        );
        for text in ["tag:a.test:1", "tag:a.test:1\n", "tag:a.test:1\r\n"] {
            let named = LastEntry::read(text).unwrap();
            assert!(named.is_of(&entry("first")) && named.is_of(&taken_back()), "{text:?}");
        }
        assert_eq!(LastEntry::read(" \n"), None);
    }
}
