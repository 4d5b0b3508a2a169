//! Which of the newest entries of a feed one service has, and the other has not.
//!
//! Both list the newest entry first, and neither lists all. So only the entries down to the oldest one
//! that both list are compared: an older one may just be too old for the other's list. An entry is the
//! same if it has the same id, here also that of the source (`originalId`), or else the same link, if no
//! other entry has that.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The most ids that are stored of what only one of them has.
const MAX_IDS: usize = 1_000;

/// The result of comparing a feed, over all comparisons so far.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub(super) enum TopicComparison {
    /// Both have the same entries.
    Same,
    /// The ids of entries that one of them has, and the other has never had.
    Different { only_here: Vec<String>, only_there: Vec<String> },
    /// There is nothing to compare.
    NotCompared { reason: String },
}

impl TopicComparison {
    /// Returns why a feed is not the same at both; `None` if it is.
    pub(super) fn reason(&self) -> Option<String> {
        match self {
            TopicComparison::Same => None,
            TopicComparison::Different { only_here, only_there } => {
                let sides = [("here", only_here), ("at Superfeedr", only_there)];
                let sides = sides.iter().filter(|(_, ids)| !ids.is_empty());
                let texts: Vec<String> = sides
                    .map(|(place, ids)| format!("{} only {place}: {}", ids.len(), first_of(ids)))
                    .collect();
                Some(texts.join("; "))
            }
            TopicComparison::NotCompared { reason } => Some(reason.clone()),
        }
    }
}

/// Returns the first ids, for a line of a report.
fn first_of(ids: &[String]) -> String {
    const MOST: usize = 5;
    let more = if ids.len() > MOST { ", …" } else { "" };
    format!("{}{more}", ids[..ids.len().min(MOST)].join(", "))
}

/// An entry as one of the services lists it.
#[derive(Clone, Debug)]
pub(super) struct ListedEntry {
    /// The ids, that of the source last.
    ids: Vec<String>,
    link: Option<String>,
}

impl ListedEntry {
    /// The id of the source, or else the link.
    fn name(&self) -> String {
        self.ids.last().or(self.link.as_ref()).cloned().unwrap_or_default()
    }
}

/// Reads the entries of a document in JSON, newest first.
pub(super) fn read_entries(document: &[u8]) -> Result<Vec<ListedEntry>, String> {
    let document: Value =
        serde_json::from_slice(document).map_err(|_| "the answer is not JSON".to_owned())?;
    let items = match &document["items"] {
        Value::Array(items) => items.as_slice(),
        Value::Null if document["status"].is_object() => &[],
        _ => return Err("the answer has no entries".to_owned()),
    };
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let entries = items.iter().map(|item| ListedEntry {
        ids: [&item["id"], &item["originalId"]].into_iter().filter_map(text).collect(),
        link: text(&item["permalinkUrl"]),
    });
    Ok(entries.filter(|entry| !entry.name().is_empty()).collect())
}

/// What a list of entries contains.
struct EntryIndex<'e> {
    ids: HashSet<&'e str>,
    /// Links that one entry has.
    links: HashSet<&'e str>,
}

