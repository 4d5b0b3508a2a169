//! Rows of resources: their columns, reading and locking them.

use crate::engine::row::Row;
use crate::engine::sql::Value;
use crate::engine::tx::Tx;
use crate::resources::details;
use feedgate_core::record::Seq;
use feedgate_core::resource::{Resource, ResourceId, ResourceKind};
use feedgate_core::store::StoreError;
use feedgate_core::topic::Topic;
use feedgate_core::visibility::{Exposure, SourceNetwork};

/// The columns of a resource `r`, as [`exposure`] reads them. For `exists`, PostgreSQL would prefer to read the
/// subscriptions of all resources at once if it expects few.
macro_rules! exposure_columns {
    () => {
        "r.source_network,
         coalesce((select 1 from subscriptions o
                    where o.resource_id = r.id and o.account_id = 0 limit 1), 0)"
    };
}
pub(crate) use exposure_columns;

/// The columns of a resource `r` with its details `d`, as [`resource`] reads them.
macro_rules! resource_columns {
    () => {
        concat!(
            "r.id, r.topic, r.fetch_url, r.kind, r.head, r.body_version, d.feed_head,
         r.next_fetch, d.status, d.polling, r.poll_times, r.subscribers,
         (select u.lease_until
            from upstreams u
           where u.resource_id = r.id and u.state = 'active' and u.is_trusted = 1),
         r.delay_reason, r.left_alone_until, ",
            $crate::resources::row::exposure_columns!()
        )
    };
}
pub(crate) use resource_columns;

/// Locks resources for writing, in the order that all transactions that lock several follow.
pub(crate) async fn lock(tx: &Tx<'_>, mut ids: Vec<i64>) -> Result<(), StoreError> {
    const LOCK: &str = "select id from resources where id in ({ids $1}) order by id {for update}";
    ids.sort_unstable();
    ids.dedup();
    tx.query(LOCK, &[Value::Ints(ids)]).await.map(drop)
}

/// Locks resources in share mode, in the order of [`lock`]: nobody appends to them meanwhile.
pub(crate) async fn lock_shared(tx: &Tx<'_>, ids: Vec<i64>) -> Result<(), StoreError> {
    const LOCK: &str = "select id from resources where id in ({ids $1}) order by id {for share}";
    tx.query(LOCK, &[Value::Ints(ids)]).await.map(drop)
}

/// Locks those of the resources that no other transaction has locked, in the order of [`lock`].
/// Returns their numbers.
pub(crate) async fn lock_unless_locked(tx: &Tx<'_>, ids: Vec<i64>) -> Result<Vec<i64>, StoreError> {
    const LOCK_FREE: &str =
        "select id from resources where id in ({ids $1}) order by id {skip locked}";
    let locked = tx.query(LOCK_FREE, &[Value::Ints(ids)]).await?;
    locked.into_iter().map(|mut row| row.int()).collect()
}

/// Reads `resource_columns!`. For a resource that was delayed since its last poll, the reason and
/// the time of the delay replace those of the poll.
pub(crate) fn resource(row: &mut Row) -> Result<Resource, StoreError> {
    let (id, topic) = (ResourceId(row.int()?), topic(row)?);
    let (fetch_url, kind) = (row.text()?, row.word(ResourceKind::from_word)?);
    let (head, body_version, feed_head) = (Seq(row.int()?), row.int()?, row.text()?);
    let next_fetch = row.time()?;
    let (mut status, mut polling) = details::read(row)?;
    polling.planned_at = status.next_fetch;
    let (subscribers, pushed_until) = (row.small()?, row.opt_time()?);
    if let Some(why) = row.opt_text()? {
        status.next_fetch = Some(next_fetch);
        status.period_reason = why;
    }
    polling.left_alone_until = row.opt_time()?;
    let exposure = exposure(row)?;
    #[rustfmt::skip]
    let resource = Resource {
        id, topic, fetch_url, kind, head, body_version, feed_head, next_fetch, status, polling,
        subscribers, pushed_until, exposure,
    };
    Ok(resource)
}

/// Reads `exposure_columns!`.
pub(crate) fn exposure(row: &mut Row) -> Result<Exposure, StoreError> {
    Ok(Exposure {
        source_network: SourceNetwork::from_number(row.int()?),
        is_open: row.int()? != 0,
    })
}

/// Reads a topic.
pub(crate) fn topic(row: &mut Row) -> Result<Topic, StoreError> {
    Topic::from_stored(row.text()?).map_err(|err| StoreError::Corrupt(err.to_string()))
}
