//! The port of tracks.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::StoreError;
use crate::resource::Resource;
use crate::track::{ComparedRange, Track, TrackChange, TrackPosition};

/// Tracks: logs that are filled with the entries that match a query.
#[async_trait]
pub trait Tracks: Send + Sync {
    /// Returns the log of a track, creating or reopening the track if necessary. It receives what is
    /// appended from then on.
    async fn open_track(&self, track: &Track, now: DateTime<Utc>) -> Result<Resource, StoreError>;

    /// Returns the log of the track with this query, open or not; `None` if there is none.
    async fn find_track(&self, query: &str) -> Result<Option<Resource>, StoreError>;

    /// Returns up to `limit` changes of tracks after `after`, in order. Every track has its last
    /// change only. Changes that were committed before are all seen.
    async fn track_changes(
        &self,
        after: TrackPosition,
        limit: usize,
    ) -> Result<Vec<TrackChange>, StoreError>;

    /// Appends the records of compared ranges to the logs of the tracks that they match, each once,
    /// and advances the cursors of the ranges.
    async fn append_tracked(
        &self,
        ranges: Vec<ComparedRange>,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError>;

    /// Closes tracks without subscriptions that were neither opened nor checked since `before`.
    /// Returns how many.
    async fn close_unused_tracks(
        &self,
        before: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<u64, StoreError>;

    /// Deletes a batch of tracks that were closed before `before`, with their logs. Returns how
    /// many.
    async fn forget_tracks(&self, before: DateTime<Utc>) -> Result<u64, StoreError>;
}
