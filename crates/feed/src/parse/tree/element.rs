//! Elements of a tree and the accessors to their content.

mod walk;

use std::borrow::Cow;

use super::super::vocabulary::{ATOM, ATOM03, RSS, Vocabulary};
use super::spaces::Namespace;
use walk::Walk;
pub(super) use walk::WalkStep;

use super::{Kind, LONGEST_TAG_BYTES, NONE, Node, Scope, Tree, XmlAttribute, offset};

/// An element of a tree, cheap to copy.
#[derive(Clone, Copy, Debug)]
pub(in crate::parse) struct XmlElement<'t> {
    pub(super) tree: &'t Tree<'t>,
    pub(super) at: u32,
}

/// A child of an element.
#[derive(Clone, Copy, Debug)]
pub(in crate::parse) enum XmlChild<'t> {
    Text(&'t str),
    Element(XmlElement<'t>),
}

impl PartialEq for XmlElement<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at && std::ptr::eq(self.tree, other.tree)
    }
}

impl<'t> XmlElement<'t> {
    pub(super) fn node(self) -> &'t Node<'t> {
        &self.tree.nodes[self.at as usize]
    }

    /// Returns the local name as written.
    pub(in crate::parse) fn name(self) -> &'t str {
        self.node().kind.name()
    }

    /// Returns the local name in lower case.
    pub(in crate::parse) fn lower_name(self) -> Cow<'t, str> {
        let name = self.name();
        if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Cow::Owned(name.to_ascii_lowercase());
        }
        Cow::Borrowed(name)
    }

    /// Returns the prefix as written.
    pub(in crate::parse) fn prefix(self) -> &'t str {
        match &self.node().kind {
            Kind::Element { prefix, .. } => prefix,
            Kind::Text(_) => "",
        }
    }

    /// Returns a number that identifies the element in its tree.
    pub(in crate::parse) fn number(self) -> usize {
        self.at as usize
    }

    /// Returns the byte offset of the element in the text, derived from its name, which is a slice
    /// of the text; `None` for the document node.
    pub(in crate::parse) fn start(self) -> Option<usize> {
        let named = if self.prefix().is_empty() { self.name() } else { self.prefix() };
        offset(self.tree.text, named)?.checked_sub(1)
    }

    /// Returns the namespace.
    pub(in crate::parse) fn namespace(self) -> &'t Namespace<'t> {
        match &self.node().kind {
            Kind::Element { space, .. } => &self.tree.spaces[*space as usize],
            Kind::Text(_) => &self.tree.spaces[0],
        }
    }

    /// Returns whether the local name is `name`, ignoring case.
    pub(in crate::parse) fn named(self, name: &str) -> bool {
        self.name().eq_ignore_ascii_case(name)
    }

    /// Returns whether the element belongs to `vocabulary`.
    pub(in crate::parse) fn is_in(self, vocabulary: &'static Vocabulary) -> bool {
        self.namespace().is(vocabulary)
    }

    /// Returns whether the element is in no namespace, as in most of RSS, or in one used for RSS.
    pub(in crate::parse) fn is_rss(self) -> bool {
        self.namespace().uri().is_empty() || self.is_in(&RSS)
    }

    /// Returns whether the element is in a namespace of Atom, of any version.
    pub(in crate::parse) fn is_atom(self) -> bool {
        self.is_in(&ATOM) || self.is_in(&ATOM03)
    }

    /// Returns the parent element.
    pub(in crate::parse) fn parent(self) -> Option<XmlElement<'t>> {
        let at = self.node().parent;
        (at != NONE).then_some(XmlElement { tree: self.tree, at })
    }

    /// Returns the children, in order.
    pub(in crate::parse) fn children(self) -> impl Iterator<Item = XmlChild<'t>> + use<'t> {
        let tree = self.tree;
        let mut at = self.node().first;
        std::iter::from_fn(move || {
            let node = tree.nodes.get(at as usize)?;
            let here = XmlElement { tree, at };
            at = node.next;
            Some(match &node.kind {
                Kind::Text(text) => XmlChild::Text(text),
                Kind::Element { .. } => XmlChild::Element(here),
            })
        })
    }

    /// Returns the child elements, in order.
    pub(in crate::parse) fn elements(self) -> impl Iterator<Item = XmlElement<'t>> + use<'t> {
        self.children().filter_map(|child| match child {
            XmlChild::Element(element) => Some(element),
            XmlChild::Text(_) => None,
        })
    }

    /// Returns the first child with this local name, in any vocabulary.
    pub(in crate::parse) fn child(self, name: &str) -> Option<XmlElement<'t>> {
        self.elements().find(|element| element.named(name))
    }

    /// Returns the descendant elements in document order, without the element itself.
    pub(in crate::parse) fn descendants(self) -> impl Iterator<Item = XmlElement<'t>> + use<'t> {
        let mut walk = Walk::below(self);
        std::iter::from_fn(move || {
            loop {
                match walk.next()? {
                    WalkStep::Enter(element) => return Some(element),
                    WalkStep::Text(_) | WalkStep::Leave(_) => {}
                }
            }
        })
    }

    /// Returns at most `limit` descendants that are `wanted`, except those inside other wanted
    /// ones.
    pub(in crate::parse) fn outermost(
        self,
        wanted: impl Fn(XmlElement<'t>) -> bool,
        limit: usize,
    ) -> Vec<XmlElement<'t>> {
        let mut walk = self.walk();
        let mut found = Vec::new();
        while let Some(step) = walk.next() {
            if let WalkStep::Enter(element) = step
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

    /// Returns a traversal of all descendants.
    pub(super) fn walk(self) -> Walk<'t> {
        Walk::below(self)
    }

    /// Returns the attributes.
    pub(in crate::parse) fn attributes(self) -> &'t [XmlAttribute<'t>] {
        match &self.node().kind {
            Kind::Element { attributes: (from, to), .. } => {
                &self.tree.attributes[*from as usize..*to as usize]
            }
            Kind::Text(_) => &[],
        }
    }

    /// Returns the namespace of an attribute.
    pub(in crate::parse) fn space_of(self, attribute: &XmlAttribute<'t>) -> &'t Namespace<'t> {
        &self.tree.spaces[attribute.space as usize]
    }

    /// Returns the trimmed value of an attribute without prefix, ignoring the case of its name.
    pub(in crate::parse) fn attr(self, name: &str) -> Option<&'t str> {
        let held = self.attributes().iter();
        let mut found = held.filter(|a| a.prefix.is_empty() && a.name.eq_ignore_ascii_case(name));
        found.next().map(|attribute| trimmed(&attribute.value))
    }

    /// Returns the trimmed value of an attribute of a vocabulary.
    pub(in crate::parse) fn attr_in(
        self,
        vocabulary: &'static Vocabulary,
        name: &str,
    ) -> Option<&'t str> {
        let held = self.attributes().iter();
        let mut found = held.filter(|attribute| {
            attribute.name.eq_ignore_ascii_case(name) && self.space_of(attribute).is(vocabulary)
        });
        found.next().map(|attribute| trimmed(&attribute.value))
    }

    /// Returns whether the element has child elements.
    pub(in crate::parse) fn has_elements(self) -> bool {
        self.elements().next().is_some()
    }

    /// Returns the text of the element if it has nothing else, as most elements do.
    fn only_text(self) -> Option<&'t str> {
        match self.tree.nodes.get(self.node().first as usize) {
            Some(Node { kind: Kind::Text(text), next: NONE, .. }) => Some(text),
            _ => None,
        }
    }

    /// Returns the concatenated texts of all descendants, as written.
    pub(in crate::parse) fn raw_text(self) -> Cow<'t, str> {
        if let Some(text) = self.only_text() {
            return Cow::Borrowed(text);
        }
        let mut walk = self.walk();
        let mut text = Cow::Borrowed("");
        while let Some(step) = walk.next() {
            if let WalkStep::Text(piece) = step {
                if text.is_empty() {
                    text = Cow::Borrowed(piece);
                } else {
                    text.to_mut().push_str(piece);
                }
            }
        }
        text
    }

    /// Returns the concatenated texts of all descendants, trimmed.
    pub(in crate::parse) fn text(self) -> Cow<'t, str> {
        match self.raw_text() {
            Cow::Borrowed(text) => Cow::Borrowed(trimmed(text)),
            Cow::Owned(text) => match trimmed(&text) {
                trimmed if trimmed.len() < text.len() => Cow::Owned(trimmed.to_owned()),
                _ => Cow::Owned(text),
            },
        }
    }

    /// Returns the trimmed text, if it is not empty.
    pub(in crate::parse) fn filled(self) -> Option<String> {
        let text = self.text();
        (!text.is_empty()).then(|| text.into_owned())
    }

    /// Returns the trimmed text of the first child with this name, if it is not empty.
    pub(in crate::parse) fn filled_child(self, name: &str) -> Option<String> {
        self.elements().filter(|element| element.named(name)).find_map(XmlElement::filled)
    }

    fn scope(self) -> Scope {
        match &self.node().kind {
            Kind::Element { scope, .. } => *scope,
            Kind::Text(_) => Scope::NONE,
        }
    }

    /// Returns the elements that declare an attribute that is `wanted`, with its value: the element
    /// itself first, then those that `teller` leads to.
    fn declarations(
        self,
        teller: impl Fn(Scope) -> u32,
        wanted: impl Fn(XmlElement<'t>, &XmlAttribute<'t>) -> bool,
    ) -> impl Iterator<Item = (XmlElement<'t>, &'t str)> {
        let next = move |element: XmlElement<'t>| {
            let at = teller(element.scope());
            (at != NONE).then_some(XmlElement { tree: self.tree, at })
        };
        let first = next(self);
        let tellers = std::iter::successors(first, move |element| element.parent().and_then(&next));
        tellers.filter_map(move |element| {
            let mut held = element.attributes().iter();
            let found = held.find(|attribute| wanted(element, attribute))?;
            Some((element, found.value.trim()))
        })
    }

    /// Returns the element that declares the language in force, and the language as written. An
    /// empty language means unknown.
    pub(in crate::parse) fn lang_source(self) -> Option<(XmlElement<'t>, &'t str)> {
        self.declarations(|scope| scope.lang, |_, a| a.prefix == "xml" && a.name == "lang").next()
    }

    /// Returns the language in force, as written.
    pub(in crate::parse) fn lang(self) -> Option<&'t str> {
        self.lang_source().map(|(_, lang)| lang).filter(|lang| lang.len() <= LONGEST_TAG_BYTES)
    }

    /// Returns the elements whose `xml:base` attributes are in force, innermost first, with their
    /// values. A CDF channel has its own attribute (`BASE`), which predates `xml:base`.
    pub(in crate::parse) fn base_sources(self) -> impl Iterator<Item = (XmlElement<'t>, &'t str)> {
        self.declarations(|scope| scope.base, |element, a| a.is_base_of(element))
    }

    /// Returns the values of the `xml:base` attributes in force, innermost first.
    pub(in crate::parse) fn bases(self) -> impl Iterator<Item = &'t str> {
        self.base_sources().map(|(_, base)| base)
    }
}

/// Returns `text` without white space at its ends. Most texts have none, which their bytes tell.
fn trimmed(text: &str) -> &str {
    let is_plain = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_graphic);
    let bytes = text.as_bytes();
    if is_plain(bytes.first()) && is_plain(bytes.last()) { text } else { text.trim() }
}
