//! Known entries: reads them for the classification, and stores its results.
//!
//! Every function here runs in the transaction that appends, with the row of the resource locked
//! (rules N11, N13).

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::try_join;

use crate::engine::row::Row;
use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
use feedgate_core::change_detection::{
    Candidate, ChangeSet, EntryChange, FeedDocument, Known, KnownEntry,
};
use feedgate_core::record::{Audience, Digest, EntryKey, Seq};
use feedgate_core::resource::ResourceId;
use feedgate_core::store::StoreError;

/// The interval at which entries are marked as present in the document. A mark rewrites the row of
/// every present entry, so the interval is as long as the 90 days of memory allow (rule N6).
const NOTED_EVERY: TimeDelta = TimeDelta::days(7);
/// How long an entry that left the document is remembered: at least 90 days (rule N6). The time
/// counts from the mark before the last one, so that an entry that left right after a mark is
/// remembered as long.
const REMEMBERED: TimeDelta = TimeDelta::days(90);
/// An entry is remembered longer while it is among the newest entries: at least this many times the
/// size of the document (rule N6).
const WINDOWS: i64 = 10;

/// Returns the entries with these keys.
pub(crate) async fn known(
    tx: &Tx<'_>,
    id: ResourceId,
    keys: Vec<EntryKey>,
) -> Result<Known, StoreError> {
    const KNOWN: &str = "
        select k.key, e.first_seq, e.newest_seq, e.digest, e.title_digest, e.published, e.updated,
               e.updates_sent, e.last_update_at, e.seen_at, e.deleted, k.alias
          from entry_keys k
          join entries e on e.resource_id = k.resource_id and e.first_seq = k.first_seq
         where k.resource_id = $1 and k.key in ({blobs $2})";
    let keys: Vec<_> = keys.into_iter().map(|key| key.0.to_vec()).collect();
    if keys.is_empty() {
        return Ok(Known::default());
    }
    let rows = tx.query(KNOWN, params![id.0, Value::Blobs(keys)]).await?;
    rows.into_iter().map(known_entry).collect()
}

fn known_entry(mut row: Row) -> Result<(EntryKey, KnownEntry), StoreError> {
    let key = EntryKey(sixteen(row.blob()?)?);
    let (first, newest) = (Seq(row.int()?), Seq(row.int()?));
    let digest = row.blob()?;
    let digest = if digest.is_empty() { None } else { Some(Digest(sixteen(digest)?)) };
    let title = row.blob()?;
    let title = Digest(if title.is_empty() { [0; 16] } else { sixteen(title)? });
    let entry = KnownEntry {
        first,
        newest,
        digest,
        title,
        published: date(row.int()?)?,
        updated: date(row.int()?)?,
        revised: row.small()?,
        revised_at: row.opt_time()?,
        seen_at: row.time()?,
        is_deleted: row.int()? != 0,
        is_alias: row.int()? != 0,
    };
    Ok((key, entry))
}

pub(crate) fn sixteen(bytes: Vec<u8>) -> Result<[u8; 16], StoreError> {
    let bytes = bytes.try_into();
    bytes.map_err(|_| StoreError::Corrupt("a key or digest is not 16 bytes long".to_owned()))
}

/// Reads a stored date, for which 0 means none.
pub(crate) fn date(micros: i64) -> Result<Option<DateTime<Utc>>, StoreError> {
    if micros == 0 {
        return Ok(None);
    }
    let date = DateTime::from_timestamp_micros(micros);
    date.map(Some).ok_or_else(|| StoreError::Corrupt(format!("{micros} is not a valid time")))
}

/// The stored columns of entries, one list per column.
#[derive(Default)]
struct Columns {
    first: Vec<i64>,
    newest: Vec<i64>,
    digest: Vec<Vec<u8>>,
    title: Vec<Vec<u8>>,
    published: Vec<i64>,
    updated: Vec<i64>,
}

impl Columns {
    fn push(&mut self, first: i64, newest: i64, candidate: &Candidate) {
        let micros = |date: Option<DateTime<Utc>>| date.map_or(0, |date| date.timestamp_micros());
        self.first.push(first);
        self.newest.push(newest);
        self.digest.push(candidate.digest.0.to_vec());
        self.title.push(candidate.title.0.to_vec());
        self.published.push(micros(candidate.published));
        self.updated.push(micros(candidate.updated));
    }

    fn named(self) -> [(&'static str, Value); 6] {
        [
            ("first_seq", Value::Ints(self.first)),
            ("newest_seq", Value::Ints(self.newest)),
            ("digest", Value::Blobs(self.digest)),
            ("title_digest", Value::Blobs(self.title)),
            ("published", Value::Ints(self.published)),
            ("updated", Value::Ints(self.updated)),
        ]
    }
}

/// Candidates that have been classified.
#[derive(Clone, Copy)]
pub(crate) struct Classified<'a> {
    /// When their document was fetched.
    pub(crate) at: DateTime<Utc>,
    pub(crate) candidates: &'a [Candidate],
    pub(crate) verdicts: &'a [EntryChange],
    /// The numbers of the records that the candidates produced.
    pub(crate) seqs: &'a [Option<i64>],
}

