//! Which known entry a candidate is (rules N3, N4).

use std::collections::HashSet;

use super::{CROWD, Candidate, FeedDocument, Known, KnownEntry};
use crate::record::Seq;

/// What a candidate was found to be.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Match {
    /// Nothing that is known.
    None,
    /// A known entry, by its id.
    Same(KnownEntry),
    /// A known entry under another id.
    Renamed(KnownEntry),
    /// A candidate before it.
    Repeated,
}

/// Matches the candidates, from the surest sign to the weakest.
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

    // Where nearly all have another id, the ids have changed and not the entries (N4).
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

/// Matches candidates that are matched with nothing yet with entries that nothing yet is.
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

/// The entry that a candidate is although it has another id (rule N3).
///
/// "link + (title or fingerprint) and the same publication date": where both have a date,
/// it must be the same to the second, and title and link, or else the text, must agree;
/// where neither has, link and text must.
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
