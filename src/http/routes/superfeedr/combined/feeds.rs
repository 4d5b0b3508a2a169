//! The entries of several feeds in one order: by the time they arrived, then by feed, then by their
//! number.
//!
//! Clients page by the id of the last entry they have seen. An entry may be in several feeds, so its
//! id may have several places: `before` means the oldest and `after` the newest of them, and no page
//! ends with an entry at another place. So paging reaches every place of every entry, and ends.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::super::entry_selection::MAX_BYTES;
use feedgate_core::record::{Record, Seq};
use feedgate_core::resource::{Resource, ResourceId};
use feedgate_core::store::{EntryRange, StoreError};
use feedgate_store::Store;

/// The least bytes that are read of each feed for a portion: fewer than 200 feeds are read.
const LEAST_BYTES_OF_FEED: usize = 64 << 10;

/// Several feeds.
pub(super) struct Feeds<'a> {
    pub(super) store: &'a Store,
    pub(super) resources: &'a BTreeMap<ResourceId, Resource>,
}

/// The place of a record in the order of all feeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    at: DateTime<Utc>,
    resource: ResourceId,
    seq: Seq,
}

/// The places between which entries are requested, both exclusive.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Range {
    before: Option<Place>,
    after: Option<Place>,
}

/// The reason why there is no range.
#[derive(Debug)]
pub(super) enum RangeError {
    /// No feed has an entry with this id.
    UnknownEntry(String),
    /// The store failed.
    Store(StoreError),
}

impl Place {
    fn new(resource: ResourceId, record: &Record) -> Place {
        Place { at: record.at, resource, seq: record.seq }
    }
}

/// The first records of a range, in the direction of reading.
#[derive(Debug, Default)]
struct Portion<'r> {
    records: Vec<(&'r Resource, Record)>,
    /// The last place up to which all records were read, if there may be others beyond it.
    cut: Option<Place>,
}

impl<'r> Portion<'r> {
    /// Adds the records of a feed; `end` is the last of them if there may be others beyond it. What is
    /// beyond the bound is left out.
    fn add(
        &mut self,
        records: impl Iterator<Item = (&'r Resource, Record)>,
        end: Option<Place>,
        is_upwards: bool,
    ) {
        let distance = |place: Place| {
            if is_upwards { (Some(place), None) } else { (None, Some(Reverse(place))) }
        };
        let place = |(resource, record): &(&Resource, Record)| Place::new(resource.id, record);
        self.records.extend(records);
        self.records.sort_by_key(|record| distance(place(record)));
        self.cut = [self.cut, end].into_iter().flatten().min_by_key(|place| distance(*place));
        if let Some(cut) = self.cut {
            self.records.retain(|record| distance(place(record)) <= distance(cut));
        }
        let mut bytes = 0;
        let fitting = self.records.iter().take_while(|(_, record)| {
            let fits = bytes < MAX_BYTES;
            bytes += record.atom.len();
            fits
        });
        let fitting = fitting.count();
        if fitting < self.records.len() {
            self.records.truncate(fitting);
            self.cut = self.records.last().map(place);
        }
    }
}

impl Feeds<'_> {
    /// Returns the range between two entries, given by their ids.
    pub(super) async fn range(
        &self,
        before: Option<&str>,
        after: Option<&str>,
    ) -> Result<Range, RangeError> {
        let mut range = Range::default();
        if let Some(id) = before {
            range.before = Some(self.known_places(id).await?.0);
        }
        if let Some(id) = after {
            range.after = Some(self.known_places(id).await?.1);
        }
        Ok(range)
    }

    /// Returns up to `count` records in a range, newest first: the oldest ones after an entry, or
    /// else the newest ones. There are fewer if they are long; the others are on the next pages.
    pub(super) async fn records(
        &self,
        range: &Range,
        count: usize,
    ) -> Result<Vec<(&Resource, Record)>, StoreError> {
        let is_upwards = range.after.is_some();
        let (mut range, mut left_out) = (*range, 0);
        let mut found = loop {
            let Portion { records: mut found, cut } = self.portion(&range, count).await?;
            let rest = found.split_off(count.min(found.len())).into_iter();
            for next in rest {
                if !self.ends_too_early(&found, is_upwards).await? {
                    break;
                }
                found.pop();
                found.push(next);
            }
            let Some(cut) = cut else { break found };
            while left_out < 2 * count && self.ends_too_early(&found, is_upwards).await? {
                found.pop();
                left_out += 1;
            }
            if !found.is_empty() {
                break found;
            }
            let edge = if is_upwards { &mut range.after } else { &mut range.before };
            *edge = Some(cut);
        };
        if is_upwards {
            found.reverse();
        }
        Ok(found)
    }

