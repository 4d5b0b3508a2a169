//! Cursors of collections: created when a resource of a collection has new records, and advanced
//! when the records are collected.
//!
//! A row exists only while records wait to be collected. An append creates or extends the row while
//! it holds the lock of its resource. Advancing or removing a row requires the same lock, so
//! neither transaction waits for a row of the other.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{DateTime, Utc};

use crate::collections::cursors::{Cursor, bound_bytes, columns};
use crate::collections::watchers;
use crate::engine::claims::{ClaimedTable, readable};
use crate::engine::lease::ClaimLease;
use crate::engine::row::Row;
use crate::engine::sql::{Value, params};
use crate::engine::tx::{Tx, Wake};
use crate::log::append_budget::{self, AppendBudget};
use crate::log::fan_out;
use crate::log::records::{NewRecord, RecordBatch, append};
use crate::log::row::{record, record_columns};
use crate::resources::details;
use crate::resources::row::{self, resource, resource_columns};
use feedgate_core::collection::PendingCollection;
use feedgate_core::page::PageLimits;
use feedgate_core::record::{Audience, EntryKey, RecordKind, Seq};
use feedgate_core::resource::{Resource, ResourceId};
use feedgate_core::status::Status;
use feedgate_core::store::StoreError;
use feedgate_core::track::TRACKER;
use feedgate_core::visibility::ListedTopics;

/// The most records of one resource that are collected in one transaction.
pub const COLLECT_BATCH: i64 = 50;
/// The most bytes of records that are claimed together, in all cells.
pub const COLLECT_BYTES: u64 = 4 << 20;

/// How much is claimed together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClaimBounds {
    pub(crate) cursors: usize,
    /// The most records of one cursor.
    pub(crate) records: i64,
    /// The most bytes of all records together, unless one alone has more.
    pub(crate) bytes: u64,
}

/// The claims of cursors. Appends extend them, and lock them until they end. A result of a claim that was lost
/// finds the cursor moved.
const CURSORS: ClaimedTable<2> = ClaimedTable {
    columns: ", cursor, upto",
    lock: "{skip locked}",
    has_token: false,
    ..ClaimedTable::new("collection_cursors", ["resource_id", "collection_id"])
};

/// Claims cursors that lag, longest due first, with records within `bounds`. Everybody
/// may read the collection of all resources, which receives no records of resources that are not
/// listed; of the tracks, only those of the accounts that subscribe to them do. What the operator put
/// into a collection is the operator's choice.
pub(crate) async fn claim(
    tx: &Tx<'_>,
    lease: ClaimLease,
    bounds: ClaimBounds,
    listed: ListedTopics,
) -> Result<Vec<PendingCollection>, StoreError> {
    const ALL: &str = "select resource_id from collections where name = 'all'";
    let mut picked = Vec::new();
    let due = CURSORS.read_due(tx, lease.now, &[], bounds.cursors).await?;
    for ([resource, collection], mut row) in due {
        let (stands, upto) = (row.int()?, row.int()?);
        let upto = upto.min(stands + bounds.records);
        picked.push(Cursor { resource, collection, stands, upto });
    }
    if picked.is_empty() {
        return Ok(Vec::new());
    }
    let picked = bound_bytes(tx, picked, bounds.bytes).await?;
    let keys: Vec<_> = picked.iter().map(Cursor::key).collect();
    CURSORS.claim(tx, lease, &keys).await?;
    let members = members(tx, &picked).await?;
    let mut owed = owed(tx, &picked).await?;
    let all = tx.first(ALL, &[]).await?.map_or(Ok(0), |mut row| row.int())?;
    let mut claimed = Vec::new();
    for Cursor { resource, collection, stands, upto } in picked {
        let Some(member) = members.get(&resource).cloned() else { continue };
        let mut records = owed.remove(&(resource, collection)).unwrap_or_default();
        let is_tracked = collection == TRACKER.0;
        let is_hidden = (collection == all || is_tracked) && !member.is_listed(listed);
        let accounts = match is_hidden {
            true if is_tracked && member.topic.is_public() => {
                Some(watchers::accounts(tx, resource).await?)
            }
            true => Some(Vec::new()),
            false => None,
        };
        if accounts.as_ref().is_some_and(Vec::is_empty) {
            records.clear();
        }
        let (collection, after, upto) = (ResourceId(collection), Seq(stands), Seq(upto));
        claimed.push(PendingCollection { collection, member, after, upto, records, accounts });
    }
    Ok(claimed)
}

async fn members(tx: &Tx<'_>, picked: &[Cursor]) -> Result<HashMap<i64, Resource>, StoreError> {
    const MEMBERS: &str = concat!(
        "select ",
        resource_columns!(),
        " from resources r join resource_details d on d.resource_id = r.id
         where r.id in ({ids $1})"
    );
    let ids = picked.iter().map(|cursor| cursor.resource).collect();
    let mut members = HashMap::new();
    for row in tx.query(MEMBERS, &[Value::Ints(ids)]).await? {
        // A cursor that cannot be read must not keep the others from being collected.
        if let Some(member) = readable(resource(&mut { row })) {
            members.insert(member.id.0, member);
        }
    }
    Ok(members)
}

