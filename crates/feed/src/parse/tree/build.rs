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

use std::borrow::Cow;

use memchr::memchr;

use super::attributes::Tag;
use super::entities;
use super::implied;
use super::mend::mend;
use super::spaces::Namespaces;
use super::tokens::{Token, Tokens};
use super::{DOCUMENT, Kind, NONE, Node, Scope, Tree, XmlAttribute, offset};
use crate::repair::{Repair, RepairCode};

/// The maximum nesting of elements (rule S16).
const DEPTH: usize = 256;

/// Elements between whose children white space is insignificant.
const STRUCTURE: [&str; 9] =
    ["rss", "channel", "items", "item", "feed", "entry", "rdf", "image", "author"];

/// The maximum number of nested elements with an `xml:base` (rule S16): the resolved base of one
/// more may be as long as all of them together. Further ones are ignored.
const BASES: u32 = 16;

/// HTML elements that are never closed and share no name with elements of feed formats.
const VOID: [&str; 5] = ["br", "hr", "img", "wbr", "input"];

/// Builds the tree of `text`, which [`tidy`](super::tidy()) has processed.
pub(in super::super) fn build<'t>(text: &'t str, repairs: &mut Vec<Repair>) -> Tree<'t> {
    let mut builder = Builder::new(text);
    if !builder.read(text) {
        // The rules for missing end tags would tear apart a well-formed document.
        builder = Builder::new(text);
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
    open: Vec<Open<'t>>,
    /// The number of open elements that were too deep to be nested.
    too_deep: usize,
    /// Whether missing end tags are inferred.
    guesses: bool,
    /// Whether every tag so far was in its place.
    is_sound: bool,
    /// White space that is insignificant, unless a text follows it.
    layout: &'t str,
    tag: Tag<'t>,
    broke_off: bool,
    faults: Faults,
}

impl<'t> Builder<'t> {
    fn new(text: &'t str) -> Builder<'t> {
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
            layout: "",
            tag: Tag::default(),
            broke_off: false,
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
            self.faults.at = tokens.start();
            match token {
                Token::Start(inside) => self.tag(inside, &mut tokens),
                Token::End(name) => self.end(name),
                Token::Text(text) => self.characters(text),
                Token::CData(text) => self.section(text, &mut tokens),
                Token::Reference(reference) => self.reference(reference, tokens.rest()),
                Token::Broken => {
                    self.is_sound = false;
                    self.broke_off = true;
                    self.faults.count(RepairCode::UnclosedToken);
                }
            }
            if !self.is_sound && !self.guesses {
                return false;
            }
        }
        self.guesses || self.open.len() == 1
    }

    /// Reads a start tag. A tag without a closing quote has swallowed the text after it, and is
    /// cut.
    fn tag(&mut self, inside: &'t str, tokens: &mut Tokens<'t>) {
        if memchr(b'<', inside.as_bytes()).is_some()
            && let Some(end) = self.swallows(inside)
            && tokens.resume(1 + end + 1)
        {
            self.is_sound = false;
            self.faults.count(RepairCode::UnclosedQuote);
            return self.start(&inside[..end]);
        }
        self.start(inside);
    }

    /// Returns where a tag with a missing quote should have ended. Markup in a value proves
    /// nothing, but the end tag of an open element does, or that of the element itself.
    fn swallows(&self, inside: &str) -> Option<usize> {
        let end = inside.find('>')?;
        let name = inside[..end].split([' ', '\n', '\t', '\r', '/']).next()?;
        let open = self.open.iter().skip(1).map(|open| open.name);
        let names: Vec<&str> = open.chain([name]).filter(|name| !name.is_empty()).collect();
        let mut ends = inside[end..].split("</").skip(1);
        ends.any(|tail| names.iter().any(|name| tail.starts_with(name))).then_some(end)
    }

    fn start(&mut self, inside: &'t str) {
        let empty = inside.ends_with('/');
        let mut tag = std::mem::take(&mut self.tag);
        tag.read(inside);
        if let Some(fault) = tag.fault {
            self.faults.count(fault);
        }
        self.layout = "";
        self.imply_ends(tag.name);
        if self.open.len() > DEPTH {
            self.faults.count(RepairCode::TooDeep);
            self.too_deep += usize::from(!empty);
            self.tag = tag;
            return;
        }
        let bindings = self.spaces.mark();
        self.declare(&tag);
        let (prefix, name) = split(tag.name);
        let space = self.spaces.of_element(prefix);
        let (attributes, scope) = self.keep_attributes(&tag);
        let node = self.append(Kind::Element { prefix, name, space, attributes, scope });
        let void = || {
            let mut names = VOID.iter();
            prefix.is_empty() && names.any(|void| name.eq_ignore_ascii_case(void))
        };
        if empty || void() {
            self.is_sound &= empty;
            self.spaces.leave(bindings);
        } else {
            let structure = STRUCTURE.iter().any(|known| name.eq_ignore_ascii_case(known));
            self.open.push(Open { node, name: tag.name, bindings, structure, scope });
        }
        self.tag = tag;
    }

