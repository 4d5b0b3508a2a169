//! What is known of a document besides its bytes.

use chrono::{DateTime, Utc};
use url::Url;

use super::model::KnownBy;

/// The longest address that others are relative to, in bytes: as long as a topic may be.
/// Each of them becomes at least as long, and a document may hold a hundred thousand (rule
/// S16).
pub(crate) const LONGEST_BASE_BYTES: usize = 2048;

/// Where a document came from, and what its server said of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// The URL that finally answered: the base of relative addresses.
    pub url: Url,
    /// The response headers, names in lower case, values as received (bytes outside
    /// ASCII read as Latin-1).
    pub headers: Vec<(String, String)>,
    /// When it was received: the date of an entry that has none (rule N9). `None`
    /// where output must depend on nothing but the input.
    pub received_at: Option<DateTime<Utc>>,
    /// What the entries of this feed are known by, as was learnt before (rule N2).
    pub known_by: KnownBy,
}

impl Context {
    /// A document of which only the URL is known.
    pub fn new(url: Url) -> Context {
        Context { url, headers: Vec::new(), received_at: None, known_by: KnownBy::default() }
    }

    /// The value of the first header of this name (in lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(held, _)| held == name).map(|(_, value)| value.as_str())
    }

    /// What relative addresses in the document are relative to, unless it says
    /// otherwise: `Content-Location` (RFC 3986 `#section-5.1.2`, RFC 2557), else the
    /// URL.
    pub fn base(&self) -> Url {
        let located = self.header("content-location").and_then(|at| self.url.join(at).ok());
        // `javascript:` and the like are no place that anything is relative to.
        let located = located.filter(is_base);
        located.unwrap_or_else(|| self.url.clone())
    }

    /// `Content-Type` as received.
    pub fn content_type(&self) -> Option<&str> {
        self.header("content-type")
    }
}

/// Whether addresses may be relative to `url`.
pub(crate) fn is_base(url: &Url) -> bool {
    !url.cannot_be_a_base() && url.as_str().len() <= LONGEST_BASE_BYTES
}
