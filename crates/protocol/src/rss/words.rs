//! Descriptions of XML errors for authors.

use quick_xml::errors::{Error, IllFormedError, SyntaxError};
use quick_xml::events::attributes::AttrError;

/// Returns a description of an XML error.
pub(super) fn words(err: &Error) -> String {
    match err {
        Error::IllFormed(IllFormedError::MismatchedEndTag { expected, found }) => {
            format!("\"</{found}>\" stands where \"</{expected}>\" is expected")
        }
        Error::IllFormed(IllFormedError::UnmatchedEndTag(name)) => {
            format!("\"</{name}>\" ends an element that was not begun")
        }
        Error::IllFormed(IllFormedError::UnclosedReference) => {
            "a bare \"&\": write &amp;".to_owned()
        }
        Error::IllFormed(IllFormedError::DoubleHyphenInComment) => {
            "\"--\" stands in a comment".to_owned()
        }
        Error::Syntax(SyntaxError::UnclosedTag | SyntaxError::InvalidBangMarkup) => {
            "a tag begins here that does not end; a bare \"<\" is &lt;".to_owned()
        }
        Error::Syntax(SyntaxError::UnclosedCData) => "a CDATA section does not end".to_owned(),
        Error::Syntax(SyntaxError::UnclosedComment) => "a comment does not end".to_owned(),
        other => other.to_string(),
    }
}

/// Returns a description of an attribute error.
pub(super) fn attr_words(err: &AttrError) -> String {
    match err {
        AttrError::ExpectedEq(_) => "an attribute has no value".to_owned(),
        AttrError::ExpectedValue(_) | AttrError::UnquotedValue(_) => {
            "an attribute's value does not stand in quotes".to_owned()
        }
        AttrError::ExpectedQuote(..) => "a quote is missing behind an attribute's value".to_owned(),
        AttrError::Duplicated(..) => "an attribute stands in the tag twice".to_owned(),
    }
}

/// Returns the position of an attribute error within its tag.
pub(super) fn place(err: &AttrError) -> usize {
    match err {
        AttrError::ExpectedEq(at) | AttrError::ExpectedValue(at) | AttrError::UnquotedValue(at) => {
            *at
        }
        AttrError::ExpectedQuote(at, _) | AttrError::Duplicated(at, _) => *at,
    }
}
