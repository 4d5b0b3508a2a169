//! The first feed of a resource that was a document of another kind until now: which of its entries are new.
//!
//! Such a document was sent whole whenever it changed. It becomes a feed when its publisher replaces it, or
//! when a new version of this program reads its format. What was in the document when it was last sent is
//! old, and everything else is new. If the document before cannot be read as a feed of the same format, the
//! date of an entry decides.

use std::collections::HashMap;

use chrono::{DateTime, Utc};

use super::{Candidate, FeedDocument};
use crate::record::{Audience, Digest, EntryKey};

/// The entries of the document before, with the digests of their contents.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FormerDocument {
    digests: HashMap<EntryKey, Digest>,
}

impl FormerDocument {
    /// Returns the entries of a document.
    pub fn from_document(document: &FeedDocument) -> FormerDocument {
        let entries = document.candidates.iter();
        FormerDocument { digests: entries.map(|entry| (entry.id, entry.digest)).collect() }
    }
}

impl FeedDocument {
    /// Returns the audience of an entry, should it be new, of a resource whose document last changed at
    /// `changed_at`.
    pub(super) fn audience_after_document(
        &self,
        candidate: &Candidate,
        changed_at: DateTime<Utc>,
    ) -> Audience {
        let is_new = match &self.former {
            Some(former) => former.digests.get(&candidate.id) != Some(&candidate.digest),
            None => self.new_to_earlier_than(candidate).is_some_and(|until| until > changed_at),
        };
        if is_new { Audience::Everybody } else { Audience::Nobody }
    }
}
