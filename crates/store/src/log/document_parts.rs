//! Appends the entries of a document in parts, so that no document decides how long a transaction is.
//!
//! The document is classified as a whole, in the transaction of the first part. Each part appends the
//! next entries, in their order, and leaves the log whole: records, entries, keys and head belong
//! together. After a crash between two parts, the stored entries are known, and the next poll finds
//! the others, because the validators of the document are only stored with its last part. If another
//! writer has appended to the log between two parts, the document is classified again; entries that
//! are still new keep the audience that they had in the whole document.

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use chrono::{DateTime, Utc};
use futures_util::try_join;

use crate::engine::tx::Tx;
use crate::log::before::Before;
use crate::log::entries;
use crate::log::records::{After, NewRecord, RecordBatch, append};
use feedgate_core::change_detection::{
    self, Baseline, Candidate, ChangeSet, EntryChange, FeedDocument,
};
use feedgate_core::page::PageLimits;
use feedgate_core::poll::Trigger;
use feedgate_core::record::{Audience, RecordKind};
use feedgate_core::store::StoreError;

/// The most entries of a part: on SQLite, it takes less than a tenth of a second.
pub(crate) const PART_ENTRIES: usize = 200;
/// The size of the entries with which a part ends.
pub(crate) const PART_BYTES: usize = 1 << 20;

/// How much of a document is stored.
#[derive(Clone, Debug)]
pub(crate) struct AppendProgress {
    /// When the records are appended.
    at: DateTime<Utc>,
    trigger: Trigger,
    /// The classification of the whole document; `None` before the first part.
    changes: Option<Arc<ChangeSet>>,
    /// The head after the last part.
    head: i64,
    /// The candidates and deletions that were looked at.
    candidates: usize,
    deletions: usize,
    /// The head before the first part.
    pub(crate) first_head: i64,
    /// The sums over all parts, as in [`After`].
    pub(crate) new_records: usize,
    pub(crate) entries: usize,
}

impl AppendProgress {
    /// Returns the progress of a document of which nothing is stored.
    pub(crate) fn new(at: DateTime<Utc>, trigger: Trigger) -> AppendProgress {
        AppendProgress {
            at,
            trigger,
            changes: None,
            head: 0,
            candidates: 0,
            deletions: 0,
            first_head: 0,
            new_records: 0,
            entries: 0,
        }
    }

    /// Returns the classification of the document.
    pub(crate) fn changes(&self) -> &ChangeSet {
        static NONE: LazyLock<ChangeSet> = LazyLock::new(ChangeSet::default);
        self.changes.as_deref().unwrap_or_else(|| &NONE)
    }

    /// Returns whether a part was stored before.
    pub(crate) fn has_begun(&self) -> bool {
        self.changes.is_some()
    }

    /// Returns whether all of the document is stored.
    pub(crate) fn is_complete(&self, document: &FeedDocument) -> bool {
        self.candidates == document.candidates.len()
            && self.deletions == self.changes().deleted.len()
    }
}

