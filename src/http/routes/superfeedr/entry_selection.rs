//! Which of the stored entries a request retrieves: how many, and those that match its filter (row Q-5).

use sha2::{Digest, Sha256};
use tokio::task::yield_now;

use super::params;
use crate::http::kit::rejection::Rejection;
use feedgate_core::query::{EntryFilter, EntryMatcher};
use feedgate_core::record::Record;
use feedgate_core::resource::Resource;
use feedgate_protocol::form::Form;

/// The bytes of entries that end an answer, which has at least one entry; the client asks for the
/// next ones by the id of the last.
pub(super) const MAX_BYTES: usize = 4 << 20;

/// How many entries are compared with a filter for one answer: as many as an answer has at most.
const MAX_COMPARED: usize = 50;

/// Which entries of those in a range are requested.
#[derive(Debug)]
pub(super) struct EntrySelection {
    count: usize,
    /// Decides about each entry; `None`: all are requested.
    matcher: Option<EntryMatcher>,
}

impl EntrySelection {
    pub(super) fn from_form(form: &Form) -> Result<EntrySelection, Rejection> {
        let filter = params::filter(form)?;
        let matcher = filter.as_ref().map(EntryFilter::matcher).transpose();
        let matcher = matcher.map_err(|err| Rejection::unavailable(&err))?;
        Ok(EntrySelection { count: params::count(form)?, matcher })
    }

    /// Returns how many entries are read.
    pub(super) fn read_limit(&self) -> usize {
        if self.matcher.is_some() { MAX_COMPARED } else { self.count }
    }

    /// Returns the requested ones of the entries that were read, newest first: the newest of them, or, if
    /// the range is read upwards, the oldest.
    pub(super) async fn select<'r>(
        &self,
        read: Vec<(&'r Resource, Record)>,
        is_upwards: bool,
    ) -> Vec<(&'r Resource, Record)> {
        let Some(matcher) = &self.matcher else { return read };
        let mut selected = Vec::new();
        for (resource, record) in read {
            if matcher.matches(resource, &record) {
                selected.push((resource, record));
            }
            // Comparing an entry takes a fraction of a millisecond.
            yield_now().await;
        }
        let surplus = selected.len().saturating_sub(self.count);
        if is_upwards {
            selected.drain(..surplus);
        }
        selected.truncate(self.count);
        selected
    }
}

/// Returns the end of the entity tag of a document without the entries that a filter leaves out.
pub(super) fn filter_mark(form: &Form) -> String {
    let digest = form.get("filter").map(|filter| hex::encode(&Sha256::digest(filter)[..6]));
    digest.map_or_else(String::new, |digest| format!("-{digest}"))
}
