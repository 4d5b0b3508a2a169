//! Checks whether serialized markup can be inserted into a document unchanged.
//!
//! XHTML content and inline XML are received as text. They are written unescaped only if they are
//! well-formed by themselves: every tag closed, every prefix declared, every reference known to XML
//! without a DTD. Where it simplifies the check, it is stricter than XML; rejected markup is
//! written escaped, so a false rejection loses nothing.

use std::collections::HashSet;

use crate::text_extraction::is_printable;

use super::names::is_name;

/// Returns whether `text` can be the content of an element. A default namespace may be declared
/// outside it, prefixes may not.
pub(super) fn is_well_formed(text: &str) -> bool {
    let mut rest = text;
    let mut open = Open::default();
    while !rest.is_empty() {
        let read = match rest.find('<') {
            Some(0) if rest.starts_with("<!--") => comment(rest),
            Some(0) if rest.starts_with("<![CDATA[") => rest.find("]]>").map(|at| &rest[at + 3..]),
            Some(0) if rest.starts_with("</") => open.end(rest),
            Some(0) => open.start(rest),
            end => Some(rest.split_at(end.unwrap_or(rest.len())))
                .filter(|(run, _)| is_character_data(run))
                .map(|(_, rest)| rest),
        };
        match read {
            Some(read) => rest = read,
            None => return false,
        }
    }
    open.tags.is_empty()
}

/// The open elements at the current position.
#[derive(Default)]
struct Open<'a> {
    /// The name of each open element, and the number of prefixes declared before it.
    tags: Vec<(&'a str, usize)>,
    /// The prefixes declared so far.
    prefixes: Vec<&'a str>,
}

