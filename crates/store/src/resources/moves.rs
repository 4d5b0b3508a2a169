//! The fetch addresses of resources, as opposed to their topics: permanent moves, their log, and
//! undoing one (rules P20, P21).

use chrono::{DateTime, Utc};
use url::Url;

use crate::Store;
use crate::changes::pings;
use crate::engine::row::Row;
use crate::engine::sql::params;
use crate::engine::tx::{Tx, Wake};
use crate::resources::details;
use feedgate_core::host_groups::HostGroups;
use feedgate_core::moves::{Move, RedirectSighting};
use feedgate_core::poll::Polling;
use feedgate_core::resource::ResourceId;
use feedgate_core::store::StoreError;

/// The fetch URLs that resources had before (P20).
impl Store {
    /// Returns the moves of a resource, newest first.
    pub async fn moves(&self, id: ResourceId) -> Result<Vec<Move>, StoreError> {
        let db = self.of_number(id.0);
        const MOVES: &str = "
            select id, at, from_url, to_url, undone_at from moves
             where resource_id = $1 order by id desc";
        let rows = db.rows(MOVES, params![id.0]).await?;
        rows.into_iter().map(|mut row| read(&mut row)).collect()
    }

    /// Reverts a move that is in effect; `false` if there is none with this number. The resource
    /// becomes due at its old address, and is not moved to the same target again.
    pub async fn undo_move(
        &self,
        id: ResourceId,
        number: i64,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let db = self.of_number(id.0);
        let groups = db.groups.clone();
        db.write(move |tx| Box::pin(async move { undo(tx, &groups, (id, number), now).await }))
            .await
    }
}

fn read(row: &mut Row) -> Result<Move, StoreError> {
    Ok(Move {
        number: row.int()?,
        at: row.time()?,
        from: row.text()?,
        to: row.text()?,
        undone_at: row.opt_time()?,
    })
}

/// Sets `url` as the fetch address of the resource, whose row is locked.
pub(crate) async fn move_to(
    tx: &Tx<'_>,
    groups: &HostGroups,
    id: ResourceId,
    (url, at): (&str, DateTime<Utc>),
) -> Result<(), StoreError> {
    const OLD: &str = "select fetch_url from resources where id = $1 and fetch_url <> $2";
    const KEEP: &str = "
        insert into moves (resource_id, at, from_url, to_url) values ($1, $2, $3, $4)";
    let Some(mut old) = tx.first(OLD, params![id.0, url]).await? else { return Ok(()) };
    tx.execute(KEEP, params![id.0, at, old.text()?, url]).await?;
    fetch_at(tx, groups, id, (url, Some(at))).await
}

async fn fetch_at(
    tx: &Tx<'_>,
    groups: &HostGroups,
    id: ResourceId,
    (url, moved_at): (&str, Option<DateTime<Utc>>),
) -> Result<(), StoreError> {
    const MOVE: &str =
        "update resources set fetch_url = $2, host = $3, moved_at = $4 where id = $1";
    let group = Url::parse(url).map(|url| groups.name(&url)).unwrap_or_default();
    tx.execute(MOVE, params![id.0, url, group, moved_at]).await?;
    pings::name(tx, id, "fetch", url).await
}

/// Undoes a move that is still in effect: the resource is fetched at its old address, at once, and
/// not moved to that place again automatically.
async fn undo(
    tx: &Tx<'_>,
    groups: &HostGroups,
    (id, number): (ResourceId, i64),
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    const LOCK: &str = "select fetch_url from resources where id = $1 {for update}";
    const REMEMBERED: &str = "select polling from resource_details where resource_id = $1";
    const FIND: &str = "
        select id, at, from_url, to_url, undone_at from moves
         where resource_id = $1 and id = $2";
    const UNDO: &str = "update moves set undone_at = $3 where resource_id = $1 and id = $2";
    const REMEMBER: &str = "update resource_details set polling = $2 where resource_id = $1";
    const DUE: &str = "
        update resources
           set next_fetch = $2,
               due_at = case when claimed_until > $2 then due_at else cast($2 as bigint) end
         where id = $1";
    let Some(mut row) = tx.first(LOCK, params![id.0]).await? else { return Ok(false) };
    let fetch_url = row.text()?;
    let Some(mut row) = tx.first(FIND, params![id.0, number]).await? else { return Ok(false) };
    let undone = read(&mut row)?;
    if undone.undone_at.is_some() || undone.to != fetch_url {
        return Ok(false);
    }
    tx.execute(UNDO, params![id.0, number, now]).await?;
    fetch_at(tx, groups, id, (&undone.from, None)).await?;
    if let Some(mut row) = tx.first(REMEMBERED, params![id.0]).await? {
        let mut polling: Polling = row.json()?;
        polling.moved = Some(RedirectSighting::undone(polling.moved.as_ref(), undone.to));
        tx.execute(REMEMBER, params![id.0, details::json(&polling)]).await?;
    }
    tx.execute(DUE, params![id.0, now]).await?;
    tx.wake(Wake::Resources);
    Ok(true)
}
