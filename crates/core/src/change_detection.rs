//! Which entries of a document are news, and to whom (rules N3 to N8).
//!
//! One pure function, [`classify`]. It is given what a document holds, what the store knows
//! of that, and where the resource stands, and says of each entry what to do. The poller
//! asks it to learn which entries are worth rendering; the store asks it again within the
//! transaction that appends, with the resource locked, so that whichever nodes polled at
//! the same time, one answer is kept (rules N11, N13).
//!
//! What holds here:
//!
//! * An entry is matched with at most one that is known, and the other way round: what
//!   is in the document under its own name is never taken for the former self of another.
//! * In doubt an entry is news. It is held back only where its own date says that it is
//!   old, or where a crowd of entries without dates arrives at once.
//! * Order is that of the document, oldest first; nothing here moves an entry.

mod candidate;
mod known;
mod matching;
mod new_entries;
#[cfg(test)]
mod tests;

use chrono::{DateTime, TimeDelta, Utc};

use super::polling::Polling;
use super::record::{Audience, EntryKey};
use super::resource_id::ResourceKind;
use super::status::Status;
use feedgate_feed::repair::{RepairCode, RepairWeight};

pub use candidate::{Candidate, Deletion, FeedDocument};
pub use known::{Known, KnownEntry};

/// From how many entries on the whole of a document says something (rule N4).
const CROWD: usize = 5;

/// Where a resource stood when its document was fetched.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Baseline {
    /// Whether it was read as a feed before. If not, nothing is held back: the whole poll
    /// is silent.
    pub is_known: bool,
    /// The title of the feed.
    pub title: String,
    /// When it was last fetched with success.
    pub last_good: Option<DateTime<Utc>>,
    /// Whether it has failed since then.
    pub is_failing: bool,
    /// How many entries it publishes in an hour, averaged.
    pub per_hour: f64,
}

impl Baseline {
    /// Reads it off what is kept of a resource.
    pub fn from_stored(kind: ResourceKind, status: &Status, polling: &Polling) -> Baseline {
        let is_failing = polling.failing_since.is_some();
        Baseline {
            is_known: kind == ResourceKind::Feed,
            title: status.title.clone(),
            last_good: if is_failing { polling.rate_at } else { status.last_fetch },
            is_failing,
            per_hour: polling.entries_per_hour,
        }
    }
}

/// What is to be done about one candidate.
#[derive(Clone, Debug, PartialEq)]
pub enum EntryChange {
    /// It is appended; [`Audience::Nobody`] says that it is old (rule N5).
    New(Audience),
    /// It says something else than it did: the new content is appended (rule N7).
    Updated(KnownEntry, Audience),
    /// The same, but too soon after the last time: the document is to be read again.
    PutOff(KnownEntry),
    /// It is known under another name, or what it said was not remembered: what it goes by
    /// and says now is remembered, and nobody is told (rules N3, N4).
    Learnt(KnownEntry),
    /// Nothing to do.
    Known(KnownEntry),
    /// The document holds it twice.
    Repeated,
}

impl EntryChange {
    /// The entry that it is taken for.
    pub fn known(&self) -> Option<&KnownEntry> {
        match self {
            EntryChange::Updated(known, _)
            | EntryChange::PutOff(known)
            | EntryChange::Learnt(known)
            | EntryChange::Known(known) => Some(known),
            EntryChange::New(_) | EntryChange::Repeated => None,
        }
    }

    /// Whether a record comes of it.
    pub fn is_appended(&self) -> bool {
        matches!(self, EntryChange::New(_) | EntryChange::Updated(..))
    }
}

/// What [`classify`] says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChangeSet {
    /// One for each candidate, in their order.
    pub verdicts: Vec<EntryChange>,
    /// What the publisher has taken back: places in the document's deletions, and the
    /// entry (rule N8).
    pub deleted: Vec<(usize, KnownEntry)>,
    /// How many entries came back under another name (rules N3, N4).
    pub renamed: usize,
    /// Whether this seems to be another feed than before (rule N5).
    pub is_another_feed: bool,
    /// Whether something that is to be appended was not rendered, because it was judged
    /// otherwise before: the document is to be read again.
    pub is_unrendered: bool,
}

