//! What a feed or an entry holds before and after something is read into it.
//!
//! A look costs the same however long the texts are, so that a document of many elements
//! is not looked at in quadratic time.

use chrono::{DateTime, FixedOffset};

use crate::model::{Category, Content, Element, Entry, Feed, Link, Person, Text};
use crate::trace_id::Mark;

/// What a feed or entry was like.
#[derive(Debug)]
pub(in crate::parse) struct Before {
    lengths: [usize; LISTS],
    prints: Vec<(&'static str, Print)>,
}

impl Before {
    pub(super) fn of(of: &mut impl Filled) -> Before {
        Before { lengths: of.lists().map(|list| list.length()), prints: of.prints() }
    }

    /// The fields that were set since.
    pub(super) fn filled(&self, of: &impl Filled) -> Vec<&'static str> {
        let both = self.prints.iter().zip(of.prints());
        both.filter(|(was, is)| was.1 != is.1).map(|(_, is)| is.0).collect()
    }

    /// Comes to the marks of the items that were added since.
    pub(super) fn added(&self, of: &mut impl Filled, mut at: impl FnMut(&mut Mark)) {
        for (length, list) in self.lengths.into_iter().zip(of.lists()) {
            (length..list.length()).for_each(|item| at(list.mark(item)));
        }
    }
}

const LISTS: usize = 5;

/// What tells a value from another one without a look at all of it: a text that is set
/// anew lies elsewhere, or is of another length.
#[derive(Debug, PartialEq)]
pub(in crate::parse) enum Print {
    /// There is none.
    Nothing,
    /// A text, by its address and length.
    Lies(usize, usize),
    /// A date.
    Date(DateTime<FixedOffset>),
}

/// A feed or an entry: what can be read into it.
pub(in crate::parse) trait Filled {
    /// Its own mark.
    fn mark(&mut self) -> &mut Mark;
    /// Its lists.
    fn lists(&mut self) -> [&mut dyn List; LISTS];
    /// Its other fields, by name.
    fn prints(&self) -> Vec<(&'static str, Print)>;
}

/// The fields that feeds and entries have alike.
macro_rules! mark_and_lists {
    () => {
        fn mark(&mut self) -> &mut Mark {
            &mut self.mark
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

impl Filled for Feed {
    mark_and_lists!();

    fn prints(&self) -> Vec<(&'static str, Print)> {
        let generator = self.generator.as_ref();
        vec![
            ("id", string(&self.id)),
            ("title", text(self.title.as_ref())),
            ("subtitle", text(self.subtitle.as_ref())),
            ("rights", text(self.rights.as_ref())),
            ("updated", date(self.updated)),
            ("generator", generator.map_or(Print::Nothing, |made| lies(&made.name))),
            ("icon", optional(self.icon.as_ref())),
            ("logo", optional(self.logo.as_ref())),
            ("lang", optional(self.lang.as_ref())),
            ("base", optional(self.base.as_ref())),
        ]
    }
}

impl Filled for Entry {
    mark_and_lists!();

    fn prints(&self) -> Vec<(&'static str, Print)> {
        let content = self.content.as_ref().map_or(Print::Nothing, |content| match content {
            Content::Text(Text { value, .. })
            | Content::Media { value, .. }
            | Content::Xml { value, .. }
            | Content::Src { href: value, .. } => lies(value),
        });
        let source = self.source.as_deref();
        let source = source.map(|source| Print::Lies(std::ptr::from_ref(source).addr(), 0));
        vec![
            ("id", string(&self.id)),
            ("title", text(self.title.as_ref())),
            ("summary", text(self.summary.as_ref())),
            ("content", content),
            ("rights", text(self.rights.as_ref())),
            ("published", date(self.published)),
            ("updated", date(self.updated)),
            ("source", source.unwrap_or(Print::Nothing)),
            ("lang", optional(self.lang.as_ref())),
            ("base", optional(self.base.as_ref())),
        ]
    }
}

fn lies(text: &str) -> Print {
    Print::Lies(text.as_ptr().addr(), text.len())
}

/// An empty id is none.
fn string(text: &str) -> Print {
    if text.is_empty() { Print::Nothing } else { lies(text) }
}

fn optional(text: Option<&String>) -> Print {
    text.map_or(Print::Nothing, |text| lies(text))
}

fn text(text: Option<&Text>) -> Print {
    text.map_or(Print::Nothing, |text| lies(&text.value))
}

fn date(date: Option<DateTime<FixedOffset>>) -> Print {
    date.map_or(Print::Nothing, Print::Date)
}

/// A list that is only ever added to while a document is read.
pub(in crate::parse) trait List {
    /// How many there are.
    fn length(&self) -> usize;
    /// The mark of one of them.
    fn mark(&mut self, at: usize) -> &mut Mark;
}

/// One kind of items: all bear a mark.
macro_rules! lists {
    ($($item:ty)*) => {
        $(
            impl List for Vec<$item> {
                fn length(&self) -> usize {
                    self.len()
                }

                fn mark(&mut self, at: usize) -> &mut Mark {
                    &mut self[at].mark
                }
            }
        )*
    };
}

lists! { Person Link Category Element }
