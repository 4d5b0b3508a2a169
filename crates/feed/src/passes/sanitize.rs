//! Removal of everything from the texts of a feed that could act in a page that shows them.
//!
//! The markup is written anew from what is allowed, so what was not understood is text. What
//! always holds for the result: it has elements and attributes of the [`policy`] only, its start
//! and end tags match, no value contains a bracket, and sanitizing it again changes nothing.
//! The time taken grows with the length only, because the nesting is limited (rule S17).

mod policy;
mod style;

use memchr::{memchr, memchr_iter, memmem};

use super::tag::{StartTag, name_length};
use crate::model::{Content, Element, Entry, Feed, Node, Text, TextKind};
use crate::text_extraction;

/// The maximum nesting of elements. Deeper tags are left out, and their text stays.
const DEEPEST: usize = 200;

/// The namespace of XHTML.
const XHTML: &str = "http://www.w3.org/1999/xhtml";

/// Sanitizes all texts of a feed and its entries. Content that is neither text nor an image, a
/// recording or a video is emptied, because it cannot be sanitized.
pub fn sanitize(feed: &mut Feed) {
    metadata(feed);
    feed.entries.iter_mut().for_each(entry);
}

fn metadata(feed: &mut Feed) {
    for construct in [&mut feed.title, &mut feed.subtitle, &mut feed.rights] {
        text(construct.as_mut());
    }
    elements(&mut feed.extensions);
}

fn entry(entry: &mut Entry) {
    for construct in [&mut entry.title, &mut entry.summary, &mut entry.rights] {
        text(construct.as_mut());
    }
    match &mut entry.content {
        Some(Content::Text(construct)) => text(Some(construct)),
        Some(Content::Xml { .. }) => entry.content = Some(nothing()),
        Some(Content::Media { mime, .. }) if !policy::is_passive(mime) => {
            entry.content = Some(nothing());
        }
        Some(Content::Media { .. } | Content::Src { .. }) | None => {}
    }
    if let Some(source) = &mut entry.source {
        metadata(source);
    }
    elements(&mut entry.extensions);
}

/// Content without anything in it: an entry without a link must have some (RFC 4287
/// `#rfc.section.4.1.2`).
fn nothing() -> Content {
    Content::Text(Text::default())
}

fn text(text: Option<&mut Text>) {
    let Some(text) = text else { return };
    match text.kind {
        TextKind::Text => {}
        TextKind::Html => text.value = markup(&text.value, false),
        TextKind::Xhtml => text.value = markup(&text.value, true),
    }
}

/// Sanitizes elements of other vocabularies: those of XHTML by the policy, and texts in which there
/// are tags, because readers may show them as HTML.
fn elements(elements: &mut Vec<Element>) {
    elements.retain(is_allowed);
    elements.iter_mut().for_each(sanitize_element);
}

fn sanitize_element(element: &mut Element) {
    if element.namespace == XHTML {
        element.attributes.retain_mut(|attribute| {
            let allowed = policy::attribute(&attribute.name, &attribute.value);
            let is_allowed = allowed.is_some();
            attribute.value = allowed.unwrap_or_default();
            is_allowed
        });
    }
    element.children.retain(|child| match child {
        Node::Element(child) => is_allowed(child),
        Node::Text(_) => true,
    });
    for child in &mut element.children {
        match child {
            Node::Element(child) => sanitize_element(child),
            Node::Text(text) if has_tags(text) => *text = markup(text, false),
            Node::Text(_) => {}
        }
    }
}

fn is_allowed(element: &Element) -> bool {
    element.namespace != XHTML || policy::element(&element.name.to_ascii_lowercase()).is_some()
}

fn has_tags(text: &str) -> bool {
    text.split('<').skip(1).any(|after| after.starts_with(is_tag_start))
}

fn is_tag_start(c: char) -> bool {
    c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?')
}

/// Sanitizes markup. In XML, a tag may end its own element.
fn markup(html: &str, is_xml: bool) -> String {
    let mut writer = Writer { out: String::with_capacity(html.len()), open: Vec::new() };
    let mut at = 0;
    while let Some(found) = memchr(b'<', &html.as_bytes()[at..]) {
        writer.text(&html[at..at + found]);
        at += found;
        let rest = &html[at..];
        match rest[1..].chars().next() {
            Some('!') if rest.starts_with("<!--") => at += comment_length(rest),
            Some('!' | '?') => at += tag_length(rest),
            Some('/') => {
                let name = rest[2..2 + name_length(&rest[2..])].to_ascii_lowercase();
                writer.end(&name);
                at += tag_length(rest);
            }
            Some(c) if c.is_ascii_alphabetic() => at = start_tag(html, at, is_xml, &mut writer),
            _ => {
                writer.text("<");
                at += 1;
            }
        }
    }
    writer.text(&html[at..]);
    writer.finish()
}

