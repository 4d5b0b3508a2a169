//! XML parsed into the tree of a page, so that CSS selectors work on it.
//!
//! Names keep their prefix and case, and are in no namespace: no element of XML has the meaning of
//! HTML, whatever its name.

use std::borrow::Cow;

use html5ever::{Attribute, LocalName, QualName, ns};
use scraper::node::{Element, Text};
use scraper::{Html, Node};

use super::{DEPTH, NODES, ParsedHtml};
use crate::parse::memory_bound::max_nodes;
use crate::parse::tree::{self, XmlChild, XmlElement};

impl ParsedHtml {
    /// Parses XML, up to the limits of a page.
    pub(crate) fn read_xml(text: &str) -> ParsedHtml {
        let tidy = tree::tidy(Cow::Borrowed(text), &mut Vec::new());
        let tree = tree::build(&tidy, max_nodes(tidy.len()), &mut Vec::new());
        ParsedHtml::from_tree(tree.document(), tidy.len())
    }

    fn from_tree(document: XmlElement<'_>, length: usize) -> ParsedHtml {
        let mut html = Html::new_document();
        let mut is_cut = false;
        let mut waiting = vec![(document, html.tree.root().id(), 0)];
        while let Some((element, at, depth)) = waiting.pop() {
            for child in element.children() {
                if html.tree.nodes().len() >= NODES || depth >= DEPTH {
                    is_cut = true;
                    break;
                }
                let node = match &child {
                    XmlChild::Text(text) => Node::Text(Text { text: (&**text).into() }),
                    XmlChild::Element(element) => Node::Element(made(*element)),
                };
                let Some(mut around) = html.tree.get_mut(at) else { break };
                let made = around.append(node).id();
                if let XmlChild::Element(element) = child {
                    waiting.push((element, made, depth + 1));
                }
            }
        }
        ParsedHtml { html, length, is_cut }
    }
}

fn made(element: XmlElement<'_>) -> Element {
    let attributes = element
        .attributes()
        .iter()
        .map(|held| Attribute { name: name(held.prefix, held.name), value: (&*held.value).into() });
    Element::new(name(element.prefix(), element.name()), attributes.collect())
}

fn name(prefix: &str, local: &str) -> QualName {
    let whole = match prefix {
        "" => LocalName::from(local),
        _ => LocalName::from(format!("{prefix}:{local}")),
    };
    QualName::new(None, ns!(), whole)
}
