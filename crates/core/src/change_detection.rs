//! Change detection: classifies the entries of a document as new, updated, old or known, and
//! determines who is notified (rules N3 to N8).
//!
//! [`classify`] is a pure function of the document, the entries that the store knows, and the state
//! of the resource. The poller calls it to find out which entries must be rendered. The store calls
//! it again in the transaction that appends, with the resource locked, so that one result is stored
//! when several nodes poll at the same time (rules N11, N13).
//!
//! Invariants:
//!
//! * An entry of the document is matched with at most one known entry, and vice versa: a known
//!   entry whose id is in the document is never matched with another entry.
//! * In doubt an entry is new. An entry is held back only if its own date is old, or if it is one of
//!   many without dates in a document that has become another feed.
//! * Entries keep the order of the document, oldest first.

mod candidate;
mod former_document;
mod known;
mod matching;
mod new_entries;
mod published_since;
#[cfg(test)]
mod tests;

use chrono::{DateTime, TimeDelta, Utc};

use super::poll::Trigger;
use super::polling::Polling;
use super::record::{Audience, EntryKey};
use super::resource_id::ResourceKind;
use super::status::Status;
use feedgate_feed::repair::{RepairCode, RepairWeight};

pub use candidate::{Candidate, Deletion, FeedDocument};
pub use former_document::FormerDocument;
pub use known::{Known, KnownEntry};

/// The minimum number of entries for a statement about a whole document (rule N4).
const CROWD: usize = 5;

/// The state of a resource when its document was fetched.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Baseline {
    /// Whether the resource was read as a feed before. The first poll of all holds nothing back,
    /// because it notifies nobody.
    pub is_known: bool,
    /// When the document that the resource was until now last changed; `None` if it was none.
    pub document_changed_at: Option<DateTime<Utc>>,
    /// The title of the feed.
    pub title: String,
    /// The time of the last successful fetch.
    pub last_good: Option<DateTime<Utc>>,
    /// Whether a poll has failed since then.
    pub is_failing: bool,
    /// The average number of entries published per hour.
    pub per_hour: f64,
    /// The number of entries without dates that came under another id since an entry last kept its
    /// id: see [`Polling::id_changes`].
    pub id_changes: u32,
    /// Whether the publisher, or somebody else, said that there is something new.
    pub is_announced: bool,
}

impl Baseline {
    /// Derives the state from a stored resource.
    pub fn from_stored(
        kind: ResourceKind,
        status: &Status,
        polling: &Polling,
        trigger: Trigger,
    ) -> Baseline {
        let is_failing = polling.failing_since.is_some();
        Baseline {
            is_known: kind == ResourceKind::Feed,
            document_changed_at: status.last_parse.filter(|_| kind == ResourceKind::Other),
            title: status.title.clone(),
            last_good: if is_failing { polling.rate_at } else { status.last_fetch },
            is_failing,
            per_hour: polling.entries_per_hour,
            id_changes: polling.id_changes,
            is_announced: trigger != Trigger::Schedule,
        }
    }

    /// Returns the state for this many subscribers. Without any, there is nobody to whom the document before
    /// was sent.
    pub fn for_subscribers(self, subscribers: u32) -> Baseline {
        let document_changed_at = self.document_changed_at.filter(|_| subscribers > 0);
        Baseline { document_changed_at, ..self }
    }
}

/// The result for one candidate.
#[derive(Clone, Debug, PartialEq)]
pub enum EntryChange {
    /// A new entry, which is appended; [`Audience::Nobody`] means that it is old (rule N5).
    New(Audience),
    /// A known entry with new content, which is appended (rule N7).
    Updated(KnownEntry, Audience),
    /// A known entry with new content, too soon after its last update: the document is read again
    /// later.
    PutOff(KnownEntry),
    /// A known entry with another id, or with content that was not stored: the id and the content
    /// digest are stored, and nobody is notified (rules N3, N4).
    Learnt(KnownEntry),
    /// A known entry without changes.
    Known(KnownEntry),
    /// A duplicate of another entry of the document.
    Repeated,
}

