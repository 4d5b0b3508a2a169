//! The token of the account `admin`, which the first start creates.
//!
//! What always holds: the token is in a file that only its owner can read, and is printed at a terminal
//! only. Standard output of a service goes to a log, which more people can read.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The name of the file beside a SQLite database.
const FILE_NAME: &str = "admin-token";
/// The name of the file in the current folder, if the database is on a server.
const FILE_NAME_ALONE: &str = "feedgate-admin-token";

/// Where the token can be read.
#[derive(Debug)]
pub(super) struct StoredToken<'a> {
    /// The token itself.
    pub(super) token: &'a str,
    /// The file with the login and the token, or why it could not be written.
    pub(super) file: Result<PathBuf, String>,
}

impl StoredToken<'_> {
    /// Writes `token` to its file. `database` is the file of the database, if it is one.
    pub(super) fn write<'a>(token: &'a str, database: Option<&Path>) -> StoredToken<'a> {
        let file = match database {
            Some(database) => database.with_file_name(FILE_NAME),
            None => PathBuf::from(FILE_NAME_ALONE),
        };
        let written = write_private(&file, &format!("admin:{token}\n"));
        let file = match written {
            Ok(()) => Ok(std::path::absolute(&file).unwrap_or(file)),
            Err(err) => Err(format!("{}: {err}", file.display())),
        };
        StoredToken { token, file }
    }

    /// Returns what is printed about the token.
    pub(super) fn notice(&self, is_terminal: bool) -> String {
        let token = self.token;
        match (&self.file, is_terminal) {
            (Ok(file), true) => format!(
                "This is the token of the account \"admin\". It is shown only once, and also in the file\n\
                 {}.\n\n  {token}",
                file.display()
            ),
            (Ok(file), false) => {
                format!(
                    "The login and the token of the account \"admin\" are in the file\n{}.",
                    file.display()
                )
            }
            (Err(_), true) => format!(
                "This is the token of the account \"admin\". It is shown only once.\n\n  {token}"
            ),
            (Err(reason), false) => format!(
                "The token of the account \"admin\" could not be written to a file ({reason}).\n\
                 Create another one with \"feedgate token create\"."
            ),
        }
    }

    /// Returns the credentials as an argument of curl.
    pub(super) fn credentials(&self, is_terminal: bool) -> String {
        match (&self.file, is_terminal) {
            (Ok(file), false) => format!("\"$(cat '{}')\"", file.display()),
            (Err(_), false) => "LOGIN:TOKEN".to_owned(),
            (_, true) => format!("admin:{}", self.token),
        }
    }
}

/// Writes a file that only its owner can read. One that exists is replaced, because it is of a database
/// that is gone.
fn write_private(file: &Path, text: &str) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(err) if err.kind() != io::ErrorKind::NotFound => return Err(err),
        _ => {}
    }
    let mut created = OpenOptions::new().create_new(true).write(true).mode(0o600).open(file)?;
    created.write_all(text.as_bytes())?;
    created.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_the_owner_can_read_the_token() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FILE_NAME), "an earlier one").unwrap();
        let stored = StoredToken::write("c0ffee", Some(&folder.path().join("feedgate.db")));
        let file = stored.file.as_ref().unwrap();
        assert_eq!(fs::read_to_string(file).unwrap(), "admin:c0ffee\n");
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(stored.notice(true).contains("c0ffee"));
        let written = stored.notice(false) + &stored.credentials(false);
        assert!(!written.contains("c0ffee") && written.contains(FILE_NAME), "{written}");
    }

    #[test]
    fn a_token_without_a_file_is_printed_at_a_terminal_only() {
        let stored = StoredToken::write("c0ffee", Some(Path::new("/proc/missing/feedgate.db")));
        assert!(stored.file.is_err());
        assert!(stored.notice(true).contains("c0ffee"));
        let written = stored.notice(false) + &stored.credentials(false);
        assert!(!written.contains("c0ffee") && written.contains("token create"), "{written}");
    }
}
