//! Serialization of elements without a counterpart in Atom.

use std::borrow::Cow;

use crate::model::{Attribute, Element, Node};

use super::names::{ATOM, Names, RSS, as_name, namespace_of};
use super::xml::{push_attribute, push_text, push_value};

/// Appends an extension of a feed, an entry or a person, followed by a line end. The default
/// namespace around it must be Atom's.
pub(super) fn push_extension(out: &mut String, element: &Element, names: &Names<'_>) {
    if element.namespace == ATOM {
        let foreign = Name { prefix: names.prefix(RSS), name: as_name(&element.name) };
        push(out, element, &foreign, ATOM, names);
    } else {
        push_nested(out, element, ATOM, names);
    }
    out.push('\n');
}

/// Appends an element to a document of RSS, in which elements without a namespace are those of RSS. One
/// without a namespace, or in that of Atom, is written in the namespace that RSS had for a while.
pub(super) fn push_foreign(out: &mut String, element: &Element, names: &Names<'_>) {
    if matches!(element.namespace.as_str(), "" | ATOM) {
        let foreign = Name { prefix: names.prefix(RSS), name: as_name(&element.name) };
        push(out, element, &foreign, "", names);
    } else {
        push_nested(out, element, "", names);
    }
    out.push('\n');
}

/// Appends attributes of other namespaces to an element of Atom. Attributes without a namespace
/// would belong to Atom, so they are moved to the namespace of RSS.
pub(super) fn push_foreign_attributes(
    out: &mut String,
    attributes: &[Attribute],
    names: &Names<'_>,
) {
    let foreign = |attribute: &Attribute| match attribute.namespace.as_str() {
        "" | ATOM => Attribute { namespace: RSS.to_owned(), ..attribute.clone() },
        _ => attribute.clone(),
    };
    if !attributes.is_empty() {
        let foreign: Vec<Attribute> = attributes.iter().map(foreign).collect();
        push_attributes(out, &foreign, names);
    }
}

/// Appends attributes to an open start tag.
fn push_attributes(out: &mut String, attributes: &[Attribute], names: &Names<'_>) {
    let mut written: Vec<Name<'_>> = Vec::with_capacity(attributes.len());
    for attribute in attributes {
        let name = as_name(&attribute.name);
        // Namespace declarations are written by `Names`.
        if attribute.prefix == "xmlns" || name == "xmlns" {
            continue;
        }
        let name = Name { prefix: names.prefix(&attribute.namespace), name };
        // An attribute must not occur twice in a tag.
        if !written.contains(&name) {
            out.push(' ');
            name.push(out);
            out.push_str("=\"");
            push_value(out, &attribute.value);
            out.push('"');
            written.push(name);
        }
    }
}

/// A name as it is written.
#[derive(PartialEq)]
struct Name<'a> {
    prefix: Option<&'a str>,
    name: Cow<'a, str>,
}

impl Name<'_> {
    fn push(&self, out: &mut String) {
        if let Some(prefix) = self.prefix {
            out.push_str(prefix);
            out.push(':');
        }
        out.push_str(&self.name);
    }
}

/// Appends an element. `default` is the default namespace around it.
fn push_nested(out: &mut String, element: &Element, default: &str, names: &Names<'_>) {
    let prefix = names.prefix(namespace_of(element));
    let name = Name { prefix, name: as_name(&element.name) };
    push(out, element, &name, default, names);
}

fn push(out: &mut String, element: &Element, name: &Name<'_>, default: &str, names: &Names<'_>) {
    out.push('<');
    name.push(out);
    let inner = if name.prefix.is_none() { namespace_of(element) } else { default };
    if inner != default {
        push_attribute(out, "xmlns", inner);
    }
    push_attributes(out, &element.attributes, names);
    let is_empty = |child: &Node| matches!(child, Node::Text(text) if text.is_empty());
    if element.children.iter().all(is_empty) {
        out.push_str("/>");
        return;
    }
    out.push('>');
    for child in &element.children {
        match child {
            Node::Text(text) => push_text(out, text),
            Node::Element(child) => push_nested(out, child, inner, names),
        }
    }
    out.push_str("</");
    name.push(out);
    out.push('>');
}
