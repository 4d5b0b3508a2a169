//! The part of a resource that the fragment of a topic names (row S-18).
//!
//! A fragment is read before it is known what the resource is, so it may be a CSS
//! selector, for pages and XML, or a JSONPath, for JSON, or both: `store.price` is an
//! element of the class `price` on a page and a member of `store` in JSON. Which of them
//! counts is told by what the resource turns out to be.

use percent_encoding::percent_decode_str;

use super::html::Css;
use super::path::Path;

/// Brackets inside each other. Both readers work harder with each, and nobody needs more.
const DEPTH: usize = 8;

/// Characters of a fragment, decoded. What is found takes time for each selector in it.
const LONGEST: usize = 512;

/// A part.
#[derive(Debug)]
pub struct Part {
    text: String,
    pub(super) css: Option<Css>,
    pub(super) path: Option<Path>,
}

/// Why a fragment names no part.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPart {
    /// It begins as a JSONPath.
    #[error("it is not a JSONPath (RFC 9535): {0}")]
    Path(String),
    /// It is neither.
    #[error("it is neither a CSS selector, for pages and XML, nor a JSONPath, for JSON")]
    Neither,
    /// It has too many brackets inside each other.
    #[error("it has more than {DEPTH} brackets inside each other")]
    TooDeep,
    /// It is too long.
    #[error("it has more than {LONGEST} characters")]
    TooLong,
}

impl Part {
    /// Reads a fragment, percent-encoded or not.
    pub fn parse(fragment: &str) -> Result<Part, BadPart> {
        let text = percent_decode_str(fragment).decode_utf8_lossy().trim().to_owned();
        if text.chars().nth(LONGEST).is_some() {
            return Err(BadPart::TooLong);
        }
        if is_too_deep(&text) {
            return Err(BadPart::TooDeep);
        }
        // No selector begins with a dollar sign.
        let is_path = text.starts_with('$');
        let css = if is_path { None } else { Css::parse(&text) };
        match Path::parse(&text) {
            Ok(path) => Ok(Part { text, css, path: Some(path) }),
            Err(_) if css.is_some() => Ok(Part { text, css, path: None }),
            Err(why) if is_path => Err(BadPart::Path(why)),
            Err(_) => Err(BadPart::Neither),
        }
    }

    /// As it is told in a sentence.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it may be nothing but a place to scroll to, as browsers leave it behind
    /// addresses: behind that of a feed it names no part.
    pub fn is_anchor(&self) -> bool {
        self.text.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
    }
}

fn is_too_deep(text: &str) -> bool {
    let mut depth = 0_usize;
    text.chars().any(|c| {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > DEPTH
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s18_a_fragment_is_a_selector_or_a_path_or_both() {
        #[rustfmt::skip]
        let cases = [
            (".h-entry",                      Ok((true, false, false))) ,
            (".wCurrent%20.summary",          Ok((true, true, false))),
            ("%24.store.bicycle.price",       Ok((false, true, false))),
            ("$.store.bicycle.price",         Ok((false, true, false))),
            ("$..book[?(@.price%3C10)]",      Ok((false, true, false))),
            ("store.price",                   Ok((true, true, false))),
            ("main",                          Ok((true, true, true))),
            ("%23post-1",                     Ok((true, false, false))),
            ("$.store[",                      Err("it is not a JSONPath")),
            ("!/route",                       Err("it is neither")),
            (":~:text=tide",                  Err("it is neither")),
            ("a:not(:not(:not(:not(:not(:not(:not(:not(:not(b)))))))))", Err("it has more than 8")),
        ];
        for (fragment, want) in cases {
            match (Part::parse(fragment), want) {
                (Ok(part), Ok(want)) => {
                    let got = (part.css.is_some(), part.path.is_some(), part.is_anchor());
                    assert_eq!(got, want, "{fragment}");
                }
                (Err(why), Err(want)) => assert!(why.to_string().starts_with(want), "{why}"),
                (got, want) => panic!("{fragment}: {got:?}, not {want:?}"),
            }
        }
    }

    #[test]
    fn fragments_made_to_hurt_are_read_or_refused_at_once() {
        for open in ["(", "[", "[?", ":not(", "@[?", "$[?(", "$[?@[?"] {
            let _ = Part::parse(&open.repeat(LONGEST / open.len()));
            let _ = Part::parse(&format!("${}", open.repeat((LONGEST - 1) / open.len())));
        }
        assert!(Part::parse(&"%C3%A9".repeat(LONGEST)).is_ok(), "characters, not bytes");
        assert_eq!(Part::parse(&"a".repeat(LONGEST + 1)).unwrap_err(), BadPart::TooLong);
    }
}
