//! The revisions of an entry that are stored, and what one changed of the one before it.

mod comparison;

use std::time::Duration;

use chrono::{DateTime, Utc};
use maud::{Markup, html};

use crate::http::kit::html::parts::{relative_time, timestamp};
use crate::http::kit::rejection::Rejection;
use crate::http::routes::console::feeds::SECTION;
use crate::http::routes::console::visit::Visit;
use feedgate_core::record::{Record, RecordPlace, Seq};
use feedgate_core::resource::Resource;

use comparison::{Comparison, compare};

/// The most revisions that are listed.
const REVISIONS: usize = 10;
/// How long a page waits for memory for an entry.
const ADMISSION_WAIT: Duration = Duration::from_secs(5);

/// The revisions of an entry.
pub(super) struct Revisions {
    /// The newest revisions, newest first.
    places: Vec<RecordPlace>,
    /// The revision that the page displays.
    displayed: Seq,
    /// What it changed, and of which revision.
    changes: Option<(Seq, Comparison)>,
}

impl Revisions {
    /// Reads the revisions, and compares the one of the page with the one that the parameter `compare` names,
    /// or with the one before it.
    pub(super) async fn read(
        visit: &Visit,
        resource: &Resource,
        record: &Record,
    ) -> Result<Revisions, Rejection> {
        let unavailable = |err| Rejection::unavailable(&err);
        let store = &visit.gateway.store;
        let places = store.revisions(resource.id, &record.entry_id, REVISIONS).await;
        let places = places.map_err(unavailable)?;
        let named = visit.value("compare").parse().ok().map(Seq);
        let is_named = |place: &&RecordPlace| match named {
            Some(named) => place.seq == named && named != record.seq,
            None => place.seq < record.seq,
        };
        let other = places.iter().find(is_named).map(|place| place.seq);
        let mut revisions = Revisions { places, displayed: record.seq, changes: None };
        let Some(other) = other else { return Ok(revisions) };
        let read = store.read_after(resource.id, Seq(other.0 - 1), 1).await.map_err(unavailable)?;
        let Some(other) = read.into_iter().find(|read| read.seq == other) else {
            return Ok(revisions);
        };
        let memory = visit.gateway.documents.admit(other.atom.as_bytes(), ADMISSION_WAIT).await;
        let memory = memory.map_err(Rejection::busy)?;
        let (number, resource, record) = (other.seq, resource.clone(), record.clone());
        let (older, newer) = if number < record.seq { (other, record) } else { (record, other) };
        let compared = memory.run_blocking(move || compare(&resource, &older, &newer)).await;
        revisions.changes = compared.map(|changes| (number, changes));
        Ok(revisions)
    }

    /// Returns the part of the page; nothing of an entry that was never changed.
    pub(super) fn section(&self, visit: &Visit, resource: &Resource, now: DateTime<Utc>) -> Markup {
        let folder = format!("{SECTION}/{}/entries", resource.id);
        let address = |query: String| visit.address(&format!("{folder}/{query}"));
        html! {
            @if self.places.len() > 1 {
                h2 #revisions { "Revisions" }
                table.records {
                    thead { tr { @for name in ["Number", "Received", "Changes"] {
                        th scope="col" { (name) }
                    } } }
                    tbody { @for place in &self.places {
                        tr {
                            td data-name="" {
                                a href=(address(place.seq.to_string()))
                                    aria-current=[(place.seq == self.displayed).then_some("true")] {
                                    (place.seq)
                                }
                                " " (super::kind(place.kind))
                            }
                            td data-name="Received" {
                                (timestamp(place.at)) " (" (relative_time(place.at, now)) ")"
                            }
                            td data-name="Changes" {
                                @if place.seq == self.displayed { "this page" } @else {
                                    a href=(address(format!(
                                        "{}?compare={}#revisions", self.displayed, place.seq
                                    ))) { "compare" }
                                }
                            }
                        }
                    } }
                }
                @if let Some((other, changes)) = &self.changes {
                    h3 { "Compared with number " (other) }
                    (changes.table())
                }
            }
        }
    }
}