impl<'a> Classified<'a> {
    fn iter(self) -> impl Iterator<Item = (&'a Candidate, &'a EntryChange, Option<i64>)> {
        let verdicts = self.candidates.iter().zip(self.verdicts);
        verdicts.zip(self.seqs).map(|((candidate, verdict), seq)| (candidate, verdict, *seq))
    }
}

/// Stores what the classification found out about each candidate.
pub(crate) async fn learn(
    tx: &Tx<'_>,
    id: ResourceId,
    classified: Classified<'_>,
) -> Result<(), StoreError> {
    const NEW: &str = "
        insert into entries (resource_id, first_seq, newest_seq, digest, title_digest, published,
                             updated, seen_at)
        select cast($1 as bigint), given.first_seq, given.newest_seq, given.digest,
               given.title_digest, given.published, given.updated, cast($2 as bigint)
          from {rows}";
    const LEARNT: &str = "
        update entries
           set newest_seq = given.newest_seq, digest = given.digest,
               title_digest = given.title_digest,
               published = given.published, updated = given.updated
          from {rows}
         where entries.resource_id = $1 and entries.first_seq = given.first_seq";
    const REVISED: &str = "
        update entries
           set updates_sent = updates_sent + given.sent, last_update_at = $2, deleted = 0
          from {rows}
         where entries.resource_id = $1 and entries.first_seq = given.first_seq";
    let (mut new, mut learnt) = (Columns::default(), Columns::default());
    let (mut revised, mut sent) = (Vec::new(), Vec::new());
    for (candidate, verdict, seq) in classified.iter() {
        match (verdict, seq) {
            (EntryChange::New(_), Some(seq)) => new.push(seq, seq, candidate),
            (EntryChange::Learnt(known), _) => {
                learnt.push(known.first.0, known.newest.0, candidate)
            }
            (EntryChange::Updated(known, audience), Some(seq)) => {
                learnt.push(known.first.0, seq, candidate);
                revised.push(known.first.0);
                sent.push(i64::from(*audience != Audience::Nobody));
            }
            _ => {}
        }
    }
    let keep_entries = async {
        tx.execute_rows(NEW, params![id.0, classified.at], &new.named()).await?;
        tx.execute_rows(LEARNT, params![id.0], &learnt.named()).await?;
        let columns = [("first_seq", Value::Ints(revised)), ("sent", Value::Ints(sent))];
        tx.execute_rows(REVISED, params![id.0, classified.at], &columns).await
    };
    try_join!(keep_entries, keep_keys(tx, id, classified)).map(drop)
}

/// Stores the keys of the candidates. An ambiguous key is assigned to the entry that had it last; an
/// id is assigned to another entry only if it was an alias, and has turned out to be an id, or a key
/// of another kind that an earlier part of the document has stored.
async fn keep_keys(
    tx: &Tx<'_>,
    id: ResourceId,
    classified: Classified<'_>,
) -> Result<(), StoreError> {
    const IDS: &str = "
        insert into entry_keys (resource_id, key, first_seq)
        select cast($1 as bigint), given.key, given.first_seq from {rows} where true
            on conflict (resource_id, key) do update set first_seq = excluded.first_seq, alias = 0";
    const FORGET: &str = "
        delete from entry_keys {sqlite indexed by entry_keys_entry}
         where resource_id = $1 and alias = 1 and first_seq in ({ids $2})";
    const ALIASES: &str = "
        insert into entry_keys (resource_id, key, first_seq, alias)
        select cast($1 as bigint), given.key, given.first_seq, 1 from {rows} where true
            on conflict (resource_id, key) do nothing";
    const FURTHER: &str = "
        insert into entry_keys (resource_id, key, first_seq)
        select cast($1 as bigint), given.key, given.first_seq from {rows} where true
            on conflict (resource_id, key) do nothing";
    const SIGNS: &str = "
        insert into entry_keys (resource_id, key, first_seq)
        select cast($1 as bigint), given.key, given.first_seq from {rows} where true
            on conflict (resource_id, key) do update set first_seq = excluded.first_seq";
    let (mut ids, mut aliases) = (Names::default(), Names::default());
    let (mut further, mut signs) = (Names::default(), Names::default());
    for (candidate, verdict, seq) in classified.iter() {
        let entry = match (verdict, seq) {
            (EntryChange::New(_), Some(seq)) => seq,
            (verdict, _) => match verdict.known() {
                Some(known) => known.first.0,
                None => continue,
            },
        };
        further.push(candidate.renamed, entry);
        match verdict {
            EntryChange::New(_) => {
                ids.push(Some(candidate.id), entry);
                further.push(candidate.bare, entry);
            }
            EntryChange::Learnt(_) => {
                aliases.push(Some(candidate.id), entry);
                aliases.push(candidate.bare, entry);
            }
            EntryChange::Updated(..) => {}
            EntryChange::Known(_) | EntryChange::PutOff(_) | EntryChange::Repeated => continue,
        }
        signs.push(candidate.link, entry);
        signs.push(candidate.text, entry);
    }
    tx.execute_rows(IDS, params![id.0], &ids.named()).await?;
    if !aliases.entry.is_empty() {
        tx.execute(FORGET, params![id.0, Value::Ints(aliases.entry.clone())]).await?;
    }
    tx.execute_rows(ALIASES, params![id.0], &aliases.named()).await?;
    tx.execute_rows(FURTHER, params![id.0], &further.named()).await?;
    tx.execute_rows(SIGNS, params![id.0], &signs.named()).await.map(drop)
}

