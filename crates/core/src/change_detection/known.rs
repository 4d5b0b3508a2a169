//! The entries that the store knows, as input of the classification.

use std::collections::HashMap;

use chrono::{DateTime, Utc};

use crate::record::{Digest, EntryKey, Seq};

/// An entry that the resource contains, or contained earlier.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownEntry {
    /// The number of its first record, which identifies the entry.
    pub first: Seq,
    /// The number of its newest record.
    pub newest: Seq,
    /// The digest of the content; `None` if it was not stored.
    pub digest: Option<Digest>,
    /// The title.
    pub title: Digest,
    /// The publication date given by the source.
    pub published: Option<DateTime<Utc>>,
    /// The update date given by the source.
    pub updated: Option<DateTime<Utc>>,
    /// The number of its updates that were sent.
    pub revised: u32,
    /// When its newest update was appended.
    pub revised_at: Option<DateTime<Utc>>,
    /// When it was last recorded that the document contains the entry.
    pub seen_at: DateTime<Utc>,
    /// Whether the publisher has deleted the entry.
    pub is_deleted: bool,
    /// Whether the key is an id that the entry had once, in place of its own.
    pub is_alias: bool,
}

/// The known entries among those with the requested keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    by_key: HashMap<EntryKey, KnownEntry>,
}

impl Known {
    /// Returns the entry with this key.
    pub fn get(&self, key: EntryKey) -> Option<&KnownEntry> {
        self.by_key.get(&key)
    }
}

impl FromIterator<(EntryKey, KnownEntry)> for Known {
    fn from_iter<T: IntoIterator<Item = (EntryKey, KnownEntry)>>(entries: T) -> Known {
        Known { by_key: entries.into_iter().collect() }
    }
}
