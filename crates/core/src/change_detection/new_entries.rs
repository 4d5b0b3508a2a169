//! Distinguishes new entries from old ones that were not known (rule N5).

use chrono::{DateTime, TimeDelta, Utc};

use super::matching::Match;
use super::{Baseline, Candidate, FeedDocument};
use crate::record::Audience;

/// The number of new entries in one document that is never unusual.
const FEW: usize = 25;
/// An entry dated more than this before the last fetch was not published since.
const GRACE: TimeDelta = TimeDelta::hours(48);
/// The number of entries without dates, the newest ones, that are sent of a document that has become
/// another feed. In any other document they are news: nothing says that they are old.
const MOST_UNDATED: usize = 10;
/// A feed may publish this much more than on average before its new entries count as a flood.
const LIVELY: f64 = 4.0;
/// Averages over a longer time are not used to estimate a number of entries.
const LONGEST_HOURS: f64 = 24.0 * 30.0;

/// Returns the audience of each candidate, should it be new.
pub(super) fn audiences(
    document: &FeedDocument,
    matched: &[Match],
    standing: &Baseline,
    is_another_feed: bool,
) -> Vec<Audience> {
    let candidates = &document.candidates;
    if let Some(changed_at) = standing.document_changed_at {
        let audience = |candidate| document.audience_after_document(candidate, changed_at);
        return candidates.iter().map(audience).collect();
    }
    let mut audiences = vec![Audience::Everybody; candidates.len()];
    let (true, Some(last_good)) = (standing.is_known, standing.last_good) else { return audiences };
    for at in out_of_the_middle(document, matched) {
        audiences[at] = Audience::Nobody;
    }
    let is_new = |at: usize| matched[at] == Match::None;
    let is_old =
        |candidate: &Candidate| candidate.date().is_some_and(|date| date < last_good - GRACE);
    let new = (0..candidates.len()).filter(|at| is_new(*at)).count();
    let is_flood = new > most_expected(document, standing, last_good);
    if is_flood || is_another_feed {
        let mut undated = 0;
        for at in (0..candidates.len()).rev().filter(|at| is_new(*at)) {
            let is_crowded = is_another_feed && candidates[at].date().is_none() && {
                undated += 1;
                undated > MOST_UNDATED
            };
            if is_old(&candidates[at]) || is_crowded {
                audiences[at] = Audience::Nobody;
            }
        }
        return audiences;
    }
    // When newer entries are removed from a document, older ones reappear at its end.
    let far_end = matched.iter().take_while(|found| **found == Match::None).count();
    if far_end < candidates.len() {
        for at in (0..far_end).filter(|at| is_old(&candidates[*at])) {
            audiences[at] = Audience::Nobody;
        }
    }
    audiences
}

/// Returns the unknown entries beside the gap of a document that is read at both ends only. They come
/// out of the middle, where entries that were added or removed have moved them, unless everything on
/// that side is unknown.
fn out_of_the_middle(document: &FeedDocument, matched: &[Match]) -> Vec<usize> {
    let Some(gap) = document.gap else { return Vec::new() };
    let (before, after) = matched.split_at(gap.min(matched.len()));
    let is_unknown = |found: &&Match| **found == Match::None;
    let run = before.iter().rev().take_while(is_unknown).count();
    let from = if run < before.len() { before.len() - run } else { before.len() };
    let run = after.iter().take_while(is_unknown).count();
    let to = if run < after.len() { before.len() + run } else { before.len() };
    (from..to).collect()
}

/// Returns "max(25, half of the document)", or as many entries as a feed with this rate may have
/// published since.
fn most_expected(document: &FeedDocument, standing: &Baseline, last_good: DateTime<Utc>) -> usize {
    let hours = (document.at - last_good).num_seconds().max(0) as f64 / 3_600.0;
    let lively = standing.per_hour * hours.min(LONGEST_HOURS) * LIVELY;
    FEW.max(document.candidates.len() / 2).max(lively as usize)
}
