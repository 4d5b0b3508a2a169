//! The file in which the command stores what it has done: lines of JSON that are only appended.
//!
//! A line is written after what it says, so that a run that ends at any time repeats its last requests
//! at most. The secrets of subscriptions are never in the file; topics may contain credentials, so only
//! its owner can read it. A last line without an end is that of a run that was killed: it is removed.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::comparison::TopicComparison;

/// What identifies a subscription, at both services.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub(super) struct SubscriptionKey {
    pub(super) topic: String,
    pub(super) callback: String,
}

/// A line of the file.
#[derive(Debug, Deserialize, Serialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub(super) enum JournalRecord {
    /// The accounts that the file is about; the first line.
    Accounts { superfeedr: String, gateway: String },
    /// The gateway has this subscription.
    Imported(SubscriptionKey),
    /// The result of the last comparison.
    Compared { topic: String, comparison: TopicComparison },
    /// The gateway has this subscription, and Superfeedr no longer.
    Switched(SubscriptionKey),
    /// A placeholder that is no longer needed has ended.
    Ended(SubscriptionKey),
}

/// The file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum BadJournal {
    #[error("cannot use {}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        reason: io::Error,
    },
    #[error("line {line} of {} is not one of this command: {reason}", path.display())]
    Line { path: PathBuf, line: usize, reason: String },
    #[error("{} is about {found}, not about {wanted}", path.display())]
    OtherAccount { path: PathBuf, found: String, wanted: String },
}

/// What was done, in memory and in the file.
pub(super) struct ImportJournal {
    path: PathBuf,
    file: File,
    /// The subscriptions that the gateway has for this account because of the command, and that are not
    /// switched.
    imported: HashSet<SubscriptionKey>,
    compared: HashMap<String, TopicComparison>,
}

impl ImportJournal {
    /// Opens the file, or creates it. It must be about the accounts with these names, at Superfeedr and at
    /// the gateway, and no other run may use it.
    pub(super) fn open(path: &Path, names: [String; 2]) -> Result<ImportJournal, BadJournal> {
        let (file, text) =
            open_file(path).map_err(|reason| BadJournal::Io { path: path.to_owned(), reason })?;
        let mut journal = ImportJournal {
            path: path.to_owned(),
            file,
            imported: HashSet::new(),
            compared: HashMap::new(),
        };
        let [superfeedr, gateway] = names;
        if text.is_empty() {
            journal.append(vec![JournalRecord::Accounts { superfeedr, gateway }])?;
            return Ok(journal);
        }
        let wanted = format!("{superfeedr} and {gateway}");
        for (number, line) in (1..).zip(text.lines()) {
            let bad =
                |reason: String| BadJournal::Line { path: path.to_owned(), line: number, reason };
            let record = serde_json::from_str(line).map_err(|err| bad(err.to_string()))?;
            match record {
                JournalRecord::Accounts { superfeedr, gateway } => {
                    let found = format!("{superfeedr} and {gateway}");
                    if found != wanted {
                        let path = path.to_owned();
                        return Err(BadJournal::OtherAccount { path, found, wanted });
                    }
                }
                _ if number == 1 => return Err(bad("it names no accounts".to_owned())),
                record => journal.apply(record),
            }
        }
        Ok(journal)
    }

    /// Whether the gateway has this subscription because of the command.
    pub(super) fn is_imported(&self, key: &SubscriptionKey) -> bool {
        self.imported.contains(key)
    }

    /// Returns the subscriptions that are imported and not switched.
    pub(super) fn imported(&self) -> impl Iterator<Item = &SubscriptionKey> {
        self.imported.iter()
    }

    /// Returns the topics that are imported and not switched, in their order.
    pub(super) fn topics(&self) -> BTreeSet<String> {
        self.imported.iter().map(|key| key.topic.clone()).collect()
    }

    /// Returns the result of the last comparison of a topic.
    pub(super) fn comparison(&self, topic: &str) -> Option<&TopicComparison> {
        self.compared.get(topic)
    }