type Taken = Vec<(feedgate_core::record::Record, Audience)>;

/// Returns the records after each cursor that have an audience, by resource and collection.
async fn owed(tx: &Tx<'_>, picked: &[Cursor]) -> Result<HashMap<(i64, i64), Taken>, StoreError> {
    const OWED: &str = concat!(
        "select given.resource_id, given.collection_id, r.audience, ",
        record_columns!(),
        " from {rows}
          join records r on r.resource_id = given.resource_id
                        and r.seq > given.cursor and r.seq <= given.upto
         where r.audience >= 1
         order by r.seq"
    );
    let mut owed: HashMap<_, Taken> = HashMap::new();
    for mut row in tx.query_rows(OWED, &[], &columns(picked)).await? {
        let (key, audience) = ((row.int()?, row.int()?), audience(&mut row)?);
        owed.entry(key).or_default().push((record(row)?, audience));
    }
    Ok(owed)
}

fn audience(row: &mut Row) -> Result<Audience, StoreError> {
    let number = row.int()?;
    Audience::from_number(number)
        .ok_or_else(|| StoreError::Corrupt(format!("{number} is not a valid audience")))
}

/// Appends the collected records, and advances the cursors. Records that another node has collected
/// meanwhile are left out.
pub(crate) async fn collect(
    tx: &Tx<'_>,
    page_limits: &PageLimits,
    taken: Vec<PendingCollection>,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    let both = |owing: &PendingCollection| [owing.collection.0, owing.member.id.0];
    row::lock(tx, taken.iter().flat_map(both).collect()).await?;
    let taken = still_owed(tx, taken).await?;
    move_on(tx, &taken, now).await?;
    take_all_in(tx, page_limits, taken, now).await
}

/// Appends records, except those that were appended by this function before, and stores how far the
/// collections have taken them. The cursors may move in other transactions. `track_budget` is that of
/// tracks; collections of the operator have none.
pub(crate) async fn take_in_once(
    tx: &Tx<'_>,
    page_limits: &PageLimits,
    track_budget: Option<AppendBudget>,
    mut taken: Vec<PendingCollection>,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    const TAKEN: &str = "
        select given.resource_id, given.collection_id, c.upto, given.upto
          from {rows}
          join collected c on c.collection_id = given.collection_id
                          and c.resource_id = given.resource_id";
    const SAVE: &str = "
        insert into collected (collection_id, resource_id, upto, at)
        {values collection_id, resource_id, upto, at}
            on conflict (collection_id, resource_id) do update
           set upto = excluded.upto, at = excluded.at
         where collected.upto < excluded.upto";
    row::lock(tx, taken.iter().map(|owing| owing.collection.0).collect()).await?;
    let cursors: Vec<_> = taken.iter().map(Cursor::from_pending).collect();
    let mut taken_before = HashMap::new();
    for mut row in tx.query_rows(TAKEN, &[], &columns(&cursors)).await? {
        let Cursor { resource, collection, stands, .. } = Cursor::read(&mut row)?;
        taken_before.insert((resource, collection), Seq(stands));
    }
    for owing in &mut taken {
        let before = taken_before.get(&(owing.member.id.0, owing.collection.0));
        owing.records.retain(|(record, _)| before.is_none_or(|before| record.seq > *before));
    }
    let [resources, collections, _, upto] = columns(&cursors);
    let at = ("at", Value::Ints(vec![now.timestamp_micros(); cursors.len()]));
    tx.execute_rows(SAVE, &[], &[resources, collections, upto, at]).await?;
    if let Some(budget) = track_budget {
        append_budget::charge_tracks(tx, budget, &mut taken, now).await?;
    }
    take_all_in(tx, page_limits, taken, now).await
}

/// Moves the cursors of batches that were taken in another cell.
pub(crate) async fn advance(
    tx: &Tx<'_>,
    taken: Vec<PendingCollection>,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    row::lock(tx, taken.iter().map(|owing| owing.member.id.0).collect()).await?;
    let taken = still_owed(tx, taken).await?;
    move_on(tx, &taken, now).await
}

/// Appends to the log of each collection.
async fn take_all_in(
    tx: &Tx<'_>,
    page_limits: &PageLimits,
    taken: Vec<PendingCollection>,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    let mut by_collection: BTreeMap<ResourceId, Vec<PendingCollection>> = BTreeMap::new();
    for owing in taken {
        by_collection.entry(owing.collection).or_default().push(owing);
    }
    for (id, taken) in by_collection {
        take_in(tx, page_limits, id, taken, now).await?;
    }
    Ok(())
}