    fn declare(&mut self, tag: &Tag<'t>) {
        for (name, value) in &tag.attributes {
            let prefix = match name.strip_prefix("xmlns") {
                Some("") => "",
                Some(rest) => match rest.strip_prefix(':') {
                    Some(prefix) => prefix,
                    None => continue,
                },
                None => continue,
            };
            let uri = match entities::attribute(value) {
                Cow::Borrowed(uri) if !uri.contains(char::is_whitespace) => Cow::Borrowed(uri),
                uri => Cow::Owned(uri.split_whitespace().collect()),
            };
            self.spaces.bind(prefix, uri);
        }
    }

    /// Stores the attributes of the element that is appended next. Returns their range and the
    /// scope of the element.
    fn keep_attributes(&mut self, tag: &Tag<'t>) -> ((u32, u32), Scope) {
        let itself = index(self.nodes.len());
        let mut scope = self.top().scope;
        let from = index(self.attributes.len());
        for (name, value) in &tag.attributes {
            if *name == "xmlns" || name.starts_with("xmlns:") {
                continue;
            }
            let (prefix, name) = split(name);
            if prefix == "xml" && name == "lang" {
                scope.lang = itself;
            } else if matches!(prefix, "" | "xml")
                && name.eq_ignore_ascii_case("base")
                && scope.bases < BASES
            {
                scope.base = itself;
                scope.bases += 1;
            }
            let space = self.spaces.of_attribute(prefix);
            self.attributes.push(XmlAttribute {
                prefix,
                name,
                space,
                value: entities::attribute(value),
            });
        }
        ((from, index(self.attributes.len())), scope)
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
                if at + 2 < self.open.len() {
                    self.faults.count(RepairCode::MissingEnd);
                }
                self.close_down_to(at + 1);
            }
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

    fn finish(mut self, repairs: &mut Vec<Repair>) -> Tree<'t> {
        for at in 0..self.nodes.len() {
            let node = &self.nodes[at];
            if let Kind::Text(text) = &node.kind
                && let Some((mended, fault)) = mend(text)
            {
                // A text that was put together is not a slice of the document, so its parent is
                // used.
                let around = self.nodes.get(node.parent as usize).map(|node| node.kind.name());
                let found = offset(self.text, text);
                let found = found.or_else(|| offset(self.text, around.unwrap_or_default()));
                self.faults.at = found.unwrap_or_default();
                self.nodes[at].kind = Kind::Text(Cow::Owned(mended));
                self.faults.count(fault);
            }
        }
        self.faults.at = self.text.len();
        if self.open.len() > 1 {
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

/// The faults found: how often each occurred, and where first.
#[derive(Debug, Default)]
struct Faults {
    found: Vec<(RepairCode, usize, usize)>,
    /// The offset of the current token.
    at: usize,
}

impl Faults {
    fn count(&mut self, code: RepairCode) {
        match self.found.iter_mut().find(|(held, ..)| *held == code) {
            Some((_, count, _)) => *count += 1,
            None => self.found.push((code, 1, self.at)),
        }
    }

    fn report(&self, repairs: &mut Vec<Repair>) {
        for (code, count, first) in &self.found {
            repairs.push(Repair::new(*code, format!("{count} times")).at(*first));
        }
    }
}

/// Splits a name into its prefix, which may be empty, and its local name.
fn split(name: &str) -> (&str, &str) {
    match name.bytes().position(|byte| byte == b':') {
        Some(at) if at > 0 && at + 1 < name.len() => (&name[..at], &name[at + 1..]),
        _ => ("", name),
    }
}

/// Converts an index into the type that the tree stores. Documents are limited to far less than 4
/// GiB, and no index exceeds the length of the document.
fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(NONE)
}

#[cfg(test)]
mod tests {
    use super::super::Tree;
    use super::super::element::WalkStep;
    use super::*;

