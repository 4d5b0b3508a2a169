//! The trace of a document: which location each value came from, for explanations.
//!
//! Formats and modules do not report which fields they fill. The trace compares a feed or an entry
//! before and after an element is read, and attributes every change to that element, so no format
//! or module can forget to report. Scalar fields are recorded by owner and name. Items of lists
//! carry a [`TraceId`], which stays with them through all passes.
//!
//! A trace that does not record costs one comparison for each element.

mod path;
mod snapshot;

use std::collections::HashMap;

use path::Paths;
pub(super) use path::{JsonPointer, Locate};
pub(super) use snapshot::{Snapshot, Traceable};

use crate::model::TraceId;

/// A location in a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SourceLocation {
    /// The name of the element as written, or of the field of a JSON object.
    pub(crate) name: String,
    /// The path: `/rss/channel/item[2]/title` in XML, a JSON pointer (RFC 6901), or a CSS selector
    /// in a page.
    pub(crate) path: String,
    /// The byte offset in the decoded text; unknown in JSON and pages.
    pub(crate) byte: Option<usize>,
}

/// The locations of all values of a feed.
#[derive(Debug, Default)]
pub(crate) struct SourceTrace {
    is_recording: bool,
    /// The document as text.
    text: String,
    locations: Vec<SourceLocation>,
    /// The locations of items of lists, by their trace ids.
    items: Vec<usize>,
    /// The locations of scalar fields, by the trace id of their owner.
    fields: HashMap<(Option<usize>, &'static str), usize>,
    paths: Paths,
}

impl SourceTrace {
    /// Returns the location of the value with this trace id.
    pub(crate) fn item(&self, id: TraceId) -> Option<&SourceLocation> {
        self.locations.get(*self.items.get(id.number()?.checked_sub(1)?)?)
    }

    /// Returns the location of a scalar field of the feed, entry or source with this trace id.
    pub(crate) fn field(&self, owner: TraceId, name: &'static str) -> Option<&SourceLocation> {
        self.locations.get(*self.fields.get(&(owner.number(), name))?)
    }

    /// Returns the decoded text that the byte offsets refer to.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Creates a trace that records; the default trace does not.
    pub(super) fn recording() -> SourceTrace {
        SourceTrace { is_recording: true, ..SourceTrace::default() }
    }

    /// Stores the text of the document.
    pub(super) fn set_text(&mut self, text: &str) {
        if self.is_recording {
            text.clone_into(&mut self.text);
        }
    }

    /// Returns the byte offsets of all locations, for adjustment.
    pub(super) fn offsets_mut(&mut self) -> impl Iterator<Item = &mut usize> {
        self.locations.iter_mut().filter_map(|location| location.byte.as_mut())
    }

    /// Returns the state of a feed or entry before an element is read into it.
    pub(super) fn snapshot(&self, owner: &mut impl Traceable) -> Option<Snapshot> {
        self.is_recording.then(|| Snapshot::new(owner))
    }

    /// Records that all changes of `owner` since `before` came from `element`.
    pub(super) fn record_changes(
        &mut self,
        before: Option<Snapshot>,
        owner: &mut impl Traceable,
        element: impl Locate,
    ) {
        let Some(before) = before else { return };
        let location = self.add_location(element);
        let number = owner.trace_id().number();
        for name in before.changed_fields(owner) {
            self.fields.insert((number, name), location);
        }
        before.for_added_items(owner, |id| {
            self.items.push(location);
            *id = TraceId::numbered(self.items.len());
        });
    }

    /// Assigns a trace id to a feed or entry that begins at `element`.
    pub(super) fn begin(&mut self, owner: &mut impl Traceable, element: impl Locate) {
        if self.is_recording {
            let location = self.add_location(element);
            self.items.push(location);
            *owner.trace_id() = TraceId::numbered(self.items.len());
        }
    }

    /// Records the location of a scalar field of this owner.
    pub(super) fn record_field(
        &mut self,
        owner: TraceId,
        name: &'static str,
        element: impl Locate,
    ) {
        if self.is_recording {
            let location = self.add_location(element);
            self.fields.insert((owner.number(), name), location);
        }
    }

    fn add_location(&mut self, element: impl Locate) -> usize {
        self.locations.push(element.location(&mut self.paths));
        self.locations.len() - 1
    }
}
