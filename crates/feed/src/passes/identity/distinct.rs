//! Unique ids for entries that share one.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::{body, enclosure, hash, permalink, title};
use crate::iri;
use crate::model::Entry;
use crate::passes::outline;
use crate::repair::{Repair, RepairCode};

/// Makes ids unique within the document.
///
/// The oldest of the entries that share an id keeps it, because subscribers may already know it by
/// that id; a newer entry with that id would be dropped as known. Identical entries are dropped;
/// returns the indices that they had.
pub(super) fn make_distinct(
    entries: &mut Vec<Entry>,
    repairs: &mut Vec<Repair>,
) -> BTreeSet<usize> {
    let mut seen = HashSet::with_capacity(entries.len());
    if entries.iter().all(|entry| seen.insert(entry.id.as_str())) {
        return BTreeSet::new();
    }
    let mut sharing: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, entry) in entries.iter().enumerate() {
        sharing.entry(&entry.id).or_default().push(at);
    }
    let mut taken =
        Taken { ids: sharing.keys().map(|id| (*id).to_owned()).collect(), ..Taken::default() };
    let mut groups: Vec<Vec<usize>> = sharing.into_values().filter(|at| at.len() > 1).collect();
    groups.sort_unstable();
    // Sorted by position, so that the same input gives the same repairs.
    let mut renamed: BTreeMap<usize, String> = BTreeMap::new();
    let mut repeated: BTreeSet<usize> = BTreeSet::new();
    for at in groups {
        // Feeds list the newest entry first, unless their dates say otherwise.
        let oldest = at.iter().rev().min_by_key(|at| date(&entries[**at]));
        let keeper = oldest.copied().unwrap_or(at[0]);
        let keys: HashMap<usize, String> =
            at.iter().map(|at| (*at, content_key(&entries[*at]))).collect();
        let mut kept: HashMap<&str, Vec<usize>> = HashMap::new();
        kept.entry(&keys[&keeper]).or_default().push(keeper);
        for at in at.iter().copied().filter(|at| *at != keeper) {
            let alike = kept.entry(&keys[&at]).or_default();
            if alike.iter().any(|kept| entries[*kept] == entries[at]) {
                repeated.insert(at);
                continue;
            }
            alike.push(at);
            let key = (keys[&at] != keys[&keeper]).then_some(keys[&at].as_str());
            let mark = mark(&entries[at], &entries[keeper], key);
            renamed.insert(at, taken.another(&entries[at].id, mark.as_deref()));
        }
    }
    let repair = |code, entry: &Entry| Repair::new(code, &*entry.id).within(entry.trace_id);
    repairs.extend(repeated.iter().map(|at| repair(RepairCode::EntryRepeated, &entries[*at])));
    repairs.extend(renamed.keys().map(|at| repair(RepairCode::IdRepeated, &entries[*at])));
    for (at, id) in renamed {
        entries[at].id = id;
    }
    outline::remove_repeated(entries, &repeated);
    repeated
}

/// The ids in use.
#[derive(Default)]
struct Taken {
    ids: HashSet<String>,
    /// The number of attempts for each generated id.
    tried: HashMap<String, usize>,
}

impl Taken {
    /// Returns an unused id made of `id` and a mark. Entries with the same mark, or without one,
    /// are numbered.
    fn another(&mut self, id: &str, mark: Option<&str>) -> String {
        let made = mark.map_or_else(|| id.to_owned(), |mark| marked(id, mark));
        let tried = self.tried.entry(made.clone()).or_insert(1);
        let mut another = made.clone();
        while !self.ids.insert(another.clone()) {
            *tried += 1;
            another = match mark {
                Some(_) => format!("{made}.{tried}"),
                None => marked(id, &tried.to_string()),
            };
        }
        another
    }
}

/// Appends a mark to `id` such that the result is valid: before RFC 8141 a URN had no fragment, and
/// validators allow none; a UUID has a fixed length, so it is wrapped.
pub(super) fn marked(id: &str, mark: &str) -> String {
    let scheme = id.get(..9).unwrap_or(id).to_ascii_lowercase();
    if id.contains('#') {
        format!("{id}.{mark}")
    } else if scheme == "urn:uuid:" {
        format!("{}:{mark}", iri::urn("guid", id))
    } else if scheme.starts_with("urn:") {
        format!("{id}:{mark}")
    } else {
        format!("{id}#{mark}")
    }
}

/// Returns what distinguishes an entry from `keeper`, which has the same id: its link, its content
/// if it differs, or its `key`.
fn mark(entry: &Entry, keeper: &Entry, key: Option<&str>) -> Option<String> {
    let link = permalink(entry).filter(|link| Some(*link) != permalink(keeper));
    let mark = link.map(|link| hash(&[link])).or_else(|| key.map(str::to_owned))?;
    Some(mark[..16].to_owned())
}

/// Returns a hash of the title, content and enclosure of an entry.
pub(super) fn content_key(entry: &Entry) -> String {
    hash(&[&title(entry), &body(entry), enclosure(entry)])
}

fn date(entry: &Entry) -> Option<chrono::DateTime<chrono::FixedOffset>> {
    entry.published.or(entry.updated)
}
