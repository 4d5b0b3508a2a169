//! What a poll found, while it is being stored in one transaction or several.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};

use crate::engine::sqlite::WriteSize;
use crate::log::document_parts::{AppendProgress, PART_BYTES, PART_ENTRIES};
use crate::log::entries::OldEntries;
use feedgate_core::change_detection::FeedDocument;
use feedgate_core::poll::{NewContent, Poll};
use feedgate_core::store::Appended;

/// What a poll found, and how much of it is stored. Clones share the poll and its document.
#[derive(Clone)]
pub(crate) struct Recording {
    /// Without its document.
    pub(super) poll: Arc<Poll>,
    pub(super) document: Option<Arc<FeedDocument>>,
    pub(super) progress: AppendProgress,
    /// When the earliest subscription was made, if entries published since then are new to it.
    pub(super) since: Option<DateTime<Utc>>,
}

impl Recording {
    /// Returns the recording of a poll of which nothing is stored.
    pub(crate) fn new(mut poll: Poll) -> Recording {
        let document = match std::mem::take(&mut poll.found) {
            NewContent::Feed(document) => Some(Arc::new(document)),
            other => {
                poll.found = other;
                None
            }
        };
        let progress = AppendProgress::new(poll.at, poll.trigger);
        Recording { poll: Arc::new(poll), document, progress, since: None }
    }

    /// Returns when the poll ended.
    pub(crate) fn at(&self) -> DateTime<Utc> {
        self.poll.at
    }

    /// Moves the times of the poll, because the clock was set since it ended.
    pub(crate) fn move_times(&mut self, by: TimeDelta) {
        if !by.is_zero() {
            Arc::make_mut(&mut self.poll).move_times(by);
        }
    }

    /// Returns whether it is stored in several transactions.
    pub(crate) fn is_divided(&self) -> bool {
        self.document.as_deref().is_some_and(is_divided)
    }

    /// Returns how large its transactions are.
    pub(crate) fn write_size(&self) -> WriteSize {
        let body_bytes = self.poll.body.as_ref().map_or(0, |body| body.bytes.len());
        match &self.document {
            Some(document) if is_large(document) => WriteSize::Large,
            _ if body_bytes >= LARGE_BYTES => WriteSize::Large,
            _ => WriteSize::Small,
        }
    }
}

/// What became of a part of a recording.
pub(crate) enum Recorded {
    /// Nothing was stored, because the claim of the poll was lost.
    ClaimLost,
    /// A part of the document was stored; the rest is stored by further transactions.
    Part(Recording),
    /// A part of the document was stored, and the budget of the network for which it is stored is used
    /// up: the next poll, which is not to come earlier, finds the rest.
    OverBudget(DateTime<Utc>),
    /// Everything was stored. Entries of the resource that are no longer remembered can be deleted.
    All(Appended, Option<OldEntries>),
}

/// What became of a part of a pushed document.
pub(crate) struct PushedPart {
    pub(crate) appended: Appended,
    /// How much is stored; `None` if nothing is left to store.
    pub(crate) rest: Option<AppendProgress>,
}

/// The number of entries, and the bytes of a body or of all entries, from which on an operation does
/// not share its transaction with others.
const LARGE_ENTRIES: usize = 50;
const LARGE_BYTES: usize = 256 << 10;

/// Returns whether storing a document is a large operation.
pub(crate) fn is_large(document: &FeedDocument) -> bool {
    let (count, bytes) = rendered(document);
    write_size(count, bytes) == WriteSize::Large
}

/// Returns how large an operation is that stores so many entries with so many bytes in all.
pub(crate) fn write_size(count: usize, bytes: usize) -> WriteSize {
    match count >= LARGE_ENTRIES || bytes >= LARGE_BYTES {
        true => WriteSize::Large,
        false => WriteSize::Small,
    }
}

/// Returns whether a document is stored in parts.
pub(crate) fn is_divided(document: &FeedDocument) -> bool {
    let (count, bytes) = rendered(document);
    count > PART_ENTRIES || bytes > PART_BYTES
}

/// Returns how many entries of a document are rendered, and their bytes.
fn rendered(document: &FeedDocument) -> (usize, usize) {
    let rendered = document.candidates.iter().filter_map(|candidate| candidate.atom.as_ref());
    rendered.fold((0, 0), |(count, bytes), atom| (count + 1, bytes + atom.len()))
}
