//! What is known of a document besides its bytes.

use chrono::{DateTime, Utc};
use url::Url;

use super::feed::KnownBy;

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
    /// Only a URL is known.
    pub fn of(url: Url) -> Context {
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
        let located = located.filter(|url| !url.cannot_be_a_base());
        located.unwrap_or_else(|| self.url.clone())
    }

    /// `Content-Type` as received.
    pub fn content_type(&self) -> Option<&str> {
        self.header("content-type")
    }
}