/// Returns the batches whose cursors have not moved since they were claimed.
async fn still_owed(
    tx: &Tx<'_>,
    taken: Vec<PendingCollection>,
) -> Result<Vec<PendingCollection>, StoreError> {
    const STAND: &str = "
        select given.resource_id, given.collection_id, given.cursor, given.upto
          from {rows}
          join collection_cursors c on c.resource_id = given.resource_id
                           and c.collection_id = given.collection_id
                           and c.cursor = given.cursor";
    let cursors: Vec<_> = taken.iter().map(Cursor::from_pending).collect();
    let mut standing = HashSet::new();
    for mut row in tx.query_rows(STAND, &[], &columns(&cursors)).await? {
        standing.insert(Cursor::read(&mut row)?);
    }
    Ok(taken.into_iter().filter(|owing| standing.contains(&Cursor::from_pending(owing))).collect())
}

/// Removes the cursors that have reached their target, and makes the others due again.
async fn move_on(
    tx: &Tx<'_>,
    taken: &[PendingCollection],
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    const DONE: &str = "
        delete from collection_cursors
         where (resource_id, collection_id, upto) in (
               select given.resource_id, given.collection_id, given.upto from {rows})";
    const MORE: &str = "
        update collection_cursors set cursor = given.upto, due_at = $1
          from {rows}
         where collection_cursors.resource_id = given.resource_id
           and collection_cursors.collection_id = given.collection_id";
    let moved: Vec<_> = taken.iter().map(Cursor::from_pending).collect();
    tx.execute_rows(DONE, &[], &columns(&moved)).await?;
    if tx.execute_rows(MORE, params![now], &columns(&moved)).await? > 0 {
        tx.wake(Wake::Collections);
    }
    Ok(())
}

/// Appends to the log of one collection, and marks its subscriptions due.
async fn take_in(
    tx: &Tx<'_>,
    page_limits: &PageLimits,
    id: ResourceId,
    taken: Vec<PendingCollection>,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    const STANDS: &str = "
        select r.head, d.status
          from resources r join resource_details d on d.resource_id = r.id
         where r.id = $1";
    const GROW: &str = "update resources set head = $2 where id = $1";
    let stands = tx.first(STANDS, params![id.0]).await?;
    let Some(mut stands) = stands else { return Ok(()) };
    let (head, mut status): (i64, Status) = (stands.int()?, stands.json()?);
    let mut held = held(tx, id, &taken).await?;
    let mut here: HashSet<String> = held.keys().map(|(_, entry_id)| entry_id.clone()).collect();
    let mut records = RecordBatch::after(head);
    for owing in taken {
        records.member = owing.member.id.0;
        for (record, audience) in owing.records {
            let known = held.entry((owing.member.id.0, record.entry_id.clone())).or_default();
            if record.kind == RecordKind::Deleted && !known.goes_by_its_id {
                continue; // it would take back what is not here, or another's
            }
            let is_first = here.insert(record.entry_id.clone());
            known.goes_by_its_id |= record.kind == RecordKind::New && is_first;
            let predecessor = (record.kind != RecordKind::New).then_some(known.newest).flatten();
            let seq = records.push(NewRecord {
                kind: record.kind,
                audience,
                predecessor,
                entry_id: record.entry_id,
                atom: record.atom,
            });
            known.newest = Some(seq);
        }
    }
    let after = append(tx, page_limits, id, now, records).await?;
    if after.head == head {
        return Ok(());
    }
    status.entries_count_since_last_maintenance += after.entries as u64;
    status.daily.add(after.entries, now);
    (status.last_fetch, status.last_parse) = (Some(now), Some(now));
    tx.execute(GROW, params![id.0, after.head]).await?;
    details::keep_status(tx, id, &status).await?;
    fan_out::mark_collection_subscriptions_due(tx, id, now, head, &after).await
}

/// The records of a collection for an entry of one of its resources.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    /// The number of the newest of these records.
    newest: Option<i64>,
    /// Whether the collection uses the id that the source gave the entry.
    goes_by_its_id: bool,
}

/// Returns the records that the collection has for the collected entries, by resource and id.
async fn held(
    tx: &Tx<'_>,
    id: ResourceId,
    taken: &[PendingCollection],
) -> Result<HashMap<(i64, String), Held>, StoreError> {
    const HELD: &str = "
        select member_id, entry_id, seq, repeats_id
          from records {sqlite indexed by records_entry_hash}
         where resource_id = $1 and member_id is not null and entry_hash in ({blobs $2})
         order by seq";
    let again = taken.iter().flat_map(|owing| &owing.records);
    let again = again.filter(|(record, _)| record.kind != RecordKind::New);
    let hashes: Vec<_> =
        again.map(|(record, _)| EntryKey::from_id(&record.entry_id).0.to_vec()).collect();
    let mut held: HashMap<_, Held> = HashMap::new();
    if hashes.is_empty() {
        return Ok(held);
    }
    for mut row in tx.query(HELD, params![id.0, Value::Blobs(hashes)]).await? {
        let known = held.entry((row.int()?, row.text()?)).or_default();
        known.newest = Some(row.int()?);
        known.goes_by_its_id |= row.int()? == 0;
    }
    Ok(held)
}