    /// Stores what was done. It is on the disk when this returns.
    pub(super) fn append(&mut self, records: Vec<JournalRecord>) -> Result<(), BadJournal> {
        let mut lines = String::new();
        for record in &records {
            let line = serde_json::to_string(record).map_err(io::Error::from);
            lines.push_str(&line.map_err(|reason| self.io_error(reason))?);
            lines.push('\n');
        }
        let written = self.file.write_all(lines.as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(|reason| self.io_error(reason))?;
        records.into_iter().for_each(|record| self.apply(record));
        Ok(())
    }

    fn apply(&mut self, record: JournalRecord) {
        match record {
            JournalRecord::Accounts { .. } => {}
            JournalRecord::Imported(key) => {
                self.imported.insert(key);
            }
            JournalRecord::Compared { topic, comparison } => {
                self.compared.insert(topic, comparison);
            }
            JournalRecord::Switched(key) | JournalRecord::Ended(key) => {
                self.imported.remove(&key);
            }
        }
    }

    fn io_error(&self, reason: io::Error) -> BadJournal {
        BadJournal::Io { path: self.path.clone(), reason }
    }
}

/// Opens the file for appending, and returns its complete lines.
fn open_file(path: &Path) -> io::Result<(File, String)> {
    let mut options = OpenOptions::new();
    let mut file = options.read(true).append(true).create(true).mode(0o600).open(path)?;
    file.try_lock().map_err(|err| match err {
        std::fs::TryLockError::WouldBlock => {
            io::Error::new(io::ErrorKind::ResourceBusy, "another run of the command uses it")
        }
        std::fs::TryLockError::Error(err) => err,
    })?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let complete = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    bytes.truncate(complete);
    file.set_len(complete as u64)?;
    file.seek(SeekFrom::End(0))?;
    let text = String::from_utf8(bytes);
    let text = text.map_err(|err| io::Error::new(io::ErrorKind::InvalidData, err))?;
    Ok((file, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn names(login: &str) -> [String; 2] {
        [format!("{login} at there"), "ann at here".to_owned()]
    }

    fn key(topic: &str) -> SubscriptionKey {
        SubscriptionKey { topic: topic.to_owned(), callback: "https://a.test/hook".to_owned() }
    }

    #[test]
    fn a_run_goes_on_where_another_one_was_killed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("move.jsonl");
        let mut journal = ImportJournal::open(&path, names("ann")).unwrap();
        assert!(ImportJournal::open(&path, names("ann")).is_err(), "one run at a time");
        let comparison = TopicComparison::Same;
        journal
            .append(vec![
                JournalRecord::Imported(key("a")),
                JournalRecord::Imported(key("b")),
                JournalRecord::Compared { topic: "b".to_owned(), comparison },
            ])
            .unwrap();
        drop(journal);
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{whole}{{\"record\":\"switched\",\"to")).unwrap();

        let mut journal = ImportJournal::open(&path, names("ann")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), whole);
        assert_eq!(journal.topics().into_iter().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(journal.comparison("b"), Some(&TopicComparison::Same));
        journal.append(vec![JournalRecord::Switched(key("b"))]).unwrap();
        drop(journal);
        let journal = ImportJournal::open(&path, names("ann")).unwrap();
        assert!(journal.is_imported(&key("a")) && !journal.is_imported(&key("b")));
    }

    #[test]
    fn a_file_of_another_account_or_program_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("move.jsonl");
        drop(ImportJournal::open(&path, names("ann")).unwrap());
        let refused = ImportJournal::open(&path, names("bob")).err().unwrap();
        assert!(refused.to_string().contains("is about ann at there"), "{refused}");
        for text in ["a list\n", "{\"record\":\"imported\",\"topic\":\"a\",\"callback\":\"b\"}\n"] {
            fs::write(&path, text).unwrap();
            let refused = ImportJournal::open(&path, names("ann")).err().unwrap();
            assert!(matches!(refused, BadJournal::Line { line: 1, .. }), "{refused}");
        }
    }
}
