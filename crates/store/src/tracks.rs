//! Tracks: creates and closes them, and fills their logs.
//!
//! A new version of all tracks is made with every change, in the transaction that makes it. The
//! version is locked until the transaction ends, so versions become visible in their order, and a
//! node that knows all changes up to one has missed none.

use std::collections::HashSet;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use crate::Db;
use crate::collections::collecting;
use crate::engine::row::Row;
use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
use crate::log::row::most;
use crate::resources::row::{self, resource, resource_columns};
use crate::resources::{details, forget};
use feedgate_core::collection::PendingCollection;
use feedgate_core::ports::{StoreError, Tracks};
use feedgate_core::resource::{Resource, ResourceId, ResourceKind};
use feedgate_core::status::Status;
use feedgate_core::track::{ComparedRange, Track, TrackChange, TrackPosition};

/// The bytes of records for tracks that are held at the same time.
pub(crate) const FEW_BYTES: usize = 4 << 20;
/// The most tracks to which one transaction appends.
const FEW: usize = 100;
/// The most tracks that are checked in one transaction.
const BATCH: i64 = 1_000;
/// The most tracks that are forgotten at a time: each may have thousands of records.
const FORGOTTEN: i64 = 10;

#[async_trait]
impl Tracks for Db {
    async fn open_track(&self, track: &Track, now: DateTime<Utc>) -> Result<Resource, StoreError> {
        let track = track.clone();
        let opened = self.write(move |tx| {
            Box::pin(async move {
                let query = track.key();
                let known = find_log(tx, &query).await?;
                let log = match known {
                    Some(log) if touch_log(tx, log, now).await? => log,
                    _ => make_log(tx, &track, now).await?,
                };
                open_tracker(tx).await?;
                define(tx, &query, log, now).await?;
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

    async fn track_changes(
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
        let rows = self.rows(CHANGES, params![after.version, after.log.0, most(limit)]).await?;
        let changes = rows.into_iter().map(|mut row| {
            let position = TrackPosition { version: row.int()?, log: ResourceId(row.int()?) };
            let is_open = row.int()? != 0;
            let key = row.text()?;
            Ok(TrackChange { position, key: is_open.then_some(key) })
        });
        changes.collect()
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

    async fn close_unused_tracks(
        &self,
        before: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<u64, StoreError> {
        let mut closed = 0;
        loop {
            let idle = self.unchecked_tracks(before).await?;
            if idle.is_empty() {
                return Ok(closed);
            }
            let used = self.subscribed_logs(idle.clone()).await?;
            closed += self.settle_tracks(idle, &used, before, now).await?;
        }
    }

    async fn forget_tracks(&self, before: DateTime<Utc>) -> Result<u64, StoreError> {
        let closed = self.closed_tracks(before).await?;
        let kept = self.forget_logs(closed.clone(), before).await?;
        let gone = closed.into_iter().filter(|log| !kept.contains(log)).collect();
        self.delete_tracks(gone, before).await
    }
}

/// Returns how many bytes the records of a track have.
pub(crate) fn record_bytes(taken: &PendingCollection) -> usize {
    taken.records.iter().map(|(record, _)| record.atom.len()).sum()
}

/// The steps of these operations. In a store of several cells, each runs in the shared schema or in
/// the cell of a log.
impl Db {
    /// Appends `tracked` to the logs of tracks in this database, and advances the cursors `pending`
    /// of resources in it, at the end.
    pub(crate) async fn take_tracked(
        &self,
        mut tracked: Vec<PendingCollection>,
        pending: Vec<PendingCollection>,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let (cut, budget) = (self.cut, Some(self.append_budget));
        tracked.sort_by_key(|taken| taken.collection);
        while tracked.len() > FEW {
            let rest = tracked.split_off(FEW);
            let some = std::mem::replace(&mut tracked, rest);
            let taken = self.write(move |tx| {
                Box::pin(async move { collecting::take_in_once(tx, &cut, budget, some, now).await })
            });
            taken.await?;
        }
        self.write(move |tx| {
            Box::pin(async move {
                let logs = tracked.iter().map(|taken| taken.collection.0);
                let members = pending.iter().map(|pending| pending.member.id.0);
                row::lock(tx, logs.chain(members).collect()).await?;
                collecting::take_in_once(tx, &cut, budget, tracked, now).await?;
                collecting::advance(tx, pending, now).await
            })
        })
        .await
    }

    /// Returns the log of a track whose definition is here.
    pub(crate) async fn defined_track(
        &self,
        query: &str,
    ) -> Result<Option<ResourceId>, StoreError> {
        let query = query.to_owned();
        let found = self.read(move |tx| Box::pin(async move { find_log(tx, &query).await }));
        Ok(found.await?.map(ResourceId))
    }

    /// Prepares a log in this cell for a track that is about to be opened. Returns `None` if it is
    /// gone.
    pub(crate) async fn touch_track_log(
        &self,
        log: ResourceId,
        now: DateTime<Utc>,
    ) -> Result<Option<ResourceId>, StoreError> {
        let touched =
            self.write(move |tx| Box::pin(async move { touch_log(tx, log.0, now).await }));
        Ok(touched.await?.then_some(log))
    }

    /// Makes the log of a track in this cell, if there is none.
    pub(crate) async fn make_track_log(
        &self,
        track: &Track,
        now: DateTime<Utc>,
    ) -> Result<ResourceId, StoreError> {
        let track = track.clone();
        let made = self.write(move |tx| Box::pin(async move { make_log(tx, &track, now).await }));
        made.await.map(ResourceId)
    }

    /// Lets the resources of this cell have cursors for tracks.
    pub(crate) async fn open_tracker(&self) -> Result<(), StoreError> {
        self.write(|tx| Box::pin(open_tracker(tx))).await
    }

    /// Stores that a track is open.
    pub(crate) async fn define_track(
        &self,
        query: &str,
        log: ResourceId,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let query = query.to_owned();
        self.write(move |tx| Box::pin(async move { define(tx, &query, log.0, now).await })).await
    }

    /// Returns some open tracks that were not checked since `before`.
    pub(crate) async fn unchecked_tracks(
        &self,
        before: DateTime<Utc>,
    ) -> Result<Vec<i64>, StoreError> {
        const UNCHECKED: &str = "
            select resource_id from tracks
             where is_open = 1 and checked_at < $1
             order by checked_at
             limit $2";
        numbers(self.rows(UNCHECKED, params![before, BATCH]).await?)
    }

    /// Returns those of these logs that have subscriptions.
    pub(crate) async fn subscribed_logs(&self, logs: Vec<i64>) -> Result<HashSet<i64>, StoreError> {
        const SUBSCRIBED: &str = "
            select id from resources
             where id in ({ids $1})
               and exists (select 1 from subscriptions s where s.resource_id = resources.id)";
        Ok(numbers(self.rows(SUBSCRIBED, &[Value::Ints(logs)]).await?)?.into_iter().collect())
    }

    /// Notes that these tracks were checked, and closes those that are not used. Returns how many it
    /// closed.
    pub(crate) async fn settle_tracks(
        &self,
        checked: Vec<i64>,
        used: &HashSet<i64>,
        before: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<u64, StoreError> {
        // With `+`, SQLite finds the rows by their numbers, and not by the index of the others.
        const USED: &str = "
            update tracks set checked_at = $1
             where resource_id in ({ids $2}) and {sqlite +}is_open = 1";
        const CLOSE: &str = "
            update tracks set is_open = 0, version = $1, checked_at = $2
             where resource_id in ({ids $3}) and {sqlite +}is_open = 1 and checked_at < $4";
        let (used, unused): (Vec<i64>, Vec<i64>) =
            checked.into_iter().partition(|log| used.contains(log));
        self.write(move |tx| {
            Box::pin(async move {
                tx.execute(USED, &[Value::from(now), Value::Ints(used)]).await?;
                if unused.is_empty() {
                    return Ok(0);
                }
                let version = next_version(tx).await?;
                let params = params![version, now, Value::Ints(unused), before];
                tx.execute(CLOSE, params).await
            })
        })
        .await
    }

    /// Returns some tracks that were closed before `before`.
    pub(crate) async fn closed_tracks(
        &self,
        before: DateTime<Utc>,
    ) -> Result<Vec<i64>, StoreError> {
        const CLOSED: &str = "
            select resource_id from tracks
             where is_open = 0 and checked_at < $1
             order by checked_at
             limit $2";
        numbers(self.rows(CLOSED, params![before, FORGOTTEN]).await?)
    }

    /// Deletes these logs, except those that have subscriptions or were about to be opened since
    /// `before`. Returns which are left.
    pub(crate) async fn forget_logs(
        &self,
        logs: Vec<i64>,
        before: DateTime<Utc>,
    ) -> Result<HashSet<i64>, StoreError> {
        const UNUSED: &str = "
            select id from resources
             where id in ({ids $1}) and kind = 'collection' and unwatched_since < $2
               and not exists (select 1 from subscriptions s where s.resource_id = resources.id)";
        const LEFT: &str = "select id from resources where id in ({ids $1})";
        self.write(move |tx| {
            Box::pin(async move {
                row::lock(tx, logs.clone()).await?;
                let params = [Value::Ints(logs.clone()), Value::from(before)];
                let unused = numbers(tx.query(UNUSED, &params).await?)?;
                if !unused.is_empty() {
                    forget::delete_rows(tx, unused).await?;
                }
                Ok(numbers(tx.query(LEFT, &[Value::Ints(logs)]).await?)?.into_iter().collect())
            })
        })
        .await
    }

    /// Deletes the definitions of these tracks, unless they were opened meanwhile.
    pub(crate) async fn delete_tracks(
        &self,
        logs: Vec<i64>,
        before: DateTime<Utc>,
    ) -> Result<u64, StoreError> {
        const DELETE: &str = "
            delete from tracks
             where resource_id in ({ids $1}) and {sqlite +}is_open = 0 and checked_at < $2";
        let deleted = self.write(move |tx| {
            Box::pin(
                async move { tx.execute(DELETE, &[Value::Ints(logs), Value::from(before)]).await },
            )
        });
        deleted.await
    }
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
async fn touch_log(tx: &Tx<'_>, log: i64, now: DateTime<Utc>) -> Result<bool, StoreError> {
    const TOUCH: &str = "update resources set unwatched_since = $2 where id = $1";
    Ok(tx.execute(TOUCH, params![log, now]).await? > 0)
}

async fn make_log(tx: &Tx<'_>, track: &Track, now: DateTime<Utc>) -> Result<i64, StoreError> {
    // A resource that already has this topic becomes the log.
    const MAKE: &str = "
        insert into resources (topic, fetch_url, host, kind, next_fetch, due_at, measured_at,
                               unwatched_since)
        values ($1, $1, '', $2, $3, $3, $3, $3)
            on conflict (topic) do update
           set kind = excluded.kind, subscribers = 0, poll_times = '',
               unwatched_since = excluded.unwatched_since
        returning id";
    let params = params![track.topic.as_str(), ResourceKind::Collection.as_str(), now];
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

async fn define(tx: &Tx<'_>, query: &str, log: i64, now: DateTime<Utc>) -> Result<(), StoreError> {
    const RENEW: &str = "
        update tracks set checked_at = $3
         where query = $1 and resource_id = $2 and is_open = 1";
    const DEFINE: &str = "
        insert into tracks (resource_id, query, version, checked_at) values ($1, $2, $3, $4)
            on conflict (query) do update
           set resource_id = excluded.resource_id, is_open = 1, version = excluded.version,
               checked_at = excluded.checked_at";
    if tx.execute(RENEW, params![query, log, now]).await? > 0 {
        return Ok(());
    }
    let version = next_version(tx).await?;
    tx.execute(DEFINE, params![log, query, version, now]).await.map(drop)
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
