//! A new file that a command writes: it has its name only once it is complete, so that a command that
//! fails leaves nothing that blocks the next one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::jobs::runner::nonce;

/// A file that only its owner can read, and that is removed unless it is [persisted](Self::persist).
#[derive(Debug)]
pub(super) struct NewFile {
    file: File,
    part: PathBuf,
    name: PathBuf,
    has_name: bool,
}

impl NewFile {
    /// Creates a file that will have this name. Fails if there is one already.
    pub(super) fn create(name: &Path) -> io::Result<NewFile> {
        if fs::symlink_metadata(name).is_ok() {
            return Err(exists());
        }
        let last = name.file_name().map(|last| last.to_string_lossy()).unwrap_or_default();
        let part = name.with_file_name(format!(".{last}.{}.part", nonce()));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
        Ok(NewFile { file, part, name: name.to_owned(), has_name: false })
    }

    /// Gives the file its name. Fails if another file got it in the meantime.
    pub(super) fn persist(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        // Unlike a renamed file, a link does not replace what has the name.
        match fs::hard_link(&self.part, &self.name) {
            Ok(()) => {}
            Err(err) if err.kind() == ErrorKind::AlreadyExists => return Err(err),
            // Some file systems have no links.
            Err(_) if fs::symlink_metadata(&self.name).is_ok() => return Err(exists()),
            Err(_) => {
                fs::rename(&self.part, &self.name)?;
                self.has_name = true;
            }
        }
        let folder = self.name.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.has_name {
            fs::remove_file(&self.part).unwrap_or_default();
        }
    }
}

fn exists() -> io::Error {
    io::Error::from(ErrorKind::AlreadyExists)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h20_a_file_has_its_name_once_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("export.jsonl");
        let files = || fs::read_dir(&folder).unwrap().count();
        drop(NewFile::create(&name).unwrap());
        assert_eq!(files(), 0);
        let mut file = NewFile::create(&name).unwrap();
        file.write_all(b"lines").unwrap();
        assert!(!name.exists());
        file.persist().unwrap();
        assert_eq!((fs::read(&name).unwrap(), files()), (b"lines".to_vec(), 1));
        assert_eq!(NewFile::create(&name).unwrap_err().kind(), ErrorKind::AlreadyExists);
    }
}
