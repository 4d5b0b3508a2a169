//! What can be found at a resource, and what is remembered of it.

use std::time::Duration;

use http::HeaderMap;
use sha2::{Digest, Sha256};

use crate::net::{Document, FetchError};
use feedgate_core::poll::Validators;
use feedgate_core::schedule::FailureClass;
use feedgate_feed::Body;
use feedgate_feed::documents::DiscoveredFeed;
use feedgate_feed::model::Feed;
use feedgate_protocol::link;

/// The word for a part that is not there, in the status and in `docs/errors.md`.
pub(super) const NO_PART: &str = "no_part";
/// A document changed less than this before it was sent may change again and keep its
/// `Last-Modified`, which counts in seconds.
const STILL_CHANGING: Duration = Duration::from_secs(2);

/// What was found.
#[derive(Debug)]
pub(super) enum Found {
    /// 304.
    NotModified {
        /// Seconds for which the answer said it is good, if it did.
        hint_s: Option<u32>,
    },
    /// The same bytes as last time (rule P11), or others that mean the same (rule N12).
    Same(Fresh),
    /// A feed.
    Feed {
        /// As it is stored and sent.
        feed: Box<Feed>,
        /// What came with it.
        fresh: Fresh,
    },
    /// Something that is no feed, in a place where no feed was known, or a part of it.
    Other(Fresh),
    /// The resource, but not the part of it that is watched.
    Partless(Partless),
    /// Nothing usable.
    Trouble(Trouble),
}

/// What is remembered of a usable answer.
#[derive(Debug)]
pub(super) struct Fresh {
    /// What to send next time.
    pub(super) validators: Validators,
    /// SHA-256 of the body, in hex.
    pub(super) hash: String,
    /// Seconds for which the headers say it is good.
    pub(super) hint_s: u32,
    /// The body as received, or the part of it that is watched.
    pub(super) body: Body,
    /// Relation and address of what the headers link to.
    pub(super) links: Vec<(String, String)>,
    /// What of it counts, if it is no feed that was read (`Polling::gate`).
    pub(super) gate: String,
    /// The feeds that it offers, if it is a page that was read.
    pub(super) offers: Vec<DiscoveredFeed>,
}

/// A resource without the part that is watched.
#[derive(Debug)]
pub(super) struct Partless {
    /// In a sentence, for the status.
    pub(super) why: String,
    /// What is remembered of the answer; `None` if it was "not modified".
    pub(super) fresh: Option<Fresh>,
    /// Seconds for which the answer said it is good, if it did.
    pub(super) hint_s: Option<u32>,
}

/// Why nothing usable was found.
#[derive(Debug)]
pub(super) struct Trouble {
    /// A stable word of `docs/errors.md`.
    pub(super) code: &'static str,
    /// In a sentence, for the status.
    pub(super) message: String,
    /// What it means for when to come again.
    pub(super) class: FailureClass,
    /// The status code, if there was an answer.
    pub(super) http_code: u16,
    /// Seconds for which the server asked to be left alone.
    pub(super) retry_after_s: Option<u32>,
}

impl Fresh {
    /// Of a document of which nothing is read yet.
    pub(super) fn of(document: &Document) -> Fresh {
        let content_type = document.headers.get(http::header::CONTENT_TYPE);
        let content_type =
            content_type.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        Fresh {
            validators: validators(document),
            hash: hex::encode(Sha256::digest(&document.body)),
            hint_s: document.hint_s,
            body: Body { content_type, bytes: document.body.to_vec() },
            links: links(document),
            gate: String::new(),
            offers: Vec::new(),
        }
    }
}

/// Relation and address of what the headers link to.
pub fn links(document: &Document) -> Vec<(String, String)> {
    let values = document.headers.get_all(http::header::LINK).iter();
    let links = link::read(values.filter_map(|value| value.to_str().ok()));
    let targets = links.into_iter().filter_map(|link| {
        let target = document.url.join(&link.target).ok()?;
        Some(link.rels.into_iter().map(move |rel| (rel, target.as_str().to_owned())))
    });
    targets.flatten().collect()
}

/// The validators of a document, without a `Last-Modified` that cannot tell whether
/// the document changed once more within the same second (RFC 9110
/// `#lastmod.comparison`, "implicitly weak").
fn validators(document: &Document) -> Validators {
    let mut validators = document.validators.clone();
    if validators.etag.is_none() && is_still_changing(&document.headers) {
        validators.last_modified = None;
    }
    validators
}

fn is_still_changing(headers: &HeaderMap) -> bool {
    let time = |name| httpdate::parse_http_date(headers.get(name)?.to_str().ok()?).ok();
    let (sent, changed) = (time(http::header::DATE), time(http::header::LAST_MODIFIED));
    match (sent, changed) {
        (Some(sent), Some(changed)) => {
            sent.duration_since(changed).unwrap_or_default() < STILL_CHANGING
        }
        _ => false,
    }
}

impl Trouble {
    pub(super) fn of(err: &FetchError) -> Trouble {
        let (http_code, retry_after_s) = match err {
            FetchError::Status { status, retry_after_s } => (status.as_u16(), *retry_after_s),
            FetchError::Blocked { status } => (status.as_u16(), None),
            _ => (0, None),
        };
        let (code, class) = (err.code(), err.class());
        Trouble { code, message: err.to_string(), class, http_code, retry_after_s }
    }

    /// An answer that said 200 and held nothing we can use.
    pub(super) fn unusable(code: &'static str, message: String) -> Trouble {
        Trouble {
            code,
            message,
            class: FailureClass::Unusable,
            http_code: 200,
            retry_after_s: None,
        }
    }

    /// A document that made us panic.
    pub(super) fn ours() -> Trouble {
        let message = "the document could not be read; this is our fault".to_owned();
        Trouble::unusable("parser_failed", message)
    }

    /// A document that says there is nothing any more (seed 002: an empty
    /// `newLocation`), or one that moves in circles.
    pub(super) fn gone() -> Trouble {
        let message = "the document says that the feed has gone".to_owned();
        let class = FailureClass::Gone;
        Trouble { code: "gone", message, class, http_code: 410, retry_after_s: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(date: &str, modified: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(http::header::DATE, date.parse().unwrap());
        headers.insert(http::header::LAST_MODIFIED, modified.parse().unwrap());
        headers
    }

    #[test]
    fn a_date_of_change_is_not_trusted_within_its_own_second() {
        let date = "Sat, 07 Sep 2002 00:00:10 GMT";
        let cases = [
            ("the same second", "Sat, 07 Sep 2002 00:00:10 GMT", true),
            ("a second before", "Sat, 07 Sep 2002 00:00:09 GMT", true),
            ("long before", "Sat, 07 Sep 2002 00:00:01 GMT", false),
            ("in the future", "Sat, 07 Sep 2002 00:00:11 GMT", true),
            ("no date at all", "yesterday", false),
        ];
        for (why, modified, want) in cases {
            assert_eq!(is_still_changing(&headers(date, modified)), want, "{why}");
        }
    }
}
