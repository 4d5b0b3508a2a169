//! Appends records to a log, with their numbers, kinds and audiences.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use futures_util::try_join;

use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
use crate::log::append_budget::AppendedSize;
use crate::log::pages;
use crate::log::row::most;
use feedgate_core::page::{ArchivedId, PageLimits};
use feedgate_core::record::{Audience, EntryKey, RecordKind, Seq};
use feedgate_core::resource::ResourceId;
use feedgate_core::store::StoreError;

/// The state of a log after an append.
#[derive(Clone, Copy)]
pub(crate) struct After {
    /// The number of the newest record.
    pub(crate) head: i64,
    /// The version of the newest body.
    pub(crate) body_version: i64,
    /// The number of new entries and updates among the appended records.
    pub(crate) new_records: usize,
    /// The number of new entries among the appended records, or of revisions of a resource that is
    /// not a feed.
    pub(crate) entries: usize,
    /// The largest audience among the appended records.
    pub(crate) audience: Audience,
    /// The size of the appended records.
    pub(crate) size: AppendedSize,
}

/// Records to be appended to a log, one list per column.
pub(crate) struct RecordBatch {
    next: i64,
    audience: Audience,
    new_records: usize,
    entries: usize,
    seq: Vec<i64>,
    kind: Vec<String>,
    audiences: Vec<i64>,
    /// The replaced record; 0 for none.
    predecessor: Vec<i64>,
    hash: Vec<Vec<u8>>,
    entry_id: Vec<String>,
    atom: Vec<String>,
    /// For the log of a collection, the member resource of the records added next; 0 for other
    /// logs.
    pub(crate) member: i64,
    members: Vec<i64>,
}

/// A record to be appended.
pub(crate) struct NewRecord {
    pub(crate) kind: RecordKind,
    pub(crate) audience: Audience,
    /// The number of the record that this one replaces, if any.
    pub(crate) predecessor: Option<i64>,
    /// The Atom id of the entry.
    pub(crate) entry_id: String,
    /// The entry, or its deletion, as one Atom element.
    pub(crate) atom: String,
}

impl RecordBatch {
    /// Returns an empty batch for a log with this head.
    pub(crate) fn after(head: i64) -> RecordBatch {
        RecordBatch {
            next: head + 1,
            audience: Audience::Nobody,
            new_records: 0,
            entries: 0,
            seq: Vec::new(),
            kind: Vec::new(),
            audiences: Vec::new(),
            predecessor: Vec::new(),
            hash: Vec::new(),
            entry_id: Vec::new(),
            atom: Vec::new(),
            member: 0,
            members: Vec::new(),
        }
    }

    /// Returns the state of the log after the batch has been appended.
    pub(crate) fn appended(&self) -> After {
        After {
            head: self.next - 1,
            body_version: 0,
            new_records: self.new_records,
            entries: self.entries,
            audience: self.audience,
            size: AppendedSize {
                records: self.seq.len() as u64,
                bytes: self.atom.iter().map(|atom| atom.len() as u64).sum(),
            },
        }
    }

    /// Adds a record and returns its number.
    pub(crate) fn push(&mut self, record: NewRecord) -> i64 {
        let NewRecord { kind, audience, predecessor, entry_id, atom } = record;
        let seq = self.next;
        self.next += 1;
        self.audience = self.audience.max(audience);
        self.new_records += usize::from(matches!(kind, RecordKind::New | RecordKind::Update));
        self.entries += usize::from(kind == RecordKind::New);
        self.seq.push(seq);
        self.kind.push(kind.as_str().to_owned());
        self.audiences.push(audience.number());
        self.predecessor.push(predecessor.unwrap_or(0));
        self.hash.push(EntryKey::from_id(&entry_id).0.to_vec());
        self.entry_id.push(entry_id);
        self.atom.push(atom);
        self.members.push(self.member);
        seq
    }
}

