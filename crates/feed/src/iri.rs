//! Addresses (IRIs) as text: parsing, resolving and escaping.
//!
//! Ids and links are compared as text, so an address stays as its publisher wrote it: nothing in
//! this module changes the case of a host, decodes, or converts letters beyond ASCII.

use std::borrow::Cow;

/// Returns whether `text` begins with a scheme (RFC 3986 `#section-3.1`).
pub fn is_absolute(text: &str) -> bool {
    scheme(text).is_some()
}

/// Returns whether `text` is a scheme followed by something.
pub fn is_complete(text: &str) -> bool {
    scheme(text).is_some_and(|scheme| text.len() > scheme.len() + 1)
}

/// Returns the scheme, without its colon.
pub fn scheme(text: &str) -> Option<&str> {
    let part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'.' | b'-');
    let end = text.bytes().position(|byte| !part(byte))?;
    let sound = text.as_bytes()[0].is_ascii_alphabetic() && text.as_bytes()[end] == b':';
    sound.then(|| &text[..end])
}

/// Percent-encodes the characters of `text` that are not allowed in an IRI.
pub fn encode(text: &str) -> Cow<'_, str> {
    let may_be = text.bytes().fold(false, |found, byte| found | may_be_forbidden(byte));
    if may_be && text.contains(is_forbidden) {
        Cow::Owned(percent_encode(text, |c| !is_forbidden(c)))
    } else {
        Cow::Borrowed(text)
    }
}

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Percent-encodes, as UTF-8, every character of `text` for which `keep` returns `false`.
pub fn percent_encode(text: &str, keep: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if keep(c) {
            out.push(c);
        } else {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                out.push('%');
                out.extend([byte >> 4, byte & 0xf].map(|half| char::from(HEX[usize::from(half)])));
            }
        }
    }
    out
}

/// Wraps `text`, which is not an IRI, in a URN in which it stays recognizable. All characters that
/// RFC 2141 does not allow are percent-encoded, including `/` and `~`, because validators do not
/// know the later rules.
pub fn urn(kind: &str, text: &str) -> String {
    let keep = |c: char| (is_unreserved(c) && c != '~') || matches!(c, ':' | '@');
    format!("urn:{kind}:{}", percent_encode(text, keep))
}

/// Returns whether `c` is an unreserved character (RFC 3986 `#section-2.3`).
pub fn is_unreserved(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '~')
}

/// Returns whether a byte is forbidden in an IRI, or part of a character that may be: every address is
/// checked, most of them several times, and compilers vectorize comparisons of all bytes.
fn may_be_forbidden(byte: u8) -> bool {
    let is_beyond = (byte <= b' ') | (byte > b'~');
    let is_bracket = (byte == b'<') | (byte == b'>') | (byte == b'{') | (byte == b'}');
    let is_other =
        (byte == b'"') | (byte == b'|') | (byte == b'\\') | (byte == b'^') | (byte == b'`');
    is_beyond | is_bracket | is_other
}

/// Returns whether `c` is never allowed in an IRI.
fn is_forbidden(c: char) -> bool {
    c.is_control()
        || c.is_whitespace()
        || matches!(c, '<' | '>' | '"' | '{' | '}' | '|' | '\\' | '^' | '`')
        || matches!(c, '\u{fdd0}'..='\u{fdef}' | '\u{fffe}' | '\u{ffff}') // noncharacters
}

/// Resolves `reference` against `base` (RFC 3986 `#section-5.2`) and escapes the result.
///
/// An absolute reference is returned unchanged. So is any reference if `base` is not hierarchical,
/// such as a `urn:`.
pub fn join<'a>(base: &str, reference: &'a str) -> Cow<'a, str> {
    let reference = reference.trim();
    if is_absolute(reference) {
        return encode(reference);
    }
    let parts = Parts::parse(base);
    if parts.authority.is_none() {
        return encode(reference);
    }
    let Parts { scheme, authority, path, query } = parts;
    let scheme = scheme.unwrap_or_default();
    if reference.starts_with("//") {
        return Cow::Owned(encode(&format!("{scheme}:{reference}")).into_owned());
    }
    let (rest, fragment) = cut(reference, '#');
    let (its_path, its_query) = cut(rest, '?');
    let (path, query) = if its_path.is_empty() {
        (path.to_owned(), its_query.or(query))
    } else if its_path.starts_with('/') {
        (without_dots(its_path), its_query)
    } else {
        let folder = path.rfind('/').map_or("/", |at| &path[..=at]);
        (without_dots(&format!("{folder}{its_path}")), its_query)
    };
    let mut out = format!("{scheme}://{}{path}", authority.unwrap_or_default());
    for (mark, part) in [('?', query), ('#', fragment)] {
        if let Some(part) = part {
            out.push(mark);
            out.push_str(part);
        }
    }
    Cow::Owned(encode(&out).into_owned())
}

/// The components of a hierarchical address, without its fragment.
struct Parts<'a> {
    scheme: Option<&'a str>,
    authority: Option<&'a str>,
    path: &'a str,
    query: Option<&'a str>,
}

impl Parts<'_> {
    fn parse(text: &str) -> Parts<'_> {
        let (text, _) = cut(text, '#');
        let (text, query) = cut(text, '?');
        let scheme = scheme(text);
        let rest = scheme.map_or(text, |scheme| &text[scheme.len() + 1..]);
        match rest.strip_prefix("//") {
            None => Parts { scheme, authority: None, path: rest, query },
            Some(rest) => {
                let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                Parts { scheme, authority: Some(authority), path, query }
            }
        }
    }
}

/// Splits `text` at the first `mark`.
fn cut(text: &str, mark: char) -> (&str, Option<&str>) {
    text.split_once(mark).map_or((text, None), |(before, after)| (before, Some(after)))
}

/// Returns `path` without the segments `.` and `..` (RFC 3986 `#section-5.2.4`).
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut steps = path.split('/').skip(1).peekable();
    while let Some(step) = steps.next() {
        let last = steps.peek().is_none();
        match step {
            "." | ".." => {
                if step == ".." {
                    kept.pop();
                }
                if last {
                    kept.push("");
                }
            }
            step => kept.push(step),
        }
    }
    format!("/{}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_joined_as_rfc_3986_has_it() {
        // The examples of RFC 3986 `#section-5.4`, with their base.
        let cases = [
            ("g:h", "g:h"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q#s"),
            ("g?y#s", "http://a/b/c/g?y#s"),
            (";x", "http://a/b/c/;x"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../../g", "http://a/g"),
            ("g/./h/../i", "http://a/b/c/g/i"),
        ];
        for (reference, want) in cases {
            assert_eq!(join("http://a/b/c/d;p?q", reference), want, "{reference:?}");
        }
    }

    #[test]
    fn what_the_publisher_wrote_is_kept() {
        let cases = [
            ("http://a.test", "http://Ex.TEST", "http://Ex.TEST"),
            ("http://a.test", "é", "http://a.test/é"),
            ("http://a.test/x", " a b ", "http://a.test/a%20b"),
            ("urn:x", "rel", "rel"),
            ("http://a.test/", "mailto:a@b.test", "mailto:a@b.test"),
        ];
        for (base, reference, want) in cases {
            assert_eq!(join(base, reference), want, "{reference:?} at {base}");
        }
    }
}
