//! Adding elements to the tree: start tags, their namespaces and attributes.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter};

use super::super::attributes::Tag;
use super::super::entities;
use super::super::tokens::Tokens;
use super::super::{Kind, Scope, XmlAttribute};
use super::{Builder, DEPTH, Open, STRUCTURE, index};
use crate::repair::RepairCode;

/// The maximum number of nested elements with an `xml:base` (rule S16): the resolved base of one
/// more may be as long as all of them together. Further ones are ignored.
const BASES: u32 = 16;

/// HTML elements that are never closed and share no name with elements of feed formats.
const VOID: [&str; 5] = ["br", "hr", "img", "wbr", "input"];

impl<'t> Builder<'t> {
    /// Reads a start tag. A tag without a closing quote has swallowed the text after it, and is
    /// cut.
    pub(super) fn tag(&mut self, inside: &'t str, tokens: &mut Tokens<'t>) {
        let has_bracket = memchr(b'<', inside.as_bytes()).is_some();
        if has_bracket
            && let Some(end) = self.swallows(inside)
            && tokens.resume(1 + end + 1)
        {
            self.is_sound = false;
            self.faults.count(RepairCode::UnclosedQuote);
            return self.start(&inside[..end]);
        }
        if self.guesses && is_left_open(inside, tokens.rest()) {
            self.faults.count(RepairCode::MissingEnd);
            return self.start_empty(inside);
        }
        if has_bracket {
            self.faults.count(RepairCode::BareLessThan);
        }
        if self.guesses && is_unclosed_void(inside, tokens.rest()) {
            self.faults.count(RepairCode::MissingEnd);
        }
        self.start(inside);
    }

    /// Reads the start tag of an element that has no end tag and no content.
    fn start_empty(&mut self, inside: &'t str) {
        let depth = self.open.len();
        self.start(inside);
        if self.open.len() > depth {
            self.close_down_to(self.open.len() - 1);
        }
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
        if empty || (prefix.is_empty() && is_void(name)) {
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
            let uri = match entities::attribute(value, &self.entities, &mut self.faults) {
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
                value: entities::attribute(value, &self.entities, &mut self.faults),
            });
        }
        ((from, index(self.attributes.len())), scope)
    }
}

/// Returns whether HTML never closes elements of this name.
pub(super) fn is_void(name: &str) -> bool {
    VOID.iter().any(|void| name.eq_ignore_ascii_case(void))
}

/// Returns whether a tag begins an element that HTML never closes and that is not closed, as XML
/// requires.
fn is_unclosed_void(inside: &str, rest: &str) -> bool {
    let name = inside.split(|c: char| c.is_ascii_whitespace()).next().unwrap_or_default();
    let end = rest.strip_prefix("</").and_then(|rest| rest.get(..name.len()));
    is_void(name) && !inside.ends_with('/') && !end.is_some_and(is_void)
}

/// How far the end tag of a link is searched for.
const END_TAG_WITHIN: usize = 2_048;

/// Returns whether a tag begins a link with an address, whose end tag is missing: `rest` has none before
/// the next tag of the same name or the end of the item.
fn is_left_open(inside: &str, rest: &str) -> bool {
    let (name, attributes) = inside.split_once([' ', '\n', '\t', '\r']).unwrap_or((inside, ""));
    let (_, local) = split(name);
    let is = |names: [&str; 2]| names.iter().any(|known| local.eq_ignore_ascii_case(known));
    let has_address = ["href", "url"].iter().any(|address| attributes.contains(address));
    if !is(["link", "enclosure"]) || !has_address || inside.ends_with('/') {
        return false;
    }
    let within = rest.as_bytes().get(..END_TAG_WITHIN).unwrap_or(rest.as_bytes());
    for at in memchr_iter(b'<', within) {
        let tag = &rest[at + 1..];
        let (is_end, tag) = tag.strip_prefix('/').map_or((false, tag), |tag| (true, tag));
        let length = tag.find(|c: char| !(c.is_alphanumeric() || c == ':')).unwrap_or(tag.len());
        let (_, found) = split(&tag[..length]);
        if found.eq_ignore_ascii_case(local) {
            return !is_end;
        }
        if ["item", "entry"].iter().any(|item| found.eq_ignore_ascii_case(item)) {
            return true;
        }
    }
    true
}

/// Splits a name into its prefix, which may be empty, and its local name.
pub(super) fn split(name: &str) -> (&str, &str) {
    match name.bytes().position(|byte| byte == b':') {
        Some(at) if at > 0 && at + 1 < name.len() => (&name[..at], &name[at + 1..]),
        _ => ("", name),
    }
}
