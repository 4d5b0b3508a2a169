//! Descriptions of XML errors for authors.

use quick_xml::errors::{Error, IllFormedError, SyntaxError};
use quick_xml::events::attributes::AttrError;

/// Returns a description of an XML error.
pub(super) fn words(err: &Error) -> String {
    match err {
        Error::IllFormed(IllFormedError::MismatchedEndTag { expected, found }) => {
            format!("found \"</{found}>\" where \"</{expected}>\" was expected")
        }
        Error::IllFormed(IllFormedError::UnmatchedEndTag(name)) => {
            format!("\"</{name}>\" has no matching start tag")
        }
        Error::IllFormed(IllFormedError::UnclosedReference) => {
            "\"&\" is not escaped; write &amp; instead".to_owned()
        }
        Error::IllFormed(IllFormedError::DoubleHyphenInComment) => {
            "\"--\" is not allowed in a comment".to_owned()
        }
        Error::Syntax(SyntaxError::UnclosedTag | SyntaxError::InvalidBangMarkup) => {
            "the tag that starts here is not closed; write \"<\" as &lt;".to_owned()
        }
        Error::Syntax(SyntaxError::UnclosedCData) => "a CDATA section is not closed".to_owned(),
        Error::Syntax(SyntaxError::UnclosedComment) => "a comment is not closed".to_owned(),
        other => other.to_string(),
    }
}

/// Returns a description of an attribute error.
pub(super) fn attr_words(err: &AttrError) -> String {
    match err {
        AttrError::ExpectedEq(_) => "an attribute has no value".to_owned(),
        AttrError::ExpectedValue(_) | AttrError::UnquotedValue(_) => {
            "an attribute value is not quoted".to_owned()
        }
        AttrError::ExpectedQuote(..) => "an attribute value has no closing quote".to_owned(),
        AttrError::Duplicated(..) => "an attribute appears twice in the tag".to_owned(),
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
