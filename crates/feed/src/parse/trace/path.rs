//! Paths to elements, in the notation for the kind of document.

use std::collections::HashMap;

use super::SourceLocation;
#[cfg(feature = "html")]
use crate::parse::html::HtmlElement;
use crate::parse::tree::XmlElement;

/// A value that has a location in a document.
pub(in crate::parse) trait Locate {
    /// Returns the location.
    fn location(self, paths: &mut Paths) -> SourceLocation;
}

impl<N: TreeNode> Locate for N {
    fn location(self, paths: &mut Paths) -> SourceLocation {
        SourceLocation {
            name: self.qualified_name(),
            path: paths.path_to(self),
            byte: self.start(),
        }
    }
}

/// A value of a JSON feed.
#[derive(Clone, Copy, Debug)]
pub(in crate::parse) struct JsonPointer<'f> {
    /// The index of the item; `None` for the feed itself.
    pub(in crate::parse) item: Option<usize>,
    /// The name of the field; empty for the object itself.
    pub(in crate::parse) field: &'f str,
    /// The index of the value, in a list.
    pub(in crate::parse) index: Option<usize>,
}

impl Locate for JsonPointer<'_> {
    fn location(self, _: &mut Paths) -> SourceLocation {
        let mut path = self.item.map(|n| format!("/items/{n}")).unwrap_or_default();
        if !self.field.is_empty() {
            path.push('/');
            path.push_str(&self.field.replace('~', "~0").replace('/', "~1"));
        }
        if let Some(index) = self.index {
            path.push_str(&format!("/{index}"));
        }
        SourceLocation { name: self.field.to_owned(), path, byte: None }
    }
}

/// An element of a tree.
pub(in crate::parse) trait TreeNode: Copy {
    /// Returns a number that identifies the element in its document.
    fn number(self) -> usize;
    /// Returns the name with its prefix.
    fn qualified_name(self) -> String;
    /// Returns the byte offset in the text, if it is known.
    fn start(self) -> Option<usize>;
    /// Returns the parent element.
    fn parent_node(self) -> Option<Self>;
    /// Returns the child elements.
    fn child_nodes(self) -> Vec<Self>;
    /// Returns the path to an element that has no parent.
    fn root_path(self) -> String;
    /// Returns the path to a child, with its number if several children share its name.
    fn step(outer: &str, name: &str, number: Option<usize>) -> String;
}

impl TreeNode for XmlElement<'_> {
    fn number(self) -> usize {
        self.number()
    }

    fn qualified_name(self) -> String {
        match self.prefix() {
            "" => self.name().to_owned(),
            prefix => format!("{prefix}:{}", self.name()),
        }
    }

    fn start(self) -> Option<usize> {
        XmlElement::start(self)
    }

    fn parent_node(self) -> Option<Self> {
        self.parent()
    }

    fn child_nodes(self) -> Vec<Self> {
        self.elements().collect()
    }

    fn root_path(self) -> String {
        String::new()
    }

    fn step(outer: &str, name: &str, number: Option<usize>) -> String {
        number.map_or_else(|| format!("{outer}/{name}"), |n| format!("{outer}/{name}[{n}]"))
    }
}

#[cfg(feature = "html")]
impl TreeNode for HtmlElement<'_> {
    fn number(self) -> usize {
        self.number()
    }

    fn qualified_name(self) -> String {
        self.name().to_owned()
    }

    fn start(self) -> Option<usize> {
        None
    }

    fn parent_node(self) -> Option<Self> {
        self.parent()
    }

    fn child_nodes(self) -> Vec<Self> {
        self.elements().collect()
    }

    fn root_path(self) -> String {
        self.qualified_name()
    }

    fn step(outer: &str, name: &str, number: Option<usize>) -> String {
        let number = number.map(|n| format!(":nth-of-type({n})")).unwrap_or_default();
        format!("{outer} > {name}{number}")
    }
}

/// A cache of paths by element number.
#[derive(Debug, Default)]
pub(in crate::parse) struct Paths(HashMap<usize, String>);

impl Paths {
    /// Returns the path to an element. The paths of all its siblings are computed with it: a long
    /// document has many siblings, and counting them for each would take quadratic time.
    pub(super) fn path_to<N: TreeNode>(&mut self, element: N) -> String {
        let chain: Vec<N> =
            std::iter::successors(Some(element), |held| held.parent_node()).collect();
        let mut outward = chain.into_iter().rev();
        let Some(mut parent) = outward.next() else { return String::new() };
        let mut path = parent.root_path();
        for element in outward {
            if !self.0.contains_key(&element.number()) {
                self.number_children(parent, &path);
            }
            if let Some(found) = self.0.get(&element.number()) {
                found.clone_into(&mut path);
            }
            parent = element;
        }
        path
    }

    /// Computes the paths to all children of an element.
    fn number_children<N: TreeNode>(&mut self, parent: N, path: &str) {
        let inside: Vec<(N, String)> =
            parent.child_nodes().into_iter().map(|held| (held, held.qualified_name())).collect();
        let mut counts: HashMap<&str, usize> = HashMap::new();
        inside.iter().for_each(|(_, name)| *counts.entry(name).or_default() += 1);
        let mut met: HashMap<&str, usize> = HashMap::new();
        for (element, name) in &inside {
            let met = met.entry(name).or_default();
            *met += 1;
            let several = counts.get(name.as_str()).is_some_and(|count| *count > 1);
            let step = N::step(path, name, several.then_some(*met));
            self.0.insert(element.number(), step);
        }
    }
}
