//! Which place of the document each value came from, for explanations.
//!
//! Formats and modules do not report what they read an element into. The trace compares a
//! feed or an entry before and after an element is read, and what has changed came from
//! that element: so nothing that a format or a module does can be left out. Scalar fields
//! are recorded by their owner and name, items of lists carry a [`TraceId`], which stays with
//! them through all passes.
//!
//! A trace that does not record costs one comparison for each element.

mod path;
mod snapshot;

use std::collections::HashMap;

use path::Paths;
pub(super) use path::{JsonPointer, Locate};
pub(super) use snapshot::{Snapshot, Traceable};

use crate::model::TraceId;

/// A place in a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SourceLocation {
    /// The name of the element as written, or of the field of a JSON object.
    pub(crate) name: String,
    /// The path to it: `/rss/channel/item[2]/title` in XML, a JSON pointer (RFC 6901), or a
    /// CSS selector in a page.
    pub(crate) path: String,
    /// The byte of the decoded text at which it begins; not known in JSON and pages.
    pub(crate) byte: Option<usize>,
}

/// Where each value of a feed came from.
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
    /// Where the value with this trace id came from.
    pub(crate) fn item(&self, id: TraceId) -> Option<&SourceLocation> {
        self.locations.get(*self.items.get(id.number()?.checked_sub(1)?)?)
    }

    /// Where a scalar field of the feed, entry or source with this trace id came from.
    pub(crate) fn field(&self, owner: TraceId, name: &'static str) -> Option<&SourceLocation> {
        self.locations.get(*self.fields.get(&(owner.number(), name))?)
    }

    /// The document as text, in which the bytes of locations count.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// A trace that records; the default one does not.
    pub(super) fn recording() -> SourceTrace {
        SourceTrace { is_recording: true, ..SourceTrace::default() }
    }

    /// Keeps the text of the document.
    pub(super) fn set_text(&mut self, text: &str) {
        if self.is_recording {
            text.clone_into(&mut self.text);
        }
    }

    /// The offsets of all locations, to be changed.
    pub(super) fn offsets_mut(&mut self) -> impl Iterator<Item = &mut usize> {
        self.locations.iter_mut().filter_map(|location| location.byte.as_mut())
    }

    /// The state of a feed or entry before something is read into it.
    pub(super) fn snapshot(&self, owner: &mut impl Traceable) -> Option<Snapshot> {
        self.is_recording.then(|| Snapshot::new(owner))
    }

    /// Records that everything read into `owner` since `before` came from `element`.
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

    /// Gives a feed or entry, which begins at `element`, its trace id.
    pub(super) fn begin(&mut self, owner: &mut impl Traceable, element: impl Locate) {
        if self.is_recording {
            let location = self.add_location(element);
            self.items.push(location);
            *owner.trace_id() = TraceId::numbered(self.items.len());
        }
    }

    /// Records where a scalar field of this owner came from.
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
