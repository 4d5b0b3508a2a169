//! The general entities that the internal subset of a document type declares.
//!
//! XML requires every parser to expand them (XML 1.0, section 4.4). They are expanded here only if
//! the result is text, and within limits (rule S14): external entities, parameter entities and
//! entities with markup are ignored, and so is the rest of a document whose entities would make it
//! grow too much. References to what is not expanded stay as written.

use std::cell::Cell;
use std::collections::HashMap;

use memchr::memmem;

use super::{is_reference_name, resolve_into};

/// The maximum number of declarations that are read.
const MAX_ENTITIES: usize = 256;
/// The maximum length of the value of an entity, as written.
const MAX_VALUE_BYTES: usize = 4 << 10;
/// The maximum nesting of references in the values of entities.
const MAX_DEPTH: usize = 4;
/// The maximum length of all expansions in a document.
const MAX_EXPANSION_BYTES: usize = 256 << 10;

/// The declared entities of a document.
#[derive(Debug)]
pub(in super::super) struct DeclaredEntities<'t> {
    values: HashMap<&'t str, &'t str>,
    /// Whether the document has a document type, which may declare entities elsewhere.
    has_doctype: bool,
    /// How many bytes of values may still be read for references.
    remaining_bytes: Cell<usize>,
}

impl<'t> DeclaredEntities<'t> {
    pub(in super::super) fn new() -> DeclaredEntities<'t> {
        let remaining_bytes = Cell::new(MAX_EXPANSION_BYTES);
        DeclaredEntities { values: HashMap::new(), has_doctype: false, remaining_bytes }
    }

    /// Returns whether an entity may be used: XML defines it, or a document type may declare it.
    pub(in super::super) fn is_declared(&self, name: &str) -> bool {
        let is_of_xml = || matches!(name, "lt" | "gt" | "amp" | "quot" | "apos");
        self.has_doctype || is_of_xml() || name.starts_with('#')
    }

    /// Reads the declarations of a document type, `<!DOCTYPE …>`.
    pub(in super::super) fn declare(&mut self, doctype: &'t str) {
        self.has_doctype = true;
        let Some((_, mut rest)) = doctype.split_once('[') else { return };
        while let Some(at) = rest.find('<') {
            rest = &rest[at..];
            let end = match rest {
                _ if rest.starts_with("<!--") => end_of(rest, 4, "-->"),
                _ if rest.starts_with("<?") => end_of(rest, 2, "?>"),
                _ => end_of_declaration(rest),
            };
            let Some(end) = end else { return };
            let (declaration, after) = rest.split_at(end);
            rest = after;
            if let Some((name, value)) = general_entity(declaration)
                && self.values.len() < MAX_ENTITIES
            {
                // "the first declaration encountered is binding" (XML 1.0, section 4.2).
                self.values.entry(name).or_insert(value);
            }
        }
    }

    /// Appends what `&name;` stands for. Returns `false`, without a change, if it cannot be expanded.
    pub(in super::super) fn resolve_into(&self, name: &str, text: &mut String) -> bool {
        // The five entities of XML cannot be declared to mean anything else.
        if self.values.is_empty() || matches!(name, "lt" | "gt" | "amp" | "quot" | "apos") {
            return resolve_into(name, text);
        }
        let Some(value) = self.values.get(name) else { return resolve_into(name, text) };
        let length = text.len();
        if self.expand_into(value, 1, text) {
            return true;
        }
        text.truncate(length);
        false
    }

    fn expand_into(&self, value: &str, depth: usize, text: &mut String) -> bool {
        // What cannot be expanded counts as well, because each attempt takes time.
        let remaining = self.remaining_bytes.get().checked_sub(value.len());
        self.remaining_bytes.set(remaining.unwrap_or(0));
        if remaining.is_none() || depth > MAX_DEPTH {
            return false;
        }
        // References to characters are replaced in the declaration; what they stand for is read again.
        let replacement = replace_character_references(value);
        if replacement.contains('<') {
            return false;
        }
        for_each_piece(&replacement, |piece| match piece {
            Piece::Text(piece) => {
                text.push_str(piece);
                true
            }
            Piece::Reference(name) => match self.values.get(name) {
                Some(value) => self.expand_into(value, depth + 1, text),
                None => resolve_into(name, text),
            },
        })
    }
}

enum Piece<'v> {
    Text(&'v str),
    /// The name in a reference.
    Reference(&'v str),
}

/// Calls `visit` with the pieces of a value, as long as it returns `true`. Returns whether it did so to
/// the end.
fn for_each_piece<'v>(mut value: &'v str, mut visit: impl FnMut(Piece<'v>) -> bool) -> bool {
    while let Some((before, after)) = value.split_once('&') {
        let Some((name, rest)) = after.split_once(';').filter(|(name, _)| is_reference_name(name))
        else {
            return false; // not well-formed
        };
        if !visit(Piece::Text(before)) || !visit(Piece::Reference(name)) {
            return false;
        }
        value = rest;
    }
    visit(Piece::Text(value))
}

fn replace_character_references(value: &str) -> String {
    let mut replaced = String::with_capacity(value.len());
    let is_read = for_each_piece(value, |piece| {
        match piece {
            Piece::Text(text) => replaced.push_str(text),
            Piece::Reference(name) if name.starts_with('#') => {
                return resolve_into(name, &mut replaced);
            }
            Piece::Reference(name) => replaced.extend(["&", name, ";"]),
        }
        true
    });
    if is_read { replaced } else { value.to_owned() }
}

/// Returns where a construct ends that ends with `end`.
fn end_of(text: &str, start: usize, end: &str) -> Option<usize> {
    let found = memmem::find(text.as_bytes().get(start..)?, end.as_bytes())?;
    Some(start + found + end.len())
}

/// Returns where a declaration ends: behind the first `>` outside quotes.
fn end_of_declaration(text: &str) -> Option<usize> {
    let mut quote = None;
    let end = text.bytes().position(|byte| {
        match (quote, byte) {
            (Some(open), _) if open == byte => quote = None,
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'>') => return true,
            _ => {}
        }
        false
    });
    end.map(|end| end + 1)
}

