//! A document as a tree, however broken it was.
//!
//! Nodes lie in one vector and point at each other by index, and nothing here recurses:
//! a document can be neither deep nor wide enough to exhaust the stack, not even when
//! the tree is dropped. Names and most texts are slices of the document.
//!
//! [`build()`] makes it, [`El`] is how everybody else looks at it.

mod attributes;
mod build;
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
pub(super) use entities::resolve_into;
pub(super) use markup::{Items, is_item};
pub(super) use spaces::Space;
pub(super) use tidy::{Before, tidy};

use super::vocabulary::Vocabulary;

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
    attributes: Vec<Attr<'t>>,
    spaces: Vec<Space<'t>>,
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
pub(super) struct Attr<'t> {
    pub(super) prefix: &'t str,
    pub(super) name: &'t str,
    space: u32,
    pub(super) value: Cow<'t, str>,
}

impl Attr<'_> {
    fn is_base_of(&self, element: El<'_>) -> bool {
        match self.prefix {
            "xml" => self.name == "base",
            "" => self.name.eq_ignore_ascii_case("base") && element.named("channel"),
            _ => false,
        }
    }
}

/// An element of a tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct El<'t> {
    tree: &'t Tree<'t>,
    at: u32,
}

/// What an element holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Child<'t> {
    Text(&'t str),
    Element(El<'t>),
}

impl<'t> Tree<'t> {
    /// The node that holds everything.
    pub(super) fn document(&'t self) -> El<'t> {
        El { tree: self, at: DOCUMENT }
    }

    /// The item in the middle of which the document ends.
    pub(super) fn cut(&'t self) -> Option<El<'t>> {
        self.cut.map(|at| El { tree: self, at })
    }
}

/// Where a slice of `text` begins in it.
fn offset(text: &str, slice: &str) -> Option<usize> {
    let at = slice.as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    (at + slice.len() <= text.len()).then_some(at)
}

impl PartialEq for El<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at && std::ptr::eq(self.tree, other.tree)
    }
}

impl<'t> El<'t> {
    fn node(self) -> &'t Node<'t> {
        &self.tree.nodes[self.at as usize]
    }

    /// The local name as written.
    pub(super) fn name(self) -> &'t str {
        self.node().kind.name()
    }

    /// The local name in small letters.
    pub(super) fn lower_name(self) -> Cow<'t, str> {
        let name = self.name();
        if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Cow::Owned(name.to_ascii_lowercase());
        }
        Cow::Borrowed(name)
    }

    /// The prefix as written.
    pub(super) fn prefix(self) -> &'t str {
        match &self.node().kind {
            Kind::Element { prefix, .. } => prefix,
            Kind::Text(_) => "",
        }
    }

    /// Its number: no other element of the tree has it.
    pub(super) fn number(self) -> usize {
        self.at as usize
    }

    /// The byte of the text at which it begins. Its name is a slice of the text, so nobody
    /// has to keep this; the document begins nowhere.
    pub(super) fn start(self) -> Option<usize> {
        let named = if self.prefix().is_empty() { self.name() } else { self.prefix() };
        offset(self.tree.text, named)?.checked_sub(1)
    }

    /// Its namespace.
    pub(super) fn space(self) -> &'t Space<'t> {
        match &self.node().kind {
            Kind::Element { space, .. } => &self.tree.spaces[*space as usize],
            Kind::Text(_) => &self.tree.spaces[0],
        }
    }

    /// Whether the local name is `name`, whatever its case.
    pub(super) fn named(self, name: &str) -> bool {
        self.name().eq_ignore_ascii_case(name)
    }

    /// Whether it belongs to `vocabulary`.
    pub(super) fn of(self, vocabulary: &'static Vocabulary) -> bool {
        self.space().is(vocabulary)
    }

    /// The element around it.
    pub(super) fn parent(self) -> Option<El<'t>> {
        let at = self.node().parent;
        (at != NONE).then_some(El { tree: self.tree, at })
    }

    /// What it holds, in order.
    pub(super) fn children(self) -> impl Iterator<Item = Child<'t>> + use<'t> {
        let tree = self.tree;
        let mut at = self.node().first;
        std::iter::from_fn(move || {
            let node = tree.nodes.get(at as usize)?;
            let here = El { tree, at };
            at = node.next;
            Some(match &node.kind {
                Kind::Text(text) => Child::Text(text),
                Kind::Element { .. } => Child::Element(here),
            })
        })
    }

    /// The elements it holds, in order.
    pub(super) fn elements(self) -> impl Iterator<Item = El<'t>> + use<'t> {
        self.children().filter_map(|child| match child {
            Child::Element(element) => Some(element),
            Child::Text(_) => None,
        })
    }

    /// Its first child of this name, in whatever vocabulary.
    pub(super) fn child(self, name: &str) -> Option<El<'t>> {
        self.elements().find(|element| element.named(name))
    }

    /// Everything below it, in document order, itself not included.
    pub(super) fn descendants(self) -> impl Iterator<Item = El<'t>> + use<'t> {
        let mut walk = Walk::below(self);
        std::iter::from_fn(move || {
            loop {
                match walk.next()? {
                    Step::Enter(element) => return Some(element),
                    Step::Text(_) | Step::Leave(_) => {}
                }
            }
        })
    }

    /// The elements below it that are `wanted`, but not those inside others of them; at
    /// most `limit`.
    pub(super) fn outermost(self, wanted: impl Fn(El<'t>) -> bool, limit: usize) -> Vec<El<'t>> {
        let mut walk = self.walk();
        let mut found = Vec::new();
        while let Some(step) = walk.next() {
            if let Step::Enter(element) = step
                && wanted(element)
            {
                walk.skip(element);
                found.push(element);
                if found.len() == limit {
                    break;
                }
            }
        }
        found
    }

    /// A walk over everything below it.
    fn walk(self) -> Walk<'t> {
        Walk::below(self)
    }

    /// Its attributes.
    pub(super) fn attributes(self) -> &'t [Attr<'t>] {
        match &self.node().kind {
            Kind::Element { attributes: (from, to), .. } => {
                &self.tree.attributes[*from as usize..*to as usize]
            }
            Kind::Text(_) => &[],
        }
    }

    /// The namespace of one of its attributes.
    pub(super) fn space_of(self, attribute: &Attr<'t>) -> &'t Space<'t> {
        &self.tree.spaces[attribute.space as usize]
    }

    /// The trimmed value of an attribute without prefix, whatever its case.
    pub(super) fn attr(self, name: &str) -> Option<&'t str> {
        let held = self.attributes().iter();
        let mut found = held.filter(|a| a.prefix.is_empty() && a.name.eq_ignore_ascii_case(name));
        found.next().map(|attribute| attribute.value.trim())
    }

    /// The trimmed value of an attribute of a vocabulary.
    pub(super) fn attr_of(self, vocabulary: &'static Vocabulary, name: &str) -> Option<&'t str> {
        let held = self.attributes().iter();
        let mut found = held.filter(|attribute| {
            attribute.name.eq_ignore_ascii_case(name) && self.space_of(attribute).is(vocabulary)
        });
        found.next().map(|attribute| attribute.value.trim())
    }

    /// Whether there are elements inside.
    pub(super) fn has_elements(self) -> bool {
        self.elements().next().is_some()
    }

    /// The text in it, if there is nothing else, as in most elements.
    fn only_text(self) -> Option<&'t str> {
        match self.tree.nodes.get(self.node().first as usize) {
            Some(Node { kind: Kind::Text(text), next: NONE, .. }) => Some(text),
            _ => None,
        }
    }

    /// All the text below it, in order, as it stands there.
    pub(super) fn raw_text(self) -> Cow<'t, str> {
        if let Some(text) = self.only_text() {
            return Cow::Borrowed(text);
        }
        let mut walk = self.walk();
        let mut text = Cow::Borrowed("");
        while let Some(step) = walk.next() {
            if let Step::Text(piece) = step {
                if text.is_empty() {
                    text = Cow::Borrowed(piece);
                } else {
                    text.to_mut().push_str(piece);
                }
            }
        }
        text
    }

    /// All the text below it, trimmed.
    pub(super) fn text(self) -> Cow<'t, str> {
        match self.raw_text() {
            Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
            Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
        }
    }

    /// The trimmed text, if there is any.
    pub(super) fn filled(self) -> Option<String> {
        let text = self.text();
        (!text.is_empty()).then(|| text.into_owned())
    }

    /// The trimmed text of the first child of this name, if there is any.
    pub(super) fn filled_child(self, name: &str) -> Option<String> {
        self.elements().filter(|element| element.named(name)).find_map(El::filled)
    }

    fn scope(self) -> Scope {
        match &self.node().kind {
            Kind::Element { scope, .. } => *scope,
            Kind::Text(_) => Scope::NONE,
        }
    }

    /// The elements that `teller` leads to, itself first, with an attribute that is
    /// `wanted`, and its value.
    fn delivery_progress(
        self,
        teller: impl Fn(Scope) -> u32,
        wanted: impl Fn(El<'t>, &Attr<'t>) -> bool,
    ) -> impl Iterator<Item = (El<'t>, &'t str)> {
        let next = move |element: El<'t>| {
            let at = teller(element.scope());
            (at != NONE).then_some(El { tree: self.tree, at })
        };
        let first = next(self);
        let tellers = std::iter::successors(first, move |element| element.parent().and_then(&next));
        tellers.filter_map(move |element| {
            let mut held = element.attributes().iter();
            let found = held.find(|attribute| wanted(element, attribute))?;
            Some((element, found.value.trim()))
        })
    }

    /// The element that tells the language in force, and the language as written. An empty
    /// one says that it is unknown.
    pub(super) fn told_lang(self) -> Option<(El<'t>, &'t str)> {
        self.delivery_progress(|scope| scope.lang, |_, a| a.prefix == "xml" && a.name == "lang")
            .next()
    }

    /// The language in force, as written.
    pub(super) fn lang(self) -> Option<&'t str> {
        self.told_lang().map(|(_, lang)| lang).filter(|lang| lang.len() <= LONGEST_TAG_BYTES)
    }

    /// The elements with `xml:base` attributes in force, innermost first, and the values.
    /// The channel of CDF has its own (`BASE`, of before there was `xml:base`).
    pub(super) fn told_bases(self) -> impl Iterator<Item = (El<'t>, &'t str)> {
        self.delivery_progress(|scope| scope.base, |element, a| a.is_base_of(element))
    }

    /// The values of those.
    pub(super) fn bases(self) -> impl Iterator<Item = &'t str> {
        self.told_bases().map(|(_, base)| base)
    }

    /// Which element of its tree it is.
    pub(super) fn place(self) -> u32 {
        self.at
    }
}