impl EntryChange {
    /// Returns the known entry that was matched.
    pub fn known(&self) -> Option<&KnownEntry> {
        match self {
            EntryChange::Updated(known, _)
            | EntryChange::PutOff(known)
            | EntryChange::Learnt(known)
            | EntryChange::Known(known) => Some(known),
            EntryChange::New(_) | EntryChange::Repeated => None,
        }
    }

    /// Returns whether a record is appended.
    pub fn is_appended(&self) -> bool {
        matches!(self, EntryChange::New(_) | EntryChange::Updated(..))
    }
}

/// The result of [`classify`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChangeSet {
    /// The results, in the order of the candidates.
    pub verdicts: Vec<EntryChange>,
    /// The deletions of known entries: the index of the deletion in the document, and the entry
    /// (rule N8).
    pub deleted: Vec<(usize, KnownEntry)>,
    /// The number of entries whose id has changed (rules N3, N4).
    pub renamed: usize,
    /// The new value of [`Polling::id_changes`].
    pub id_changes: u32,
    /// Whether the document seems to be another feed than before (rule N5).
    pub is_another_feed: bool,
    /// Whether an entry to be appended has not been rendered, because an earlier classification
    /// differed. The document is then read again.
    pub is_unrendered: bool,
}

impl ChangeSet {
    /// Returns the number of entries that are sent to all subscribers.
    pub fn new_records(&self) -> usize {
        self.count(|verdict| match verdict {
            EntryChange::New(audience) => *audience != Audience::Nobody,
            EntryChange::Updated(_, audience) => *audience == Audience::Everybody,
            _ => false,
        })
    }

    /// Returns the number of entries that are stored but not sent, because they are old.
    pub fn old(&self) -> usize {
        self.count(|verdict| *verdict == EntryChange::New(Audience::Nobody))
    }

    /// Returns the number of updated entries.
    pub fn updated(&self) -> usize {
        self.count(|verdict| matches!(verdict, EntryChange::Updated(..)))
    }

    /// Returns whether the document must be read again.
    pub fn is_put_off(&self) -> bool {
        let waits = |verdict: &EntryChange| matches!(verdict, EntryChange::PutOff(_));
        self.is_unrendered || self.verdicts.iter().any(waits)
    }

    /// Returns whether there is anything to store, apart from the fact that known entries were seen
    /// again.
    pub fn is_empty(&self) -> bool {
        let idle = |verdict: &EntryChange| {
            matches!(verdict, EntryChange::Known(_) | EntryChange::Repeated)
        };
        self.deleted.is_empty() && self.verdicts.iter().all(idle)
    }

    /// Returns the bozo rank of the feed, given that of its document. Ids that change are as bad as
    /// ids that repeat (rule N3).
    pub fn bozo_rank(&self, of_document: f64) -> f64 {
        let RepairWeight::Share(weight) = RepairCode::IdRepeated.weight() else {
            return of_document;
        };
        let share = self.renamed as f64 / self.verdicts.len().max(1) as f64;
        let rank = 1.0 - (1.0 - of_document) * (1.0 - weight * share);
        (rank * 100.0).round() / 100.0
    }

    /// Returns the remarks for the status, if anything unusual was found.
    pub fn remark(&self) -> Option<String> {
        let mut remarks = Vec::new();
        if self.is_another_feed {
            remarks.push("feed identity changed".to_owned());
        }
        if self.renamed > 0 {
            remarks.push(counted(self.renamed, "entry has", "entries have") + " another id");
        }
        if self.old() > 0 {
            remarks.push(counted(self.old(), "old entry was", "old entries were") + " not sent");
        }
        (!remarks.is_empty()).then(|| remarks.join("; "))
    }

    fn count(&self, is_one: impl Fn(&EntryChange) -> bool) -> usize {
        self.verdicts.iter().filter(|verdict| is_one(verdict)).count()
    }
}

fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Classifies the candidates.
pub fn classify(
    document: &FeedDocument,
    known: &Known,
    standing: &Baseline,
    now: DateTime<Utc>,
) -> ChangeSet {
    let matching::Matches { matched, id_changes } = matching::matched(document, known, standing);
    let candidates = &document.candidates;
    let unknown = matched.iter().filter(|found| matches!(found, matching::Match::None)).count();
    let is_crowd = |many: usize| candidates.len() >= CROWD && many * 100 > candidates.len() * 80;
    let is_another_feed = standing.is_known
        && is_crowd(unknown)
        && !standing.title.is_empty()
        && standing.title != document.title;
    let audiences = new_entries::audiences(document, &matched, standing, is_another_feed);
    let mut changes = ChangeSet { is_another_feed, id_changes, ..ChangeSet::default() };
    for ((candidate, found), audience) in candidates.iter().zip(&matched).zip(audiences) {
        changes.verdicts.push(match found {
            matching::Match::None => EntryChange::New(audience),
            matching::Match::Repeated => EntryChange::Repeated,
            matching::Match::Renamed(known) => {
                changes.renamed += 1;
                EntryChange::Learnt(known.clone())
            }
            matching::Match::Same(known) => revised(candidate, known, now),
        });
    }
    changes.deleted = deleted(document, known);
    changes
}

/// The most updates of an entry that are sent: "At most 24 notified updates per entry". A counter
/// in the text of an entry would cause updates for ever (rule N7). An article that is a page is watched
/// for its changes, like any document, and has no such limit.
const MOST_UPDATES: u32 = 24;
/// The interval at which further updates of an entry are stored, and sent to nobody.
const KEPT_EVERY: TimeDelta = TimeDelta::days(1);
/// The minimum time between two updates of an entry: "≥ 60 s apart" (rule N7).
const APART: TimeDelta = TimeDelta::seconds(60);
/// The maximum age of a fresh update: "not older than 3 minutes at the time of the fetch" (rule
/// N7).
const FRESH: TimeDelta = TimeDelta::minutes(3);

/// Classifies an entry whose id is known.
fn revised(candidate: &Candidate, known: &KnownEntry, now: DateTime<Utc>) -> EntryChange {
    let Some(digest) = known.digest else { return EntryChange::Learnt(known.clone()) };
    if digest == candidate.digest && !known.is_deleted {
        return EntryChange::Known(known.clone());
    }
    let since = known.revised_at.map(|at| now - at);
    if known.revised >= MOST_UPDATES && !candidate.describes_page {
        return match since.is_some_and(|since| since < KEPT_EVERY) {
            true => EntryChange::Known(known.clone()),
            false => EntryChange::Updated(known.clone(), Audience::Nobody),
        };
    }
    if since.is_some_and(|since| since < APART) {
        return EntryChange::PutOff(known.clone());
    }
    let is_fresh = candidate.updated.is_some_and(|updated| {
        known.updated.is_none_or(|before| updated > before) && updated >= now - FRESH
    });
    let audience = match (candidate.describes_page, is_fresh) {
        (true, _) => Audience::Everybody,
        (false, true) => Audience::Fresh,
        (false, false) => Audience::Askers,
    };
    EntryChange::Updated(known.clone(), audience)
}

/// Returns the deletions of known entries that are not also entries of the document.
fn deleted(document: &FeedDocument, known: &Known) -> Vec<(usize, KnownEntry)> {
    let mut gone = std::collections::HashSet::new();
    let is_held = |key: EntryKey| document.candidates.iter().any(|held| held.id == key);
    let deletions = document.deletions.iter().enumerate().filter_map(|(at, deletion)| {
        let entry = known.get(deletion.id)?;
        let is_new_deletion =
            !entry.is_deleted && !is_held(deletion.id) && gone.insert(entry.first);
        is_new_deletion.then(|| (at, entry.clone()))
    });
    deletions.collect()
}
