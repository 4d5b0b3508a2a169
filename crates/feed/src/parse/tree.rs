//! The tree of an XML document, sound or broken.
//!
//! Nodes are stored in one vector and refer to each other by index, and nothing here recurses: no
//! document is deep or wide enough to exhaust the stack, not even when the tree is dropped. Names
//! and most texts are slices of the document.
//!
//! [`build()`] creates the tree, and [`XmlElement`] is the interface to it.

mod attributes;
mod build;
mod element;
mod entities;
mod implied;
mod markup;
mod named;
mod spaces;
mod tidy;
mod tokens;

use std::borrow::Cow;

pub(super) use build::{build, build_sound};
pub(super) use element::{XmlChild, XmlElement};
pub(super) use entities::resolve_into;
pub(super) use markup::{Items, is_item};
use spaces::Namespace;
pub(super) use tidy::{OriginalOffsets, tidy};

/// The index of the root node. It is not an element, and holds the top-level nodes.
const DOCUMENT: u32 = 0;
const NONE: u32 = u32::MAX;

/// The maximum length of a language tag, in bytes: each entry repeats it, and a document may have
/// thousands of entries (rule S16).
pub(super) const LONGEST_TAG_BYTES: usize = 64;

/// The tree of a document, borrowing from its text.
#[derive(Debug)]
pub(super) struct Tree<'t> {
    text: &'t str,
    nodes: Vec<Node<'t>>,
    attributes: Vec<XmlAttribute<'t>>,
    spaces: Vec<Namespace<'t>>,
    /// The item that was open when the document ended prematurely.
    cut: Option<u32>,
}

/// The nearest elements (an element itself or an ancestor) that declare the `xml:base` (or `base`)
/// and the `xml:lang` in force. Look-ups follow these references from one declaring element to the
/// next, because visiting all ancestors could take long.
#[derive(Clone, Copy, Debug)]
struct Scope {
    base: u32,
    lang: u32,
    /// The number of enclosing elements that declare a base.
    bases: u32,
}

impl Scope {
    /// The scope of the document node.
    const NONE: Scope = Scope { base: NONE, lang: NONE, bases: 0 };
}

#[derive(Debug)]
struct Node<'t> {
    parent: u32,
    next: u32,
    first: u32,
    last: u32,
    kind: Kind<'t>,
}

#[derive(Debug)]
enum Kind<'t> {
    Text(Cow<'t, str>),
    Element { prefix: &'t str, name: &'t str, space: u32, attributes: (u32, u32), scope: Scope },
}

impl<'t> Kind<'t> {
    /// Returns the local name as written.
    fn name(&self) -> &'t str {
        match self {
            Kind::Element { name, .. } => name,
            Kind::Text(_) => "",
        }
    }
}

/// An attribute. Namespace declarations are not attributes here.
#[derive(Debug)]
pub(super) struct XmlAttribute<'t> {
    pub(super) prefix: &'t str,
    pub(super) name: &'t str,
    space: u32,
    pub(super) value: Cow<'t, str>,
}

impl XmlAttribute<'_> {
    fn is_base_of(&self, element: XmlElement<'_>) -> bool {
        match self.prefix {
            "xml" => self.name == "base",
            "" => self.name.eq_ignore_ascii_case("base") && element.named("channel"),
            _ => false,
        }
    }
}

impl<'t> Tree<'t> {
    /// Returns the root node.
    pub(super) fn document(&'t self) -> XmlElement<'t> {
        XmlElement { tree: self, at: DOCUMENT }
    }

    /// Returns the item that the end of the document cut off.
    pub(super) fn cut(&'t self) -> Option<XmlElement<'t>> {
        self.cut.map(|at| XmlElement { tree: self, at })
    }
}

/// Returns the offset of `slice` in `text`; `None` if it is not a slice of it.
fn offset(text: &str, slice: &str) -> Option<usize> {
    let at = slice.as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    (at + slice.len() <= text.len()).then_some(at)
}
