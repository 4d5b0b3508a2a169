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
    pub fn from_id(id: &str) -> EntryKey {
        use sha2::{Digest, Sha256};
        let digest = Sha256::digest(id.as_bytes());
        let mut key = [0; 16];
        key.copy_from_slice(&digest[..16]);
        EntryKey(key)
    }
}

/// What something says, as 16 bytes of a SHA-256: enough to see that it changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest(pub [u8; 16]);

impl Digest {
    /// Of parts, which are told apart from one another.
    pub fn from_parts(parts: &[&str]) -> Digest {
        use sha2::{Digest as _, Sha256};
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        let mut digest = [0; 16];
        digest.copy_from_slice(&hasher.finalize()[..16]);
        Digest(digest)
    }
}

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// An entry that was not known, or a revision of a resource that is no feed.
    New,
    /// A known entry that says something else than it did (rule N7).
    Update,
    /// An entry that was not known and is old: kept, and sent to nobody (rule N5).
    Old,
    /// A known entry that its publisher has taken back (rule N8).
    Deleted,
}

impl RecordKind {
    /// The word kept in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            RecordKind::New => "new",
            RecordKind::Update => "update",
            RecordKind::Old => "old",
            RecordKind::Deleted => "deleted",
        }
    }

    /// Reads the word kept in the store.
    pub fn from_word(word: &str) -> Option<RecordKind> {
        let all = [RecordKind::New, RecordKind::Update, RecordKind::Old, RecordKind::Deleted];
        all.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// Whom a record is sent to. Each reaches those of all that come after it in this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Audience {
    /// Nobody.
    Nobody,
    /// Those who asked for updates.
    Askers,
    /// Those too who did not refuse them: the publisher says that it is an update, now.
    Fresh,
    /// All subscribers.
    Everybody,
}

impl Audience {
    /// The number kept in the store; the greater, the more it reaches.
    pub fn number(self) -> i64 {
        self as i64
    }

    /// Reads the number kept in the store.
    pub fn from_number(number: i64) -> Option<Audience> {
        let all = [Audience::Nobody, Audience::Askers, Audience::Fresh, Audience::Everybody];
        all.into_iter().find(|audience| audience.number() == number)
    }
}

/// One numbered item of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its number.
    pub seq: Seq,
    /// When it was appended.
    pub at: DateTime<Utc>,
    /// What it is.
    pub kind: RecordKind,
    /// The record of the same entry that it takes the place of.
    pub predecessor: Option<Seq>,
    /// The Atom id of the entry.
    pub entry_id: String,
    /// The entry as one self-contained Atom `<entry>` element, or `at:deleted-entry`. What
    /// was published never changes, even when the normalizer gets better.
    pub atom: String,
}
