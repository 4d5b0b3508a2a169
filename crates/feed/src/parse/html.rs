//! HTML pages, read as browsers read them.
//!
//! The tree of [`super::tree`] is for XML that is broken; HTML has rules of its own for
//! what ends what, and a parser that knows them. This is the only place that knows that
//! parser. What holds here:
//!
//! * Nothing recurses over a page: nodes lie in one vector, and walks are loops.
//! * The parser takes quadratic time for some pages made to hurt it. It is fed in small
//!   pieces and stopped as soon as a page goes beyond what any real one has.
//! * Scripts are not run and not read; what is in a `template` is not in the page.

mod comparable;
mod css;
mod xml;

pub(crate) use css::Css;

use std::ops::Deref;

use html5ever::driver::{self, ParseOpts, Parser};
use html5ever::tendril::{StrTendril, TendrilSink};
use scraper::{ElementRef, Html, HtmlTreeSink, Node};
use url::Url;

use super::tree::LONGEST_TAG_BYTES;
use crate::context::is_base;

/// Elements inside each other; browsers do not nest deeper either.
const DEPTH: usize = 512;

/// Elements, texts and comments of one page: ten times a very long one.
const NODES: usize = 200_000;

/// What is read of a page: the longest real ones have a quarter.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// Pieces in which the parser is fed, small enough that little can go wrong in one.
const PIECE_BYTES: usize = 1024;

/// What an element counts for beside texts.
const ELEMENT_BYTES: usize = 16;

/// Attributes that one tag may have, as far as that can be told before it ends: the
/// parser compares each of them with all before it.
const SEPARATORS: usize = 16 * 1024;

/// A parsed HTML document.
#[derive(Debug)]
pub(crate) struct ParsedHtml {
    html: Html,
    /// Whether it was not read to its end.
    pub(crate) is_cut: bool,
}

/// An element of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HtmlElement<'p>(ElementRef<'p>);

/// Whatever is in a page: elements, texts, comments.
type HtmlNode<'p> = <ElementRef<'p> as Deref>::Target;

/// How a walk goes on from an element: to what is inside it, past it, or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Descend {
    Enter,
    Skip,
    Stop,
}

impl ParsedHtml {
    /// Reads a page, as much of it as there may be.
    pub(crate) fn read(text: &str) -> ParsedHtml {
        let tree = HtmlTreeSink::new(Html::new_document());
        let mut parser = driver::parse_document(tree, ParseOpts::default());
        let mut meter = Meter::default();
        let mut rest = &text[..text.floor_char_boundary(PAGE_BYTES)];
        let mut is_cut = rest.len() < text.len();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
            parser.process(StrTendril::from(piece));
            rest = after;
            if !meter.allows(&parser, piece) {
                is_cut = true;
                break;
            }
        }
        ParsedHtml { html: parser.finish(), is_cut }
    }

    /// The `html` element.
    pub(crate) fn root(&self) -> Option<HtmlElement<'_>> {
        self.html.tree.root().children().find_map(ElementRef::wrap).map(HtmlElement)
    }

    /// The element that says what addresses in the page are relative to.
    pub(crate) fn tells_base(&self) -> Option<HtmlElement<'_>> {
        self.named("base").into_iter().find(|tag| tag.attr("href").is_some())
    }

    /// What addresses in the page are relative to: its `base`, or its own.
    pub(crate) fn base(&self, url: &Url) -> Url {
        let told = self.tells_base().and_then(|tag| tag.attr("href"));
        let base = told.and_then(|href| url.join(href.trim()).ok());
        base.filter(is_base).unwrap_or_else(|| url.clone())
    }

    /// All elements of this name.
    pub(crate) fn named(&self, name: &str) -> Vec<HtmlElement<'_>> {
        let mut found = Vec::new();
        if let Some(root) = self.root() {
            root.walk(|tag| {
                if tag.name() == name {
                    found.push(tag);
                }
                Descend::Enter
            });
        }
        found
    }
}

/// What the parser has made so far.
#[derive(Debug, Default)]
struct Meter {
    nodes: usize,
    text_bytes: usize,
    separators: usize,
}

impl Meter {
    /// Whether the parser may go on after `piece`.
    fn allows(&mut self, parser: &Parser<HtmlTreeSink>, piece: &str) -> bool {
        let html = parser.tokenizer.sink.sink.0.borrow();
        let nodes = html.tree.nodes().len();
        let made = nodes - self.nodes;
        let text_bytes = match html.tree.nodes().next_back().map(|node| node.value()) {
            Some(Node::Text(text)) => text.len(),
            _ => 0,
        };
        // Inside a tag, nothing is made until it ends.
        let grown = made > 0 || text_bytes != self.text_bytes;
        let between = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'"' | b'\'');
        let separators = piece.as_bytes().iter().filter(|byte| between(byte)).count();
        self.separators = separators + if grown { 0 } else { self.separators };
        (self.nodes, self.text_bytes) = (nodes, text_bytes);
        let mut newest = html.tree.nodes().rev().take(made);
        nodes <= NODES
            && self.separators <= SEPARATORS
            && newest.all(|node| node.ancestors().take(DEPTH + 1).count() <= DEPTH)
    }
}