/// One step of a [`Walk`].
#[derive(Clone, Copy, Debug)]
enum Step<'t> {
    Enter(El<'t>),
    Text(&'t str),
    Leave(El<'t>),
}

/// A walk through what lies below an element, without recursion.
#[derive(Debug)]
struct Walk<'t> {
    top: El<'t>,
    at: u32,
    leaving: bool,
}

impl<'t> Walk<'t> {
    fn below(top: El<'t>) -> Walk<'t> {
        Walk { top, at: top.node().first, leaving: false }
    }

    /// Goes past what was just entered.
    fn skip(&mut self, entered: El<'t>) {
        self.at = entered.at;
        self.leaving = true;
    }

    fn next(&mut self) -> Option<Step<'t>> {
        let tree = self.top.tree;
        if self.at == NONE || self.at == self.top.at {
            return None;
        }
        let node = &tree.nodes[self.at as usize];
        let here = El { tree, at: self.at };
        let onward = |walk: &mut Self| {
            walk.leaving = node.next == NONE;
            walk.at = if walk.leaving { node.parent } else { node.next };
        };
        match &node.kind {
            Kind::Text(text) => {
                onward(self);
                Some(Step::Text(text))
            }
            Kind::Element { .. } if self.leaving => {
                onward(self);
                Some(Step::Leave(here))
            }
            Kind::Element { .. } => {
                self.leaving = node.first == NONE;
                if !self.leaving {
                    self.at = node.first;
                }
                Some(Step::Enter(here))
            }
        }
    }
}