/// Writes the start tag at `at`, and returns the position after it. An element whose content is
/// no text is skipped with its content.
fn start_tag(html: &str, at: usize, is_xml: bool, writer: &mut Writer) -> usize {
    let from = at + 1;
    let length = name_length(&html[from..]);
    let name = html[from..from + length].to_ascii_lowercase();
    let mut tag = StartTag { html, at: from + length };
    let mut attributes: Vec<(String, String)> = Vec::new();
    while let Some(attribute) = tag.next_attribute() {
        let value = text_extraction::decode(&html[attribute.value.0..attribute.value.1]);
        let name = attribute.name.to_ascii_lowercase();
        if attributes.iter().any(|(held, _)| *held == name) {
            continue;
        }
        attributes.extend(policy::attribute(&name, &value).map(|value| (name, value)));
    }
    let is_closed = is_xml && html[..tag.at].ends_with('/');
    let after = tag.at + usize::from(html[tag.at..].starts_with('>'));
    if policy::is_raw(&name) {
        return if is_closed { after } else { end_of_raw(html, after, &name) };
    }
    if let Some(content) = policy::element(&name) {
        writer.start(&name, &attributes, content);
        if is_closed {
            writer.end(&name);
        }
    }
    after
}

/// Returns the position after the end tag of an element whose content is no text.
fn end_of_raw(html: &str, from: usize, name: &str) -> usize {
    let mut at = from;
    while let Some(found) = memmem::find(&html.as_bytes()[at..], b"</") {
        let end = &html[at + found..];
        if end[2..2 + name_length(&end[2..])].eq_ignore_ascii_case(name) {
            return at + found + tag_length(end);
        }
        at += found + 2;
    }
    html.len()
}

/// Returns the length of the tag, without regard to quotes, which end tags and declarations do not
/// have.
fn tag_length(text: &str) -> usize {
    memchr(b'>', text.as_bytes()).map_or(text.len(), |at| at + 1)
}

/// Returns the length of the comment, which ends where browsers end it.
fn comment_length(text: &str) -> usize {
    if let Some(short) = ["<!-->", "<!--->"].into_iter().find(|short| text.starts_with(short)) {
        return short.len();
    }
    let is_end = |at: &usize| text[4..*at].ends_with("--") || text[4..*at].ends_with("--!");
    let end = memchr_iter(b'>', text.as_bytes()).filter(|at| *at > 4).find(is_end);
    end.map_or(text.len(), |at| at + 1)
}

/// How an element may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// With a start and an end tag.
    Container,
    /// With a start tag only.
    Void,
}

struct Writer {
    out: String,
    /// The names of the open elements, the innermost last.
    open: Vec<String>,
}

impl Writer {
    /// Appends text. References stay as they are, because no reference can begin a tag.
    fn text(&mut self, text: &str) {
        push_escaped(&mut self.out, text, |c| c == '<');
    }

    fn start(&mut self, name: &str, attributes: &[(String, String)], shape: Shape) {
        if self.open.len() >= DEEPEST {
            return;
        }
        self.out.push('<');
        self.out.push_str(name);
        for (name, value) in attributes {
            self.out.push(' ');
            self.out.push_str(name);
            self.out.push_str("=\"");
            push_escaped(&mut self.out, value, |c| matches!(c, '&' | '"' | '<' | '>'));
            self.out.push('"');
        }
        match shape {
            Shape::Void => self.out.push_str(" />"),
            Shape::Container => {
                self.out.push('>');
                self.open.push(name.to_owned());
            }
        }
    }

    /// Ends an element, and those that are open inside it. An end without a start is left out.
    fn end(&mut self, name: &str) {
        if let Some(depth) = self.open.iter().rposition(|open| open == name) {
            self.close_to(depth);
        }
    }

    fn close_to(&mut self, depth: usize) {
        for name in self.open.drain(depth..).rev() {
            self.out.push_str("</");
            self.out.push_str(&name);
            self.out.push('>');
        }
    }

    fn finish(mut self) -> String {
        self.close_to(0);
        self.out
    }
}

fn push_escaped(out: &mut String, text: &str, is_special: impl Fn(char) -> bool) {
    for c in text.chars() {
        match c {
            '&' if is_special(c) => out.push_str("&amp;"),
            '"' if is_special(c) => out.push_str("&quot;"),
            '<' if is_special(c) => out.push_str("&lt;"),
            '>' if is_special(c) => out.push_str("&gt;"),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests;
