//! The steps of the operations on tracks. If there are several cells, each runs in the shared database or in
//! the cell of a log.

use std::collections::HashSet;

use chrono::{DateTime, Utc};

use super::{
    BATCH, FEW, FORGOTTEN, TrackOpening, define, find_log, make_log, next_version, numbers,
    open_tracker, touch_log,
};
use crate::Db;
use crate::collections::collecting;
use crate::engine::sql::{Value, params};
use crate::engine::sqlite::WriteSize;
use crate::engine::tx::Tx;
use crate::resources::{forget, row};
use crate::tracks::is_in_use;
use feedgate_core::collection::PendingCollection;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::StoreError;
use feedgate_core::track::Track;

impl Db {
    /// Appends `tracked` to the logs of tracks in this database, and advances the cursors `pending`
    /// of resources in it, at the end.
    pub(super) async fn take_tracked(
        &self,
        mut tracked: Vec<PendingCollection>,
        pending: Vec<PendingCollection>,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let (page_limits, budget) = (self.page_limits, Some(self.append_budget));
        tracked.sort_by_key(|taken| taken.collection);
        while tracked.len() > FEW {
            let rest = tracked.split_off(FEW);
            let some = std::mem::replace(&mut tracked, rest);
            let taken = self.write(move |tx| {
                Box::pin(async move {
                    collecting::take_in_once(tx, &page_limits, budget, some, now).await
                })
            });
            taken.await?;
        }
        self.write(move |tx| {
            Box::pin(async move {
                let logs = tracked.iter().map(|taken| taken.collection.0);
                let members = pending.iter().map(|pending| pending.member.id.0);
                row::lock(tx, logs.chain(members).collect()).await?;
                collecting::take_in_once(tx, &page_limits, budget, tracked, now).await?;
                collecting::advance(tx, pending, now).await
            })
        })
        .await
    }

    /// Returns the log of a track whose definition is here.
    pub(super) async fn defined_track(
        &self,
        query: &str,
    ) -> Result<Option<ResourceId>, StoreError> {
        let query = query.to_owned();
        let found = self.read(move |tx| Box::pin(async move { find_log(tx, &query).await }));
        Ok(found.await?.map(ResourceId))
    }

    /// Prepares a log in this cell for a track that is about to be opened. Returns `None` if it is
    /// gone.
    pub(super) async fn touch_track_log(
        &self,
        log: ResourceId,
        opening: TrackOpening,
    ) -> Result<Option<ResourceId>, StoreError> {
        let touched =
            self.write(move |tx| Box::pin(async move { touch_log(tx, log.0, opening).await }));
        Ok(touched.await?.then_some(log))
    }

    /// Makes the log of a track in this cell, if there is none.
    pub(super) async fn make_track_log(
        &self,
        track: &Track,
        opening: TrackOpening,
    ) -> Result<ResourceId, StoreError> {
        let track = track.clone();
        let made =
            self.write(move |tx| Box::pin(async move { make_log(tx, &track, opening).await }));
        made.await.map(ResourceId)
    }

    /// Lets the resources of this cell have cursors for tracks.
    pub(super) async fn open_tracker(&self) -> Result<(), StoreError> {
        self.write(|tx| Box::pin(open_tracker(tx))).await
    }

    /// Stores that a track is open.
    pub(super) async fn define_track(
        &self,
        query: &str,
        log: ResourceId,
        opening: TrackOpening,
    ) -> Result<(), StoreError> {
        let query = query.to_owned();
        self.write(move |tx| Box::pin(async move { define(tx, &query, log.0, opening).await }))
            .await
    }

    /// Returns some open tracks that were not checked since `before`.
    pub(super) async fn unchecked_tracks(
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

    /// Returns those of these logs that have subscriptions, or had some that may be renewed late.
    pub(super) async fn used_logs(&self, logs: Vec<i64>) -> Result<HashSet<i64>, StoreError> {
        const IN_USE: &str =
            concat!("select id from resources where id in ({ids $1}) and ", is_in_use!());
        Ok(numbers(self.rows(IN_USE, &[Value::Ints(logs)]).await?)?.into_iter().collect())
    }

    /// Notes that these tracks were checked, and closes those that are not used. Returns how many it
    /// closed.
    pub(super) async fn settle_tracks(
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
    pub(super) async fn closed_tracks(
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
    /// `before`, a part of one in each transaction. Returns which are left.
    pub(super) async fn forget_logs(
        &self,
        logs: Vec<i64>,
        before: DateTime<Utc>,
    ) -> Result<HashSet<i64>, StoreError> {
        const LEFT: &str = "select id from resources where id in ({ids $1})";
        for log in logs.iter().copied() {
            let mut has_more = true;
            while has_more {
                let forget = self.write_sized(WriteSize::Large, move |tx| {
                    Box::pin(forget_part(tx, log, before))
                });
                has_more = forget.await?;
            }
        }
        Ok(numbers(self.rows(LEFT, &[Value::Ints(logs)]).await?)?.into_iter().collect())
    }

    /// Deletes the definitions of these tracks, unless they were opened meanwhile.
    pub(super) async fn delete_tracks(
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

/// Deletes a part of a log, or the log if no more is left of it, unless it has subscriptions or was about
/// to be opened since `before`. Returns whether there is more to delete.
async fn forget_part(tx: &Tx<'_>, log: i64, before: DateTime<Utc>) -> Result<bool, StoreError> {
    const UNUSED: &str = "
        select 1 from resources
         where id = $1 and kind = 'collection' and unwatched_since < $2
           and not exists (select 1 from subscriptions s where s.resource_id = resources.id)";
    row::lock(tx, vec![log]).await?;
    if tx.first(UNUSED, params![log, before]).await?.is_none() {
        return Ok(false);
    }
    if forget::delete_part(tx, log).await? {
        return Ok(true);
    }
    forget::delete_rows(tx, vec![log]).await?;
    Ok(false)
}
