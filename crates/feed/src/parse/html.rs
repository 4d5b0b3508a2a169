//! HTML pages, parsed as browsers parse them.
//!
//! The tree of [`super::tree`] is made for broken XML. HTML has its own rules for implied end tags,
//! and html5ever implements them; no other module depends on that parser. Invariants:
//!
//! * Nothing recurses over a page: nodes are stored in one vector, and traversals are loops.
//! * The parser takes quadratic time for some hostile pages. Input is fed in small pieces, and
//!   parsing stops as soon as the page exceeds a limit that no real page reaches.
//! * Scripts are not run, and the content of a `template` is not part of the page.

mod comparable;
mod css;
mod feed_media_types;
mod xml;

pub(crate) use css::Css;
pub use feed_media_types::feed_media_type;

use std::ops::Deref;

use html5ever::driver::{self, ParseOpts, Parser};
use html5ever::tendril::{StrTendril, TendrilSink};
use scraper::{ElementRef, Html, HtmlTreeSink, Node};
use url::Url;

use super::faults::Faults;
use super::memory_bound::max_nodes;
use super::mend::TextRepair;
use super::tree::LONGEST_TAG_BYTES;
use crate::context::is_base;
use crate::repair::Repair;

/// The maximum nesting of elements; browsers have the same limit.
const DEPTH: usize = 512;

/// The maximum number of elements, texts and comments of one page: ten times a very long page.
const NODES: usize = 200_000;

/// The maximum length of a page, in bytes; the longest real pages have a quarter of it.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// The length of the pieces in which the parser is fed, in bytes: small enough to bound the work
/// between two checks.
const PIECE_BYTES: usize = 1024;

/// The size that an element counts for in [`HtmlElement::size`], in bytes.
const ELEMENT_BYTES: usize = 16;

/// The maximum number of attribute separators in one tag, counted before the tag ends: the parser
/// compares each attribute with all before it.
const SEPARATORS: usize = 16 * 1024;

/// A parsed page.
#[derive(Debug)]
pub(crate) struct ParsedHtml {
    html: Html,
    /// The length of the text that was parsed, in bytes.
    pub(crate) length: usize,
    /// Whether a limit ended parsing before the end of the page.
    pub(crate) is_cut: bool,
}

/// An element of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HtmlElement<'p>(ElementRef<'p>);

/// A node of a page: an element, a text or a comment.
type HtmlNode<'p> = <ElementRef<'p> as Deref>::Target;

/// How a traversal continues after an element: into it, past it, or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Descend {
    Enter,
    Skip,
    Stop,
}

impl ParsedHtml {
    /// Parses a page, up to the limits of this module.
    pub(crate) fn read(text: &str) -> ParsedHtml {
        let tree = HtmlTreeSink::new(Html::new_document());
        let mut parser = driver::parse_document(tree, ParseOpts::default());
        let max_nodes = NODES.min(max_nodes(text.len()));
        let mut meter = Meter { max_nodes, ..Meter::default() };
        let mut rest = &text[..text.floor_char_boundary(PAGE_BYTES)];
        let length = rest.len();
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
        ParsedHtml { html: parser.finish(), length, is_cut }
    }

    /// Repairs every text of the page, and lists the repairs.
    pub(crate) fn mend_texts(&mut self, repairs: &mut Vec<Repair>) {
        let mut repair = TextRepair::default();
        for node in self.html.tree.values() {
            if let Node::Text(text) = node {
                repair.examine(text);
            }
        }
        if !repair.is_needed() {
            return;
        }
        let mut faults = Faults::default();
        for node in self.html.tree.values_mut() {
            if let Node::Text(text) = node
                && let Some(sound) = repair.mend(text, &mut faults)
            {
                text.text = sound.into();
            }
        }
        faults.report(repairs);
    }

    /// Returns the `html` element.
    pub(crate) fn root(&self) -> Option<HtmlElement<'_>> {
        self.html.tree.root().children().find_map(ElementRef::wrap).map(HtmlElement)
    }

    /// Returns the `base` element with an address, if there is one.
    pub(crate) fn tells_base(&self) -> Option<HtmlElement<'_>> {
        self.named("base").into_iter().find(|tag| tag.attr("href").is_some())
    }

    /// Returns the base of relative addresses in the page: its `base` element, or `url`.
    pub(crate) fn base(&self, url: &Url) -> Url {
        let told = self.tells_base().and_then(|tag| tag.attr("href"));
        let base = told.and_then(|href| url.join(href.trim()).ok());
        base.filter(is_base).unwrap_or_else(|| url.clone())
    }

    /// Returns the address of the first feed that the page advertises, as written.
    pub(crate) fn advertised_feed(&self) -> Option<&str> {
        let links = self.named("link").into_iter();
        let mut feeds = links.filter(|tag| tag.advertised_feed_type().is_some());
        feeds.find_map(|tag| tag.attr("href"))
    }

    /// Returns all elements with this name.
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

