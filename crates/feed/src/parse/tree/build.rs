//! Construction of a tree from tokens.
//!
//! The tokenizer splits the text into tags and texts. This module decides what is nested in what,
//! and never fails:
//!
//! * A well-formed document is taken literally. Any other is read a second time with the following
//!   rules.
//! * An end tag closes everything up to its start tag; without one it is ignored.
//! * An item inside an item ends the outer one, unless it is quoted content.
//! * A token without an end is skipped, and reading continues after its beginning.
//! * Elements that HTML never closes (`br`, `img`) are empty.
//! * Elements deeper than [`DEPTH`] are kept without further nesting.

mod characters;
mod start_tags;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use memchr::memchr;

use super::attributes::Tag;
use super::entities::DeclaredEntities;
use super::implied;
use super::spaces::Namespaces;
use super::tidy::begins_name;
use super::tokens::{Token, Tokens};
use super::{DOCUMENT, Kind, NONE, Node, Scope, Tree, XmlAttribute, offset};
use crate::parse::faults::Faults;
use crate::parse::mend::TextRepair;
use crate::repair::{Repair, RepairCode};

use start_tags::{is_void, split};

/// The maximum nesting of elements (rule S16).
const DEPTH: usize = 256;

/// Elements between whose children white space is insignificant.
const STRUCTURE: [&str; 9] =
    ["rss", "channel", "items", "item", "feed", "entry", "rdf", "image", "author"];

/// Builds the tree of `text`, of at most so many nodes and attributes, if it is well-formed, so that neither [`tidy`](super::tidy()) would change
/// it nor any end tag has to be inferred.
pub(in super::super) fn build_sound<'t>(
    text: &'t str,
    max_nodes: usize,
    repairs: &mut Vec<Repair>,
) -> Option<Tree<'t>> {
    let mut builder = Builder::new(text, max_nodes);
    builder.is_tidy = Some(true);
    (builder.read(text) && builder.is_tidy == Some(true)).then(|| builder.finish(repairs))
}

/// Builds the tree of `text`, which [`tidy`](super::tidy()) has processed.
pub(in super::super) fn build<'t>(
    text: &'t str,
    max_nodes: usize,
    repairs: &mut Vec<Repair>,
) -> Tree<'t> {
    let mut builder = Builder::new(text, max_nodes);
    if !builder.read(text) {
        // The rules for missing end tags would tear apart a well-formed document.
        builder = Builder::new(text, max_nodes);
        builder.guesses = true;
        builder.read(text);
    }
    builder.finish(repairs)
}

/// An open element.
#[derive(Debug)]
struct Open<'t> {
    node: u32,
    name: &'t str,
    bindings: usize,
    structure: bool,
    scope: Scope,
}

#[derive(Debug)]
struct Builder<'t> {
    text: &'t str,
    nodes: Vec<Node<'t>>,
    attributes: Vec<XmlAttribute<'t>>,
    spaces: Namespaces<'t>,
    entities: DeclaredEntities<'t>,
    open: Vec<Open<'t>>,
    /// The number of open elements that were too deep to be nested.
    too_deep: usize,
    /// Whether missing end tags are inferred.
    guesses: bool,
    /// Whether every tag so far was in its place.
    is_sound: bool,
    /// Whether every `<` so far begins a tag or another construct; `None` if that is known of the
    /// whole text.
    is_tidy: Option<bool>,
    /// White space that is insignificant, unless a text follows it.
    layout: &'t str,
    tag: Tag<'t>,
    broke_off: bool,
    /// The most nodes and attributes that are read.
    max_nodes: usize,
    faults: Faults,
}

