//! The names by which people find feeds: stored when a resource is made, and when its title changes.
//!
//! A collection has none: no list contains it. Of resources from before there were names, a maintenance
//! task stores them ([`Store::index_names`]).

use std::collections::HashMap;

use chrono::{DateTime, Utc};

use crate::engine::sql::{Value, params};
use crate::engine::sqlite::WriteSize;
use crate::engine::tx::Tx;
use crate::resources::{details, row};
use crate::{Db, Store};
use feedgate_core::feed_name::FeedName;
use feedgate_core::store::StoreError;
use feedgate_core::topic::Topic;

/// The resources that get their names in one transaction.
const BATCH: i64 = 250;
/// What is stored when all resources have their names.
const COMPLETE: &str = "complete";

/// Names of feeds.
impl Store {
    /// Stores the names of a batch of resources from before names were stored. Returns how many, 0 if all
    /// have theirs.
    pub async fn index_names(&self) -> Result<u64, StoreError> {
        self.sum(Db::index_names).await
    }
}

impl Db {
    async fn index_names(&self) -> Result<u64, StoreError> {
        const STATE: &str = "select value from database_properties where name = 'names'";
        let state = self.rows(STATE, &[]).await?;
        let state = state.into_iter().next().map(|mut row| row.text()).transpose()?;
        match state.and_then(|state| state.parse().ok()) {
            Some(after) => {
                self.write_sized(WriteSize::Large, move |tx| Box::pin(index_after(tx, after))).await
            }
            None => Ok(0),
        }
    }
}

/// Stores the names of some resources after `after`.
async fn index_after(tx: &Tx<'_>, after: i64) -> Result<u64, StoreError> {
    const NEXT: &str = "select id from resources where id > $1 order by id limit $2";
    const NAMED: &str = "
        select r.id, r.topic, d.status, d.polling, r.poll_times from resources r
          join resource_details d on d.resource_id = r.id
         where r.id in ({ids $1}) and r.kind <> 'collection'";
    const SAVE: &str = "update database_properties set value = $1 where name = 'names'";
    let next = tx.query(NEXT, params![after, BATCH]).await?;
    let next = next.into_iter().map(|mut row| row.int()).collect::<Result<Vec<_>, StoreError>>()?;
    let Some(last) = next.last().copied() else {
        tx.execute(SAVE, params![COMPLETE]).await?;
        return Ok(0);
    };
    row::lock(tx, next.clone()).await?;
    let count = next.len() as u64;
    let mut names = Vec::new();
    for mut row in tx.query(NAMED, &[Value::Ints(next)]).await? {
        let (id, topic) = (row.int()?, row::topic(&mut row)?);
        let (status, polling) = details::read(&mut row)?;
        let listed = ListedDetails { title: &status.title, last_new: polling.last_new };
        names.push((id, StoredName::new(&topic, listed)));
    }
    replace(tx, names).await?;
    tx.execute(SAVE, params![last.to_string()]).await?;
    Ok(count)
}

/// What lists have of the details of a feed.
#[derive(Clone, Copy, Default)]
pub(crate) struct ListedDetails<'d> {
    pub(crate) title: &'d str,
    /// When its newest entry came.
    pub(crate) last_new: Option<DateTime<Utc>>,
}

/// The names of a feed, and the time by which it is ordered.
struct StoredName {
    name: FeedName,
    /// As in the column.
    last_new: i64,
}

impl StoredName {
    fn new(topic: &Topic, details: ListedDetails<'_>) -> StoredName {
        let last_new = details.last_new.map_or(0, |at| -at.timestamp_micros());
        StoredName { name: FeedName::new(topic, details.title), last_new }
    }
}

/// Stores the names of a resource that was made just now, and has no title yet.
pub(crate) async fn insert(tx: &Tx<'_>, id: i64, topic: &Topic) -> Result<(), StoreError> {
    replace(tx, vec![(id, StoredName::new(topic, ListedDetails::default()))]).await
}

/// Stores the names of those of the resources, which are locked, whose details have changed what lists have of
/// them, or that were made by a node of an older version and have none.
pub(crate) async fn follow_details(
    tx: &Tx<'_>,
    details: HashMap<i64, ListedDetails<'_>>,
) -> Result<(), StoreError> {
    const STORED: &str = "
        select r.id, r.topic, n.name, n.last_new from resources r
          left join resource_names n on n.resource_id = r.id
         where r.id in ({ids $1}) and r.kind <> 'collection'";
    const CHANGED: &str = "
        update resource_names set last_new = {given last_new} {from rows}
         where resource_names.resource_id = {given resource_id}";
    if details.is_empty() {
        return Ok(());
    }
    let ids = Value::Ints(details.keys().copied().collect());
    let (mut renamed, mut changed, mut times) = (Vec::new(), Vec::new(), Vec::new());
    for mut row in tx.query(STORED, &[ids]).await? {
        let (id, topic) = (row.int()?, row::topic(&mut row)?);
        let (name, last_new) = (row.opt_text()?, row.opt_int()?);
        let stored = StoredName::new(&topic, details.get(&id).copied().unwrap_or_default());
        if name.as_ref() != Some(&stored.name.order) {
            renamed.push((id, stored));
        } else if last_new != Some(stored.last_new) {
            changed.push(id);
            times.push(stored.last_new);
        }
    }
    replace(tx, renamed).await?;
    let columns = [("resource_id", Value::Ints(changed)), ("last_new", Value::Ints(times))];
    tx.execute_rows(CHANGED, &[], &columns).await.map(drop)
}

/// Replaces the names of resources.
async fn replace(tx: &Tx<'_>, names: Vec<(i64, StoredName)>) -> Result<(), StoreError> {
    const FORGET: &str = "delete from resource_words where resource_id in ({ids $1})";
    const NAME: &str = "
        insert into resource_names (resource_id, name, last_new)
        {values resource_id, name, last_new}
            on conflict (resource_id) do update
           set name = excluded.name, last_new = excluded.last_new";
    const FIND_BY: &str = "
        insert into resource_words (resource_id, word) {values resource_id, word}
            on conflict (resource_id, word) do nothing";
    if names.is_empty() {
        return Ok(());
    }
    let (mut of, mut words) = (Vec::new(), Vec::new());
    let ids: Vec<i64> = names.iter().map(|(id, _)| *id).collect();
    let orders = names.iter().map(|(_, stored)| stored.name.order.clone()).collect();
    let times = names.iter().map(|(_, stored)| stored.last_new).collect();
    for (id, stored) in names {
        for word in stored.name.words {
            of.push(id);
            words.push(word);
        }
    }
    tx.execute(FORGET, &[Value::Ints(ids.clone())]).await?;
    let columns = [
        ("resource_id", Value::Ints(ids)),
        ("name", Value::Texts(orders)),
        ("last_new", Value::Ints(times)),
    ];
    tx.execute_rows(NAME, &[], &columns).await?;
    let columns = [("resource_id", Value::Ints(of)), ("word", Value::Texts(words))];
    tx.execute_rows(FIND_BY, &[], &columns).await.map(drop)
}
