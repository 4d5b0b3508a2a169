//! The context of a document: its URL, its response headers and the time of receipt.

use chrono::{DateTime, Utc};
use url::Url;

use super::model::KnownBy;

/// The maximum length of a base URL, in bytes: the maximum length of a topic. Every relative
/// address grows to at least the length of its base, and a document may hold a hundred thousand
/// addresses (rule S16).
pub(crate) const LONGEST_BASE_BYTES: usize = 2048;

/// The origin of a document: where it was fetched, and the metadata of the response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// The final URL, after redirects. Relative addresses are resolved against it.
    pub url: Url,
    /// The response headers: names in lower case, values as received (bytes outside ASCII are read
    /// as Latin-1).
    pub headers: Vec<(String, String)>,
    /// The time of receipt, used as the date of entries that have none (rule N9). `None` makes the
    /// output depend on nothing but the input.
    pub received_at: Option<DateTime<Utc>>,
    /// How the entries of this feed are identified, as decided for its earlier versions (rule N2).
    pub known_by: KnownBy,
}

impl Context {
    /// Creates the context of a document of which only the URL is known.
    pub fn new(url: Url) -> Context {
        Context { url, headers: Vec::new(), received_at: None, known_by: KnownBy::default() }
    }

    /// Returns the value of the first header called `name` (in lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(held, _)| held == name).map(|(_, value)| value.as_str())
    }

    /// Returns the base URL of the document: `Content-Location` if it is usable (RFC 3986
    /// `#section-5.1.2`, RFC 2557), otherwise the URL.
    pub fn base(&self) -> Url {
        self.location().unwrap_or_else(|| self.url.clone())
    }

    /// Returns the base URL that the response states.
    pub(crate) fn location(&self) -> Option<Url> {
        let located = self.header("content-location").and_then(|at| self.url.join(at).ok());
        // `javascript:` and similar schemes cannot be a base.
        located.filter(is_base)
    }

    /// Returns `Content-Type` as received.
    pub fn content_type(&self) -> Option<&str> {
        self.header("content-type")
    }
}

/// Returns whether relative addresses can be resolved against `url`.
pub(crate) fn is_base(url: &Url) -> bool {
    !url.cannot_be_a_base() && url.as_str().len() <= LONGEST_BASE_BYTES
}
