//! Backfills that were claimed, and how they progress.

use chrono::{DateTime, Utc};

use crate::backfill::Backfill;
use crate::claim::ClaimToken;
use crate::resource::Resource;

/// A backfill that was claimed, with its resource.
#[derive(Clone, Debug, PartialEq)]
pub struct DueBackfill {
    /// The progress of the backfill.
    pub backfill: Backfill,
    /// The claim, which the results of the step name.
    pub claim: ClaimToken,
    /// The resource as it stood when claimed.
    pub resource: Resource,
}

/// What came of appending a batch of staged entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitProgress {
    /// More entries may be staged.
    More,
    /// No entry is left, and the backfill is complete.
    Complete,
    /// Nothing was appended, because the claim was lost.
    ClaimLost,
}

/// What came of staging the entries of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StagedPage {
    /// All of them are staged, and the backfill has advanced to the next document.
    Staged,
    /// The claim was lost, or the document was staged before.
    ClaimLost,
    /// The budget of the network for which they are stored is used up. The document is read again at
    /// this time, not earlier.
    Postponed(DateTime<Utc>),
}
