//! The log of a resource: records, numbered from 1 without gaps.

use std::fmt;

use chrono::{DateTime, Utc};

/// The number of a record in the log of its resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Seq(pub i64);

impl Seq {
    /// The position before the first record: the head of an empty log, and the cursor of a
    /// subscription that was sent nothing.
    pub const NONE: Seq = Seq(0);
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The key of an entry within its resource: 16 bytes of a SHA-256, so that the set of all known
/// entries stays small (N6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntryKey(pub [u8; 16]);

impl EntryKey {
    /// Returns the key of the entry with this id.
    pub fn from_id(id: &str) -> EntryKey {
        use sha2::{Digest, Sha256};
        let digest = Sha256::digest(id.as_bytes());
        let mut key = [0; 16];
        key.copy_from_slice(&digest[..16]);
        EntryKey(key)
    }
}

/// A digest of content: 16 bytes of a SHA-256, which are enough to detect a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest(pub [u8; 16]);

impl Digest {
    /// Computes the digest of `parts`, which are delimited from each other.
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

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// A new entry, or a revision of a resource that is not a feed.
    New,
    /// An update of a known entry (N7).
    Update,
    /// A new entry that is old: it is stored, and sent to nobody (N5).
    Old,
    /// The deletion of a known entry by its publisher (N8).
    Deleted,
}

impl RecordKind {
    /// The word in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            RecordKind::New => "new",
            RecordKind::Update => "update",
            RecordKind::Old => "old",
            RecordKind::Deleted => "deleted",
        }
    }

    /// Parses the word in the store.
    pub fn from_word(word: &str) -> Option<RecordKind> {
        let all = [RecordKind::New, RecordKind::Update, RecordKind::Old, RecordKind::Deleted];
        all.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// The subscriptions that a record is sent to. Each value includes the previous ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Audience {
    /// No subscription.
    Nobody,
    /// Subscriptions that request all updates.
    Askers,
    /// Also subscriptions that accept fresh updates, because the publisher declares this one as
    /// new.
    Fresh,
    /// All subscriptions.
    Everybody,
}

impl Audience {
    /// The number in the store; a greater number is a larger audience.
    pub fn number(self) -> i64 {
        self as i64
    }

    /// Parses the number in the store.
    pub fn from_number(number: i64) -> Option<Audience> {
        let all = [Audience::Nobody, Audience::Askers, Audience::Fresh, Audience::Everybody];
        all.into_iter().find(|audience| audience.number() == number)
    }
}

/// One record of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The number of the record.
    pub seq: Seq,
    /// When it was appended.
    pub at: DateTime<Utc>,
    /// The kind of the record.
    pub kind: RecordKind,
    /// The record of the same entry that this one replaces.
    pub predecessor: Option<Seq>,
    /// The Atom id of the entry.
    pub entry_id: String,
    /// The entry as one self-contained Atom `<entry>` element, or `at:deleted-entry`. A published
    /// record never changes, even when the normalizer is improved.
    pub atom: String,
}

/// A record without its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordPlace {
    /// The number of the record.
    pub seq: Seq,
    /// When it was appended.
    pub at: DateTime<Utc>,
    /// The kind of the record.
    pub kind: RecordKind,
}
