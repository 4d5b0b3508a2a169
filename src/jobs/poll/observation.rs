//! The result of fetching a resource, and the data that the next poll needs.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use http::HeaderMap;
use sha2::{Digest, Sha256};

use crate::document_budget::DocumentMemory;
use crate::fetch_traces::TracedRequest;
use crate::net::{FetchError, FetchedDocument, Hop, ResourceLocation};
use feedgate_core::poll::Validators;
use feedgate_core::resource::ResourceKind;
use feedgate_core::schedule::FailureClass;
use feedgate_core::visibility::SourceNetwork;
use feedgate_feed::Body;
use feedgate_feed::documents::DiscoveredFeed;
use feedgate_feed::link_header;
use feedgate_feed::model::Feed;
use feedgate_feed::parse::ListedSitemap;

/// The error code of a resource without the fragment that its topic names (`docs/errors.md`).
pub(super) const FRAGMENT_NOT_FOUND: &str = "fragment_not_found";
/// The error code of a document that is not a feed, at the address of one (`docs/errors.md`).
pub(super) const NOT_A_FEED: &str = "not_a_feed";
/// The error code of a document that cannot be read as the mapping of its topic says (`docs/errors.md`).
pub(super) const NOT_MAPPED: &str = "mapping_not_found";
/// The error code of a resource that `robots.txt` disallows (`docs/errors.md`).
pub(super) const ROBOTS_DISALLOWED: &str = "robots_disallowed";
/// A document that changed less than this before it was sent may change again without a new
/// `Last-Modified`, which counts in seconds.
const STILL_CHANGING: Duration = Duration::from_secs(2);

/// The result of one fetch.
#[derive(Debug)]
pub(super) struct Observation {
    /// When the fetch started.
    pub(super) at: DateTime<Utc>,
    /// The time from the first byte sent to the last byte received.
    pub(super) took: Duration,
    /// The number of bytes received, before content decoding.
    pub(super) wire_bytes: u64,
    /// The requests of the fetch.
    pub(super) requests: Vec<TracedRequest>,
    /// The servers that were asked, in order. The last one gave what was found.
    pub(super) visits: Vec<ServerVisit>,
    /// Whether a "not modified" was doubted, and the resource fetched unconditionally.
    pub(super) doubted: bool,
    /// The location at which the resource was found.
    pub(super) location: ResourceLocation,
    /// Where the requests led.
    pub(super) source_network: SourceNetwork,
    /// The content that was found.
    pub(super) found: Found,
}

impl Observation {
    /// Moves what was read by a clock that was set by `by` since.
    pub(super) fn move_times(&mut self, by: TimeDelta) {
        self.at += by;
        if let Found::Same(received) | Found::Feed { received, .. } | Found::Other(received) =
            &mut self.found
        {
            received.clock_ahead_s -= by.num_seconds();
        }
    }
}

/// A request to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServerVisit {
    /// The requested URL.
    pub(super) url: String,
    /// Whether the server responded, with whatever status.
    pub(super) has_responded: bool,
}

impl ServerVisit {
    /// Returns the visits of a fetch.
    pub(super) fn from_hops(hops: &[Hop]) -> impl Iterator<Item = ServerVisit> {
        hops.iter().map(|hop| ServerVisit {
            url: hop.url.as_str().to_owned(),
            has_responded: hop.status.is_some(),
        })
    }
}

/// The content at the address of a resource.
#[derive(Debug)]
pub(super) enum Found {
    /// A 304 response.
    NotModified {
        /// The freshness lifetime of the response in seconds, if it has one.
        hint_s: Option<u32>,
    },
    /// The same bytes as last time (rule P11), or others with the same meaning (rule N12).
    Same(ReceivedBody),
    /// A feed.
    Feed {
        /// The normalized feed, as it is stored and sent.
        feed: Box<Feed>,
        /// The response that contained the feed.
        received: ReceivedBody,
    },
    /// A document that is not a feed, where no feed was known, or the watched part of it.
    Other(ReceivedBody),
    /// The resource, but without the fragment that the topic names.
    FragmentMissing(FragmentMissing),
    /// No usable content.
    Failure(Failure),
}

/// The stored data of a usable response.
#[derive(Debug)]
pub(super) struct ReceivedBody {
    /// The validators to send next time.
    pub(super) validators: Validators,
    /// The SHA-256 of the body, in hex.
    pub(super) hash: String,
    /// The freshness lifetime in the response headers, in seconds.
    pub(super) hint_s: u32,
    /// How far the clock of the server is ahead of ours, in seconds.
    pub(super) clock_ahead_s: i64,
    /// The body as received, or the watched part of it.
    pub(super) body: Body,
    /// Relation and target of each link in the headers.
    pub(super) links: Vec<(String, String)>,
    /// The part of the content that counts as a change, for a document that is not a feed
    /// (`Polling::gate`).
    pub(super) gate: String,
    /// The feeds that the document links to, if it is a page.
    pub(super) offers: Vec<DiscoveredFeed>,
    /// The sitemaps that the document lists, if it is an index of sitemaps.
    pub(super) sitemaps: Vec<ListedSitemap>,
    /// Whether the document is a new version of the page that was read as a feed until now.
    pub(super) revises_page: bool,
    /// The memory of the document, reserved until the poll is recorded.
    pub(super) memory: DocumentMemory,
}

/// A resource without the fragment that its topic names.
#[derive(Debug)]
pub(super) struct FragmentMissing {
    /// The sentence for the status.
    pub(super) reason: String,
    /// The stored data of the response; `None` if it was "not modified".
    pub(super) received: Option<ReceivedBody>,
    /// The freshness lifetime of the response in seconds, if it has one.
    pub(super) hint_s: Option<u32>,
}