impl<'e> EntryIndex<'e> {
    fn new(entries: &'e [ListedEntry]) -> EntryIndex<'e> {
        let mut links: BTreeMap<&str, usize> = BTreeMap::new();
        for link in entries.iter().filter_map(|entry| entry.link.as_deref()) {
            *links.entry(link).or_default() += 1;
        }
        let links = links.into_iter().filter(|(_, count)| *count == 1).map(|(link, _)| link);
        let ids = entries.iter().flat_map(|entry| &entry.ids).map(String::as_str);
        EntryIndex { ids: ids.collect(), links: links.collect() }
    }

    /// Returns whether this list has an entry of the list `own`.
    fn contains(&self, entry: &ListedEntry, own: &EntryIndex<'_>) -> bool {
        let is_unique = |link: &&str| own.links.contains(link) && self.links.contains(link);
        entry.ids.iter().any(|id| self.ids.contains(&**id))
            || entry.link.as_deref().filter(is_unique).is_some()
    }

    /// Returns whether this list has an entry with this [name](ListedEntry::name).
    fn has_name(&self, name: &str) -> bool {
        self.ids.contains(name) || self.links.contains(name)
    }
}

/// Compares what both list now, and adds it to what was found `before`.
pub(super) fn compare_entries(
    before: Option<&TopicComparison>,
    here: &[ListedEntry],
    there: &[ListedEntry],
) -> TopicComparison {
    let (in_here, in_there) = (EntryIndex::new(here), EntryIndex::new(there));
    let Some(only_here) = only_in(here, &in_here, &in_there) else {
        if here.is_empty() && there.is_empty() {
            return TopicComparison::Same;
        }
        let (here, there) = (here.len(), there.len());
        let reason = format!("no entry is at both, {here} are here and {there} at Superfeedr");
        return TopicComparison::NotCompared { reason };
    };
    let only_there = only_in(there, &in_there, &in_here).unwrap_or_default();
    let (before_here, before_there) = match before {
        Some(TopicComparison::Different { only_here, only_there }) => (&**only_here, &**only_there),
        _ => (&[][..], &[][..]),
    };
    let only_here = joined(before_here, only_here, &in_there);
    let only_there = joined(before_there, only_there, &in_here);
    match only_here.is_empty() && only_there.is_empty() {
        true => TopicComparison::Same,
        false => TopicComparison::Different { only_here, only_there },
    }
}

/// Returns how many of the newest entries here contain all that Superfeedr does not list, and so has not
/// sent. 0 if nothing is missing there; `None` if nothing can be compared.
pub(super) fn missing_there(here: &[ListedEntry], there: &[ListedEntry]) -> Option<usize> {
    if here.is_empty() {
        return Some(0);
    }
    let (in_here, in_there) = (EntryIndex::new(here), EntryIndex::new(there));
    let is_there = |entry: &ListedEntry| in_there.contains(entry, &in_here);
    let oldest = here.iter().rposition(is_there)?;
    Some(here[..oldest].iter().rposition(|entry| !is_there(entry)).map_or(0, |at| at + 1))
}

/// Returns the names of the entries that the other list does not have, down to the oldest one that it
/// has; `None` if it has none.
fn only_in(
    entries: &[ListedEntry],
    own: &EntryIndex<'_>,
    other: &EntryIndex<'_>,
) -> Option<Vec<String>> {
    let oldest = entries.iter().rposition(|entry| other.contains(entry, own))?;
    let missing = entries[..oldest].iter().filter(|entry| !other.contains(entry, own));
    Some(missing.map(ListedEntry::name).collect())
}

/// Joins what was missing at the other service before, and is still, with what is missing now.
fn joined(before: &[String], now: Vec<String>, other: &EntryIndex<'_>) -> Vec<String> {
    let known: HashSet<&String> = before.iter().collect();
    let still = before.iter().filter(|name| !other.has_name(name)).cloned();
    let new: Vec<String> = now.into_iter().filter(|name| !known.contains(name)).collect();
    still.chain(new).take(MAX_IDS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Entries with these ids; of one with a colon, the second part is the id of the source.
    fn entries(ids: &str) -> Vec<ListedEntry> {
        let items: Vec<Value> = ids
            .split_whitespace()
            .map(|id| match id.split_once(':') {
                Some((id, original)) => json!({ "id": id, "originalId": original }),
                None => json!({ "id": id }),
            })
            .collect();
        read_entries(json!({ "items": items }).to_string().as_bytes()).unwrap()
    }

    fn different(here: &[&str], there: &[&str]) -> TopicComparison {
        let owned = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
        TopicComparison::Different { only_here: owned(here), only_there: owned(there) }
    }

    #[test]
    fn entries_down_to_the_oldest_common_one_are_compared() {
        let same = TopicComparison::Same;
        #[rustfmt::skip]
        let cases = [
            ("3 2 1",   "3 2 1",     same.clone(),                0),
            ("3 2",     "3 2 1 0",   same.clone(),                0),
            ("",        "",          same.clone(),                0),
            ("u:3 u:2", "3 2",       same.clone(),                0),
            ("4 3 2",   "3 2",       different(&["4"], &[]),      1),
            ("4 3 2 1", "4 2",       different(&["3"], &[]),      2),
            ("3 1",     "3 2 1 0",   different(&[], &["2"]),      0),
            ("5 3 1",   "4 3 2 1",   different(&["5"], &["4", "2"]), 1),
        ];
        for (here, there, want, missing) in cases {
            let (ours, theirs) = (entries(here), entries(there));
            assert_eq!(compare_entries(None, &ours, &theirs), want, "{here} | {there}");
            assert_eq!(missing_there(&ours, &theirs), Some(missing), "{here} | {there}");
        }
        for (here, there) in [("1", ""), ("", "1"), ("2", "1")] {
            let compared = compare_entries(None, &entries(here), &entries(there));
            assert!(matches!(compared, TopicComparison::NotCompared { .. }), "{here} | {there}");
            let missing = missing_there(&entries(here), &entries(there));
            assert_eq!(missing, here.is_empty().then_some(0), "{here} | {there}");
        }
    }

    #[test]
    fn what_comes_later_is_no_difference_and_what_never_comes_stays_one() {
        let before = different(&["3"], &["2"]);
        let later = compare_entries(Some(&before), &entries("4 3 2 1"), &entries("4 3 2 1"));
        assert_eq!(later, TopicComparison::Same);
        let gone = compare_entries(Some(&before), &entries("9 8"), &entries("9 8"));
        assert_eq!(gone, before);
        let more = compare_entries(Some(&before), &entries("5 4"), &entries("4"));
        assert_eq!(more, different(&["3", "5"], &["2"]));
    }

    #[test]
    fn links_count_where_ids_were_generated_and_where_they_are_of_one_entry() {
        let list = |prefix: &str, links: &[&str]| {
            let items = links.iter().enumerate();
            let items = items
                .map(|(n, link)| json!({ "id": format!("{prefix}{n}"), "permalinkUrl": link }));
            let document = json!({ "items": items.collect::<Vec<_>>() });
            read_entries(document.to_string().as_bytes()).unwrap()
        };
        let (here, there) = (list("h", &["/2", "/1"]), list("t", &["/2", "/1"]));
        assert_eq!(compare_entries(None, &here, &there), TopicComparison::Same);
        let (here, there) = (list("h", &["/", "/"]), list("t", &["/", "/"]));
        let compared = compare_entries(None, &here, &there);
        assert!(matches!(compared, TopicComparison::NotCompared { .. }), "{compared:?}");
    }

    #[test]
    fn a_document_that_is_no_feed_is_not_compared() {
        assert!(read_entries(b"{\"status\":{\"code\":200}}").unwrap().is_empty());
        for document in ["", "<html>", "[1]", "{\"price\":3}"] {
            assert!(read_entries(document.as_bytes()).is_err(), "{document}");
        }
    }

    #[test]
    fn reasons_name_the_first_entries() {
        let ids: Vec<String> = (1..8).map(|n| n.to_string()).collect();
        let many = TopicComparison::Different { only_here: vec![], only_there: ids };
        assert_eq!(many.reason().unwrap(), "7 only at Superfeedr: 1, 2, 3, 4, 5, …");
        assert_eq!(
            different(&["a"], &["b"]).reason().unwrap(),
            "1 only here: a; 1 only at Superfeedr: b"
        );
    }
}