    /// Returns the tree in brackets: `a(b("x"))`.
    fn shape(tree: &Tree<'_>) -> String {
        let mut walk = tree.document().walk();
        let mut out = String::new();
        while let Some(step) = walk.next() {
            match step {
                WalkStep::Enter(element) => out += &format!("{}(", element.name()),
                WalkStep::Text(text) => out += &format!("{text:?}"),
                WalkStep::Leave(_) => out.push(')'),
            }
        }
        out
    }

    #[test]
    fn any_text_becomes_a_tree() {
        #[rustfmt::skip]
        let cases = [
            ("sound",                      "<a><b>x</b><c/></a>",               r#"a(b("x")c())"#),
            ("an end is missing",          "<a><b>x</a>",                       r#"a(b("x"))"#),
            ("ends are crossed",           "<a><b><i>x</b></i>y</a>",           r#"a(b(i("x"))"y")"#),
            ("an end too many",            "<a></b>x</a>",                      r#"a("x")"#),
            ("an item in an item",         "<rss><item>x<item>y</item></rss>",  r#"rss(item("x")item("y"))"#),
            ("an item of an item",         "<rss><item>x<item>y</item></item></rss>", r#"rss(item("x")item("y"))"#),
            ("an item in an element",      "<rss><item><x>y<item/></x></item></rss>", r#"rss(item(x("y"item())))"#),
            ("layout",                     "<rss> <item>\n<x> </x>\n</item> </rss>", r#"rss(item(x(" ")))"#),
            ("no layout",                  "<rss>\n&gt; <x/>y \n</rss>",       r#"rss("\n> "x()"y \n")"#),
            ("an entry that is quoted",    "<entry><content><entry/></content></entry>", "entry(content(entry()))"),
            ("broken off in a text",       "<a><b>x",                           r#"a(b("x"))"#),
            ("broken off in a tag",        "<a><b>x</b><c d='",                 r#"a(b("x"))"#),
            ("a comment never closed",     "<a><b>x</b><!-- y <c>z</c></a>",    r#"a(b("x")c("z"))"#),
            ("CDATA never closed",         "<a><![CDATA[x <b>y</b></a>",        r#"a("x "b("y"))"#),
            ("texts are joined",           "<a>x &amp; <![CDATA[<y>]]>&#33;</a>", r#"a("x & <y>!")"#),
            ("bare ampersands",            "<a>AT&T & &nosuch; &eacute;</a>",   r#"a("AT&T & &nosuch; é")"#),
            ("CDATA in CDATA",             "<a><![CDATA[x <![CDATA[y]]> z]]></a>", r#"a("x y z")"#),
            ("markup in CDATA in CDATA",   "<a><![CDATA[<p>x<![CDATA[y]]>z</p>]]></a>", r#"a("<p>xyz</p>")"#),
            ("CDATA closed too late",      "<a><b><![CDATA[x</b><c><![CDATA[y]]></c></a>", r#"a(b("x")c("y"))"#),
            ("a quote is missing",         "<a><b c=\"d>x</b><b c=\"e\">y</b></a>", r#"a(b("x")b("y"))"#),
            ("markup in a value",          "<a><b c=\"<i>d</i>\">x</b></a>",   r#"a(b("x"))"#),
            ("a title not closed",         "<rss><item><title>x<link>y</link></item></rss>", r#"rss(item(title("x")link("y")))"#),
            ("several roots",              "x<a/>y<b/>",                        r#""x"a()"y"b()"#),
            ("void HTML elements",         "<a>x<br>y<img src=z>w</a>",         r#"a("x"br()"y"img()"w")"#),
            ("other case in the end",      "<A>x</a><B/>",                      r#"A("x")B()"#),
            ("line ends",                  "<a>x\r\ny\rz</a>",                  r#"a("x\ny\nz")"#),
            ("a document type of its own", "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>", r#"a("&b;")"#),
        ];
        for (why, text, want) in cases {
            assert_eq!(shape(&build(text, &mut Vec::new())), want, "{why}: {text}");
        }
    }

    #[test]
    fn depth_and_size_do_no_harm() {
        let deep = "<a>".repeat(100_000) + "x";
        let tree = build(&deep, &mut Vec::new());
        assert_eq!(tree.document().text(), "x");
        let wide = format!("<a {}/>", "b='c' ".repeat(100_000));
        build(&wide, &mut Vec::new());
        let open = "<!--".repeat(100_000);
        build(&open, &mut Vec::new());
    }
}
