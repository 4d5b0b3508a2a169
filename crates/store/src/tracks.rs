//! Tracks: creates and closes them, and fills their logs.
//!
//! A new version of all tracks is made with every change, in the transaction that makes it. The
//! version is locked until the transaction ends, so versions become visible in their order, and a
//! node that knows all changes up to one has missed none.

mod steps;

use std::collections::{BTreeMap, HashSet};

use chrono::{DateTime, Utc};

use crate::engine::row::Row;
use crate::engine::sql::params;
use crate::engine::tx::Tx;
use crate::log::row::most;
use crate::resources::details;
use crate::resources::row::{resource, resource_columns};
use crate::{Db, Store};
use feedgate_core::collection::PendingCollection;
use feedgate_core::registrant::RegistrantNetwork;
use feedgate_core::resource::{Resource, ResourceId, ResourceKind};
use feedgate_core::status::Status;
use feedgate_core::store::StoreError;
use feedgate_core::track::{ComparedRange, Track, TrackChange, TrackPosition};

/// The bytes of records for tracks that are held at the same time.
pub(crate) const FEW_BYTES: usize = 4 << 20;
/// The most tracks to which one transaction appends.
const FEW: usize = 100;
/// The most tracks that are checked in one transaction.
const BATCH: i64 = 1_000;
/// The most tracks that are forgotten at a time: each may have thousands of records.
const FORGOTTEN: i64 = 10;

/// Whether the log of a track has subscriptions, or had some that may be renewed late.
macro_rules! is_in_use {
    () => {
        "(exists (select 1 from subscriptions s where s.resource_id = resources.id)
          or exists (select 1 from kept_cursors k where k.resource_id = resources.id))"
    };
}
pub(crate) use is_in_use;

/// Tracks: logs that are filled with the entries that match a query.
impl Store {
    /// Returns the log of a track, creating or reopening the track if necessary, for a stranger in the
    /// network `registrant`. It receives what is appended from then on, as soon as it has a
    /// subscription.
    pub async fn open_track(
        &self,
        track: &Track,
        registrant: RegistrantNetwork,
        now: DateTime<Utc>,
    ) -> Result<Resource, StoreError> {
        let opening = TrackOpening { registrant, now };
        if let Some(db) = self.only_cell() {
            return db.open_track(track, opening).await;
        }
        let query = track.key();
        let known = match self.shared.defined_track(&query).await? {
            Some(log) => self.of_number(log.0).touch_track_log(log, opening).await?,
            None => None,
        };
        let log = match known {
            Some(log) => log,
            None => self.of_topic(track.topic.as_str()).make_track_log(track, opening).await?,
        };
        for cell in &self.cells {
            cell.open_tracker().await?;
        }
        self.shared.define_track(&query, log, opening).await?;
        let opened = self.get(log).await?;
        opened.ok_or_else(|| StoreError::Corrupt("a track vanished".to_owned()))
    }

    /// Returns the log of the track with this query, open or not; `None` if there is none.
    pub async fn find_track(&self, query: &str) -> Result<Option<Resource>, StoreError> {
        if let Some(db) = self.only_cell() {
            return db.find_track(query).await;
        }
        match self.shared.defined_track(query).await? {
            Some(log) => self.get(log).await,
            None => Ok(None),
        }
    }

    /// Returns whether the track with this query is open.
    pub async fn is_track_open(&self, query: &str) -> Result<bool, StoreError> {
        const OPEN: &str = "select 1 from tracks where query = $1 and is_open = 1";
        Ok(!self.shared.rows(OPEN, params![query]).await?.is_empty())
    }

    /// Returns how many open tracks strangers had opened last whose networks have one owner with this one, at
    /// most `limit`.
    pub async fn count_open_tracks(
        &self,
        registrant: RegistrantNetwork,
        limit: u64,
    ) -> Result<u64, StoreError> {
        const COUNT: &str = "
            select count(*) from (select 1 from tracks
                                   where registrant_network between $1 and $2 and is_open = 1
                                   limit $3) opened";
        let (first, last) = registrant.of_one_owner();
        let most = i64::try_from(limit).unwrap_or(i64::MAX);
        self.shared.count(COUNT, params![first, last, most]).await
    }