/// Keys and the entries that they identify.
#[derive(Default)]
struct Names {
    key: Vec<Vec<u8>>,
    entry: Vec<i64>,
}

impl Names {
    fn push(&mut self, key: Option<EntryKey>, entry: i64) {
        if let Some(key) = key {
            self.key.push(key.0.to_vec());
            self.entry.push(entry);
        }
    }

    fn named(self) -> [(&'static str, Value); 2] {
        [("key", Value::Blobs(self.key)), ("first_seq", Value::Ints(self.entry))]
    }
}

/// Marks an entry as deleted by record `seq`.
pub(crate) async fn mark_deleted(
    tx: &Tx<'_>,
    id: ResourceId,
    entries: Vec<i64>,
    seqs: Vec<i64>,
) -> Result<(), StoreError> {
    const DELETED: &str = "
        update entries set deleted = 1, newest_seq = given.seq
          from {rows}
         where entries.resource_id = $1 and entries.first_seq = given.first_seq";
    let columns = [("first_seq", Value::Ints(entries)), ("seq", Value::Ints(seqs))];
    tx.execute_rows(DELETED, params![id.0], &columns).await.map(drop)
}

/// Entries of a resource that are no longer remembered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OldEntries {
    /// They were last present before this time.
    before: DateTime<Utc>,
    /// As many of the newest entries are remembered all the same.
    newest: i64,
}

/// The most entries that are forgotten in one transaction.
const MOST_FORGOTTEN: i64 = 500;

/// Marks, once a week, which entries the document contains. Returns which entries left it long ago,
/// for [`forget`] (rule N6).
///
/// The age of an entry is counted from the previous mark and not from now: from a document that did
/// not change for a year, or was not polled, no entry has disappeared.
pub(crate) async fn note(
    tx: &Tx<'_>,
    id: ResourceId,
    document: &FeedDocument,
    changes: &ChangeSet,
) -> Result<Option<OldEntries>, StoreError> {
    const NOTED: &str = "
        select max(seen_at) from entries where resource_id = $1";
    const NOTE: &str = "
        update entries set seen_at = $2
         where resource_id = $1 and first_seq in ({ids $3}) and seen_at < $2";
    let held: Vec<&KnownEntry> = changes.verdicts.iter().filter_map(EntryChange::known).collect();
    if !is_to_note(&held, document.at) {
        return Ok(None);
    }
    let noted = tx.first(NOTED, params![id.0]).await?;
    let noted = noted.map_or(Ok(None), |mut row| row.opt_time())?.unwrap_or(document.at);
    let firsts = Value::Ints(held.iter().map(|known| known.first.0).collect());
    tx.execute(NOTE, params![id.0, document.at, firsts]).await?;
    let newest = document.candidates.len() as i64 * WINDOWS;
    Ok(Some(OldEntries { before: noted - REMEMBERED, newest }))
}

/// Returns whether the entries of the document are due to be marked as present.
pub(crate) fn is_to_note(held: &[&KnownEntry], now: DateTime<Utc>) -> bool {
    held.iter().any(|known| known.seen_at <= now - NOTED_EVERY)
}

/// Forgets some old entries. Returns whether there may be more.
pub(crate) async fn forget(
    tx: &Tx<'_>,
    id: ResourceId,
    old: OldEntries,
) -> Result<bool, StoreError> {
    const OLD: &str = "
        select first_seq
          from (select first_seq, seen_at from entries
                 where resource_id = $1
                 order by seen_at desc, first_seq desc
                 limit 9223372036854775807 offset $3) rest
         where seen_at < $2
         limit $4";
    const KEYS: &str = "
        delete from entry_keys {sqlite indexed by entry_keys_entry}
         where resource_id = $1 and first_seq in ({ids $2})";
    const ENTRIES: &str = "
        delete from entries where resource_id = $1 and first_seq in ({ids $2})";
    let old = tx.query(OLD, params![id.0, old.before, old.newest, MOST_FORGOTTEN]).await?;
    let old = old.into_iter().map(|mut row| row.int());
    let old = old.collect::<Result<Vec<_>, StoreError>>()?;
    if old.is_empty() {
        return Ok(false);
    }
    let may_have_more = old.len() as i64 == MOST_FORGOTTEN;
    tx.execute(KEYS, params![id.0, Value::Ints(old.clone())]).await?;
    tx.execute(ENTRIES, params![id.0, Value::Ints(old)]).await?;
    Ok(may_have_more)
}
