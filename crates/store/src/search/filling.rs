//! Fills the search index: queues what is appended, claims it, and adds it.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};

use crate::engine::claims::{ClaimedTable, readable};
use crate::engine::lease::ClaimLease;
use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
use crate::log::append_budget;
use crate::log::row::{record, record_columns};
use crate::resources::row::{resource, resource_columns};
use crate::search::removal;
use feedgate_core::query::SearchKey;
use feedgate_core::record::{Record, Seq};
use feedgate_core::resource::{Resource, ResourceId};
use feedgate_core::search::{IndexedEntry, IndexedRange, SearchPosition, UnindexedRange};
use feedgate_core::store::StoreError;

/// The most records of one resource that are claimed at once.
pub const INDEX_BATCH: i64 = 25;
/// The most entries of a fetch that are indexed, the newest, of a resource that only subscribers
/// without an account watch: anybody can make the gateway fetch it, and indexing an entry takes ten
/// times as long as storing it.
const MOST_OF_FETCH: i64 = 500;
/// The most keys of each of these entries, except for the newest [`INDEX_BATCH`] to twice as many.
const MOST_KEYS_IN_FLOOD: usize = 100;
/// The most keys of each entry otherwise, if only subscribers without an account watch the resource.
const MOST_ANONYMOUS_KEYS: usize = 2_000;

/// Queues the records after `head_before`, up to `head`, if the index is open.
pub(crate) async fn queue(
    tx: &Tx<'_>,
    id: ResourceId,
    (head_before, head): (i64, i64),
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    const QUEUE: &str = "
        insert into search_cursors (resource_id, cursor, upto, due_at)
        select cast($1 as bigint), cast($2 as bigint), cast($3 as bigint), cast($4 as bigint)
          from database_properties where name = 'search_index'
            on conflict (resource_id) do update set upto = excluded.upto";
    tx.execute(QUEUE, params![id.0, head_before, head, tx.at(at)]).await.map(drop)
}

/// The claims of cursors. Appends extend them, and lock them until they end. A result of a claim that was lost
/// finds the cursor moved.
const CURSORS: ClaimedTable<1> = ClaimedTable {
    columns: ", cursor, upto",
    lock: "{skip locked}",
    has_token: false,
    ..ClaimedTable::new("search_cursors", ["resource_id"])
};

