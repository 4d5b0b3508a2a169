//! Staged entries of a backfill: stored as they are found, and appended oldest first.
//!
//! An entry is staged once, in its newest form, and is removed from the stage in the transaction
//! that appends it to the log.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use futures_util::try_join;

use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
use crate::log::append_budget::AppendedSize;
use crate::log::before::Before;
use crate::log::document_parts::{PART_BYTES, PART_ENTRIES};
use crate::log::entries;
use crate::log::fan_out::{self, LogChange};
use crate::log::records::{NewRecord, RecordBatch, append};
use crate::log::row::most;
use feedgate_core::change_detection::{self, Baseline, Candidate, EntryChange, FeedDocument};
use feedgate_core::page::PageLimits;
use feedgate_core::record::{Audience, Digest, RecordKind};
use feedgate_core::resource::ResourceId;
use feedgate_core::store::StoreError;

/// A place in the entries of a document.
pub(super) type PageEntry = usize;

/// Divides the entries of a document into parts that are each staged in one transaction. Of several
/// forms of one entry the newest is staged.
pub(super) fn parts(entries: &[Candidate]) -> Vec<Vec<PageEntry>> {
    let mut newest = BTreeMap::new();
    for (place, candidate) in entries.iter().enumerate() {
        let held = newest.entry(candidate.id).or_insert((place, candidate.updated));
        if held.1 <= candidate.updated {
            *held = (place, candidate.updated);
        }
    }
    let (mut parts, mut bytes) = (Vec::<Vec<PageEntry>>::new(), 0);
    for (place, _) in newest.into_values() {
        let part = match parts.last_mut() {
            Some(part) if part.len() < PART_ENTRIES && bytes < PART_BYTES => part,
            _ => {
                bytes = 0;
                parts.push(Vec::new());
                parts.last_mut().expect("one was just added")
            }
        };
        part.push(place);
        bytes += bytes_of(&entries[place]);
    }
    parts
}

/// Returns the length of these entries of a document.
pub(super) fn bytes(part: &[PageEntry], entries: &[Candidate]) -> usize {
    part.iter().map(|place| bytes_of(&entries[*place])).sum()
}

fn bytes_of(candidate: &Candidate) -> usize {
    candidate.atom.as_ref().map_or(0, String::len)
}

/// Stages a part of the entries of a document, and returns how many of them are new, and their size. Of
/// several forms of one entry the newest is staged, and of equally new forms the one on the page nearest
/// to the subscription document (RFC 5005 `#section-4.2`).
pub(super) async fn stage_entries(
    tx: &Tx<'_>,
    id: ResourceId,
    page: u32,
    (part, entries): (&[PageEntry], &[Candidate]),
) -> Result<AppendedSize, StoreError> {
    // Citus counts the rows of an insert that a conflict left unchanged, so they are looked for here, by
    // a subquery for each key, which never reads other rows.
    const STAGED: &str = "
        select given.key,
               (select count(*) from staged_entries s
                 where s.resource_id = $1 and s.key = given.key)
          from {rows}";
    const STAGE: &str = "
        insert into staged_entries (resource_id, key, page, ordinal, entry_id, digest, title_digest,
                                      published, updated, atom)
        select cast($1 as bigint), given.key, cast($2 as bigint), given.ordinal, given.entry_id,
               given.digest, given.title_digest, given.published, given.updated, given.atom
          from {rows} where true
            on conflict (resource_id, key) do update
           set page = excluded.page, ordinal = excluded.ordinal, digest = excluded.digest,
               title_digest = excluded.title_digest, published = excluded.published,
               updated = excluded.updated, atom = excluded.atom
         where staged_entries.updated < excluded.updated";
    let micros = |date: Option<DateTime<Utc>>| date.map_or(0, |date| date.timestamp_micros());
    let given: Vec<(PageEntry, &Candidate)> =
        part.iter().map(|place| (*place, &entries[*place])).collect();
    let blobs = |of: fn(&Candidate) -> Vec<u8>| {
        Value::Blobs(given.iter().map(|(_, candidate)| of(candidate)).collect())
    };
    let texts = |of: fn(&Candidate) -> String| {
        Value::Texts(given.iter().map(|(_, candidate)| of(candidate)).collect())
    };
    let dates = |of: fn(&Candidate) -> Option<DateTime<Utc>>| {
        Value::Ints(given.iter().map(|(_, candidate)| micros(of(candidate))).collect())
    };
    let key = |candidate: &Candidate| candidate.id.0.to_vec();
    let mut staged = BTreeSet::new();
    for mut row in tx.query_rows(STAGED, params![id.0], &[("key", blobs(key))]).await? {
        let held = row.blob()?;
        if row.count()? > 0 {
            staged.insert(held);
        }
    }
    let ordinals = given.iter().map(|(place, _)| i64::try_from(*place).unwrap_or(i64::MAX));
    let columns = [
        ("key", blobs(key)),
        ("ordinal", Value::Ints(ordinals.collect())),
        ("entry_id", texts(|candidate| candidate.entry_id.clone())),
        ("digest", blobs(|candidate| candidate.digest.0.to_vec())),
        ("title_digest", blobs(|candidate| candidate.title.0.to_vec())),
        ("published", dates(|candidate| candidate.published)),
        ("updated", dates(|candidate| candidate.updated)),
        ("atom", texts(|candidate| candidate.atom.clone().unwrap_or_default())),
    ];
    tx.execute_rows(STAGE, params![id.0, i64::from(page)], &columns).await?;
    let new = given.iter().filter(|(_, candidate)| !staged.contains(&key(candidate)));
    Ok(new.fold(AppendedSize { records: 0, bytes: 0 }, |size, (_, candidate)| AppendedSize {
        records: size.records + 1,
        bytes: size.bytes + bytes_of(candidate) as u64,
    }))
}

