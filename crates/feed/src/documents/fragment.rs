//! Fragments that select a part of a document (rule S-18).
//!
//! A fragment is parsed before the kind of the document is known, so it may be a CSS selector (for
//! HTML and XML), a JSONPath (for JSON), or both: `store.price` is an element of the class `price`
//! in a page and a member of `store` in JSON. The kind of the document decides which reading is
//! used. A [mapping](super::mapping) of JSON is none of both: it reads a document as a feed.

use std::fmt;

use percent_encoding::percent_decode_str;

use super::json_path::Path;
use super::mapping::Mapping;
use crate::parse::html::Css;

/// The maximum nesting of brackets. Parsing time grows with the nesting in both parsers, and no
/// real fragment nests deeper.
const DEPTH: usize = 8;

/// The maximum length of a decoded fragment, in characters. Every selector in it is tried on every
/// element.
const LONGEST: usize = 512;

/// A parsed fragment: a CSS selector, a JSONPath, or both; or a mapping.
#[derive(Debug)]
pub struct Fragment {
    text: String,
    pub(super) css: Option<Css>,
    pub(super) path: Option<Path>,
    pub(super) mapping: Option<Mapping>,
}

/// The reason why a text is not a fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidFragment {
    /// The text begins with `$` but is not a JSONPath; holds the parser's message.
    JsonPath(String),
    /// The text is a mapping that cannot be used; holds the reason.
    Mapping(String),
    /// The text is neither a CSS selector nor a JSONPath.
    Neither,
    /// The brackets of the text are nested too deeply.
    TooDeep,
    /// The text is too long.
    TooLong,
}

impl fmt::Display for InvalidFragment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InvalidFragment::JsonPath(err) => write!(f, "it is not a JSONPath (RFC 9535): {err}"),
            InvalidFragment::Mapping(why) => write!(f, "it is not a mapping of JSON: {why}"),
            InvalidFragment::Neither => f.write_str(
                "it is neither a CSS selector, for pages and XML, nor a JSONPath, for JSON",
            ),
            InvalidFragment::TooDeep => {
                write!(f, "it has more than {DEPTH} brackets inside each other")
            }
            InvalidFragment::TooLong => write!(f, "it has more than {LONGEST} characters"),
        }
    }
}

impl std::error::Error for InvalidFragment {}

impl Fragment {
    /// Parses a fragment, percent-encoded or not.
    pub fn parse(fragment: &str) -> Result<Fragment, InvalidFragment> {
        let text = percent_decode_str(fragment).decode_utf8_lossy().trim().to_owned();
        if text.chars().nth(LONGEST).is_some() {
            return Err(InvalidFragment::TooLong);
        }
        if is_too_deep(&text) {
            return Err(InvalidFragment::TooDeep);
        }
        // No selector begins with a dollar sign.
        let is_path = text.starts_with('$');
        if let Some(mapping) = is_path.then(|| Mapping::parse(&text)).flatten() {
            let mapping = Some(mapping.map_err(InvalidFragment::Mapping)?);
            return Ok(Fragment { text, css: None, path: None, mapping });
        }
        let css = if is_path { None } else { Css::parse(&text) };
        match Path::parse(&text) {
            Ok(path) => Ok(Fragment { text, css, path: Some(path), mapping: None }),
            Err(_) if css.is_some() => Ok(Fragment { text, css, path: None, mapping: None }),
            Err(why) if is_path => Err(InvalidFragment::JsonPath(why)),
            Err(_) => Err(InvalidFragment::Neither),
        }
    }

    /// Returns the decoded text of the fragment.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether the fragment is a mapping, which reads a JSON document as a feed.
    pub fn is_mapping(&self) -> bool {
        self.mapping.is_some()
    }

    /// Returns whether the fragment may be a mere scroll position, as browsers append it to
    /// addresses. Such a fragment in the address of a feed selects nothing.
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
            match (Fragment::parse(fragment), want) {
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
    fn s18_a_mapping_survives_the_parsers_of_addresses() {
        let fragment = "$.data[*];title=$.name;url=$.link;date=$['created at']";
        let mut url = url::Url::parse("https://api.test/v1/posts?page=1").unwrap();
        url.set_fragment(Some(fragment));
        let encoded =
            percent_encoding::utf8_percent_encode(fragment, percent_encoding::NON_ALPHANUMERIC);
        for text in [fragment, url.fragment().unwrap(), &encoded.to_string()] {
            let parsed = Fragment::parse(text).unwrap();
            assert!(parsed.is_mapping() && !parsed.is_anchor(), "{text}");
            assert_eq!(parsed.as_str(), fragment);
        }
        let why = Fragment::parse("$.data[*];titel=$.name").unwrap_err().to_string();
        assert!(why.starts_with("it is not a mapping of JSON: titel is no field"), "{why}");
    }

    #[test]
    fn fragments_made_to_hurt_are_read_or_refused_at_once() {
        for open in ["(", "[", "[?", ":not(", "@[?", "$[?(", "$[?@[?"] {
            let _ = Fragment::parse(&open.repeat(LONGEST / open.len()));
            let _ = Fragment::parse(&format!("${}", open.repeat((LONGEST - 1) / open.len())));
        }
        assert!(Fragment::parse(&"%C3%A9".repeat(LONGEST)).is_ok(), "characters, not bytes");
        assert_eq!(
            Fragment::parse(&"a".repeat(LONGEST + 1)).unwrap_err(),
            InvalidFragment::TooLong
        );
    }
}