/// Claims up to `limit` logs with records to index, longest due first.
pub(super) async fn claim(
    tx: &Tx<'_>,
    lease: ClaimLease,
    limit: usize,
) -> Result<Vec<UnindexedRange>, StoreError> {
    let (mut ids, mut cursors, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    tx.join_by_keys().await?;
    for ([id], mut row) in CURSORS.claim_due(tx, lease, &[], limit).await? {
        let (cursor, upto) = (row.int()?, row.int()?);
        ids.push(id);
        cursors.push(cursor);
        ends.push(upto.min(cursor + INDEX_BATCH));
    }
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut resources = resources(tx, ids.clone()).await?;
    let columns = [
        ("resource_id", Value::Ints(ids.clone())),
        ("cursor", Value::Ints(cursors.clone())),
        ("upto", Value::Ints(ends.clone())),
    ];
    let mut records = records(tx, &columns).await?;
    let mut claimed = Vec::with_capacity(ids.len());
    for ((id, after), upto) in ids.into_iter().zip(cursors).zip(ends) {
        let Some(resource) = resources.remove(&id) else { continue };
        let records = records.remove(&id).unwrap_or_default();
        let most_keys = most_keys(tx, &resource, upto, records.last()).await?;
        let (after, upto) = (Seq(after), Seq(upto));
        claimed.push(UnindexedRange { resource, after, upto, records, most_keys });
    }
    Ok(claimed)
}

/// Returns how many keys each entry of a range may have that ends with `last`. The records of a fetch
/// have the same time, by which the number of those that follow is found.
async fn most_keys(
    tx: &Tx<'_>,
    resource: &Resource,
    upto: i64,
    last: Option<&Record>,
) -> Result<usize, StoreError> {
    const FOLLOWING: &str = "
        select seq from records
         where resource_id = $1 and seq in ($2, $3) and appended_at = $4
         order by seq desc";
    let Some(last) = last else { return Ok(usize::MAX) };
    if append_budget::has_trusted_watcher(tx, resource.id).await? {
        return Ok(usize::MAX);
    }
    let (flood, end) = (upto + INDEX_BATCH, upto + MOST_OF_FETCH);
    let following = tx.first(FOLLOWING, params![resource.id.0, flood, end, last.at]).await?;
    let following = following.map(|mut row| row.int()).transpose()?;
    Ok(match following {
        Some(seq) if seq == end => 0,
        Some(_) => MOST_KEYS_IN_FLOOD,
        None => MOST_ANONYMOUS_KEYS,
    })
}

/// Returns resources by their numbers.
pub(super) async fn resources(
    tx: &Tx<'_>,
    ids: Vec<i64>,
) -> Result<HashMap<i64, Resource>, StoreError> {
    const RESOURCES: &str = concat!(
        "select ",
        resource_columns!(),
        " from resources r join resource_details d on d.resource_id = r.id
         where r.id in ({ids $1})"
    );
    let mut found = HashMap::new();
    for row in tx.query(RESOURCES, &[Value::Ints(ids)]).await? {
        // A resource that cannot be read must not hide the others.
        if let Some(resource) = readable(resource(&mut { row })) {
            found.insert(resource.id.0, resource);
        }
    }
    Ok(found)
}

async fn records(
    tx: &Tx<'_>,
    ranges: &[(&str, Value)],
) -> Result<HashMap<i64, Vec<Record>>, StoreError> {
    const UNINDEXED: &str = concat!(
        "select given.resource_id, ",
        record_columns!(),
        " from {rows}
          join records r on r.resource_id = given.resource_id
                        and r.seq > given.cursor and r.seq <= given.upto
         order by r.seq"
    );
    let mut found: HashMap<i64, Vec<Record>> = HashMap::new();
    for mut row in tx.query_rows(UNINDEXED, &[], ranges).await? {
        found.entry(row.int()?).or_default().push(record(row)?);
    }
    Ok(found)
}

/// Adds a range to the index, unless it was added since it was claimed.
pub(super) async fn add(
    tx: &Tx<'_>,
    range: IndexedRange,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    const ADVANCE: &str = "
        update search_cursors set cursor = $3, due_at = $4
         where resource_id = $1 and cursor = $2";
    const DONE: &str = "delete from search_cursors where resource_id = $1 and cursor >= upto";
    let IndexedRange { resource, after, upto, entries, replaced } = range;
    if tx.execute(ADVANCE, params![resource.0, after.0, upto.0, now]).await? == 0 {
        return Ok(());
    }
    tx.execute(DONE, params![resource.0]).await?;
    let replaced = replaced.into_iter().map(|seq| seq.0).collect();
    removal::remove_entries(tx, resource.0, replaced).await?;
    add_entries(tx, resource, (after, upto), entries).await
}

/// Adds entries in a range of records. Those that were added before are left out: the log may have
/// been queued anew.
async fn add_entries(
    tx: &Tx<'_>,
    resource: ResourceId,
    (after, upto): (Seq, Seq),
    entries: Vec<IndexedEntry>,
) -> Result<(), StoreError> {
    const KNOWN: &str = "
        select seq from search_entries where resource_id = $1 and seq > $2 and seq <= $3";
    let known = tx.query(KNOWN, params![resource.0, after.0, upto.0]).await?;
    let known = known.into_iter().map(|mut row| row.int());
    let known = known.collect::<Result<HashSet<_>, StoreError>>()?;
    let mut waiting: Vec<_> =
        entries.into_iter().filter(|entry| !known.contains(&entry.seq.0)).collect();
    let mut tried = HashMap::new();
    while !waiting.is_empty() {
        let places = free_places(tx, &waiting, &mut tried).await?;
        let inserted = insert_entries(tx, resource, &waiting, places).await?;
        // On PostgreSQL, another transaction may have taken a place since it was found free.
        waiting.retain(|entry| !inserted.contains(&entry.seq.0));
    }
    Ok(())
}

/// Returns a place for each entry, in their order. Entries that arrived at the same time have places next to
/// each other, behind those that are stored: the entries of one fetch are added in several ranges. `tried`
/// is the last place that was tried for each time.
async fn free_places(
    tx: &Tx<'_>,
    entries: &[IndexedEntry],
    tried: &mut HashMap<i64, i64>,
) -> Result<Vec<i64>, StoreError> {
    let (mut next, mut places) = (HashMap::new(), Vec::with_capacity(entries.len()));
    for entry in entries {
        let first = SearchPosition::first_place(entry.at);
        if let Entry::Vacant(vacant) = next.entry(first) {
            let from = tried.get(&first).map_or(first, |tried| tried + 1);
            vacant.insert(next_free_place(tx, from).await?);
        }
        let Some(place) = next.get_mut(&first) else { continue };
        places.push(*place);
        tried.insert(first, *place);
        *place += 1;
    }
    Ok(places)
}

/// Returns the first place from `from` on behind which others are free.
async fn next_free_place(tx: &Tx<'_>, mut from: i64) -> Result<i64, StoreError> {
    const LAST: &str = "
        select position from search_entries where position >= $1 and position < $2
         order by position desc limit 1";
    loop {
        let end = from + SearchPosition::PLACES;
        let last = tx.first(LAST, params![from, end]).await?;
        match last.map(|mut row| row.int()).transpose()? {
            None => return Ok(from),
            Some(last) if last + 1 < end => return Ok(last + 1),
            Some(_) => from = end,
        }
    }
}

/// Inserts the entries whose places are free. Returns the numbers of their records.
async fn insert_entries(
    tx: &Tx<'_>,
    resource: ResourceId,
    entries: &[IndexedEntry],
    places: Vec<i64>,
) -> Result<HashSet<i64>, StoreError> {
    const PLACE: &str = "
        insert into search_entries (position, resource_id, seq) {values position, resource_id, seq}
            on conflict (position) do nothing
        returning seq";
    // With `insert ... select`, SQLite would write its index after each row.
    const INDEX: &str = "
        insert into search_index (rowid, keys)
        {postgres select given.position, array_to_tsvector(string_to_array(given.keys, ' ')) from (}
        {values position, keys}{postgres ) as given}";
    let columns = [
        ("position", Value::Ints(places.clone())),
        ("resource_id", Value::Ints(vec![resource.0; entries.len()])),
        ("seq", Value::Ints(entries.iter().map(|entry| entry.seq.0).collect())),
    ];
    let rows = tx.query_rows(PLACE, &[], &columns).await?;
    let inserted = rows.into_iter().map(|mut row| row.int());
    let inserted = inserted.collect::<Result<HashSet<_>, _>>()?;
    let (mut positions, mut keys) = (Vec::new(), Vec::new());
    for (entry, place) in entries.iter().zip(places) {
        if inserted.contains(&entry.seq.0) {
            positions.push(place);
            keys.push(entry.keys.iter().map(SearchKey::as_str).collect::<Vec<_>>().join(" "));
        }
    }
    let columns = [("position", Value::Ints(positions)), ("keys", Value::Texts(keys))];
    tx.execute_rows(INDEX, &[], &columns).await?;
    Ok(inserted)
}
