//! An element of a tree, and what can be asked of it.

mod walk;

use std::borrow::Cow;

use super::super::vocabulary::{ATOM, ATOM03, RSS, Vocabulary};
use super::spaces::Namespace;
use walk::Walk;
pub(super) use walk::WalkStep;

use super::{Kind, LONGEST_TAG_BYTES, NONE, Node, Scope, Tree, XmlAttribute, offset};

/// An element of a tree.
#[derive(Clone, Copy, Debug)]
pub(in crate::parse) struct XmlElement<'t> {
    pub(super) tree: &'t Tree<'t>,
    pub(super) at: u32,
}

/// What an element holds.
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

    /// The local name as written.
    pub(in crate::parse) fn name(self) -> &'t str {
        self.node().kind.name()
    }

    /// The local name in small letters.
    pub(in crate::parse) fn lower_name(self) -> Cow<'t, str> {
        let name = self.name();
        if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Cow::Owned(name.to_ascii_lowercase());
        }
        Cow::Borrowed(name)
    }

    /// The prefix as written.
    pub(in crate::parse) fn prefix(self) -> &'t str {
        match &self.node().kind {
            Kind::Element { prefix, .. } => prefix,
            Kind::Text(_) => "",
        }
    }

    /// Its number: no other element of the tree has it.
    pub(in crate::parse) fn number(self) -> usize {
        self.at as usize
    }

    /// The byte of the text at which it begins. Its name is a slice of the text, so nobody
    /// has to keep this; the document begins nowhere.
    pub(in crate::parse) fn start(self) -> Option<usize> {
        let named = if self.prefix().is_empty() { self.name() } else { self.prefix() };
        offset(self.tree.text, named)?.checked_sub(1)
    }

    /// Its namespace.
    pub(in crate::parse) fn namespace(self) -> &'t Namespace<'t> {
        match &self.node().kind {
            Kind::Element { space, .. } => &self.tree.spaces[*space as usize],
            Kind::Text(_) => &self.tree.spaces[0],
        }
    }

    /// Whether the local name is `name`, whatever its case.
    pub(in crate::parse) fn named(self, name: &str) -> bool {
        self.name().eq_ignore_ascii_case(name)
    }

    /// Whether it belongs to `vocabulary`.
    pub(in crate::parse) fn is_in(self, vocabulary: &'static Vocabulary) -> bool {
        self.namespace().is(vocabulary)
    }

    /// Whether it is in no namespace, as most of RSS, or in one of those given to RSS.
    pub(in crate::parse) fn is_rss(self) -> bool {
        self.namespace().uri().is_empty() || self.is_in(&RSS)
    }

    /// Whether it is in the namespace of Atom, of whatever version.
    pub(in crate::parse) fn is_atom(self) -> bool {
        self.is_in(&ATOM) || self.is_in(&ATOM03)
    }

    /// The element around it.
    pub(in crate::parse) fn parent(self) -> Option<XmlElement<'t>> {
        let at = self.node().parent;
        (at != NONE).then_some(XmlElement { tree: self.tree, at })
    }

    /// What it holds, in order.
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

    /// The elements it holds, in order.
    pub(in crate::parse) fn elements(self) -> impl Iterator<Item = XmlElement<'t>> + use<'t> {
        self.children().filter_map(|child| match child {
            XmlChild::Element(element) => Some(element),
            XmlChild::Text(_) => None,
        })
    }

    /// Its first child of this name, in whatever vocabulary.
    pub(in crate::parse) fn child(self, name: &str) -> Option<XmlElement<'t>> {
        self.elements().find(|element| element.named(name))
    }

    /// Everything below it, in document order, itself not included.
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

    /// The elements below it that are `wanted`, but not those inside others of them; at
    /// most `limit`.
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

    /// A walk over everything below it.
    pub(super) fn walk(self) -> Walk<'t> {
        Walk::below(self)
    }

    /// Its attributes.
    pub(in crate::parse) fn attributes(self) -> &'t [XmlAttribute<'t>] {
        match &self.node().kind {
            Kind::Element { attributes: (from, to), .. } => {
                &self.tree.attributes[*from as usize..*to as usize]
            }
            Kind::Text(_) => &[],
        }
    }

    /// The namespace of one of its attributes.
    pub(in crate::parse) fn space_of(self, attribute: &XmlAttribute<'t>) -> &'t Namespace<'t> {
        &self.tree.spaces[attribute.space as usize]
    }

    /// The trimmed value of an attribute without prefix, whatever its case.
    pub(in crate::parse) fn attr(self, name: &str) -> Option<&'t str> {
        let held = self.attributes().iter();
        let mut found = held.filter(|a| a.prefix.is_empty() && a.name.eq_ignore_ascii_case(name));
        found.next().map(|attribute| attribute.value.trim())
    }

    /// The trimmed value of an attribute of a vocabulary.
    pub(in crate::parse) fn attr_in(
        self,
        vocabulary: &'static Vocabulary,
        name: &str,
    ) -> Option<&'t str> {
        let held = self.attributes().iter();
        let mut found = held.filter(|attribute| {
            attribute.name.eq_ignore_ascii_case(name) && self.space_of(attribute).is(vocabulary)
        });
        found.next().map(|attribute| attribute.value.trim())
    }

    /// Whether there are elements inside.
    pub(in crate::parse) fn has_elements(self) -> bool {
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

    /// All the text below it, trimmed.
    pub(in crate::parse) fn text(self) -> Cow<'t, str> {
        match self.raw_text() {
            Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
            Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
        }
    }

    /// The trimmed text, if there is any.
    pub(in crate::parse) fn filled(self) -> Option<String> {
        let text = self.text();
        (!text.is_empty()).then(|| text.into_owned())
    }

    /// The trimmed text of the first child of this name, if there is any.
    pub(in crate::parse) fn filled_child(self, name: &str) -> Option<String> {
        self.elements().filter(|element| element.named(name)).find_map(XmlElement::filled)
    }

    fn scope(self) -> Scope {
        match &self.node().kind {
            Kind::Element { scope, .. } => *scope,
            Kind::Text(_) => Scope::NONE,
        }
    }

    /// The elements that `teller` leads to, itself first, with an attribute that is
    /// `wanted`, and its value.
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

    /// The element that tells the language in force, and the language as written. An empty
    /// one says that it is unknown.
    pub(in crate::parse) fn lang_source(self) -> Option<(XmlElement<'t>, &'t str)> {
        self.declarations(|scope| scope.lang, |_, a| a.prefix == "xml" && a.name == "lang").next()
    }

    /// The language in force, as written.
    pub(in crate::parse) fn lang(self) -> Option<&'t str> {
        self.lang_source().map(|(_, lang)| lang).filter(|lang| lang.len() <= LONGEST_TAG_BYTES)
    }

    /// The elements with `xml:base` attributes in force, innermost first, and the values.
    /// The channel of CDF has its own (`BASE`, of before there was `xml:base`).
    pub(in crate::parse) fn base_sources(self) -> impl Iterator<Item = (XmlElement<'t>, &'t str)> {
        self.declarations(|scope| scope.base, |element, a| a.is_base_of(element))
    }

    /// The values of those.
    pub(in crate::parse) fn bases(self) -> impl Iterator<Item = &'t str> {
        self.base_sources().map(|(_, base)| base)
    }
}
