//! Deleting resources without subscribers.
//!
//! A row is created for every topic in a subscription request. It stays when the subscription ends:
//! a subscriber that comes back soon must not receive old entries again. The row is deleted after a
//! retention period (rule S44), with every row that belongs to it. If there never was a
//! subscription, the period is short, because strangers can make such rows.

use chrono::{DateTime, Utc};

use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
use crate::resources::{feed_headers, row};
use crate::search::removal;
use feedgate_core::store::StoreError;

/// The number of resources dropped in one transaction.
const FEW: i64 = 4;
/// The most records, and the most entries, of a resource that are deleted in one transaction: other
/// writes wait for it.
const PART: i64 = 250;

/// The tables with rows of a resource, except its subscriptions, of which it has none.
const TABLES: [&str; 23] = [
    "resource_details",
    "resource_names",
    "resource_words",
    "resource_urls",
    "collection_cursors",
    "collections",
    "collection_members",
    "bodies",
    "pages",
    "records",
    "entry_keys",
    "entries",
    "refusals",
    "moves",
    "feed_headers",
    "fan_outs",
    "backlogs",
    "kept_cursors",
    "upstreams",
    "backfill_visits",
    "staged_entries",
    "backfills",
    "resource_traffic",
];

/// Marks up to `limit` resources as unwatched since `now`, and deletes the headers with which they were fetched.
/// Returns how many.
pub(crate) async fn note(tx: &Tx<'_>, now: DateTime<Utc>, limit: i64) -> Result<u64, StoreError> {
    const FIND: &str = "
        select id from resources
         where subscribers = 0 and kind <> 'collection' and unwatched_since is null
         limit $1";
    const NOTE: &str = "
        update resources set unwatched_since = $1 where id in ({ids $2}) and subscribers = 0";
    let found = tx.query(FIND, params![limit]).await?;
    let found = found.into_iter().map(|mut row| row.int());
    let found = found.collect::<Result<Vec<_>, StoreError>>()?;
    if found.is_empty() {
        return Ok(0);
    }
    row::lock(tx, found.clone()).await?;
    feed_headers::delete_unwatched(tx, found.clone()).await?;
    tx.execute(NOTE, &[Value::from(now), Value::Ints(found)]).await
}

/// Which unwatched resources are dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unwatched {
    All,
    /// Those that have never had a subscriber.
    NeverWatched,
}

/// Drops a few resources that were unwatched since `before`, and are not being polled at `now`.
/// Returns how many; `None` if only a part of one was deleted. There are no more if it is 0.
pub(crate) async fn forget(
    tx: &Tx<'_>,
    which: Unwatched,
    before: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<Option<u64>, StoreError> {
    const ALL: &str = "
        select id from resources
         where subscribers = 0 and kind <> 'collection' and unwatched_since <= $1
           and (claimed_until is null or claimed_until <= $2)
         order by unwatched_since limit $3
           {skip locked}";
    const NEVER_WATCHED: &str = "
        select id from resources
         where was_watched = 0 and subscribers = 0 and kind <> 'collection'
           and unwatched_since <= $1
           and (claimed_until is null or claimed_until <= $2)
         order by unwatched_since limit $3
           {skip locked}";
    let find = match which {
        Unwatched::All => ALL,
        Unwatched::NeverWatched => NEVER_WATCHED,
    };
    let found = tx.query(find, params![before, now, FEW]).await?;
    let found = found.into_iter().map(|mut row| row.int());
    let found = found.collect::<Result<Vec<_>, StoreError>>()?;
    for id in &found {
        if delete_part(tx, *id).await? {
            return Ok(None);
        }
    }
    if found.is_empty() {
        return Ok(Some(0));
    }
    delete_rows(tx, found).await.map(Some)
}

/// Deletes the oldest records and entries of a locked resource or track if it has more than [`PART`] of them.
/// Returns whether it had. If somebody subscribes before the next part is deleted, the log is as after a
/// retention, and the entries that a document still has are known: they are the newest.
pub(crate) async fn delete_part(tx: &Tx<'_>, id: i64) -> Result<bool, StoreError> {
    const RECORD: &str = "
        select seq from records where resource_id = $1 order by seq limit 1 offset $2";
    const ENTRY: &str = "
        select first_seq from entries where resource_id = $1 order by first_seq limit 1 offset $2";
    const RECORDS: &str = "delete from records where resource_id = $1 and seq <= $2";
    const PAGES: &str = "delete from pages where resource_id = $1 and first_seq <= $2";
    const KEYS: &str = "
        delete from entry_keys {sqlite indexed by entry_keys_entry}
         where resource_id = $1 and first_seq <= $2";
    const ENTRIES: &str = "delete from entries where resource_id = $1 and first_seq <= $2";
    let params = params![id, PART];
    if let Some(mut row) = tx.first(RECORD, params).await? {
        let last = row.int()?;
        removal::remove_old(tx, id, last).await?;
        tx.execute(RECORDS, params![id, last]).await?;
        tx.execute(PAGES, params![id, last]).await?;
        return Ok(true);
    }
    let Some(mut row) = tx.first(ENTRY, params).await? else { return Ok(false) };
    let last = row.int()?;
    tx.execute(KEYS, params![id, last]).await?;
    tx.execute(ENTRIES, params![id, last]).await?;
    Ok(true)
}

/// Deletes these resources, which are locked and have no subscriptions, with all their rows.
/// Returns how many.
pub(crate) async fn delete_rows(tx: &Tx<'_>, ids: Vec<i64>) -> Result<u64, StoreError> {
    // First what a worker locks before it adds entries to the search index: so none is added after.
    remove(tx, "search_cursors", &ids).await?;
    removal::remove_resources(tx, &ids).await?;
    for table in TABLES {
        remove(tx, table, &ids).await?;
    }
    tx.execute("delete from resources where id in ({ids $1})", &[Value::Ints(ids)]).await
}

/// Deletes the rows of these resources from a table.
async fn remove(tx: &Tx<'_>, table: &str, ids: &[i64]) -> Result<(), StoreError> {
    let sql = format!("delete from {table} where resource_id in ({{ids $1}})");
    tx.execute(&sql, &[Value::Ints(ids.to_vec())]).await.map(drop)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::engine::migrate::MIGRATIONS;
    use crate::engine::sql;

    #[test]
    fn every_table_that_names_a_resource_is_thought_of() {
        let mut tables = BTreeSet::new();
        let statements = MIGRATIONS
            .iter()
            .flat_map(|migration| sql::statements(&sql::sqlite(migration.sql, 1, &[])));
        for statement in statements {
            let statement = statement.trim();
            if let Some(made) = statement.strip_prefix("create table ") {
                let name = made.split([' ', '(']).next().unwrap();
                if made.contains("references resources") {
                    tables.insert(name.to_owned());
                }
            } else if let Some(name) = statement.strip_prefix("drop table ") {
                tables.remove(name);
            }
        }
        tables.remove("subscriptions");
        // They are deleted first.
        tables.remove("search_cursors");
        tables.remove("search_entries");
        // Their rows may be about a resource in another cell, so they have no foreign key.
        tables.extend(["collections", "refusals"].map(str::to_owned));
        // A foreign key would be checked for each host that is notified.
        tables.insert("backlogs".to_owned());
        let known: BTreeSet<String> = TABLES.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(known, tables, "a resource that is forgotten leaves rows behind");
    }
}