/// Returns the name and the value in `<!ENTITY name "value">`.
fn general_entity(declaration: &str) -> Option<(&str, &str)> {
    let rest = declaration.strip_prefix("<!ENTITY")?.strip_prefix(char::is_whitespace)?;
    let (name, rest) = rest.trim_start().split_once(char::is_whitespace)?;
    let rest = rest.trim_start();
    let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    let (value, _) = rest[1..].split_once(quote)?;
    let is_usable = is_reference_name(name) && value.len() <= MAX_VALUE_BYTES;
    is_usable.then_some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(subset: &str, name: &str) -> Option<String> {
        let doctype = format!("<!DOCTYPE a [{subset}]>");
        let mut entities = DeclaredEntities::new();
        entities.declare(&doctype);
        let mut text = String::new();
        entities.resolve_into(name, &mut text).then_some(text)
    }

    #[test]
    fn s14_entities_that_are_text_are_expanded_and_no_others() {
        #[rustfmt::skip]
        let cases = [
            ("a text",                 "<!ENTITY e 'Ada'>",                                 Some("Ada")),
            ("the first one",          "<!ENTITY e 'one'><!ENTITY e 'two'>",                Some("one")),
            ("among others",           "<!-- <!ENTITY e 'no'> --><?x <!ENTITY e 'no'>?>\n<!ELEMENT a (#PCDATA)>\n<!ENTITY e \"it's >\" >", Some("it's >")),
            ("characters",             "<!ENTITY e 'caf&#233;'>",                           Some("café")),
            ("of HTML",                "<!ENTITY e 'caf&eacute;'>",                         Some("café")),
            ("one in another",         "<!ENTITY f 'Ada'><!ENTITY e '&f; &amp; &f;'>",      Some("Ada & Ada")),
            ("a text like markup",     "<!ENTITY e '&lt;b>'>",                              Some("<b>")),
            ("a reference in pieces",  "<!ENTITY e '&#38;lt;b>'>",                          Some("<b>")),
            ("a name of HTML",         "<!ENTITY eacute 'E'><!ENTITY e '&eacute;'>",        Some("E")),
            ("markup",                 "<!ENTITY e '<b>x</b>'>",                            None),
            ("markup in pieces",       "<!ENTITY e '&#60;b>'>",                             None),
            ("external",               "<!ENTITY e SYSTEM 'file:///etc/passwd'>",           None),
            ("public",                 "<!ENTITY e PUBLIC 'x' 'http://a.test/'>",           None),
            ("a parameter",            "<!ENTITY % e 'x'>",                                 None),
            ("unknown",                "<!ENTITY e '&nosuch;'>",                            None),
            ("not well-formed",        "<!ENTITY e 'a & b'>",                               None),
            ("itself",                 "<!ENTITY e 'x&e;'>",                                None),
            ("each other",             "<!ENTITY e '&f;'><!ENTITY f '&e;'>",                None),
            ("never ended",            "<!ENTITY e 'x",                                     None),
        ];
        for (why, subset, want) in cases {
            assert_eq!(expand(subset, "e").as_deref(), want, "{why}");
        }
        assert_eq!(expand("<!ENTITY lt 'x'>", "lt").as_deref(), Some("<"));
    }

    #[test]
    fn s14_expansions_are_bounded_in_number_length_depth_and_all_together() {
        let nested = |depth: usize| {
            let inner = (1..depth).map(|n| format!("<!ENTITY e{n} '&e{};'>", n + 1));
            let inner: String = inner.collect();
            expand(&format!("{inner}<!ENTITY e{depth} 'x'>"), "e1")
        };
        assert_eq!(nested(MAX_DEPTH).as_deref(), Some("x"));
        assert_eq!(nested(MAX_DEPTH + 1), None);

        let value = |bytes: usize| expand(&format!("<!ENTITY e '{}'>", "x".repeat(bytes)), "e");
        assert!(value(MAX_VALUE_BYTES).is_some() && value(MAX_VALUE_BYTES + 1).is_none());

        let many: String = (0..=MAX_ENTITIES).map(|n| format!("<!ENTITY e{n} 'x'>")).collect();
        assert!(expand(&many, "e255").is_some() && expand(&many, "e256").is_none());

        let ten = |name: &str| format!("&{name};").repeat(10);
        let laughs = format!(
            "<!ENTITY a '{}'><!ENTITY b '{}'><!ENTITY c '{}'><!ENTITY d '{}'>",
            "x".repeat(1_000),
            ten("a"),
            ten("b"),
            ten("c"),
        );
        assert_eq!(expand(&laughs, "d"), None, "a megabyte");
        assert_eq!(expand(&laughs, "c").map(|text| text.len()), Some(100_000));
    }
}