impl<'t> Builder<'t> {
    fn new(text: &'t str, max_nodes: usize) -> Builder<'t> {
        let document = Kind::Element {
            prefix: "",
            name: "",
            space: 0,
            attributes: (0, 0),
            scope: Scope::NONE,
        };
        let node = Node { parent: NONE, next: NONE, first: NONE, last: NONE, kind: document };
        Builder {
            text,
            // Estimates from real feeds, which save reallocations.
            nodes: Vec::with_capacity(text.len() / 40 + 8),
            attributes: Vec::with_capacity(text.len() / 200 + 8),
            spaces: Namespaces::new(),
            entities: DeclaredEntities::new(),
            open: vec![Open {
                node: DOCUMENT,
                name: "",
                bindings: 0,
                structure: true,
                scope: Scope::NONE,
            }],
            too_deep: 0,
            guesses: false,
            is_sound: true,
            is_tidy: None,
            layout: "",
            tag: Tag::default(),
            broke_off: false,
            max_nodes,
            faults: Faults::default(),
        }
        .with_root(node)
    }

    fn with_root(mut self, node: Node<'t>) -> Builder<'t> {
        self.nodes.push(node);
        self
    }

    /// Reads a document. Returns `false` if it is not well-formed; the nodes built so far are then
    /// unusable.
    fn read(&mut self, text: &'t str) -> bool {
        let mut tokens = Tokens::new(text);
        while let Some(token) = tokens.next() {
            self.faults.at = Some(tokens.start());
            if self.nodes.len() + self.attributes.len() > self.max_nodes {
                self.broke_off = true;
                self.faults.count(RepairCode::TooManyNodes);
                return true;
            }
            if let Some(is_tidy) = &mut self.is_tidy {
                *is_tidy &= stays_as_is(&token, text.get(tokens.start()..).unwrap_or_default());
            }
            match token {
                Token::Start(inside) => self.tag(inside, &mut tokens),
                Token::End(name) => self.end(name),
                Token::Text(text) => {
                    // A reference that has an end is a token of its own.
                    if text.starts_with('&') {
                        self.faults.count(RepairCode::BareAmpersand);
                    }
                    self.characters(text);
                }
                Token::CData(text) => self.section(text, &mut tokens),
                Token::Reference(reference) => {
                    self.reference(reference, tokens.rest());
                    if self.nodes.len() + self.attributes.len() <= self.max_nodes {
                        self.text_after_reference(&mut tokens);
                    }
                }
                Token::DocType(doctype) => self.entities.declare(doctype),
                Token::Broken => {
                    self.is_sound = false;
                    self.broke_off = true;
                    self.faults.count(RepairCode::UnclosedToken);
                }
            }
            if (!self.is_sound && !self.guesses) || self.is_tidy == Some(false) {
                return false;
            }
        }
        if let Some(is_tidy) = &mut self.is_tidy {
            // Comments that end in an odd way are left to `tidy`.
            *is_tidy &= !tokens.has_skipped_markup();
        }
        self.guesses || self.open.len() == 1
    }

    /// Closes the open elements that cannot contain the element that begins now.
    fn imply_ends(&mut self, name: &str) {
        if !self.guesses {
            // Nested items are never intended, whether or not the document closes its tags.
            let is_item = ["item", "entry"].iter().any(|item| name.eq_ignore_ascii_case(item));
            self.is_sound &= !(is_item && self.top().name.eq_ignore_ascii_case(name));
            return;
        }
        let around = self.open.iter().map(|open| open.name);
        if let Some(at) = implied::end(around, name) {
            self.faults.count(RepairCode::MissingEnd);
            self.close_down_to(at);
        }
    }

    fn end(&mut self, name: &'t str) {
        if self.too_deep > 0 {
            self.too_deep -= 1;
            return;
        }
        self.layout = "";
        self.is_sound &= self.top().name == name;
        let matching =
            self.open.iter().skip(1).rposition(|open| open.name.eq_ignore_ascii_case(name));
        match matching {
            Some(at) => {
                if at + 2 < self.open.len() || self.open[at + 1].name != name {
                    self.faults.count(RepairCode::MissingEnd);
                }
                self.close_down_to(at + 1);
            }
            None if is_void(name) => {} // its start tag is taken for the whole element
            None => self.faults.count(RepairCode::UnmatchedEnd),
        }
    }

    fn close_down_to(&mut self, at: usize) {
        self.spaces.leave(self.open[at].bindings);
        self.open.truncate(at);
    }

    /// Returns the innermost open element. There always is one, because the document node is never
    /// closed.
    fn top(&self) -> &Open<'t> {
        &self.open[self.open.len() - 1]
    }

    fn append(&mut self, kind: Kind<'t>) -> u32 {
        let parent = self.top().node;
        let at = index(self.nodes.len());
        self.nodes.push(Node { parent, next: NONE, first: NONE, last: NONE, kind });
        let last = std::mem::replace(&mut self.nodes[parent as usize].last, at);
        match self.nodes.get_mut(last as usize) {
            Some(before) => before.next = at,
            None => self.nodes[parent as usize].first = at,
        }
        at
    }

    /// Counts what must not stand before or beside the document element.
    fn count_faults_around_the_root(&mut self) {
        let begin = self.text.trim_start();
        self.faults.at = Some(0);
        if begin.len() < self.text.len() && begin.starts_with("<?xml") {
            self.faults.count(RepairCode::LateDeclaration);
        }
        let mut has_root = false;
        let mut at = self.nodes[DOCUMENT as usize].first;
        while let Some(node) = self.nodes.get(at as usize) {
            let is_root = matches!(node.kind, Kind::Element { .. }) && !has_root;
            if !is_root {
                let found = match &node.kind {
                    Kind::Element { name, .. } => offset(self.text, name),
                    Kind::Text(text) => offset(self.text, text),
                };
                self.faults.at = found;
                self.faults.count(RepairCode::OutsideRoot);
            }
            has_root |= is_root;
            at = node.next;
        }
    }

    /// Repairs the texts of the document. Its attributes are counted with them, because they become
    /// texts in the output, and texts become attributes.
    fn mend_texts(&mut self) {
        let is_ascii = self.text.is_ascii();
        let may_be_damaged = |text: &Cow<'t, str>| !(is_ascii && matches!(text, Cow::Borrowed(_)));
        let texts = self.nodes.iter().filter_map(|node| match &node.kind {
            Kind::Text(text) => Some(text),
            Kind::Element { .. } => None,
        });
        let values = self.attributes.iter().map(|attribute| &attribute.value);
        let mut repair = TextRepair::of_document(self.text);
        texts
            .chain(values)
            .filter(|text| may_be_damaged(text))
            .for_each(|text| repair.examine(text));
        if !repair.is_needed() {
            return;
        }
        for at in 0..self.nodes.len() {
            let node = &self.nodes[at];
            let Kind::Text(text) = &node.kind else { continue };
            // A text that was put together is not a slice of the document, so its parent is used.
            let around = self.nodes.get(node.parent as usize).map(|node| node.kind.name());
            let found = offset(self.text, text);
            let found = found.or_else(|| offset(self.text, around.unwrap_or_default()));
            self.faults.at = Some(found.unwrap_or_default());
            if let Some(mended) = repair.mend(text, &mut self.faults) {
                self.nodes[at].kind = Kind::Text(Cow::Owned(mended));
            }
        }
    }

    fn finish(mut self, repairs: &mut Vec<Repair>) -> Tree<'t> {
        self.mend_texts();
        self.count_faults_around_the_root();
        self.faults.at = Some(self.text.len());
        if self.open.len() > 1 && !self.faults.has_counted(RepairCode::TooManyNodes) {
            self.faults.count(RepairCode::Truncated);
        }
        // An item is cut if the document ended inside one of its elements.
        let item = self.open.iter().position(|open| {
            let (_, local) = split(open.name);
            local.eq_ignore_ascii_case("item") || local.eq_ignore_ascii_case("entry")
        });
        let cut = item.filter(|at| at + 1 < self.open.len() || self.broke_off);
        let cut = cut.map(|at| self.open[at].node);
        for prefix in self.spaces.used_undeclared() {
            let repair = Repair::new(RepairCode::UndeclaredPrefix, prefix);
            repairs.push(Repair { byte: offset(self.text, prefix), ..repair });
        }
        self.faults.report(repairs);
        Tree {
            text: self.text,
            nodes: self.nodes,
            attributes: self.attributes,
            spaces: self.spaces.into_list(),
            cut,
        }
    }
}

/// Returns whether `tidy` would change nothing in a token, which `written` begins with.
fn stays_as_is(token: &Token<'_>, written: &str) -> bool {
    let is_plain = |inside: &str| memchr(b'<', inside.as_bytes()).is_none();
    match token {
        Token::Start(inside) => begins_name(inside) && is_plain(inside),
        Token::End(name) => written.get(2..).is_some_and(begins_name) && is_plain(name),
        Token::DocType(doctype) => doctype.get(1..).is_some_and(is_plain),
        Token::Text(_) | Token::CData(_) | Token::Reference(_) => true,
        Token::Broken => false,
    }
}

/// Converts an index into the type that the tree stores. Documents are limited to far less than 4
/// GiB, and no index exceeds the length of the document.
fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(NONE)
}
