//! Which place of the document each value came from, for those who ask.
//!
//! Nobody tells the trace what an element is read into. It looks at a feed or an entry
//! before and after an element is read, and what has changed came from there: so nothing
//! that a format or a module does can be forgotten. Scalar fields are noted by their
//! owner and name, items of lists bear a [`Mark`], which stays with them through all
//! passes.
//!
//! Where no trace is asked for, a look costs one comparison and everything else nothing.

mod filled;
mod path;

use std::collections::HashMap;

pub(super) use filled::{Before, Filled};
use path::Paths;
pub(super) use path::{Located, Pointer};

use crate::trace_id::Mark;

/// A place in a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The name of the element as written, or of the field of a JSON object.
    pub name: String,
    /// The way to it: `/rss/channel/item[2]/title` in XML, a JSON pointer (RFC 6901), or a
    /// CSS selector in a page.
    pub path: String,
    /// The byte of the decoded text at which it begins; not known in JSON and pages.
    pub byte: Option<usize>,
}

/// Where everything came from.
#[derive(Debug, Default)]
pub struct Trace {
    is_kept: bool,
    /// The document as text.
    text: String,
    places: Vec<Place>,
    /// The places of items of lists, by their marks.
    marked: Vec<usize>,
    /// The places of scalar fields, by the mark of their owner.
    fields: HashMap<(Option<usize>, &'static str), usize>,
    paths: Paths,
}

impl Trace {
    /// Where what bears this mark came from.
    pub fn place(&self, mark: Mark) -> Option<&Place> {
        self.places.get(*self.marked.get(mark.number()?.checked_sub(1)?)?)
    }

    /// Where a scalar field of the feed, entry or source with this mark came from.
    pub fn field(&self, owner: Mark, name: &'static str) -> Option<&Place> {
        self.places.get(*self.fields.get(&(owner.number(), name))?)
    }

    /// The document as text; bytes of places count in it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// A trace that is kept.
    pub(super) fn kept() -> Trace {
        Trace { is_kept: true, ..Trace::default() }
    }

    /// Keeps the text.
    pub(super) fn finish(&mut self, text: &str) {
        if self.is_kept {
            text.clone_into(&mut self.text);
        }
    }

    /// Where all places begin, to be changed.
    pub(super) fn bytes(&mut self) -> impl Iterator<Item = &mut usize> {
        self.places.iter_mut().filter_map(|place| place.byte.as_mut())
    }

    /// A look at a feed or entry before something is read into it.
    pub(super) fn before(&self, of: &mut impl Filled) -> Option<Before> {
        self.is_kept.then(|| Before::of(of))
    }

    /// What was read into it since, came from `element`.
    pub(super) fn after(
        &mut self,
        before: Option<Before>,
        of: &mut impl Filled,
        element: impl Located,
    ) {
        let Some(before) = before else { return };
        let place = self.at(element);
        let owner = of.mark().number();
        for name in before.filled(of) {
            self.fields.insert((owner, name), place);
        }
        before.added(of, |mark| {
            self.marked.push(place);
            *mark = Mark::numbered(self.marked.len());
        });
    }

    /// What is read from now on is of this owner, which begins at `element`.
    pub(super) fn begin(&mut self, of: &mut impl Filled, element: impl Located) {
        if self.is_kept {
            let place = self.at(element);
            self.marked.push(place);
            *of.mark() = Mark::numbered(self.marked.len());
        }
    }

    /// Notes where a scalar field of this owner came from.
    pub(super) fn note(&mut self, owner: Mark, name: &'static str, element: impl Located) {
        if self.is_kept {
            let place = self.at(element);
            self.fields.insert((owner.number(), name), place);
        }
    }

    fn at(&mut self, element: impl Located) -> usize {
        self.places.push(element.place(&mut self.paths));
        self.places.len() - 1
    }
}