    /// Returns the records of a range from its beginning in the direction of reading, in that order: twice
    /// as many as requested, because those at which no page may end are replaced by further ones, or as
    /// many as take [`MAX_BYTES`].
    async fn portion(&self, range: &Range, count: usize) -> Result<Portion<'_>, StoreError> {
        let is_upwards = range.after.is_some();
        let max_bytes = (MAX_BYTES / self.resources.len().max(1)).max(LEAST_BYTES_OF_FEED);
        let mut portion = Portion::default();
        for (id, resource) in self.resources {
            let mut span = EntryRange {
                limit: 2 * count,
                max_bytes: Some(max_bytes),
                ..EntryRange::default()
            };
            if let Some(place) = range.before {
                span.before = Some(Seq(self.count_before(resource, place).await? + 1));
            }
            if let Some(place) = range.after {
                let own = i64::from(place.resource == *id);
                span.after = Some(Seq(self.count_before(resource, place).await? + own));
            }
            let records = self.store.read_current(*id, &span).await?;
            let bytes: usize = records.iter().map(|record| record.atom.len()).sum();
            let last = if is_upwards { records.first() } else { records.last() };
            let end = last.filter(|_| bytes >= max_bytes).map(|last| Place::new(*id, last));
            portion.add(records.into_iter().map(|record| (resource, record)), end, is_upwards);
        }
        Ok(portion)
    }

    /// Returns whether a page may not end with the last of these records, because its entry has a place
    /// beyond it, at which paging would go on.
    async fn ends_too_early(
        &self,
        found: &[(&Resource, Record)],
        is_upwards: bool,
    ) -> Result<bool, StoreError> {
        match found.last() {
            Some((resource, record)) => {
                self.has_further_place(resource.id, record, is_upwards).await
            }
            None => Ok(false),
        }
    }

    /// Returns the oldest and the newest place of an entry.
    async fn known_places(&self, entry_id: &str) -> Result<(Place, Place), RangeError> {
        let places = self.places(entry_id).await.map_err(RangeError::Store)?;
        match (places.first(), places.last()) {
            (Some(oldest), Some(newest)) => Ok((*oldest, *newest)),
            _ => Err(RangeError::UnknownEntry(entry_id.to_owned())),
        }
    }

    /// Returns the places of an entry, oldest first.
    async fn places(&self, entry_id: &str) -> Result<Vec<Place>, StoreError> {
        let mut places = Vec::new();
        for id in self.resources.keys() {
            let Some(seq) = self.store.find_seq(*id, entry_id).await? else { continue };
            let record = self.record_at(*id, seq).await?;
            places.extend(record.map(|record| Place::new(*id, &record)));
        }
        places.sort();
        Ok(places)
    }

    /// Returns whether the entry of a record has a place beyond it, at which paging would go on.
    async fn has_further_place(
        &self,
        resource: ResourceId,
        record: &Record,
        is_upwards: bool,
    ) -> Result<bool, StoreError> {
        let own = Place::new(resource, record);
        let places = self.places(&record.entry_id).await?;
        Ok(places.iter().any(|place| if is_upwards { *place > own } else { *place < own }))
    }

    /// Returns the number of the last record of a feed before `place`; 0 if there is none. Records
    /// are looked up near the head first, because most clients page through the newest entries.
    async fn count_before(&self, resource: &Resource, place: Place) -> Result<i64, StoreError> {
        if resource.id == place.resource {
            return Ok(place.seq.0 - 1);
        }
        let (mut below, mut above, mut step) = (resource.head.0, resource.head.0 + 1, 1);
        while below > 0 && !self.is_before(resource.id, below, place).await? {
            (above, below, step) = (below, (below - step).max(0), step * 2);
        }
        while above - below > 1 {
            let middle = below + (above - below) / 2;
            if self.is_before(resource.id, middle, place).await? {
                below = middle;
            } else {
                above = middle;
            }
        }
        Ok(below)
    }

    async fn is_before(&self, id: ResourceId, seq: i64, place: Place) -> Result<bool, StoreError> {
        let record = self.record_at(id, Seq(seq)).await?;
        Ok(record.is_some_and(|record| Place::new(id, &record) < place))
    }

    /// Returns the record with this number, or the next one that is kept.
    async fn record_at(&self, id: ResourceId, seq: Seq) -> Result<Option<Record>, StoreError> {
        let records = self.store.read_after(id, Seq(seq.0 - 1), 1).await?;
        Ok(records.into_iter().next())
    }
}