impl<'p> HtmlElement<'p> {
    /// The name, in lower case.
    pub(crate) fn name(self) -> &'p str {
        self.0.value().name()
    }

    /// The trimmed value of an attribute.
    pub(crate) fn attr(self, name: &str) -> Option<&'p str> {
        self.0.value().attr(name).map(str::trim)
    }

    /// The words of an attribute.
    pub(crate) fn words(self, name: &str) -> impl Iterator<Item = &'p str> + use<'p> {
        self.attr(name).unwrap_or_default().split_ascii_whitespace()
    }

    /// Whether it has this class.
    pub(crate) fn has_class(self, class: &str) -> bool {
        self.words("class").any(|held| held == class)
    }

    /// Its number: no other element of the page has it.
    pub(crate) fn number(self) -> usize {
        std::ptr::from_ref(self.0.value()).addr()
    }

    /// The element around it.
    pub(crate) fn parent(self) -> Option<HtmlElement<'p>> {
        self.0.parent().and_then(ElementRef::wrap).map(HtmlElement)
    }

    /// The elements in it, in order.
    pub(crate) fn elements(self) -> impl Iterator<Item = HtmlElement<'p>> + use<'p> {
        self.0.children().filter_map(ElementRef::wrap).map(HtmlElement)
    }

    /// The element in it, if there is no other.
    pub(crate) fn only_element(self) -> Option<HtmlElement<'p>> {
        let mut elements = self.elements();
        elements.next().filter(|_| elements.next().is_none())
    }

    /// The element of this name in it, if there is no other of this name.
    pub(crate) fn only_named(self, name: &str) -> Option<HtmlElement<'p>> {
        let mut named = self.elements().filter(|tag| tag.name() == name);
        named.next().filter(|_| named.next().is_none())
    }

    /// The nearest element, itself or around it, that tells its language.
    pub(crate) fn tells_lang(self) -> Option<HtmlElement<'p>> {
        let around = self.0.ancestors().filter_map(ElementRef::wrap);
        std::iter::once(self.0)
            .chain(around)
            .map(HtmlElement)
            .find(|tag| tag.attr("lang").is_some())
    }

    /// The language in force, as written.
    pub(crate) fn lang(self) -> Option<&'p str> {
        let told = self.tells_lang().and_then(|tag| tag.attr("lang"));
        told.filter(|lang| lang.len() <= LONGEST_TAG_BYTES)
    }

    /// What is inside, as HTML.
    pub(crate) fn markup(self) -> String {
        self.0.inner_html().trim().to_owned()
    }

    /// The element itself with all in it, as HTML.
    pub(crate) fn outer_html(self) -> String {
        self.0.html()
    }

    /// What is read of it: its text on one line, pictures by what stands for them.
    pub(crate) fn text(self) -> String {
        let mut text = String::new();
        self.visit(|node| {
            match node.value() {
                Node::Text(piece) => text.push_str(piece),
                Node::Element(element) if matches!(element.name(), "script" | "style") => {
                    return Descend::Skip;
                }
                Node::Element(element) if element.name() == "img" => {
                    let stands = element.attr("alt").unwrap_or_default();
                    text.extend([" ", stands, " "]);
                }
                Node::Element(element) if element.name() == "br" => text.push(' '),
                _ => {}
            }
            Descend::Enter
        });
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// How much is inside, in bytes of its texts and some for each element; nobody counts
    /// on from `most`.
    pub(crate) fn size(self, most: usize) -> usize {
        let mut size = 0;
        self.visit(|node| {
            size += match node.value() {
                Node::Text(piece) => piece.len(),
                Node::Element(_) => ELEMENT_BYTES,
                _ => 0,
            };
            if size < most { Descend::Enter } else { Descend::Stop }
        });
        size.min(most)
    }

    /// Comes to the elements below, in order, and inside those for which `at` says so.
    pub(crate) fn walk(self, mut at: impl FnMut(HtmlElement<'p>) -> Descend) {
        self.visit(|node| {
            ElementRef::wrap(node).map_or(Descend::Enter, |element| at(HtmlElement(element)))
        });
    }

    fn visit(self, mut at: impl FnMut(HtmlNode<'p>) -> Descend) {
        let top = *self.0;
        let mut next = top.first_child();
        while let Some(node) = next {
            let hidden = matches!(node.value(), Node::Fragment);
            let go = if hidden { Descend::Skip } else { at(node) };
            if go == Descend::Stop {
                break;
            }
            let inside = if go == Descend::Enter { node.first_child() } else { None };
            next = inside.or_else(|| {
                let mut around = node.ancestors().take_while(|around| *around != top);
                node.next_sibling().or_else(|| around.find_map(|around| around.next_sibling()))
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_made_to_hurt_is_read_up_to_a_limit() {
        let formats: String = (0..600).map(|n| format!("<b id={n}>")).collect();
        let attributes: String = (0..100_000).map(|n| format!(" a{n}")).collect();
        let picture = format!("<img src='data:{}'><p>x", "ab/d+f".repeat(10_000));
        #[rustfmt::skip]
        let cases = [
            ("a sound one",                 "<p>x<p>y".to_owned(),               false),
            ("a large picture in it",       picture,                             false),
            ("as long a text",              "a b ".repeat(100_000),              false),
            ("elements too deep",           "<div>".repeat(100_000),             true),
            ("closed and deep all the same", "<div/>".repeat(100_000),           true),
            ("formats that come again",     format!("{formats}<p>x"),            true),
            ("attributes without number",   format!("<p{attributes}>x"),         true),
            ("elements without number",     "<p>x".repeat(NODES),                true),
            ("too long",                    " ".repeat(PAGE_BYTES + 1),          true),
        ];
        for (why, html, want) in cases {
            let page = ParsedHtml::read(&html);
            assert_eq!(page.is_cut, want, "{why}");
            let deepest = page.html.tree.nodes().map(|node| node.ancestors().count()).max();
            assert!(deepest < Some(2 * DEPTH), "{why}: {deepest:?}");
            page.root().map(|root| (root.text(), root.markup()));
        }
    }
}
