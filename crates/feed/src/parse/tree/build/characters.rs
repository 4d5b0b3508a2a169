//! Texts, references and CDATA sections → the text of the element around them.
//!
//! What stands side by side is one text. White space is layout and left out where only
//! elements are due, but not beside a text.

use std::borrow::Cow;

use memchr::{memchr, memchr2, memmem};

use super::super::Kind;
use super::super::entities;
use super::super::tokens::Tokens;
use super::Builder;
use crate::repair::RepairCode;

/// What begins a CDATA section.
const SECTION: &str = "<![CDATA[";

impl<'t> Builder<'t> {
    /// Characters as they stand in the text, without references.
    pub(super) fn characters(&mut self, text: &'t str) {
        if text.is_empty() || self.is_layout(text) {
            return;
        }
        if memchr2(b']', b'\r', text.as_bytes()).is_none() {
            return self.plain_characters(text);
        }
        if text.contains("]]>") {
            // The end of a section inside a section: nothing else has it in a text.
            self.faults.count(RepairCode::NestedCdata);
            return self.push_str(&text.replace("]]>", ""));
        }
        if text.contains('\r') {
            self.push_str(&text.replace("\r\n", "\n").replace('\r', "\n"));
        } else {
            self.plain_characters(text);
        }
    }

    /// Whether a text is layout for all that is known; it is kept in mind.
    fn is_layout(&mut self, text: &'t str) -> bool {
        let is_blank = self.top().structure && is_blank(text);
        if is_blank && self.last_text().is_none() {
            self.layout = text;
            return true;
        }
        self.begin_text();
        false
    }

    /// A text begins or goes on.
    fn begin_text(&mut self) {
        let layout = std::mem::take(&mut self.layout);
        if !layout.is_empty() {
            self.push_str(&layout.replace("\r\n", "\n").replace('\r', "\n"));
        }
    }

    /// Characters that stay as they are.
    fn plain_characters(&mut self, text: &'t str) {
        match self.last_text() {
            Some(held) => held.to_mut().push_str(text),
            None => {
                self.append(Kind::Text(Cow::Borrowed(text)));
            }
        }
    }

    /// A reference as it stands in the text: `&name;`. Where there is one there are
    /// more: `rest`, what follows, says how long the text may become.
    pub(super) fn reference(&mut self, token: &'t str, rest: &str) {
        self.begin_text();
        let name = token.strip_prefix('&').unwrap_or(token);
        let name = name.strip_suffix(';').unwrap_or(name);
        let room = || token.len() + memchr(b'<', rest.as_bytes()).unwrap_or(rest.len());
        let known = match self.last_text() {
            Some(held) => {
                if let Cow::Borrowed(before) = *held {
                    let mut text = String::with_capacity(before.len() + room());
                    text.push_str(before);
                    *held = Cow::Owned(text);
                }
                entities::resolve_into(name, held.to_mut())
            }
            None => {
                let mut text = String::with_capacity(room());
                let known = entities::resolve_into(name, &mut text);
                if known {
                    self.append(Kind::Text(Cow::Owned(text)));
                }
                known
            }
        };
        if !known {
            self.faults.count(RepairCode::UnknownEntity);
            self.push_str(token);
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

    /// The text that directly precedes what comes now.
    fn last_text(&mut self) -> Option<&mut Cow<'t, str>> {
        let last = self.nodes[self.top().node as usize].last;
        match self.nodes.get_mut(last as usize).map(|node| &mut node.kind) {
            Some(Kind::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// A CDATA section, unless it was not closed and ends with a later one.
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
        // What follows, up to the end of the outer section, is in that section.
        let rest = tokens.rest();
        if let Some(close) = rest.find("]]>").filter(|close| !rest[..*close].contains(&end))
            && tokens.resume(SECTION.len() + text.len() + 3 + close + 3)
        {
            self.push_str(&rest[..close]);
        }
    }
}

/// Whether there is nothing but white space in a text, most of which is ASCII.
fn is_blank(text: &str) -> bool {
    let first = text.bytes().position(|byte| !byte.is_ascii_whitespace());
    first.is_none_or(|at| !text.as_bytes()[at].is_ascii_graphic() && text.trim_start().is_empty())
}
