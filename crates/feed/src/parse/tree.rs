//! A document as a tree, however broken it was.
//!
//! Nodes lie in one vector and point at each other by index, and nothing here recurses:
//! a document can be neither deep nor wide enough to exhaust the stack, not even when
//! the tree is dropped. Names and most texts are slices of the document.
//!
//! [`build()`] makes it, [`XmlElement`] is how everybody else looks at it.

mod attributes;
mod build;
mod element;
mod entities;
mod implied;
mod markup;
mod mend;
mod named;
mod spaces;
mod tidy;
mod tokens;

use std::borrow::Cow;

pub(super) use build::build;
pub(super) use element::{XmlChild, XmlElement};
pub(super) use entities::resolve_into;
pub(super) use markup::{Items, is_item};
use spaces::Namespace;
pub(super) use tidy::{OriginalOffsets, tidy};

/// The root of every tree: no element, it holds whatever lies at the top.
const DOCUMENT: u32 = 0;
const NONE: u32 = u32::MAX;

/// The longest tag of a language that is one, in bytes: each entry has it, and a document
/// may hold thousands (rule S16).
pub(super) const LONGEST_TAG_BYTES: usize = 64;

/// A tree over a document's text.
#[derive(Debug)]
pub(super) struct Tree<'t> {
    text: &'t str,
    nodes: Vec<Node<'t>>,
    attributes: Vec<XmlAttribute<'t>>,
    spaces: Vec<Namespace<'t>>,
    /// The item that was open when the document broke off in the middle of it.
    cut: Option<u32>,
}

/// Which elements tell the `xml:base` (or `base`) and the `xml:lang` in force at an element:
/// itself or the nearest around it. Who looks for them goes from one to the next of those
/// and not through all that is around, which may be much.
#[derive(Clone, Copy, Debug)]
struct Scope {
    base: u32,
    lang: u32,
    /// How many tell a base.
    bases: u32,
}

impl Scope {
    /// That of a document.
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
    /// The local name as written.
    fn name(&self) -> &'t str {
        match self {
            Kind::Element { name, .. } => name,
            Kind::Text(_) => "",
        }
    }
}

/// An attribute; namespace declarations are none.
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
    /// The node that holds everything.
    pub(super) fn document(&'t self) -> XmlElement<'t> {
        XmlElement { tree: self, at: DOCUMENT }
    }

    /// The item in the middle of which the document ends.
    pub(super) fn cut(&'t self) -> Option<XmlElement<'t>> {
        self.cut.map(|at| XmlElement { tree: self, at })
    }
}

/// Where a slice of `text` begins in it.
fn offset(text: &str, slice: &str) -> Option<usize> {
    let at = slice.as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    (at + slice.len() <= text.len()).then_some(at)
}
