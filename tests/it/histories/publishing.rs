//! A publisher's deeds, as a poll finds them.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use feedgate_core::change_detection::Deletion;
use feedgate_core::change_detection::{Candidate, FeedDocument};
use feedgate_core::poll::{NewContent, Poll};
use feedgate_core::visibility::SourceNetwork;
use feedgate_feed::model::TOMBSTONES;
use feedgate_feed::model::{Attribute, Element, Entry, Text};
use feedgate_feed::render;

use super::script::{Batch, Deed};
use crate::store::{at, poll};

/// Seconds between two polls: an entry may be updated once a minute (rule N7).
const APART_S: i64 = 61;

/// The entries of one feed, and all that was ever said of them.
#[derive(Debug, Default)]
pub(super) struct Feed {
    /// Whether each is there still.
    there: Vec<bool>,
    /// How often it was polled.
    polls: i64,
    /// What was said, in the order in which it is to stand in the archive.
    pub(super) printed: Vec<String>,
}

impl Feed {
    /// What a poll finds before anything is published. Nobody may read the archive of a feed of which
    /// it is not known where it comes from (rule S56).
    pub(super) fn is_read(now: DateTime<Utc>) -> Poll {
        Poll { source_network: Some(SourceNetwork::Public), ..poll(now, &[]) }
    }

    /// What the next poll finds, after all of this was done.
    pub(super) fn next(&mut self, batch: &Batch) -> Poll {
        self.polls += 1;
        let now = at(self.polls * APART_S);
        let (mut candidates, mut deletions) = (Vec::new(), Vec::new());
        let (mut told, mut gone) = (Vec::new(), Vec::new());
        let mut touched = HashSet::new();
        for deed in &batch.deeds {
            let number = match *deed {
                Deed::Write => self.there.len(),
                Deed::Rewrite(which) | Deed::TakeBack(which) => match self.there.len() {
                    0 => continue,
                    many => usize::from(which) % many,
                },
            };
            if !touched.insert(number) {
                continue;
            }
            match deed {
                Deed::TakeBack(_) if !self.there[number] => {}
                Deed::TakeBack(_) => {
                    self.there[number] = false;
                    deletions.push(taken_back(number, now));
                    gone.push(format!("{} is gone since {}", id(number), now.to_rfc3339()));
                }
                Deed::Write | Deed::Rewrite(_) => {
                    self.there.resize(self.there.len().max(number + 1), true);
                    self.there[number] = true;
                    let says = format!("{} says {}", id(number), self.printed.len() + told.len());
                    candidates.push(saying(number, &says, now));
                    told.push(says);
                }
            }
        }
        // What is taken back is told after the rest of a document.
        self.printed.extend(told.into_iter().chain(gone));
        let document = FeedDocument { at: now, candidates, deletions, ..FeedDocument::default() };
        Poll { found: NewContent::Feed(document), ..Feed::is_read(now) }
    }
}

fn id(number: usize) -> String {
    format!("tag:tides.test,2026:{number}")
}

fn saying(number: usize, says: &str, now: DateTime<Utc>) -> Candidate {
    let entry = Entry {
        id: id(number),
        title: Some(Text::plain(says)),
        updated: Some(now.fixed_offset()),
        ..Entry::default()
    };
    Candidate::of_id(&entry.id, render::atom::entry(&entry))
}

fn taken_back(number: usize, now: DateTime<Utc>) -> Deletion {
    let attribute = |name: &str, value: String| {
        let name = name.to_owned();
        Attribute { name, value, ..Attribute::default() }
    };
    let element = Element {
        namespace: TOMBSTONES.to_owned(),
        prefix: "at".to_owned(),
        name: "deleted-entry".to_owned(),
        attributes: vec![attribute("ref", id(number)), attribute("when", now.to_rfc3339())],
        ..Element::default()
    };
    let atom = Some(render::atom::deletion(&element));
    Deletion { atom, ..Deletion::from_element(&element).unwrap() }
}
