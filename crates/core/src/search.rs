//! Searching what is stored (Superfeedr's API, row Q-1), in the query language of tracks.
//!
//! ```text
//! append ──► range to index ──► keys of each entry ──► search index ──► possible matches ──► Query::matches
//! ```
//!
//! The index only finds entries that a query may match; the query itself decides. Entries stand in
//! the order in which they arrived, whichever resource they are of.

use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::query::{EntryText, RequiredKeys, SearchKey};
use crate::record::{Record, RecordKind, Seq};
use crate::resource::{Resource, ResourceId, ResourceKind};

/// The bits of a place below the time: how many entries of one microsecond a cell can hold before
/// they stand at later times. With more bits, places would not reach into the next century.
const TIE_BITS: u32 = 11;

/// A place in the order in which entries arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SearchPosition {
    /// The time of arrival and a number; different for all entries of a cell.
    pub place: i64,
    /// The resource of the entry: entries of different cells may have the same place.
    pub resource: ResourceId,
}

impl SearchPosition {
    /// The number of places of one microsecond. If more arrive in one, they take those of the next.
    pub const PLACES: i64 = 1 << TIE_BITS;

    /// Returns the first place of entries that arrived at `at`.
    pub fn first_place(at: DateTime<Utc>) -> i64 {
        at.timestamp_micros() << TIE_BITS
    }

    /// Parses the text of a position.
    pub fn parse(text: &str) -> Option<SearchPosition> {
        let number = |text: &str| {
            let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
            is_plain.then(|| text.parse().ok()).flatten()
        };
        let (place, resource) = text.split_once('-')?;
        Some(SearchPosition { place: number(place)?, resource: ResourceId(number(resource)?) })
    }
}

impl fmt::Display for SearchPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.place, self.resource)
    }
}

/// The records of a resource that have to be indexed.
#[derive(Clone, Debug, PartialEq)]
pub struct UnindexedRange {
    /// The resource.
    pub resource: Resource,
    /// The last number that was indexed before.
    pub after: Seq,
    /// The last number of this range.
    pub upto: Seq,
    /// The records in between that are still stored, ascending.
    pub records: Vec<Record>,
    /// The most keys of each entry; 0: the entries are not found by searches.
    pub most_keys: usize,
}

/// The keys of the entries in a range of records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedRange {
    /// The resource.
    pub resource: ResourceId,
    /// The last number that was indexed before.
    pub after: Seq,
    /// The last number of this range.
    pub upto: Seq,
    /// The entries that searches may find.
    pub entries: Vec<IndexedEntry>,
    /// The records that those of this range replace, which searches must not find any more.
    pub replaced: Vec<Seq>,
}

/// The keys of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedEntry {
    /// The number of its record.
    pub seq: Seq,
    /// When it arrived.
    pub at: DateTime<Utc>,
    /// The keys.
    pub keys: Vec<SearchKey>,
}

impl UnindexedRange {
    /// Returns the keys of the entries in this range. Like tracks, searches find no entries of topics
    /// that contain credentials; a collection has copies of entries that are found at their source.
    pub fn to_indexed(&self) -> IndexedRange {
        let UnindexedRange { resource, after, upto, records, most_keys } = self;
        let is_searched = resource.topic.is_public()
            && resource.kind != ResourceKind::Collection
            && *most_keys > 0;
        let replaced: Vec<Seq> = records.iter().filter_map(|record| record.predecessor).collect();
        let current = records.iter().filter(|record| {
            // The record of a deletion holds only the id of the entry.
            record.kind != RecordKind::Deleted && !replaced.contains(&record.seq)
        });
        let entries = current.filter_map(|record| {
            let keys = EntryText::read(resource, &record.atom)?.search_keys(*most_keys);
            Some(IndexedEntry { seq: record.seq, at: record.at, keys })
        });
        let entries = if is_searched { entries.collect() } else { Vec::new() };
        let (after, upto) = (*after, *upto);
        IndexedRange { resource: resource.id, after, upto, entries, replaced }
    }
}

impl IndexedRange {
    /// Returns the range in parts of at most `most_keys` keys, or one entry each. What it replaces is
    /// in the first part.
    pub fn into_parts(self, most_keys: usize) -> Vec<IndexedRange> {
        let IndexedRange { resource, mut after, upto, entries, mut replaced } = self;
        let (mut parts, mut part, mut keys) = (Vec::new(), Vec::new(), 0);
        for entry in entries {
            if !part.is_empty() && keys + entry.keys.len() > most_keys {
                let (entries, replaced) =
                    (std::mem::take(&mut part), std::mem::take(&mut replaced));
                let end = Seq(entry.seq.0 - 1);
                parts.push(IndexedRange { resource, after, upto: end, entries, replaced });
                (after, keys) = (end, 0);
            }
            keys += entry.keys.len();
            part.push(entry);
        }
        parts.push(IndexedRange { resource, after, upto, entries: part, replaced });
        parts
    }

    /// Returns how many keys its entries have.
    pub fn key_count(&self) -> usize {
        self.entries.iter().map(|entry| entry.keys.len()).sum()
    }
}

/// What to look for in the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexSearch {
    /// The keys that the entries have.
    pub keys: RequiredKeys,
    /// Only entries that arrived before this one; `None`: from the newest on.
    pub before: Option<SearchPosition>,
    /// Only entries that arrived after this one.
    pub after: Option<SearchPosition>,
    /// The maximum number of entries.
    pub limit: usize,
}

/// The newest entries that have the keys of a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PossibleMatches {
    /// The entries, newest first.
    pub entries: Vec<PossibleMatch>,
    /// How far the index was read: the search continues before this position. `None`: there are no
    /// more entries.
    pub continues_before: Option<SearchPosition>,
}

/// An entry that has the keys of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct PossibleMatch {
    /// Its place in the order of arrival.
    pub position: SearchPosition,
    /// The resource that published it.
    pub resource: Arc<Resource>,
    /// Its newest record.
    pub record: Record,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q01_positions_are_read_as_they_are_written() {
        let at = DateTime::from_timestamp(1_790_000_000, 123_456_000).unwrap();
        let position =
            SearchPosition { place: SearchPosition::first_place(at), resource: ResourceId(7) };
        assert_eq!(SearchPosition::parse(&position.to_string()), Some(position));
        let last = DateTime::from_timestamp(4_102_444_800, 0).unwrap();
        assert!(SearchPosition::first_place(last) > position.place, "the year 2100");
        for bad in ["", "1", "-1-2", "1-", "a-b", "1-2-3", "1 -2", "+1-2", "99999999999999999999-1"]
        {
            assert_eq!(SearchPosition::parse(bad), None, "{bad}");
        }
    }
}
