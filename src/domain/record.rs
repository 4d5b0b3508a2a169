//! The log of a resource: records, numbered from 1 without gaps.

use std::fmt;

use chrono::{DateTime, Utc};

/// A record's number in its resource's log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Seq(pub i64);

impl Seq {
    /// Before the first record: the head of an empty log, the cursor of who has
    /// been told nothing.
    pub const NONE: Seq = Seq(0);
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The name by which an entry is known within its resource: 16 bytes of a SHA-256,
/// so that the set of all that was ever seen stays small (rule N6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntryKey(pub [u8; 16]);

impl EntryKey {
    /// The key of the entry with this id.
    pub fn of(id: &str) -> EntryKey {
        use sha2::{Digest, Sha256};
        let digest = Sha256::digest(id.as_bytes());
        let mut key = [0; 16];
        key.copy_from_slice(&digest[..16]);
        EntryKey(key)
    }
}

/// An entry on its way into the log; it gets its number when it is appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRecord {
    /// Its key; what is already known under it is not appended again.
    pub key: EntryKey,
    /// The Atom id of the entry.
    pub entry_id: String,
    /// The entry as one self-contained Atom `<entry>` element. What was published
    /// never changes, even when the normalizer gets better.
    pub atom: String,
}

/// One numbered item of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its number.
    pub seq: Seq,
    /// When it was appended.
    pub at: DateTime<Utc>,
    /// The Atom id of the entry.
    pub entry_id: String,
    /// The entry as one self-contained Atom `<entry>` element.
    pub atom: String,
}