/// The reason why nothing usable was found.
#[derive(Debug)]
pub(super) struct Failure {
    /// A stable code of `docs/errors.md`.
    pub(super) code: &'static str,
    /// The sentence for the status.
    pub(super) message: String,
    /// The kind of failure, which decides when the resource is polled again.
    pub(super) class: FailureClass,
    /// The status code, if there was a response.
    pub(super) http_code: u16,
    /// The seconds for which the server does not accept requests, if it gave a time.
    pub(super) retry_after_s: Option<u32>,
    /// The kind of the resource, if the fetch showed it although nothing of it is used.
    pub(super) kind: Option<ResourceKind>,
}

impl ReceivedBody {
    /// Creates the stored data of a document that has not been parsed yet. `None` if that panicked.
    pub(super) async fn new(
        document: &FetchedDocument,
        memory: DocumentMemory,
    ) -> Option<ReceivedBody> {
        let content_type = document.headers.get(http::header::CONTENT_TYPE);
        let content_type =
            content_type.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let body = document.body.clone();
        let copy = move || (hex::encode(Sha256::digest(&body)), body.to_vec());
        // Hashing and copying a long body takes too long for a thread that serves other tasks.
        let (hash, bytes) = match memory.is_large() {
            true => memory.run_blocking(copy).await?,
            false => copy(),
        };
        Some(ReceivedBody {
            validators: validators(document),
            hash,
            hint_s: document.hint_s,
            clock_ahead_s: document.clock_ahead_s,
            body: Body { content_type, bytes },
            links: links(document),
            gate: String::new(),
            offers: Vec::new(),
            sitemaps: Vec::new(),
            revises_page: false,
            memory,
        })
    }
}

impl Found {
    /// Returns the memory of the document, if there is one.
    pub(super) fn memory(&self) -> Option<DocumentMemory> {
        self.received().map(|received| received.memory.clone())
    }

    /// Returns how many bytes were received.
    pub(super) fn body_len(&self) -> u64 {
        self.received().map_or(0, |received| received.body.bytes.len() as u64)
    }

    fn received(&self) -> Option<&ReceivedBody> {
        match self {
            Found::Same(received) | Found::Feed { received, .. } | Found::Other(received) => {
                Some(received)
            }
            Found::FragmentMissing(missing) => missing.received.as_ref(),
            Found::NotModified { .. } | Found::Failure(_) => None,
        }
    }
}

/// Frees a feed. A large one has hundreds of thousands of parts, which are not freed on a thread that
/// serves other tasks.
pub(super) async fn free_feed(feed: Option<Box<Feed>>, memory: Option<&DocumentMemory>) {
    if let Some(memory) = memory.filter(|memory| memory.is_large()) {
        memory.run_blocking(move || drop(feed)).await.unwrap_or_default();
    }
}

impl FragmentMissing {
    pub(super) fn new(reason: String, received: ReceivedBody) -> FragmentMissing {
        let hint_s = Some(received.hint_s);
        FragmentMissing { reason, received: Some(received), hint_s }
    }
}

/// Returns relation and target of each link in the headers.
pub fn links(document: &FetchedDocument) -> Vec<(String, String)> {
    let values = document.headers.get_all(http::header::LINK).iter();
    let links = link_header::read(values.filter_map(|value| value.to_str().ok()));
    let targets = links.into_iter().filter_map(|link| {
        let target = document.url.join(&link.target).ok()?;
        Some(link.rels.into_iter().map(move |rel| (rel, target.as_str().to_owned())))
    });
    targets.flatten().collect()
}

/// Returns the validators of a document, without a `Last-Modified` so recent that the document may
/// have changed once more within the same second (RFC 9110 `#lastmod.comparison`, "implicitly
/// weak").
fn validators(document: &FetchedDocument) -> Validators {
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

impl From<&FetchError> for Failure {
    fn from(err: &FetchError) -> Failure {
        let (http_code, retry_after_s) = match err {
            FetchError::Status { status, retry_after_s } => (status.as_u16(), *retry_after_s),
            FetchError::Blocked { status } => (status.as_u16(), None),
            _ => (0, None),
        };
        let (code, class) = (err.code(), err.class());
        Failure { code, message: err.to_string(), class, http_code, retry_after_s, kind: None }
    }
}

impl Failure {
    /// Returns the failure of a response with status 200 and a body that cannot be used.
    pub(super) fn unusable(code: &'static str, message: String) -> Failure {
        Failure {
            code,
            message,
            class: FailureClass::Unusable,
            http_code: 200,
            retry_after_s: None,
            kind: None,
        }
    }

    /// Returns the failure of a feed whose entries become too long when they are rendered.
    pub(super) fn too_long_rendered(message: String) -> Failure {
        Failure::unusable("feed_too_large", message)
    }

    /// Returns the failure of a document that made the parser panic.
    pub(super) fn parser_panicked() -> Failure {
        let message = "the document could not be read because of a bug in feedgate".to_owned();
        Failure::unusable("parser_failed", message)
    }

    /// Returns the failure of a document that declares the feed removed (seed 002: an empty
    /// `newLocation`), or that moves in a circle.
    pub(super) fn gone() -> Failure {
        let message = "the document says that the feed was removed".to_owned();
        let class = FailureClass::Gone;
        Failure { code: "gone", message, class, http_code: 410, retry_after_s: None, kind: None }
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
