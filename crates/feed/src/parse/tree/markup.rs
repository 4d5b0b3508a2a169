//! Serialization of elements of the tree, as markup or as an [`Element`].
//!
//! The output is well-formed whatever the input was: everything is escaped, closed and declared.
//! XHTML is written without prefixes and declarations, because the enclosing `div` declares the
//! namespace. Elements in no namespace or in the feed's own are taken for XHTML, because authors
//! often forget to declare it.

use std::borrow::Cow;

use quick_xml::escape::{escape, partial_escape};

use super::super::vocabulary::{ATOM, RSS, XHTML, XML, spelled};
use super::element::WalkStep;
use super::{XmlAttribute, XmlElement};
use crate::model::{Attribute, Element, Node};
use crate::short_list::push_to_short_list;

/// The maximum size of a kept element, in bytes of its texts and values: a quarter of what one
/// entry may hold (rule S16).
const KEPT_BYTES: usize = 256 * 1024;

/// The maximum nesting in a kept element. It is less than the maximum of the tree, because the
/// element must still fit when it is read again inside the elements written around it.
const KEPT_DEPTH: usize = 240;

/// The names of person constructs.
const PERSONS: [&str; 2] = ["author", "contributor"];

/// The void elements of HTML.
const VOID: [&str; 14] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr",
];

/// A function that resolves addresses in markup: receives an element and the address as written,
/// and returns the absolute address, or `None` to leave it.
pub(in super::super) type Resolve<'r> = &'r dyn Fn(XmlElement<'_>, &str) -> Option<String>;

/// The attributes of HTML that hold an address.
const ADDRESSES: [&str; 11] = [
    "href",
    "src",
    "action",
    "cite",
    "background",
    "codebase",
    "data",
    "longdesc",
    "poster",
    "profile",
    "usemap",
];

impl<'t> XmlElement<'t> {
    /// Returns the content as XHTML. Addresses are made absolute by `resolve` where an `xml:base`
    /// inside this element applies.
    pub(in super::super) fn xhtml(self, resolve: Resolve<'_>) -> String {
        Writer { out: String::new(), open: vec![Some(XHTML.uri().into())], resolve }.inside(self)
    }

    /// Returns the content as self-contained XML.
    pub(in super::super) fn xml(self, resolve: Resolve<'_>) -> String {
        Writer { out: String::new(), open: vec![None], resolve }.inside(self)
    }

    /// Returns an attribute with this value as a model attribute.
    pub(in super::super) fn to_attribute(
        self,
        attribute: &XmlAttribute<'t>,
        value: &str,
    ) -> Attribute {
        let space = self.space_of(attribute);
        let prefix = space.vocabulary().map_or(attribute.prefix, |known| known.prefix);
        Attribute {
            namespace: space.uri().to_owned(),
            prefix: prefix.to_owned(),
            name: attribute.name.to_owned(),
            value: value.to_owned(),
        }
    }

    /// Returns the child elements as model elements, except those that are too large.
    pub(in super::super) fn to_extensions(self, items: Items) -> Vec<Element> {
        let held = self.elements().filter(|held| items == Items::Quoted || !is_item(*held));
        held.filter_map(|held| held.to_extension(items)).collect()
    }

    /// Returns the element as a model element; `None` if it is too large.
    ///
    /// Items in it that are [`Items::Read`] are left out; others are renamed, so that no reader of
    /// the output takes them for entries.
    pub(in super::super) fn to_extension(self, items: Items) -> Option<Element> {
        let mut stack = vec![shell(self)];
        let mut bytes = 0;
        let mut too_deep = 0;
        let mut walk = self.walk();
        while let Some(step) = walk.next() {
            match step {
                WalkStep::Enter(element) if items == Items::Read && is_item(element) => {
                    walk.skip(element);
                    walk.next(); // a skipped element is still left
                }
                WalkStep::Enter(_) if stack.len() >= KEPT_DEPTH => too_deep += 1,
                WalkStep::Enter(element) => stack.push(shell(element)),
                WalkStep::Text(text) => {
                    bytes += text.len();
                    let top = stack.last_mut()?;
                    push_to_short_list(&mut top.children, Node::Text(text.to_owned()));
                }
                WalkStep::Leave(_) if too_deep > 0 => too_deep -= 1,
                WalkStep::Leave(_) => {
                    let mut done = stack.pop()?;
                    tidy_space(&mut done);
                    push_to_short_list(&mut stack.last_mut()?.children, Node::Element(done));
                }
            }
            if bytes > KEPT_BYTES {
                return None;
            }
        }
        let mut kept = stack.pop()?;
        tidy_space(&mut kept);
        let person =
            self.parent().is_some_and(|around| PERSONS.iter().any(|name| around.named(name)));
        if self.is_atom() && !person {
            // Elements must not be added to the namespace of Atom, so unknown ones are written as
            // RSS. A person may contain links (seed 003, "author"), which stay in the namespace of
            // Atom.
            (kept.namespace, kept.prefix) = (RSS.uri().to_owned(), RSS.prefix.to_owned());
        }
        Some(kept)
    }
}

/// The treatment of items inside a kept element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Items {
    /// They are read as entries, so they are not kept as well.
    Read,
    /// They are part of the kept element.
    Quoted,
}

/// Returns whether an element is an item, at any position.
pub(in super::super) fn is_item(element: XmlElement<'_>) -> bool {
    (element.named("item") || element.named("entry")) && is_own(element)
}

/// Removes white space between elements, which is layout. The text of an element without child
/// elements stays unchanged.
fn tidy_space(element: &mut Element) {
    let blank = |child: &Node| matches!(child, Node::Text(text) if text.trim().is_empty());
    if element.children.len() > 1 || element.children.iter().all(blank) {
        element.children.retain(|child| !blank(child));
    }
}