/// Appends the next part of a document to the log of a resource, whose row is locked, and stores the
/// results of its classification for the next poll. Returns the numbers of the records of all candidates
/// up to the end of the part; `None` for those of earlier parts.
pub(crate) async fn append_part(
    tx: &Tx<'_>,
    page_limits: &PageLimits,
    before: &Before,
    document: &FeedDocument,
    progress: &mut AppendProgress,
) -> Result<(After, Vec<Option<i64>>), StoreError> {
    if !progress.has_begun() {
        progress.first_head = before.log.head;
    }
    if !progress.has_begun() || progress.head != before.log.head {
        classify(tx, before, document, progress).await?;
    }
    let id = before.id;
    let Some(mut changes) = progress.changes.take() else {
        return Ok((RecordBatch::after(before.log.head).appended(), Vec::new()));
    };
    let mut records = RecordBatch::after(before.log.head);
    let part = next_part(document, &changes, progress.candidates);
    let (candidates, verdicts) =
        (&document.candidates[part.clone()], &changes.verdicts[part.clone()]);
    let mut is_unrendered = false;
    let mut seqs = Vec::with_capacity(part.len());
    for (candidate, verdict) in candidates.iter().zip(verdicts) {
        let record = new_record(candidate, verdict);
        // An entry that the poller classified differently has not been rendered, so the document is
        // read again.
        is_unrendered |= record.is_none() && verdict.is_appended();
        seqs.push(record.map(|record| records.push(record)));
    }
    progress.candidates = part.end;
    let (mut gone, mut gone_seqs) = (Vec::new(), Vec::new());
    if part.end == document.candidates.len() {
        let room = PART_ENTRIES.saturating_sub(gone.len() + seqs.iter().flatten().count());
        for (at, known) in changes.deleted.iter().skip(progress.deletions).take(room) {
            progress.deletions += 1;
            let deletion = &document.deletions[*at];
            let Some(atom) = deletion.atom.clone() else {
                is_unrendered = true;
                continue;
            };
            gone.push(known.first.0);
            gone_seqs.push(records.push(NewRecord {
                kind: RecordKind::Deleted,
                audience: Audience::Askers,
                predecessor: Some(known.newest.0),
                entry_id: deletion.entry_id.clone(),
                atom,
            }));
        }
    }
    let learnt = entries::Classified { at: document.at, candidates, verdicts, seqs: &seqs };
    let appended = append(tx, page_limits, id, progress.at, records);
    let (after, ()) = try_join!(appended, entries::learn(tx, id, learnt))?;
    entries::mark_deleted(tx, id, gone, gone_seqs).await?;
    if is_unrendered {
        Arc::make_mut(&mut changes).is_unrendered = true;
    }
    progress.changes = Some(changes);
    progress.head = after.head;
    progress.new_records += after.new_records;
    progress.entries += after.entries;
    let seqs = vec![None; part.start].into_iter().chain(seqs).collect();
    Ok((after, seqs))
}

/// Classifies the document from its first entry on. What earlier parts have stored is known now.
async fn classify(
    tx: &Tx<'_>,
    before: &Before,
    document: &FeedDocument,
    progress: &mut AppendProgress,
) -> Result<(), StoreError> {
    let known = entries::known(tx, before.id, document.keys()).await?;
    let standing =
        Baseline::from_stored(before.kind, &before.status, &before.polling, progress.trigger);
    let standing = standing.for_subscribers(before.subscribers());
    let mut changes = change_detection::classify(document, &known, &standing, document.at);
    if let Some(first) = &progress.changes {
        for (verdict, first) in changes.verdicts.iter_mut().zip(&first.verdicts) {
            if let (EntryChange::New(audience), EntryChange::New(first)) = (verdict, first) {
                *audience = *first;
            }
        }
        changes.is_unrendered |= first.is_unrendered;
    }
    progress.changes = Some(Arc::new(changes));
    (progress.candidates, progress.deletions) = (0, 0);
    Ok(())
}

/// Returns which candidates are in the next part, which begins at `begin`.
fn next_part(document: &FeedDocument, changes: &ChangeSet, begin: usize) -> Range<usize> {
    let (mut count, mut bytes) = (0, 0);
    let rest = document.candidates.iter().zip(&changes.verdicts).enumerate().skip(begin);
    for (at, (candidate, verdict)) in rest {
        let is_stored = match verdict {
            EntryChange::Known(_) | EntryChange::PutOff(_) => candidate.renamed.is_some(),
            EntryChange::Repeated => false,
            EntryChange::New(_) | EntryChange::Updated(..) | EntryChange::Learnt(_) => true,
        };
        if is_stored && (count == PART_ENTRIES || bytes >= PART_BYTES) {
            return begin..at;
        }
        if is_stored {
            count += 1;
            bytes += candidate.atom.as_ref().map_or(0, String::len);
        }
    }
    begin..document.candidates.len()
}

/// Returns the record of a candidate, if it has been rendered and is to be appended.
fn new_record(candidate: &Candidate, verdict: &EntryChange) -> Option<NewRecord> {
    let (kind, audience, predecessor) = match verdict {
        EntryChange::New(Audience::Nobody) => (RecordKind::Old, Audience::Nobody, None),
        EntryChange::New(audience) => (RecordKind::New, *audience, None),
        EntryChange::Updated(known, audience) => {
            (RecordKind::Update, *audience, Some(known.newest.0))
        }
        _ => return None,
    };
    let (atom, entry_id) = (candidate.atom.clone()?, candidate.entry_id.clone());
    Some(NewRecord { kind, audience, predecessor, entry_id, atom })
}
