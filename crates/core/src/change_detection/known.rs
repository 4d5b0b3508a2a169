//! What the store knows of entries, as the classify is told it.

use std::collections::HashMap;

use chrono::{DateTime, Utc};

use crate::record::{Digest, EntryKey, Seq};

/// An entry that the resource was seen to hold, now or before.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownEntry {
    /// The number of its first record, by which it is named.
    pub first: Seq,
    /// The number of its newest record.
    pub newest: Seq,
    /// What it says; `None` if that was not remembered.
    pub digest: Option<Digest>,
    /// Its title.
    pub title: Digest,
    /// When it was published, as its source says.
    pub published: Option<DateTime<Utc>>,
    /// When it was updated, as its source says.
    pub updated: Option<DateTime<Utc>>,
    /// How many updates of it were sent.
    pub revised: u32,
    /// When its newest update was appended.
    pub revised_at: Option<DateTime<Utc>>,
    /// When it was last noted that the document holds it.
    pub seen_at: DateTime<Utc>,
    /// Whether the publisher has taken it back.
    pub is_deleted: bool,
}

/// Those of them that go by the keys that were asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    by_key: HashMap<EntryKey, KnownEntry>,
}

impl Known {
    /// The entry that goes by this key.
    pub fn get(&self, key: EntryKey) -> Option<&KnownEntry> {
        self.by_key.get(&key)
    }
}

impl FromIterator<(EntryKey, KnownEntry)> for Known {
    fn from_iter<T: IntoIterator<Item = (EntryKey, KnownEntry)>>(entries: T) -> Known {
        Known { by_key: entries.into_iter().collect() }
    }
}
