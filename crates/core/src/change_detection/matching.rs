//! Matches candidates with known entries (rules N3, N4).

use std::collections::HashSet;

use super::{CROWD, Candidate, FeedDocument, Known, KnownEntry};
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

/// Matches the candidates, by the most reliable sign first.
pub(super) fn matched(document: &FeedDocument, known: &Known) -> Vec<Match> {
    let candidates = &document.candidates;
    let mut matched = vec![Match::None; candidates.len()];
    let mut taken: HashSet<Seq> = HashSet::new();
    let mut ids = HashSet::new();
    for (candidate, found) in candidates.iter().zip(&mut matched) {
        if !ids.insert(candidate.id) {
            *found = Match::Repeated;
        } else if let Some(entry) = known.get(candidate.id) {
            let is_first = taken.insert(entry.first);
            *found = if is_first { Match::Same(entry.clone()) } else { Match::Repeated };
        }
    }
    let by_bare = |candidate: &Candidate| known.get(candidate.bare?);
    match_rest(candidates, &mut matched, &mut taken, by_bare, Match::Same);
    let by_signs = |candidate: &Candidate| same(candidate, known);
    match_rest(candidates, &mut matched, &mut taken, by_signs, Match::Renamed);

    // If nearly all entries have another id, the ids have changed and not the entries (rule N4).
    let mut others = (matched.clone(), taken.clone());
    let by_any = |candidate: &Candidate| {
        let by_text = candidate.text.and_then(|text| known.get(text));
        by_text.or_else(|| known.get(candidate.link?))
    };
    match_rest(candidates, &mut others.0, &mut others.1, by_any, Match::Renamed);
    let renamed = others.0.iter().filter(|found| matches!(found, Match::Renamed(_))).count();
    let is_crowd = candidates.len() >= CROWD && renamed * 100 > candidates.len() * 80;
    if is_crowd { others.0 } else { matched }
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
    let is_of_day = |entry: &&KnownEntry| entry.published == candidate.published;
    if candidate.published.is_some() {
        let titled = |entry: &&KnownEntry| entry.title == candidate.title;
        return by_link.filter(is_of_day).filter(titled).or_else(|| by_text.filter(is_of_day));
    }
    let both = |entry: &&KnownEntry| by_text.is_some_and(|text| text.first == entry.first);
    by_link.filter(is_of_day).filter(both)
}