impl<'a> Open<'a> {
    /// Reads a start tag; `None` if it is malformed.
    fn start(&mut self, text: &'a str) -> Option<&'a str> {
        let text = text.strip_prefix('<')?;
        let (name, mut rest) = word(text);
        let before = self.prefixes.len();
        let mut attributes: Vec<&str> = Vec::new();
        let (rest, empty) = loop {
            let next = rest.trim_start_matches(SPACE);
            if let Some(rest) = next.strip_prefix("/>") {
                break (rest, true);
            }
            if let Some(rest) = next.strip_prefix('>') {
                break (rest, false);
            }
            if next.len() == rest.len() {
                return None; // no space before the attribute
            }
            let (attribute, after) = word(next);
            let after = after.trim_start_matches(SPACE).strip_prefix('=')?;
            let after = after.trim_start_matches(SPACE);
            let quote = after.chars().next().filter(|c| matches!(c, '"' | '\''))?;
            let (value, after) = after[1..].split_once(quote)?;
            if value.contains('<') || !is_character_data(value) || attributes.contains(&attribute) {
                return None;
            }
            if let Some(prefix) = attribute.strip_prefix("xmlns:") {
                // XML reserves two prefixes and two namespaces.
                if matches!(prefix, "xml" | "xmlns") || value.is_empty() || is_reserved(value) {
                    return None;
                }
                self.prefixes.push(prefix);
            } else if attribute == "xmlns" && is_reserved(value) {
                return None;
            }
            attributes.push(attribute);
            rest = after;
        };
        let sound = !name.starts_with("xml:")
            && !name.starts_with("xmlns:")
            && self.is_bound(name)
            && attributes.iter().all(|name| *name == "xmlns" || self.is_bound(name))
            && are_distinct(&attributes);
        if !sound {
            return None;
        }
        if empty {
            self.prefixes.truncate(before);
        } else {
            self.tags.push((name, before));
        }
        Some(rest)
    }

    /// Reads an end tag; `None` if it matches no start tag.
    fn end(&mut self, text: &'a str) -> Option<&'a str> {
        let (name, rest) = word(text.strip_prefix("</")?);
        let (opened, before) = self.tags.pop()?;
        self.prefixes.truncate(before);
        rest.trim_start_matches(SPACE).strip_prefix('>').filter(|_| opened == name)
    }

    /// Returns whether `name` is a valid name whose prefix, if any, is declared.
    fn is_bound(&self, name: &str) -> bool {
        match name.split_once(':') {
            None => is_name(name),
            Some(("xmlns" | "xml", local)) => is_name(local),
            Some((prefix, local)) => {
                is_name(prefix) && is_name(local) && self.prefixes.contains(&prefix)
            }
        }
    }
}

/// Returns whether no two attributes with prefixes share a local name: both prefixes may be bound
/// to the same namespace.
fn are_distinct(attributes: &[&str]) -> bool {
    let mut locals = HashSet::new();
    let named = attributes.iter().filter_map(|name| name.split_once(':'));
    named.filter(|(prefix, _)| *prefix != "xmlns").all(|(_, local)| locals.insert(local))
}

/// Returns whether the namespace is reserved for XML itself (Namespaces in XML `#ns-decl`).
fn is_reserved(uri: &str) -> bool {
    matches!(uri, "http://www.w3.org/XML/1998/namespace" | "http://www.w3.org/2000/xmlns/")
}

const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

/// Splits `text` at the first character that ends a name.
fn word(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| SPACE.contains(&c) || matches!(c, '=' | '/' | '>' | '<'));
    text.split_at(end.unwrap_or(text.len()))
}

fn comment(text: &str) -> Option<&str> {
    let (inside, rest) = text.strip_prefix("<!--")?.split_once("--")?;
    rest.strip_prefix('>').filter(|_| !inside.ends_with('-'))
}

/// Returns whether every reference in `run` is known and no character is forbidden.
fn is_character_data(run: &str) -> bool {
    !run.contains("]]>")
        && run.split('&').skip(1).all(|after| {
            after.split_once(';').is_some_and(|(name, _)| match name.strip_prefix('#') {
                None => matches!(name, "amp" | "lt" | "gt" | "quot" | "apos"),
                Some(number) => is_allowed_number(number),
            })
        })
}

fn is_allowed_number(number: &str) -> bool {
    let (digits, radix) = match number.strip_prefix('x') {
        Some(digits) => (digits, 16),
        None => (number, 10),
    };
    let plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let code = u32::from_str_radix(digits, radix).ok().filter(|_| plain);
    code.and_then(char::from_u32).is_some_and(is_printable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sound_markup_passes() {
        let cases = [
            "",
            "text &amp; &#233;",
            "<p class='a \"b\"'>one<br/>two</p> three",
            "<svg:g xmlns:svg=\"http://www.w3.org/2000/svg\"><svg:a svg:b=\"1\"/></svg:g>",
            "<!-- note --><b xml:lang=\"de\">x</b><![CDATA[a < b]]>",
        ];
        for text in cases {
            assert!(is_well_formed(text), "{text}");
        }
    }

    #[test]
    fn anything_else_does_not() {
        let cases = [
            "<p>open",
            "</p>",
            "<a><b></a></b>",
            "<br/",
            "<a b=c/>",
            "<a b=\"1\" b=\"2\"/>",
            "<a b=\"<\"/>",
            "<a b=\"1\"c=\"2\"/>",
            "AT&T",
            "&nbsp;",
            "&#0;",
            "&#+65;",
            "a ]]> b",
            "<svg:g/>",
            "<svg:a xmlns:svg=\"urn:s\"/><svg:b/>",
            "<?php ?>",
            "<!DOCTYPE a>",
            "<!-- a -- b -->",
            "<xml:a/>",
            "<xmlns:a/>",
            "<a xmlns:xml=\"urn:a\"/>",
            "<a xmlns=\"http://www.w3.org/XML/1998/namespace\"/>",
            "<a xmlns:b=\"http://www.w3.org/2000/xmlns/\"/>",
            "<a xmlns:b=\"urn:x\" xmlns:c=\"urn:x\" b:d=\"\" c:d=\"\"/>",
            "<1/>",
            "<>",
        ];
        for text in cases {
            assert!(!is_well_formed(text), "{text}");
        }
    }
}
