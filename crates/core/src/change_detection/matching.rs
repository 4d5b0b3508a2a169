//! Matches candidates with known entries (rules N3, N4).

use std::collections::HashSet;

use super::{Baseline, CROWD, Candidate, FeedDocument, Known, KnownEntry};
use crate::record::Seq;

/// The match of a candidate.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Match {
    /// No known entry.
    None,
    /// A known entry with the same id.
    Same(KnownEntry),
    /// A known entry with another id.
    Renamed(KnownEntry),
    /// An earlier candidate of the same document.
    Repeated,
}

/// The matches of all candidates, and what they say about the ids of the feed.
#[derive(Debug)]
pub(super) struct Matches {
    /// The matches, in the order of the candidates.
    pub(super) matched: Vec<Match>,
    /// See [`Baseline::id_changes`].
    pub(super) id_changes: u32,
}

/// The number of entries under another id, without any in between that kept its id, from which the
/// ids of a feed count as unreliable. So many may be sent twice; fewer would take a feed for
/// unreliable that has one entry, which is replaced by the next before it is fetched again.
const UNRELIABLE_FROM: u32 = 10;

/// Matches the candidates, by the most reliable sign first.
pub(super) fn matched(document: &FeedDocument, known: &Known, standing: &Baseline) -> Matches {
    let candidates = &document.candidates;
    let mut matched = vec![Match::None; candidates.len()];
    let mut taken: HashSet<Seq> = HashSet::new();
    match_ids(candidates, known, &mut matched, &mut taken);
    let is_kept = |(candidate, found): (&Candidate, &Match)| {
        candidate.has_own_id && matches!(found, Match::Same(_))
    };
    let are_ids_kept = candidates.iter().zip(&matched).any(is_kept);
    let by_bare = |candidate: &Candidate| known.get(candidate.bare?);
    match_rest(candidates, &mut matched, &mut taken, by_bare, Match::Same);
    let by_signs = |candidate: &Candidate| same(candidate, known);
    match_rest(candidates, &mut matched, &mut taken, by_signs, Match::Renamed);

    // An entry without a date, under another id, may be another entry that says the same.
    let in_doubt: Vec<usize> =
        (0..candidates.len()).filter(|at| is_in_doubt(&candidates[*at], &matched[*at])).collect();
    let id_changes = match u32::try_from(in_doubt.len()).unwrap_or(u32::MAX) {
        0 if are_ids_kept => 0,
        // Whoever announces a change says that there is something new.
        _ if standing.is_announced => standing.id_changes,
        count => standing.id_changes.saturating_add(count),
    };
    let is_unreliable = standing.id_changes >= UNRELIABLE_FROM;
    if !is_unreliable && (are_ids_kept || in_doubt.len() == 1) {
        for at in in_doubt {
            if let Match::Renamed(entry) = std::mem::replace(&mut matched[at], Match::None) {
                taken.remove(&entry.first);
            }
        }
    }
    if are_ids_kept && !is_unreliable {
        return Matches { matched, id_changes };
    }

    // If nearly all entries have another id, the ids have changed and not the entries (rule N4).
    let mut others = (matched.clone(), taken);
    // A link alone may be that of a page which all entries are about.
    let is_since = |date| standing.last_good.is_some_and(|last_good| date > last_good);
    let is_on_page = |candidate: &Candidate, entry: &KnownEntry| {
        entry.title == candidate.title && !candidate.date().is_some_and(is_since)
    };
    let by_any = |candidate: &Candidate| {
        let by_text = candidate.text.and_then(|text| known.get(text));
        by_text.or_else(|| known.get(candidate.link?).filter(|entry| is_on_page(candidate, entry)))
    };
    match_rest(candidates, &mut others.0, &mut others.1, by_any, Match::Renamed);
    let renamed = others.0.iter().filter(|found| matches!(found, Match::Renamed(_))).count();
    let is_crowd = candidates.len() >= CROWD && renamed * 100 > candidates.len() * 80;
    let matched = if is_crowd { others.0 } else { matched };
    Matches { matched, id_changes }
}

/// Matches candidates by their ids. An id that an entry had once, in place of its own, names another
/// entry if the document has that entry under its own id as well.
fn match_ids(
    candidates: &[Candidate],
    known: &Known,
    matched: &mut [Match],
    taken: &mut HashSet<Seq>,
) {
    let mut ids = HashSet::new();
    for (candidate, found) in candidates.iter().zip(&mut *matched) {
        if !ids.insert(candidate.id) {
            *found = Match::Repeated;
        }
    }
    for is_alias in [false, true] {
        let by_id =
            |candidate: &Candidate| known.get(candidate.id).filter(|e| e.is_alias == is_alias);
        match_rest(candidates, matched, taken, by_id, Match::Same);
    }
}

/// Returns whether a match by link and text may be wrong: the id is one that the publisher gave, and no
/// date says that both are the same.
fn is_in_doubt(candidate: &Candidate, found: &Match) -> bool {
    let Match::Renamed(entry) = found else { return false };
    let is_same_time = candidate.date().is_some()
        && (candidate.published, candidate.updated) == (entry.published, entry.updated);
    candidate.has_own_id && candidate.published.is_none() && !is_same_time
}

/// Matches the remaining candidates with the remaining known entries.
fn match_rest<'k>(
    candidates: &[Candidate],
    matched: &mut [Match],
    taken: &mut HashSet<Seq>,
    find: impl Fn(&Candidate) -> Option<&'k KnownEntry>,
    wrap: fn(KnownEntry) -> Match,
) {
    for (candidate, found) in candidates.iter().zip(matched) {
        if *found == Match::None
            && let Some(entry) = find(candidate)
            && taken.insert(entry.first)
        {
            *found = wrap(entry.clone());
        }
    }
}

/// Returns the known entry that a candidate is although its id differs (rule N3).
///
/// "link + (title or fingerprint) and the same publication date": if both have a date, the dates
/// must be equal to the second, and title and link, or else the text, must match. If neither has a
/// date, link and text must match.
fn same<'k>(candidate: &Candidate, known: &'k Known) -> Option<&'k KnownEntry> {
    let by_link = candidate.link.and_then(|link| known.get(link));
    let by_text = candidate.text.and_then(|text| known.get(text));
    // A date that is now the publication date (`dc:date`) was the update date of entries known for long.
    let was_update = |entry: &KnownEntry| {
        entry.published.is_none()
            && candidate.published.is_some()
            && entry.updated == candidate.published
    };
    let is_of_day =
        |entry: &&KnownEntry| entry.published == candidate.published || was_update(entry);
    if candidate.published.is_some() {
        let titled = |entry: &&KnownEntry| entry.title == candidate.title;
        return by_link.filter(is_of_day).filter(titled).or_else(|| by_text.filter(is_of_day));
    }
    let both = |entry: &&KnownEntry| by_text.is_some_and(|text| text.first == entry.first);
    by_link.filter(is_of_day).filter(both)
}
