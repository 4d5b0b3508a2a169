//! What fails below a node: the disk or the server that takes no writes for a while.

use std::process::{Command, Stdio};

use crate::support::postgres::Database;

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
