//! Snapshots of a feed or entry, compared before and after an element is read into it.
//!
//! The cost of comparing does not depend on the length of texts; a document of many elements would
//! otherwise take quadratic time.

use chrono::{DateTime, FixedOffset};

use crate::model::TraceId;
use crate::model::{Category, Content, Element, Entry, Feed, Link, Person, Text};

/// The lengths of the lists of a feed or entry, and fingerprints of its other fields.
#[derive(Debug)]
pub(in crate::parse) struct Snapshot {
    lengths: [usize; LISTS],
    fingerprints: Vec<(&'static str, Fingerprint)>,
}

impl Snapshot {
    pub(super) fn new(owner: &mut impl Traceable) -> Snapshot {
        Snapshot {
            lengths: owner.lists().map(|list| list.length()),
            fingerprints: owner.fingerprints(),
        }
    }

    /// Returns the names of the fields that have changed since the snapshot.
    pub(super) fn changed_fields(&self, owner: &impl Traceable) -> Vec<&'static str> {
        let both = self.fingerprints.iter().zip(owner.fingerprints());
        both.filter(|(was, is)| was.1 != is.1).map(|(_, is)| is.0).collect()
    }

    /// Calls `visit` with the trace id of each item added since the snapshot.
    pub(super) fn for_added_items(
        &self,
        owner: &mut impl Traceable,
        mut visit: impl FnMut(&mut TraceId),
    ) {
        for (length, list) in self.lengths.into_iter().zip(owner.lists()) {
            (length..list.length()).for_each(|item| visit(list.trace_id(item)));
        }
    }
}

const LISTS: usize = 5;

/// Distinguishes a value from an earlier one without reading all of it: a replaced text lies at
/// another address or has another length.
#[derive(Debug, PartialEq)]
pub(in crate::parse) enum Fingerprint {
    /// An absent value.
    Nothing,
    /// A text, by its address and length.
    Text(usize, usize),
    /// A date.
    Date(DateTime<FixedOffset>),
}

/// A feed or an entry, whose fields are compared.
pub(in crate::parse) trait Traceable {
    /// Returns the trace id of the feed or entry itself.
    fn trace_id(&mut self) -> &mut TraceId;
    /// Returns the lists.
    fn lists(&mut self) -> [&mut dyn List; LISTS];
    /// Returns the other fields, by name.
    fn fingerprints(&self) -> Vec<(&'static str, Fingerprint)>;
}

/// Implements the members that feeds and entries share.
macro_rules! trace_id_and_lists {
    () => {
        fn trace_id(&mut self) -> &mut TraceId {
            &mut self.trace_id
        }

        fn lists(&mut self) -> [&mut dyn List; LISTS] {
            [
                &mut self.authors,
                &mut self.contributors,
                &mut self.links,
                &mut self.categories,
                &mut self.extensions,
            ]
        }
    };
}

impl Traceable for Feed {
    trace_id_and_lists!();

    fn fingerprints(&self) -> Vec<(&'static str, Fingerprint)> {
        let generator = self.generator.as_ref();
        vec![
            ("id", string(&self.id)),
            ("title", of_construct(self.title.as_ref())),
            ("subtitle", of_construct(self.subtitle.as_ref())),
            ("rights", of_construct(self.rights.as_ref())),
            ("updated", date(self.updated)),
            ("generator", generator.map_or(Fingerprint::Nothing, |made| of_text(&made.name))),
            ("icon", optional(self.icon.as_ref())),
            ("logo", optional(self.logo.as_ref())),
            ("lang", optional(self.lang.as_ref())),
            ("base", optional(self.base.as_ref())),
        ]
    }
}

impl Traceable for Entry {
    trace_id_and_lists!();

    fn fingerprints(&self) -> Vec<(&'static str, Fingerprint)> {
        let content = self.content.as_ref().map_or(Fingerprint::Nothing, |content| match content {
            Content::Text(Text { value, .. })
            | Content::Media { value, .. }
            | Content::Xml { value, .. }
            | Content::Src { href: value, .. } => of_text(value),
        });
        let source = self.source.as_deref();
        let source = source.map(|source| Fingerprint::Text(std::ptr::from_ref(source).addr(), 0));
        vec![
            ("id", string(&self.id)),
            ("title", of_construct(self.title.as_ref())),
            ("summary", of_construct(self.summary.as_ref())),
            ("content", content),
            ("rights", of_construct(self.rights.as_ref())),
            ("published", date(self.published)),
            ("updated", date(self.updated)),
            ("source", source.unwrap_or(Fingerprint::Nothing)),
            ("lang", optional(self.lang.as_ref())),
            ("base", optional(self.base.as_ref())),
        ]
    }
}

fn of_text(text: &str) -> Fingerprint {
    Fingerprint::Text(text.as_ptr().addr(), text.len())
}

/// Returns the fingerprint of an id; an empty one is absent.
fn string(text: &str) -> Fingerprint {
    if text.is_empty() { Fingerprint::Nothing } else { of_text(text) }
}

fn optional(text: Option<&String>) -> Fingerprint {
    text.map_or(Fingerprint::Nothing, |text| of_text(text))
}

fn of_construct(text: Option<&Text>) -> Fingerprint {
    text.map_or(Fingerprint::Nothing, |text| of_text(&text.value))
}

fn date(date: Option<DateTime<FixedOffset>>) -> Fingerprint {
    date.map_or(Fingerprint::Nothing, Fingerprint::Date)
}

/// A list that only grows while a document is read.
pub(in crate::parse) trait List {
    /// Returns the number of items.
    fn length(&self) -> usize;
    /// Returns the trace id of the item at an index.
    fn trace_id(&mut self, at: usize) -> &mut TraceId;
}

/// Implements [`List`] for item types that carry a trace id.
macro_rules! lists {
    ($($item:ty)*) => {
        $(
            impl List for Vec<$item> {
                fn length(&self) -> usize {
                    self.len()
                }

                fn trace_id(&mut self, at: usize) -> &mut TraceId {
                    &mut self[at].trace_id
                }
            }
        )*
    };
}

lists! { Person Link Category Element }
