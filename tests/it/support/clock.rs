//! The clock of a node, which a test can set while the node runs.

use std::path::PathBuf;

use tempfile::TempDir;

/// The clock of a node, which is set by libfaketime. Only the time of day is: timers of the system run
/// on, as they do when an operator sets a clock.
pub(crate) struct Clock {
    library: PathBuf,
    folder: TempDir,
}

impl Clock {
    /// A clock that is right; `None` where libfaketime is not installed.
    pub(crate) fn new() -> Option<Clock> {
        let folders = std::fs::read_dir("/usr/lib").ok()?.filter_map(Result::ok);
        let library = folders
            .map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"))
            .find(|library| library.exists())?;
        let clock = Clock { library, folder: tempfile::tempdir().unwrap() };
        clock.set(0);
        Some(clock)
    }

    /// What makes a program use this clock.
    pub(crate) fn variables(&self) -> [(&'static str, String); 6] {
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
    pub(crate) fn set(&self, seconds: i64) {
        // Renamed, so that nobody reads half of it.
        let new = self.folder.path().join("new");
        std::fs::write(&new, format!("{seconds:+}\n")).unwrap();
        std::fs::rename(&new, self.file()).unwrap();
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("offset")
    }
}
