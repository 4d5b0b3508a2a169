//! The way to an element, in the words of its kind of document.

use std::collections::HashMap;

use super::Place;
use crate::parse::html::Tag;
use crate::parse::tree::El;

/// Something that has a place in a document.
pub(in crate::parse) trait Located {
    /// Where it is.
    fn place(self, paths: &mut Paths) -> Place;
}

impl<N: Nested> Located for N {
    fn place(self, paths: &mut Paths) -> Place {
        Place { name: self.called(), path: paths.of(self), byte: self.start() }
    }
}

/// A value in the object that is a JSON feed, or in one of its items.
#[derive(Clone, Copy, Debug)]
pub(in crate::parse) struct Pointer<'f> {
    /// In which of `items`; in none of them otherwise.
    pub(in crate::parse) item: Option<usize>,
    /// The field; none means the object itself.
    pub(in crate::parse) field: &'f str,
    /// Which value, where the field is a list.
    pub(in crate::parse) index: Option<usize>,
}

impl Located for Pointer<'_> {
    fn place(self, _: &mut Paths) -> Place {
        let mut path = self.item.map(|n| format!("/items/{n}")).unwrap_or_default();
        if !self.field.is_empty() {
            path.push('/');
            path.push_str(&self.field.replace('~', "~0").replace('/', "~1"));
        }
        if let Some(index) = self.index {
            path.push_str(&format!("/{index}"));
        }
        Place { name: self.field.to_owned(), path, byte: None }
    }
}

/// An element that lies somewhere in a tree.
pub(in crate::parse) trait Nested: Copy {
    /// A number that no other element of the document has.
    fn key(self) -> usize;
    /// What it is called, prefix included.
    fn called(self) -> String;
    /// The byte of the text at which it begins, if that is known.
    fn start(self) -> Option<usize>;
    /// The element around it.
    fn around(self) -> Option<Self>;
    /// The elements in it.
    fn inside(self) -> Vec<Self>;
    /// The way to what nothing is around.
    fn top(self) -> String;
    /// The way to something of a name, of which it is the one with that number, if there
    /// are several.
    fn step(outer: &str, name: &str, number: Option<usize>) -> String;
}

impl Nested for El<'_> {
    fn key(self) -> usize {
        self.number()
    }

    fn called(self) -> String {
        match self.prefix() {
            "" => self.name().to_owned(),
            prefix => format!("{prefix}:{}", self.name()),
        }
    }

    fn start(self) -> Option<usize> {
        El::start(self)
    }

    fn around(self) -> Option<Self> {
        self.parent()
    }

    fn inside(self) -> Vec<Self> {
        self.elements().collect()
    }

    fn top(self) -> String {
        String::new()
    }

    fn step(outer: &str, name: &str, number: Option<usize>) -> String {
        number.map_or_else(|| format!("{outer}/{name}"), |n| format!("{outer}/{name}[{n}]"))
    }
}

impl Nested for Tag<'_> {
    fn key(self) -> usize {
        self.number()
    }

    fn called(self) -> String {
        self.name().to_owned()
    }

    fn start(self) -> Option<usize> {
        None
    }

    fn around(self) -> Option<Self> {
        self.parent()
    }

    fn inside(self) -> Vec<Self> {
        self.elements().collect()
    }

    fn top(self) -> String {
        self.called()
    }

    fn step(outer: &str, name: &str, number: Option<usize>) -> String {
        let number = number.map(|n| format!(":nth-of-type({n})")).unwrap_or_default();
        format!("{outer} > {name}{number}")
    }
}

/// The ways that were found.
#[derive(Debug, Default)]
pub(in crate::parse) struct Paths(HashMap<usize, String>);

impl Paths {
    /// The way to an element. Those to its neighbours are found with it, because a long
    /// document has many side by side, and counting them anew for each would take
    /// quadratic time.
    pub(super) fn of<N: Nested>(&mut self, element: N) -> String {
        let chain: Vec<N> = std::iter::successors(Some(element), |held| held.around()).collect();
        let mut outward = chain.into_iter().rev();
        let Some(mut around) = outward.next() else { return String::new() };
        let mut path = around.top();
        for element in outward {
            if !self.0.contains_key(&element.key()) {
                self.number(around, &path);
            }
            if let Some(found) = self.0.get(&element.key()) {
                found.clone_into(&mut path);
            }
            around = element;
        }
        path
    }

    fn number<N: Nested>(&mut self, around: N, path: &str) {
        let inside: Vec<(N, String)> =
            around.inside().into_iter().map(|held| (held, held.called())).collect();
        let mut counts: HashMap<&str, usize> = HashMap::new();
        inside.iter().for_each(|(_, name)| *counts.entry(name).or_default() += 1);
        let mut met: HashMap<&str, usize> = HashMap::new();
        for (element, name) in &inside {
            let met = met.entry(name).or_default();
            *met += 1;
            let several = counts.get(name.as_str()).is_some_and(|count| *count > 1);
            let step = N::step(path, name, several.then_some(*met));
            self.0.insert(element.key(), step);
        }
    }
}