    /// Returns up to `limit` changes of tracks after `after`, in order. Every track has its last
    /// change only. Changes that were committed before are all seen.
    pub async fn track_changes(
        &self,
        after: TrackPosition,
        limit: usize,
    ) -> Result<Vec<TrackChange>, StoreError> {
        const CHANGES: &str = "
            select version, resource_id, is_open, query
              from tracks
             where (version, resource_id) > ($1, $2)
             order by version, resource_id
             limit $3";
        let rows =
            self.shared.rows(CHANGES, params![after.version, after.log.0, most(limit)]).await?;
        let changes = rows.into_iter().map(|mut row| {
            let position = TrackPosition { version: row.int()?, log: ResourceId(row.int()?) };
            let is_open = row.int()? != 0;
            let key = row.text()?;
            Ok(TrackChange { position, key: is_open.then_some(key) })
        });
        changes.collect()
    }

    /// Appends the records of compared ranges to the logs of the tracks that they match, each once,
    /// and advances the cursors of the ranges.
    pub async fn append_tracked(
        &self,
        ranges: Vec<ComparedRange>,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        if let Some(db) = self.only_cell() {
            return db.append_tracked(ranges, now).await;
        }
        let mut tracked: BTreeMap<usize, Vec<PendingCollection>> = BTreeMap::new();
        let mut pending: BTreeMap<usize, Vec<PendingCollection>> = BTreeMap::new();
        let mut bytes = 0;
        for taken in ranges.iter().flat_map(ComparedRange::tracked) {
            bytes += record_bytes(&taken);
            tracked.entry(self.place_of(taken.collection.0)).or_default().push(taken);
            if bytes >= FEW_BYTES {
                bytes = 0;
                for (cell, taken) in std::mem::take(&mut tracked) {
                    self.cells[cell].take_tracked(taken, Vec::new(), now).await?;
                }
            }
        }
        for range in ranges {
            let cell = self.place_of(range.pending.member.id.0);
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

    /// Closes tracks that have no subscriptions, nor had one whose lease ended lately, and were neither
    /// opened nor checked since `before`. Returns how many.
    pub async fn close_unused_tracks(
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
            for (db, logs) in self.by_cell(idle.clone(), |log| *log) {
                used.extend(db.used_logs(logs).await?);
            }
            closed += self.shared.settle_tracks(idle, &used, before, now).await?;
        }
    }

    /// Deletes a batch of tracks that were closed before `before`, with their logs. Returns how
    /// many.
    pub async fn forget_tracks(&self, before: DateTime<Utc>) -> Result<u64, StoreError> {
        let closed = self.shared.closed_tracks(before).await?;
        let mut kept = HashSet::new();
        for (db, logs) in self.by_cell(closed.clone(), |log| *log) {
            kept.extend(db.forget_logs(logs, before).await?);
        }
        let gone = closed.into_iter().filter(|log| !kept.contains(log)).collect();
        self.shared.delete_tracks(gone, before).await
    }
}

/// For whom a track is opened, and when.
#[derive(Clone, Copy, Debug)]
struct TrackOpening {
    registrant: RegistrantNetwork,
    now: DateTime<Utc>,
}

impl Db {
    async fn open_track(
        &self,
        track: &Track,
        opening: TrackOpening,
    ) -> Result<Resource, StoreError> {
        let track = track.clone();
        let opened = self.write(move |tx| {
            Box::pin(async move {
                let query = track.key();
                let known = find_log(tx, &query).await?;
                let log = match known {
                    Some(log) if touch_log(tx, log, opening).await? => log,
                    _ => make_log(tx, &track, opening).await?,
                };
                open_tracker(tx).await?;
                define(tx, &query, log, opening).await?;
                read_log(tx, log).await
            })
        });
        opened.await?.ok_or_else(vanished)
    }

    async fn find_track(&self, query: &str) -> Result<Option<Resource>, StoreError> {
        let query = query.to_owned();
        let found = self.read(move |tx| {
            Box::pin(async move {
                match find_log(tx, &query).await? {
                    Some(log) => read_log(tx, log).await,
                    None => Ok(None),
                }
            })
        });
        found.await
    }