/// Returns the element without its children.
fn shell(element: XmlElement<'_>) -> Element {
    let space = element.namespace();
    let known = if element.is_rss() || is_item(element) {
        Some(&RSS)
    } else if element.is_atom() {
        Some(&ATOM)
    } else {
        space.vocabulary()
    };
    // What is in Atom's namespace without being of Atom is an element of RSS.
    let spelling = if element.is_atom() { Some(&RSS) } else { known };
    let attributes = element.attributes().iter();
    let attributes =
        attributes.map(|attribute| element.to_attribute(attribute, attribute.value.trim()));
    Element {
        namespace: known.map_or(space.uri(), |known| known.uri()).to_owned(),
        prefix: known.map_or(element.prefix(), |known| known.prefix).to_owned(),
        name: spelled(spelling, element.name()).into_owned(),
        attributes: attributes.collect(),
        children: Vec::new(),
        ..Element::default()
    }
}

/// A writer for the content of an element.
struct Writer<'t, 'r> {
    out: String,
    /// The default namespace for each open element; `None` before the first.
    open: Vec<Option<Cow<'t, str>>>,
    resolve: Resolve<'r>,
}

impl<'t> Writer<'t, '_> {
    fn inside(mut self, top: XmlElement<'t>) -> String {
        let mut walk = top.walk();
        let mut too_deep = 0;
        while let Some(step) = walk.next() {
            match step {
                WalkStep::Text(text) => self.out.push_str(&partial_escape(text)),
                WalkStep::Enter(element) if !is_name(element.name()) => walk.skip(element),
                WalkStep::Enter(_) if self.open.len() >= KEPT_DEPTH => too_deep += 1,
                WalkStep::Enter(element) => self.start(element),
                WalkStep::Leave(element) if !is_name(element.name()) => {}
                WalkStep::Leave(_) if too_deep > 0 => too_deep -= 1,
                WalkStep::Leave(element) => self.end(element),
            }
        }
        let trimmed = self.out.trim();
        if trimmed.len() == self.out.len() { self.out } else { trimmed.to_owned() }
    }

    /// Returns the namespace in which an element is written.
    fn space_of(&self, element: XmlElement<'t>) -> Cow<'t, str> {
        let inside_xhtml = self.open[0].is_some();
        if inside_xhtml
            && (element.is_in(&XHTML)
                || is_own(element)
                || element.namespace().uri().starts_with("urn:undeclared:"))
        {
            return Cow::Borrowed(XHTML.uri());
        }
        Cow::Borrowed(element.namespace().uri())
    }

    fn start(&mut self, element: XmlElement<'t>) {
        let space = self.space_of(element);
        self.out.push('<');
        self.out.push_str(&name_of(element, &space));
        let around = self.open.last().cloned().flatten();
        if around.as_deref() != Some(space.as_ref()) {
            self.attribute("xmlns", &space);
        }
        let based = element.bases().next().is_some();
        let mut declared: Vec<&str> = Vec::new();
        for attribute in element.attributes() {
            if !is_name(attribute.name) || (attribute.prefix == "xml" && attribute.name == "base") {
                continue;
            }
            let value = if based && ADDRESSES.contains(&attribute.name) {
                (self.resolve)(element, &attribute.value)
            } else {
                None
            };
            let value = value.as_deref().unwrap_or(&attribute.value);
            if attribute.prefix.is_empty() {
                self.attribute(attribute.name, value);
            } else if element.space_of(attribute).is(&XML) {
                self.attribute(&format!("xml:{}", attribute.name), value);
            } else if is_name(attribute.prefix) && !attribute.prefix.starts_with("xml") {
                if !declared.contains(&attribute.prefix) {
                    let uri = element.space_of(attribute).uri();
                    self.attribute(&format!("xmlns:{}", attribute.prefix), uri);
                    declared.push(attribute.prefix);
                }
                self.attribute(&format!("{}:{}", attribute.prefix, attribute.name), value);
            }
        }
        self.out.push('>');
        self.open.push(Some(space));
    }

    fn attribute(&mut self, name: &str, value: &str) {
        self.out.push(' ');
        self.out.push_str(name);
        self.out.push_str("=\"");
        self.out.push_str(&escape(value));
        self.out.push('"');
    }

    fn end(&mut self, element: XmlElement<'t>) {
        let space = self.open.pop().flatten();
        let name = name_of(element, space.as_deref().unwrap_or_default());
        let html = space.as_deref() == Some(XHTML.uri());
        if self.out.ends_with('>') && html && VOID.contains(&name.as_ref()) {
            self.out.pop();
            self.out.push_str(" />");
        } else {
            self.out.push_str("</");
            self.out.push_str(&name);
            self.out.push('>');
        }
    }
}

/// Returns whether an element is in no namespace or in the feed's own.
fn is_own(element: XmlElement<'_>) -> bool {
    element.is_rss() || element.is_atom()
}

/// Returns the name to write in a namespace: in lower case for HTML, otherwise as it was.
fn name_of<'t>(element: XmlElement<'t>, space: &str) -> Cow<'t, str> {
    let name = element.name();
    if (space == XHTML.uri() || element.is_in(&XHTML) || is_own(element))
        && name.bytes().any(|byte| byte.is_ascii_uppercase())
    {
        return Cow::Owned(name.to_ascii_lowercase());
    }
    Cow::Borrowed(name)
}

/// Returns whether `text` is a valid local name in XML.
fn is_name(name: &str) -> bool {
    let first = |c: char| c.is_alphabetic() || c == '_';
    let next = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '\u{b7}');
    name.starts_with(first) && name.chars().all(next)
}
