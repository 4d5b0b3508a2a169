//! Adding texts, references and CDATA sections to the tree.
//!
//! Adjacent ones form one text. White space where only elements are expected is layout and is left
//! out, but not next to a text.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter, memchr2, memmem};

use super::super::entities::DeclaredEntities;
use super::super::tokens::Tokens;
use super::super::{Kind, Node};
use super::Builder;
use crate::parse::faults::Faults;
use crate::repair::RepairCode;

/// The start of a CDATA section.
const SECTION: &str = "<![CDATA[";

impl<'t> Builder<'t> {
    /// Adds characters without references.
    pub(super) fn characters(&mut self, text: &'t str) {
        if text.is_empty() || self.is_layout(text) {
            return;
        }
        match changed_characters(text, &mut self.faults) {
            None => self.plain_characters(text),
            Some(changed) => self.push_str(&changed),
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
            self.push_str(&with_line_feeds(layout));
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
            self.push_str(token);
        }
        count_reference(name, known, &self.entities, &mut self.faults);
    }

    /// Adds all characters and references between a reference and the next tag. Escaped markup has a
    /// reference every few characters, so they are read here without a token for each.
    pub(super) fn text_after_reference(&mut self, tokens: &mut Tokens<'t>) {
        let last = self.nodes[self.top().node as usize].last;
        let Some(Cow::Owned(text)) = text_at(&mut self.nodes, last) else { return };
        let rest = tokens.rest();
        let run = &rest[..memchr(b'<', rest.as_bytes()).unwrap_or(rest.len())];
        let begin = tokens.end();
        let mut at = 0;
        while at < run.len() {
            let left = &run[at..];
            self.faults.at = Some(begin + at);
            let Some(name) = left.strip_prefix('&').and_then(reference_name) else {
                let length = characters_length(left);
                let stray = left.starts_with('&');
                if stray {
                    self.faults.count(RepairCode::BareAmpersand);
                }
                push_characters(&left[..length], text, &mut self.faults);
                at += length;
                continue;
            };
            let token = &left[..name.len() + 2];
            if !push_usual(name, text) {
                let known = self.entities.resolve_into(name, text);
                if !known {
                    text.push_str(token);
                }
                count_reference(name, known, &self.entities, &mut self.faults);
            }
            at += token.len();
        }
        tokens.skip(run.len());
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

    /// Adds the characters of a section, in which `]]>` does not occur.
    fn section_characters(&mut self, text: &'t str) {
        if text.is_empty() || self.is_layout(text) {
            return;
        }
        if memchr(b'\r', text.as_bytes()).is_some() {
            self.push_str(&with_line_feeds(text));
        } else {
            self.plain_characters(text);
        }
    }

    /// Adds a CDATA section. A section that contains the start of another one ends with the later
    /// end.
    pub(super) fn section(&mut self, text: &'t str, tokens: &mut Tokens<'t>) {
        let Some(inner) = find_section(text) else { return self.section_characters(text) };
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

/// Returns where a CDATA section begins. Brackets are rare in texts, so that one byte is searched for.
fn find_section(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let ends = memchr_iter(b'[', bytes).find(|at| bytes[..=*at].ends_with(SECTION.as_bytes()))?;
    Some(ends + 1 - SECTION.len())
}

/// Returns characters without references as they are kept; `None` if they stay as they are.
fn changed_characters(text: &str, faults: &mut Faults) -> Option<String> {
    memchr2(b']', b'\r', text.as_bytes())?;
    if memmem::find(text.as_bytes(), b"]]>").is_some() {
        // `]]>` in a text is the end of a CDATA section inside another one.
        faults.count(RepairCode::NestedCdata);
        return Some(text.replace("]]>", ""));
    }
    memchr(b'\r', text.as_bytes())?;
    Some(with_line_feeds(text))
}

/// Returns `text` with line feeds as line ends (XML 1.0 `#sec-line-ends`).
fn with_line_feeds(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for at in memchr_iter(b'\r', text.as_bytes()) {
        out.push_str(&text[copied..at]);
        copied = at + 1;
        if text.as_bytes().get(copied) != Some(&b'\n') {
            out.push('\n');
        }
    }
    out.push_str(&text[copied..]);
    out
}

fn push_characters(text: &str, out: &mut String, faults: &mut Faults) {
    match changed_characters(text, faults) {
        None => out.push_str(text),
        Some(changed) => out.push_str(&changed),
    }
}

/// Counts the fault of a reference, if it has one.
fn count_reference(
    name: &str,
    is_known: bool,
    entities: &DeclaredEntities<'_>,
    faults: &mut Faults,
) {
    if !is_known {
        faults.count(RepairCode::UnknownEntity);
    } else if !entities.is_declared(name) {
        faults.count(RepairCode::UndeclaredEntity);
    }
}

/// Returns the name of the reference that `rest` begins with, after its `&`; `None` if the `&` is stray.
fn reference_name(rest: &str) -> Option<&str> {
    // Names are shorter than what a search for several bytes costs.
    let end = rest.bytes().position(|byte| matches!(byte, b';' | b'&'))?;
    (rest.as_bytes()[end] == b';').then(|| &rest[..end])
}

/// Returns the length of the characters at the start of `text`, up to the next reference. A stray `&` is
/// one of them.
fn characters_length(text: &str) -> usize {
    let after = text.as_bytes().get(1..).unwrap_or_default();
    memchr(b'&', after).map_or(text.len(), |at| at + 1)
}

/// Appends the character of a reference that escaped markup consists of. Returns whether it was one.
fn push_usual(name: &str, out: &mut String) -> bool {
    let meant = match name {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "quot" => '"',
        _ => return false,
    };
    out.push(meant);
    true
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