    async fn append_tracked(
        &self,
        ranges: Vec<ComparedRange>,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let (mut tracked, mut bytes) = (Vec::new(), 0);
        for taken in ranges.iter().flat_map(ComparedRange::tracked) {
            bytes += record_bytes(&taken);
            tracked.push(taken);
            if bytes >= FEW_BYTES {
                bytes = 0;
                self.take_tracked(std::mem::take(&mut tracked), Vec::new(), now).await?;
            }
        }
        let pending = ranges.into_iter().map(|range| range.pending).collect();
        self.take_tracked(tracked, pending, now).await
    }
}

/// Returns how many bytes the records of a track have.
pub(crate) fn record_bytes(taken: &PendingCollection) -> usize {
    taken.records.iter().map(|(record, _)| record.atom.len()).sum()
}

async fn find_log(tx: &Tx<'_>, query: &str) -> Result<Option<i64>, StoreError> {
    const FIND: &str = "select resource_id from tracks where query = $1";
    tx.first(FIND, params![query]).await?.map(|mut row| row.int()).transpose()
}

async fn read_log(tx: &Tx<'_>, log: i64) -> Result<Option<Resource>, StoreError> {
    const READ: &str = concat!(
        "select ",
        resource_columns!(),
        " from resources r join resource_details d on d.resource_id = r.id
         where r.id = $1"
    );
    tx.first(READ, params![log]).await?.as_mut().map(resource).transpose()
}

/// Notes that a log is about to be opened, so that it is not deleted. Returns whether it exists.
async fn touch_log(tx: &Tx<'_>, log: i64, opening: TrackOpening) -> Result<bool, StoreError> {
    const TOUCH: &str =
        "update resources set unwatched_since = $2, registrant_network = $3 where id = $1";
    let TrackOpening { registrant, now } = opening;
    Ok(tx.execute(TOUCH, params![log, now, registrant.as_number()]).await? > 0)
}

async fn make_log(
    tx: &Tx<'_>,
    track: &Track,
    TrackOpening { registrant, now }: TrackOpening,
) -> Result<i64, StoreError> {
    // A resource that already has this topic becomes the log.
    const MAKE: &str = "
        insert into resources (topic, fetch_url, host, kind, next_fetch, due_at, measured_at,
                               unwatched_since, registrant_network)
        values ($1, $1, '', $2, $3, $3, $3, $3, $4)
            on conflict (topic) do update
           set kind = excluded.kind, subscribers = 0, poll_times = '',
               unwatched_since = excluded.unwatched_since,
               registrant_network = excluded.registrant_network
        returning id";
    let (topic, kind) = (track.topic.as_str(), ResourceKind::Collection.as_str());
    let params = params![topic, kind, now, registrant.as_number()];
    let id = tx.first(MAKE, params).await?.ok_or_else(vanished)?.int()?;
    let status = Status { http_code: 200, title: track.title(), ..Status::new(now) };
    details::make(tx, id, &status).await?;
    Ok(id)
}

async fn open_tracker(tx: &Tx<'_>) -> Result<(), StoreError> {
    const OPEN: &str = "
        insert into collections (resource_id, name) values (0, 'track') on conflict do nothing";
    tx.execute(OPEN, &[]).await.map(drop)
}

async fn define(
    tx: &Tx<'_>,
    query: &str,
    log: i64,
    TrackOpening { registrant, now }: TrackOpening,
) -> Result<(), StoreError> {
    const RENEW: &str = "
        update tracks set checked_at = $3
         where query = $1 and resource_id = $2 and is_open = 1";
    const DEFINE: &str = "
        insert into tracks (resource_id, query, version, checked_at, registrant_network)
        values ($1, $2, $3, $4, $5)
            on conflict (query) do update
           set resource_id = excluded.resource_id, is_open = 1, version = excluded.version,
               checked_at = excluded.checked_at,
               registrant_network = excluded.registrant_network";
    if tx.execute(RENEW, params![query, log, now]).await? > 0 {
        return Ok(());
    }
    let version = next_version(tx).await?;
    let params = params![log, query, version, now, registrant.as_number()];
    tx.execute(DEFINE, params).await.map(drop)
}

/// Returns the next version of all tracks, which is locked until the transaction ends.
async fn next_version(tx: &Tx<'_>) -> Result<i64, StoreError> {
    const NEXT: &str = "
        insert into control_values (name, value) values ('track_version', 1)
            on conflict (name) do update set value = control_values.value + 1
        returning value";
    tx.first(NEXT, &[]).await?.ok_or_else(vanished)?.int()
}

fn numbers(rows: Vec<Row>) -> Result<Vec<i64>, StoreError> {
    rows.into_iter().map(|mut row| row.int()).collect()
}

fn vanished() -> StoreError {
    StoreError::Corrupt("a track vanished".to_owned())
}
