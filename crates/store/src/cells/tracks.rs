//! Tracks: the definitions are in the shared schema; the log of a track is in the cell of its topic.
//!
//! A track is defined after every cell has begun to have cursors for tracks, so that it misses
//! nothing. Records of one resource go to tracks in several cells: each cell stores how far a track
//! has taken them, and the cursor moves at the end, in the cell of the resource. If that does not
//! happen, the next attempt takes only what comes after.

use std::collections::{BTreeMap, HashSet};

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use crate::cells::Cells;
use crate::cells::numbers::cell_of_number;
use crate::tracks::{FEW_BYTES, record_bytes};
use feedgate_core::collection::PendingCollection;
use feedgate_core::ports::{Resources, StoreError, Tracks};
use feedgate_core::resource::Resource;
use feedgate_core::track::{ComparedRange, Track, TrackChange, TrackPosition};

#[async_trait]
impl Tracks for Cells {
    async fn open_track(&self, track: &Track, now: DateTime<Utc>) -> Result<Resource, StoreError> {
        let query = track.key();
        let known = match self.shared.defined_track(&query).await? {
            Some(log) => self.of_number(log.0).touch_track_log(log, now).await?,
            None => None,
        };
        let log = match known {
            Some(log) => log,
            None => self.of_topic(track.topic.as_str()).make_track_log(track, now).await?,
        };
        for cell in &self.cells {
            cell.open_tracker().await?;
        }
        self.shared.define_track(&query, log, now).await?;
        let opened = self.get(log).await?;
        opened.ok_or_else(|| StoreError::Corrupt("a track vanished".to_owned()))
    }

    async fn find_track(&self, query: &str) -> Result<Option<Resource>, StoreError> {
        match self.shared.defined_track(query).await? {
            Some(log) => self.get(log).await,
            None => Ok(None),
        }
    }

    async fn track_changes(
        &self,
        after: TrackPosition,
        limit: usize,
    ) -> Result<Vec<TrackChange>, StoreError> {
        self.shared.track_changes(after, limit).await
    }

    async fn append_tracked(
        &self,
        ranges: Vec<ComparedRange>,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let mut tracked: BTreeMap<usize, Vec<PendingCollection>> = BTreeMap::new();
        let mut pending: BTreeMap<usize, Vec<PendingCollection>> = BTreeMap::new();
        let mut bytes = 0;
        for taken in ranges.iter().flat_map(ComparedRange::tracked) {
            bytes += record_bytes(&taken);
            tracked.entry(cell_of_number(taken.collection.0)).or_default().push(taken);
            if bytes >= FEW_BYTES {
                bytes = 0;
                for (cell, taken) in std::mem::take(&mut tracked) {
                    self.cells[cell].take_tracked(taken, Vec::new(), now).await?;
                }
            }
        }
        for range in ranges {
            let cell = cell_of_number(range.pending.member.id.0);
            pending.entry(cell).or_default().push(range.pending);
        }
        for (cell, taken) in tracked {
            self.cells[cell].take_tracked(taken, Vec::new(), now).await?;
        }
        for (cell, done) in pending {
            self.cells[cell].take_tracked(Vec::new(), done, now).await?;
        }
        Ok(())
    }

    async fn close_unused_tracks(
        &self,
        before: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<u64, StoreError> {
        let mut closed = 0;
        loop {
            let idle = self.shared.unchecked_tracks(before).await?;
            if idle.is_empty() {
                return Ok(closed);
            }
            let mut used = HashSet::new();
            for (cell, logs) in self.cells.iter().zip(self.by_cell(idle.clone(), |log| *log)) {
                used.extend(cell.subscribed_logs(logs).await?);
            }
            closed += self.shared.settle_tracks(idle, &used, before, now).await?;
        }
    }

    async fn forget_tracks(&self, before: DateTime<Utc>) -> Result<u64, StoreError> {
        let closed = self.shared.closed_tracks(before).await?;
        let mut kept = HashSet::new();
        for (cell, logs) in self.cells.iter().zip(self.by_cell(closed.clone(), |log| *log)) {
            kept.extend(cell.forget_logs(logs, before).await?);
        }
        let gone = closed.into_iter().filter(|log| !kept.contains(log)).collect();
        self.shared.delete_tracks(gone, before).await
    }
}