/// The size of the tree built so far.
#[derive(Debug, Default)]
struct Meter {
    max_nodes: usize,
    nodes: usize,
    text_bytes: usize,
    separators: usize,
}

impl Meter {
    /// Returns whether the limits allow parsing to continue after `piece`.
    fn allows(&mut self, parser: &Parser<HtmlTreeSink>, piece: &str) -> bool {
        let html = parser.tokenizer.sink.sink.0.borrow();
        let nodes = html.tree.nodes().len();
        let made = nodes - self.nodes;
        let text_bytes = match html.tree.nodes().next_back().map(|node| node.value()) {
            Some(Node::Text(text)) => text.len(),
            _ => 0,
        };
        // The parser creates nothing while it is inside a tag.
        let grown = made > 0 || text_bytes != self.text_bytes;
        let between = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'"' | b'\'');
        let separators = piece.as_bytes().iter().filter(|byte| between(byte)).count();
        self.separators = separators + if grown { 0 } else { self.separators };
        (self.nodes, self.text_bytes) = (nodes, text_bytes);
        let mut newest = html.tree.nodes().rev().take(made);
        nodes <= self.max_nodes
            && self.separators <= SEPARATORS
            && newest.all(|node| node.ancestors().take(DEPTH + 1).count() <= DEPTH)
    }
}

impl<'p> HtmlElement<'p> {
    /// Returns the name, in lower case.
    pub(crate) fn name(self) -> &'p str {
        self.0.value().name()
    }

    /// Returns the trimmed value of an attribute.
    pub(crate) fn attr(self, name: &str) -> Option<&'p str> {
        self.0.value().attr(name).map(str::trim)
    }

    /// Returns the space-separated words of an attribute.
    pub(crate) fn words(self, name: &str) -> impl Iterator<Item = &'p str> + use<'p> {
        self.attr(name).unwrap_or_default().split_ascii_whitespace()
    }

    /// Returns whether the element has this class.
    pub(crate) fn has_class(self, class: &str) -> bool {
        self.words("class").any(|held| held == class)
    }

    /// Returns a number that identifies the element in its page.
    pub(crate) fn number(self) -> usize {
        std::ptr::from_ref(self.0.value()).addr()
    }

    /// Returns the parent element.
    pub(crate) fn parent(self) -> Option<HtmlElement<'p>> {
        self.0.parent().and_then(ElementRef::wrap).map(HtmlElement)
    }

    /// Returns the child elements, in order.
    pub(crate) fn elements(self) -> impl Iterator<Item = HtmlElement<'p>> + use<'p> {
        self.0.children().filter_map(ElementRef::wrap).map(HtmlElement)
    }

    /// Returns the only child element; `None` if there are several.
    pub(crate) fn only_element(self) -> Option<HtmlElement<'p>> {
        let mut elements = self.elements();
        elements.next().filter(|_| elements.next().is_none())
    }

    /// Returns the only child element with this name; `None` if there are several.
    pub(crate) fn only_named(self, name: &str) -> Option<HtmlElement<'p>> {
        let mut named = self.elements().filter(|tag| tag.name() == name);
        named.next().filter(|_| named.next().is_none())
    }

    /// Returns the nearest element with a `lang` attribute: this element or an ancestor.
    pub(crate) fn tells_lang(self) -> Option<HtmlElement<'p>> {
        let around = self.0.ancestors().filter_map(ElementRef::wrap);
        std::iter::once(self.0)
            .chain(around)
            .map(HtmlElement)
            .find(|tag| tag.attr("lang").is_some())
    }

    /// Returns the language that applies to the element, as written.
    pub(crate) fn lang(self) -> Option<&'p str> {
        let told = self.tells_lang().and_then(|tag| tag.attr("lang"));
        told.filter(|lang| lang.len() <= LONGEST_TAG_BYTES)
    }

    /// Returns the media type of the feed that a `link` element advertises; `None` if it advertises none.
    pub(crate) fn advertised_feed_type(self) -> Option<&'static str> {
        let is_alternate = self.words("rel").any(|rel| rel.eq_ignore_ascii_case("alternate"));
        let is_feed = is_alternate && self.attr("href").is_some_and(|href| !href.is_empty());
        is_feed.then(|| feed_media_type(self.attr("type").unwrap_or_default()))?
    }

    /// Returns the texts of the element as they are, also those of a script.
    pub(crate) fn raw_text(self) -> String {
        self.0.text().collect()
    }

    /// Returns the inner HTML.
    pub(crate) fn markup(self) -> String {
        self.0.inner_html().trim().to_owned()
    }

    /// Returns the outer HTML.
    pub(crate) fn outer_html(self) -> String {
        self.0.html()
    }

    /// Returns the text of the element on one line, with images replaced by their alternative text.
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

    /// Returns the size of the content, in bytes of its texts plus a constant for each element.
    /// Counting stops at `most`.
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

    /// Visits the descendants in document order. `at` decides whether the traversal enters an
    /// element.
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