/// Appends `records` to the log of a resource, whose row must be locked, and updates its pages.
pub(crate) async fn append(
    tx: &Tx<'_>,
    page_limits: &PageLimits,
    id: ResourceId,
    at: DateTime<Utc>,
    records: RecordBatch,
) -> Result<After, StoreError> {
    const RECORDS: &str = "
        insert into records (resource_id, seq, appended_at, kind, audience, predecessor,
                             entry_hash, entry_id, atom, repeats_id, replaces_id, member_id)
        select cast($1 as bigint), given.seq, cast($2 as bigint), given.kind, given.audience,
               nullif(given.predecessor, 0), given.entry_hash, given.entry_id, given.atom,
               given.repeats_id, nullif(given.replaces_id, ''), nullif(given.member_id, 0)
          from {rows}";
    let after = records.appended();
    if records.seq.is_empty() {
        return Ok(after);
    }
    let lengths = records.atom.iter().map(|atom| most(atom.len()));
    let placed = pages::place(tx, page_limits, id, at, records.seq.iter().copied().zip(lengths));
    let ((again, replaces), ()) = try_join!(names(tx, id, &records), placed)?;
    let columns = [
        ("seq", Value::Ints(records.seq)),
        ("kind", Value::Texts(records.kind)),
        ("audience", Value::Ints(records.audiences)),
        ("predecessor", Value::Ints(records.predecessor)),
        ("entry_hash", Value::Blobs(records.hash)),
        ("entry_id", Value::Texts(records.entry_id)),
        ("atom", Value::Texts(records.atom)),
        ("repeats_id", Value::Ints(again)),
        ("replaces_id", Value::Texts(replaces)),
        ("member_id", Value::Ints(records.members)),
    ];
    tx.execute_rows(RECORDS, params![id.0, at], &columns).await?;
    Ok(after)
}

/// Returns the archive ids of the records, because no two entries of an archive may have the same
/// id: for each record, whether an earlier record has its entry id, and the stored archive id of
/// the record that it replaces, or an empty text.
async fn names(
    tx: &Tx<'_>,
    id: ResourceId,
    records: &RecordBatch,
) -> Result<(Vec<i64>, Vec<String>), StoreError> {
    const SAME: &str = "
        select entry_id from records
         where resource_id = $1 and kind <> 'deleted' and entry_hash in ({blobs $2})";
    const REPLACED: &str = "
        select seq, repeats_id, entry_id from records where resource_id = $1 and seq in ({ids $2})";
    let is = |n: usize, kind: RecordKind| records.kind[n] == kind.as_str();
    let every = 0..records.seq.len();
    let is_first = records.seq[0] == 1;

    let mut taken = HashSet::new();
    let fresh =
        every.clone().filter(|n| !is(*n, RecordKind::Update) && !is(*n, RecordKind::Deleted));
    let fresh: Vec<_> = fresh.map(|n| records.hash[n].clone()).collect();
    if !is_first && !fresh.is_empty() {
        for mut row in tx.query(SAME, params![id.0, Value::Blobs(fresh)]).await? {
            taken.insert(row.text()?);
        }
    }
    let mut known = HashMap::new();
    let updates = every.clone().filter(|n| is(*n, RecordKind::Update));
    let replaced: Vec<_> = updates.map(|n| records.predecessor[n]).collect();
    if !replaced.is_empty() {
        for mut row in tx.query(REPLACED, params![id.0, Value::Ints(replaced)]).await? {
            let (seq, again, entry_id) = (row.int()?, row.int()?, row.text()?);
            known.insert(seq, name(again != 0, seq, &entry_id));
        }
    }

    let (mut again, mut replaces) = (Vec::new(), Vec::new());
    for n in every {
        let (seq, entry_id) = (records.seq[n], &records.entry_id[n]);
        let is_update = is(n, RecordKind::Update);
        let is_deletion = is(n, RecordKind::Deleted);
        let is_again = !is_deletion && (!taken.insert(entry_id.clone()) || is_update);
        let of = known.get(&records.predecessor[n]).filter(|_| is_update);
        replaces.push(of.map(ArchivedId::kept).unwrap_or_default());
        known.insert(seq, name(is_again, seq, entry_id));
        again.push(i64::from(is_again));
    }
    Ok((again, replaces))
}

fn name(is_again: bool, seq: i64, entry_id: &str) -> ArchivedId {
    if is_again { ArchivedId::Own(Seq(seq)) } else { ArchivedId::Source(entry_id.to_owned()) }
}