/// Returns how many entries are staged, of all documents. Those of one document could not be told by their
/// page, which a newer form of an entry changes.
pub(super) async fn count(tx: &Tx<'_>, id: ResourceId) -> Result<u64, StoreError> {
    const COUNT: &str = "select count(*) from staged_entries where resource_id = $1";
    tx.first(COUNT, params![id.0]).await?.map_or(Ok(0), |mut row| row.count())
}

/// Returns the oldest staged entries, as many as are appended in one transaction. They are identified by
/// their ids alone: their links and texts are stored when a poll reads them in the document.
pub(crate) async fn oldest(tx: &Tx<'_>, id: ResourceId) -> Result<Vec<Candidate>, StoreError> {
    const OLDEST: &str = "
        select entry_id, digest, title_digest, published, updated, atom
          from staged_entries
         where resource_id = $1
           and key in (
                select key
                  from (select key, sum(size) over (order by page desc, ordinal rows unbounded preceding)
                                        - size as before
                          from (select key, page, ordinal, octet_length(atom) as size
                                  from staged_entries
                                 where resource_id = $1
                                 order by page desc, ordinal
                                 limit $2) sizes) sums
                 where before < $3)
         order by page desc, ordinal";
    let params = params![id.0, most(PART_ENTRIES), most(PART_BYTES)];
    let rows = tx.query(OLDEST, params).await?;
    let candidates = rows.into_iter().map(|mut row| {
        let entry_id = row.text()?;
        let (digest, title) = (entries::sixteen(row.blob()?)?, entries::sixteen(row.blob()?)?);
        let (published, updated) = (entries::date(row.int()?)?, entries::date(row.int()?)?);
        let (digest, title) = (Digest(digest), Digest(title));
        let named = Candidate::of_id(&entry_id, row.text()?);
        Ok(Candidate { digest, title, published, updated, ..named })
    });
    candidates.collect()
}

/// Appends entries that the log does not contain as old records, which are sent to nobody. Returns
/// how many.
pub(crate) async fn append_old(
    tx: &Tx<'_>,
    page_limits: &PageLimits,
    before: &Before,
    candidates: Vec<Candidate>,
    now: DateTime<Utc>,
) -> Result<i64, StoreError> {
    const GROW: &str = "update resources set head = $2 where id = $1";
    let (id, subscribers, before) = (before.id(), before.subscribers(), before.log_state());
    let mut document = FeedDocument { at: now, candidates, ..FeedDocument::default() };
    let recorded = recorded(tx, id, &document.candidates).await?;
    document.candidates.retain(|candidate| !recorded.contains(&candidate.id.0.to_vec()));
    let known = entries::known(tx, id, document.keys()).await?;
    let mut changes = change_detection::classify(&document, &known, &Baseline::default(), now);
    let mut records = RecordBatch::after(before.head);
    let mut seqs = Vec::with_capacity(changes.verdicts.len());
    for (candidate, verdict) in document.candidates.iter_mut().zip(&mut changes.verdicts) {
        seqs.push(match verdict {
            EntryChange::New(_) => Some(records.push(NewRecord {
                kind: RecordKind::Old,
                audience: Audience::Nobody,
                predecessor: None,
                entry_id: candidate.entry_id.clone(),
                atom: candidate.atom.take().unwrap_or_default(),
            })),
            // The form in the log is newer, and stays unchanged.
            held => {
                *held = held.known().cloned().map_or(EntryChange::Repeated, EntryChange::Known);
                None
            }
        });
    }
    let appended = append(tx, page_limits, id, now, records);
    let learnt = entries::Classified {
        at: now,
        candidates: &document.candidates,
        verdicts: &changes.verdicts,
        seqs: &seqs,
    };
    let (mut after, ()) = try_join!(appended, entries::learn(tx, id, learnt))?;
    after.body_version = before.body_version;
    if after.head > before.head {
        tx.execute(GROW, params![id.0, after.head]).await?;
        let change = LogChange {
            at: now,
            is_silent: false,
            new_entries: &[],
            is_baseline: false,
            subscribers,
            before,
            after: &after,
        };
        fan_out::mark_due(tx, id, change).await?;
    }
    Ok(after.head - before.head)
}

/// Returns the candidates that have a record, even if their entry is no longer known.
async fn recorded(
    tx: &Tx<'_>,
    id: ResourceId,
    candidates: &[Candidate],
) -> Result<Vec<Vec<u8>>, StoreError> {
    const RECORDED: &str = "
        select entry_hash from records
         where resource_id = $1 and entry_hash in ({blobs $2})";
    let hashes = candidates.iter().map(|candidate| candidate.id.0.to_vec()).collect();
    let rows = tx.query(RECORDED, &[Value::from(id.0), Value::Blobs(hashes)]).await?;
    rows.into_iter().map(|mut row| row.blob()).collect()
}

/// Removes entries that are in the log now from the stage.
pub(crate) async fn forget_entries(
    tx: &Tx<'_>,
    id: ResourceId,
    keys: Vec<Vec<u8>>,
) -> Result<(), StoreError> {
    const FORGET: &str = "
        delete from staged_entries where resource_id = $1 and key in ({blobs $2})";
    tx.execute(FORGET, &[Value::from(id.0), Value::Blobs(keys)]).await.map(drop)
}
