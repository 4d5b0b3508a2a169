//! What fails below a node: its clock, and the disk or the server that takes no writes for a while.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::support::postgres::Database;

/// The clock of a node, which is set by libfaketime. Only the time of day is: timers of the system run
/// on, as they do when an operator sets a clock.
pub(super) struct Clock {
    library: PathBuf,
    folder: TempDir,
}

impl Clock {
    /// A clock that is right; `None` where libfaketime is not installed.
    pub(super) fn new() -> Option<Clock> {
        let folders = std::fs::read_dir("/usr/lib").ok()?.filter_map(Result::ok);
        let library = folders
            .map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"))
            .find(|library| library.exists())?;
        let clock = Clock { library, folder: tempfile::tempdir().unwrap() };
        clock.set(0);
        Some(clock)
    }

    /// What makes a program use this clock.
    pub(super) fn variables(&self) -> [(&'static str, String); 6] {
        let on = || "1".to_owned();
        [
            ("LD_PRELOAD", self.library.display().to_string()),
            ("FAKETIME_TIMESTAMP_FILE", self.file().display().to_string()),
            ("FAKETIME_NO_CACHE", on()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", on()),
            ("FAKETIME_DISABLE_SHM", on()), // it would be left behind by a process that is killed
            ("NO_FAKE_STAT", on()),
        ]
    }

    /// Sets it so many seconds before or behind the right time.
    pub(super) fn set(&self, seconds: i64) {
        // Renamed, so that nobody reads half of it.
        let new = self.folder.path().join("new");
        std::fs::write(&new, format!("{seconds:+}\n")).unwrap();
        std::fs::rename(&new, self.file()).unwrap();
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("offset")
    }
}

/// The files of a database on SQLite, which take no writes while this value exists. Permissions do not
/// bind an administrator, and a file that is open already; the attribute `immutable` binds both.
pub(super) struct ReadOnlyFiles(Vec<String>);

impl ReadOnlyFiles {
    /// Returns `None` where the system or the file system refuses it, or if there are no files.
    pub(super) fn of(database: &Database) -> Option<ReadOnlyFiles> {
        let path = database.url.strip_prefix("sqlite:")?;
        // Not the shared memory beside them (`-shm`), which SQLite maps.
        let files = ReadOnlyFiles(vec![path.to_owned(), format!("{path}-wal")]);
        files.change("+i").then_some(files)
    }

    fn change(&self, attribute: &str) -> bool {
        let mut change = Command::new("chattr");
        change.arg(attribute).args(&self.0).stderr(Stdio::null());
        change.status().is_ok_and(|status| status.success())
    }
}

impl Drop for ReadOnlyFiles {
    fn drop(&mut self) {
        self.change("-i");
    }
}
