//! Adding texts, references and CDATA sections to the tree.
//!
//! Adjacent ones form one text. White space where only elements are expected is layout and is left
//! out, but not next to a text.

use std::borrow::Cow;

use memchr::{memchr, memchr2, memmem};

use super::super::tokens::Tokens;
use super::super::{Kind, Node};
use super::Builder;
use crate::repair::RepairCode;

/// The start of a CDATA section.
const SECTION: &str = "<![CDATA[";

impl<'t> Builder<'t> {
    /// Adds characters without references.
    pub(super) fn characters(&mut self, text: &'t str) {
        if text.is_empty() || self.is_layout(text) {
            return;
        }
        if memchr2(b']', b'\r', text.as_bytes()).is_none() {
            return self.plain_characters(text);
        }
        if memmem::find(text.as_bytes(), b"]]>").is_some() {
            // `]]>` in a text is the end of a CDATA section inside another one.
            self.faults.count(RepairCode::NestedCdata);
            return self.push_str(&text.replace("]]>", ""));
        }
        if memchr(b'\r', text.as_bytes()).is_some() {
            self.push_str(&text.replace("\r\n", "\n").replace('\r', "\n"));
        } else {
            self.plain_characters(text);
        }
    }

    /// Returns whether a text is layout as far as is known, and remembers it in case a text
    /// follows.
    fn is_layout(&mut self, text: &'t str) -> bool {
        let is_blank = self.top().structure && is_blank(text);
        if is_blank && self.last_text().is_none() {
            self.layout = text;
            return true;
        }
        self.begin_text();
        false
    }

    /// Begins or continues a text.
    fn begin_text(&mut self) {
        let layout = std::mem::take(&mut self.layout);
        if !layout.is_empty() {
            self.push_str(&layout.replace("\r\n", "\n").replace('\r', "\n"));
        }
    }

    /// Adds characters that are kept unchanged.
    fn plain_characters(&mut self, text: &'t str) {
        match self.last_text() {
            Some(held) => held.to_mut().push_str(text),
            None => {
                self.append(Kind::Text(Cow::Borrowed(text)));
            }
        }
    }

    /// Adds a reference as written: `&name;`. A text with one reference often has more, so the
    /// length of `rest`, the remaining text, is the estimate for the capacity.
    pub(super) fn reference(&mut self, token: &'t str, rest: &str) {
        self.begin_text();
        let name = token.strip_prefix('&').unwrap_or(token);
        let name = name.strip_suffix(';').unwrap_or(name);
        let room = || token.len() + memchr(b'<', rest.as_bytes()).unwrap_or(rest.len());
        let last = self.nodes[self.top().node as usize].last;
        let known = match text_at(&mut self.nodes, last) {
            Some(held) => {
                if let Cow::Borrowed(before) = *held {
                    let mut text = String::with_capacity(before.len() + room());
                    text.push_str(before);
                    *held = Cow::Owned(text);
                }
                self.entities.resolve_into(name, held.to_mut())
            }
            None => {
                let mut text = String::with_capacity(room());
                let known = self.entities.resolve_into(name, &mut text);
                if known {
                    self.append(Kind::Text(Cow::Owned(text)));
                }
                known
            }
        };
        if !known {
            self.faults.count(RepairCode::UnknownEntity);
            self.push_str(token);
        } else if !self.entities.is_declared(name) {
            self.faults.count(RepairCode::UndeclaredEntity);
        }
    }

    fn push_str(&mut self, text: &str) {
        match self.last_text() {
            Some(held) => held.to_mut().push_str(text),
            None => {
                self.append(Kind::Text(Cow::Owned(text.to_owned())));
            }
        }
    }

    /// Returns the text directly before the current token.
    fn last_text(&mut self) -> Option<&mut Cow<'t, str>> {
        let last = self.nodes[self.top().node as usize].last;
        text_at(&mut self.nodes, last)
    }

    /// Adds a CDATA section. A section that contains the start of another one ends with the later
    /// end.
    pub(super) fn section(&mut self, text: &'t str, tokens: &mut Tokens<'t>) {
        let inner = memmem::find(text.as_bytes(), SECTION.as_bytes());
        let Some(inner) = inner else { return self.characters(text) };
        let end = format!("</{}", self.top().name);
        if let Some(cut) = text[..inner].find(&end)
            && tokens.resume(SECTION.len() + cut)
        {
            self.faults.count(RepairCode::UnclosedToken);
            return self.characters(&text[..cut]);
        }
        self.faults.count(RepairCode::NestedCdata);
        self.push_str(&text.replace(SECTION, ""));
        // The text up to the end of the outer section belongs to that section.
        let rest = tokens.rest();
        if let Some(close) = rest.find("]]>").filter(|close| !rest[..*close].contains(&end))
            && tokens.resume(SECTION.len() + text.len() + 3 + close + 3)
        {
            self.push_str(&rest[..close]);
        }
    }
}

/// Returns whether a text is nothing but white space, most of which is ASCII.
fn is_blank(text: &str) -> bool {
    let first = text.bytes().position(|byte| !byte.is_ascii_whitespace());
    first.is_none_or(|at| !text.as_bytes()[at].is_ascii_graphic() && text.trim_start().is_empty())
}

/// Returns the text of a node, if it is one.
fn text_at<'n, 't>(nodes: &'n mut [Node<'t>], at: u32) -> Option<&'n mut Cow<'t, str>> {
    match nodes.get_mut(at as usize).map(|node| &mut node.kind) {
        Some(Kind::Text(text)) => Some(text),
        _ => None,
    }
}
