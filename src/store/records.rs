//! Records on their way into a log: numbered, with what they are and whom they reach.

use chrono::{DateTime, Utc};

use super::StoreError;
use super::sql::{Value, params};
use super::tx::Tx;
use crate::domain::record::{EntryKey, Reach, RecordKind};
use crate::domain::resource::ResourceId;

/// Where the resource stands when the poll has been kept.
#[derive(Clone, Copy)]
pub(super) struct After {
    /// The greatest number in its log.
    pub(super) head: i64,
    /// The version of its newest body.
    pub(super) body_version: i64,
    /// How many of the records are news: new entries, and updates of others.
    pub(super) news: usize,
    /// How many are new entries, or revisions of what is no feed.
    pub(super) entries: usize,
    /// Whom they reach, those furthest that reach most.
    pub(super) reach: Reach,
}

/// Records to be appended, filled side by side.
pub(super) struct Records {
    next: i64,
    reach: Reach,
    news: usize,
    entries: usize,
    seq: Vec<i64>,
    kind: Vec<String>,
    reaches: Vec<i64>,
    /// 0: none.
    predecessor: Vec<i64>,
    hash: Vec<Vec<u8>>,
    entry_id: Vec<String>,
    atom: Vec<String>,
}

impl Records {
    /// None yet, behind this head.
    pub(super) fn after(head: i64) -> Records {
        Records {
            next: head + 1,
            reach: Reach::Nobody,
            news: 0,
            entries: 0,
            seq: Vec::new(),
            kind: Vec::new(),
            reaches: Vec::new(),
            predecessor: Vec::new(),
            hash: Vec::new(),
            entry_id: Vec::new(),
            atom: Vec::new(),
        }
    }

    /// Where the resource stands once they are kept.
    pub(super) fn appended(&self) -> After {
        After {
            head: self.next - 1,
            body_version: 0,
            news: self.news,
            entries: self.entries,
            reach: self.reach,
        }
    }

    /// Adds one and returns the number that it gets.
    pub(super) fn push(
        &mut self,
        kind: RecordKind,
        reach: Reach,
        predecessor: Option<i64>,
        (entry_id, atom): (String, String),
    ) -> i64 {
        let seq = self.next;
        self.next += 1;
        self.reach = self.reach.max(reach);
        self.news += usize::from(matches!(kind, RecordKind::New | RecordKind::Update));
        self.entries += usize::from(kind == RecordKind::New);
        self.seq.push(seq);
        self.kind.push(kind.as_str().to_owned());
        self.reaches.push(reach.number());
        self.predecessor.push(predecessor.unwrap_or(0));
        self.hash.push(EntryKey::of(&entry_id).0.to_vec());
        self.entry_id.push(entry_id);
        self.atom.push(atom);
        seq
    }
}

/// Keeps `records`.
pub(super) async fn append(
    tx: &Tx<'_>,
    id: ResourceId,
    at: DateTime<Utc>,
    records: Records,
) -> Result<After, StoreError> {
    const RECORDS: &str = "
        insert into records (resource_id, seq, at, kind, reach, predecessor, entry_hash,
                             entry_id, atom)
        select cast($1 as bigint), given.seq, cast($2 as bigint), given.kind, given.reach,
               nullif(given.predecessor, 0), given.entry_hash, given.entry_id, given.atom
          from {rows}";
    let after = records.appended();
    let columns = [
        ("seq", Value::Ints(records.seq)),
        ("kind", Value::Texts(records.kind)),
        ("reach", Value::Ints(records.reaches)),
        ("predecessor", Value::Ints(records.predecessor)),
        ("entry_hash", Value::Blobs(records.hash)),
        ("entry_id", Value::Texts(records.entry_id)),
        ("atom", Value::Texts(records.atom)),
    ];
    tx.execute_rows(RECORDS, params![id.0, at], &columns).await?;
    Ok(after)
}
