//! The state of a feed or an entry, compared before and after an element is read into it.
//!
//! Comparing costs the same however long the texts are; otherwise a document of many
//! elements would take quadratic time.

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

    /// The names of the fields that have changed since.
    pub(super) fn changed_fields(&self, owner: &impl Traceable) -> Vec<&'static str> {
        let both = self.fingerprints.iter().zip(owner.fingerprints());
        both.filter(|(was, is)| was.1 != is.1).map(|(_, is)| is.0).collect()
    }

    /// Visits the trace ids of the items that were added since.
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

/// Distinguishes a value from another one without reading all of it: a text that is set
/// anew lies at another address, or has another length.
#[derive(Debug, PartialEq)]
pub(in crate::parse) enum Fingerprint {
    /// There is no value.
    Nothing,
    /// A text, by its address and length.
    Text(usize, usize),
    /// A date.
    Date(DateTime<FixedOffset>),
}

/// A feed or an entry, whose fields are compared.
pub(in crate::parse) trait Traceable {
    /// Its own trace id.
    fn trace_id(&mut self) -> &mut TraceId;
    /// Its lists.
    fn lists(&mut self) -> [&mut dyn List; LISTS];
    /// Its other fields, by name.
    fn fingerprints(&self) -> Vec<(&'static str, Fingerprint)>;
}

/// The fields that feeds and entries have alike.
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

/// An empty id is none.
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

/// A list that is only ever added to while a document is read.
pub(in crate::parse) trait List {
    /// How many there are.
    fn length(&self) -> usize;
    /// The trace id of one of them.
    fn trace_id(&mut self, at: usize) -> &mut TraceId;
}

/// One kind of items: all carry a trace id.
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