impl ChangeSet {
    /// How many entries are news to everybody.
    pub fn new_records(&self) -> usize {
        self.count(
            |verdict| matches!(verdict, EntryChange::New(audience) if *audience != Audience::Nobody),
        )
    }

    /// How many entries are kept and not sent because they are old.
    pub fn old(&self) -> usize {
        self.count(|verdict| *verdict == EntryChange::New(Audience::Nobody))
    }

    /// How many entries say something else than they did.
    pub fn updated(&self) -> usize {
        self.count(|verdict| matches!(verdict, EntryChange::Updated(..)))
    }

    /// Whether there is something that has to be looked at again.
    pub fn is_put_off(&self) -> bool {
        let waits = |verdict: &EntryChange| matches!(verdict, EntryChange::PutOff(_));
        self.is_unrendered || self.verdicts.iter().any(waits)
    }

    /// Whether there is anything to keep, apart from what was seen once more.
    pub fn is_empty(&self) -> bool {
        let idle = |verdict: &EntryChange| {
            matches!(verdict, EntryChange::Known(_) | EntryChange::Repeated)
        };
        self.deleted.is_empty() && self.verdicts.iter().all(idle)
    }

    /// The bozo rank of the feed, given that of its document: ids that change are as bad as
    /// ids that repeat (rule N3).
    pub fn bozo_rank(&self, of_document: f64) -> f64 {
        let RepairWeight::Share(weight) = RepairCode::IdRepeated.weight() else {
            return of_document;
        };
        let share = self.renamed as f64 / self.verdicts.len().max(1) as f64;
        let rank = 1.0 - (1.0 - of_document) * (1.0 - weight * share);
        (rank * 100.0).round() / 100.0
    }

    /// What the status says of it, if it is out of the ordinary.
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

/// Says of each candidate what to do about it.
pub fn classify(
    document: &FeedDocument,
    known: &Known,
    standing: &Baseline,
    now: DateTime<Utc>,
) -> ChangeSet {
    let matched = matching::matched(document, known);
    let candidates = &document.candidates;
    let unknown = matched.iter().filter(|found| matches!(found, matching::Match::None)).count();
    let is_crowd = |many: usize| candidates.len() >= CROWD && many * 100 > candidates.len() * 80;
    let is_another_feed = standing.is_known
        && is_crowd(unknown)
        && !standing.title.is_empty()
        && standing.title != document.title;
    let audiences = new_entries::audiences(document, &matched, standing, is_another_feed);
    let mut changes = ChangeSet { is_another_feed, ..ChangeSet::default() };
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

/// "At most 24 notified updates per entry" (rule N7), because a counter inside a text would
/// be one for ever …
const MOST_UPDATES: u32 = 24;
/// … and what comes after them is kept this often, and sent to nobody.
const KEPT_EVERY: TimeDelta = TimeDelta::days(1);
/// "≥ 60 s apart" (rule N7).
const APART: TimeDelta = TimeDelta::seconds(60);
/// An update "not older than 3 minutes at the time of the fetch" is fresh (rule N7) …
const FRESH: TimeDelta = TimeDelta::minutes(3);

/// What is to be done about an entry that is known by its id.
fn revised(candidate: &Candidate, known: &KnownEntry, now: DateTime<Utc>) -> EntryChange {
    let Some(digest) = known.digest else { return EntryChange::Learnt(known.clone()) };
    if digest == candidate.digest && !known.is_deleted {
        return EntryChange::Known(known.clone());
    }
    let since = known.revised_at.map(|at| now - at);
    if known.revised >= MOST_UPDATES {
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
    let audience = if is_fresh { Audience::Fresh } else { Audience::Askers };
    EntryChange::Updated(known.clone(), audience)
}

/// The deletions of entries that are known and that the document does not hold besides.
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
