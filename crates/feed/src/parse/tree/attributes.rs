//! Parsing of start tags.
//!
//! Attributes may be unquoted, repeated (the first one counts), without a value (which is then
//! empty) or without space between them.

use memchr::memchr;

use crate::repair::RepairCode;

/// The maximum number of attributes of one element (rule S16). The rest is left out.
const ATTRIBUTES: usize = 256;

/// A parsed start tag.
#[derive(Debug, Default)]
pub(super) struct Tag<'t> {
    /// The name with its prefix.
    pub(super) name: &'t str,
    /// The names with prefixes, and the raw values.
    pub(super) attributes: Vec<(&'t str, &'t str)>,
    /// The fault of the tag, if it is malformed.
    pub(super) fault: Option<RepairCode>,
}

impl<'t> Tag<'t> {
    /// Parses the text between `<` and `>` into `self`, replacing the previous content.
    pub(super) fn read(&mut self, inside: &'t str) {
        self.attributes.clear();
        self.fault = None;
        let inside = inside.strip_suffix('/').unwrap_or(inside);
        let end = inside.bytes().position(between_bytes).unwrap_or(inside.len());
        self.name = &inside[..end];
        let mut rest = inside[end..].trim_start_matches(between);
        while !rest.is_empty() && self.attributes.len() < ATTRIBUTES {
            let ends = |byte: u8| byte == b'=' || between_bytes(byte);
            let end = rest.bytes().position(ends).unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            let after = after.trim_start();
            let value;
            match after.strip_prefix('=') {
                Some(after) => (value, rest) = self.value(after.trim_start()),
                None => {
                    self.fault = Some(RepairCode::AttributeWithoutValue);
                    (value, rest) = ("", after);
                }
            }
            rest = rest.trim_start_matches(between);
            let name = name.trim_matches(['"', '\'', '<']);
            if name.is_empty() {
                self.fault = Some(RepairCode::OddAttribute);
            } else if self.attributes.iter().any(|(held, _)| *held == name) {
                self.fault = Some(RepairCode::DuplicateAttribute);
            } else {
                self.attributes.push((name, value));
            }
        }
    }

    /// Returns the value at the start of `text`, and the rest.
    fn value(&mut self, text: &'t str) -> (&'t str, &'t str) {
        if let Some(quote @ (b'"' | b'\'')) = text.bytes().next() {
            if let Some(end) = memchr(quote, &text.as_bytes()[1..]) {
                let (value, rest) = (&text[1..=end], &text[end + 2..]);
                return match run_on(value, rest) {
                    Some(at) => {
                        self.fault = Some(RepairCode::UnclosedQuote);
                        (value[..at].trim_end(), &text[1 + at..])
                    }
                    None => (value, rest),
                };
            }
            self.fault = Some(RepairCode::UnquotedAttribute);
            return (&text[1..], "");
        }
        self.fault = Some(RepairCode::UnquotedAttribute);
        let end = text.find(|c: char| c.is_ascii_whitespace()).unwrap_or(text.len());
        text.split_at(end)
    }
}

/// Returns the end of a value whose closing quote is missing: in `href="a rel="b"` the value seems
/// to contain the next name, and is followed by the next value.
fn run_on(value: &str, rest: &str) -> Option<usize> {
    let name = value.strip_suffix('=')?.rsplit(char::is_whitespace).next()?;
    let runs = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.len() + 1 < value.len()
        && rest.starts_with(|c: char| !between(c));
    runs.then(|| value.len() - name.len() - 1)
}

fn between(c: char) -> bool {
    c.is_ascii_whitespace() || c == '/'
}

/// Returns whether a byte separates attributes. All separators are ASCII, so they are searched in
/// bytes, which is faster than in characters.
fn between_bytes(byte: u8) -> bool {
    between(char::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_tags_are_read_however_they_are_written() {
        type Case<'c> = (&'c str, &'c str, &'c [(&'c str, &'c str)]);
        #[rustfmt::skip]
        let cases: [Case<'_>; 10] = [
            ("a",                      "a", &[]),
            ("a b='c' d=\"e\"/",       "a", &[("b", "c"), ("d", "e")]),
            ("a b = 'c'",              "a", &[("b", "c")]),
            ("a b=c d=e",              "a", &[("b", "c"), ("d", "e")]),
            ("a b='1' b='2'",          "a", &[("b", "1")]),
            ("a checked x='y'",        "a", &[("checked", ""), ("x", "y")]),
            ("a b='c'd='e'",           "a", &[("b", "c"), ("d", "e")]),
            ("a b='c d='e' f='g'",     "a", &[("b", "c"), ("d", "e"), ("f", "g")]),
            ("a b='?c=' d='e'",        "a", &[("b", "?c="), ("d", "e")]),
            ("a b='c",                 "a", &[("b", "c")]),
        ];
        for (inside, name, attributes) in cases {
            let mut tag = Tag::default();
            tag.read(inside);
            assert_eq!((tag.name, tag.attributes.as_slice()), (name, attributes), "{inside}");
        }
    }
}
