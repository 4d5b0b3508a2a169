//! Responses with a document of an archive, with a part of it, or with 304.

use std::ops::Range;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use warp::reply::Response;

use crate::http::kit::conditional::is_unchanged;
use crate::http::kit::content_coding::ContentCoding;
use crate::http::kit::reply::{empty, plain_text, sandboxed, set_header, with_content_type};
use crate::http::kit::request::Request;
use feedgate_core::document_format::DocumentFormat;

/// The parts of a request that the response depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct DocumentRequest<'a> {
    /// Whether the request may ask for a part, which only GET may (RFC 9110 `#field.range`).
    pub(super) takes_parts: bool,
    /// The headers of the request.
    pub(super) headers: &'a HeaderMap,
    /// The encoding that the client prefers.
    pub(super) coding: ContentCoding,
}

impl<'a> DocumentRequest<'a> {
    /// Returns the request with this method and these headers.
    pub(super) fn new(method: &Method, headers: &'a HeaderMap) -> DocumentRequest<'a> {
        DocumentRequest {
            takes_parts: *method == Method::GET,
            headers,
            coding: ContentCoding::best(headers),
        }
    }

    fn header(&self, name: &str) -> &'a str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

impl<'a> From<&'a Request> for DocumentRequest<'a> {
    fn from(request: &'a Request) -> DocumentRequest<'a> {
        DocumentRequest::new(&request.method, &request.headers)
    }
}

/// The headers of a document.
#[derive(Clone, Debug)]
pub(super) struct DocumentHeaders {
    /// A version that no two documents ever served at one address share.
    pub(super) version: String,
    /// How long caches may keep the document.
    pub(super) cache_policy: CachePolicy,
    /// The format of the document.
    pub(super) format: DocumentFormat,
    /// The value of `Link`, if there is one.
    pub(super) link: Option<String>,
    /// The time of the last change, if it is known to the second.
    pub(super) modified: Option<DateTime<Utc>>,
}

/// How long caches may keep a document without revalidating it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CachePolicy {
    /// Forever: an archived document never changes.
    Immutable,
    /// A few seconds: a slightly outdated recent document is as good as an earlier request.
    Brief,
    /// Not at all: the newest document under its number. The next document links back to it, and a
    /// reader that follows that link must not get a state from before the document was full.
    Revalidate,
}

/// "Caching can be much more aggressive for archived documents than the recent document"
/// (seed 004).
const IMMUTABLE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
/// Caches may revalidate in the background, and serve a stale document while feedgate is down.
const BRIEF: HeaderValue =
    HeaderValue::from_static("public, max-age=15, stale-while-revalidate=30, stale-if-error=86400");
/// Caches may store the document, but must revalidate it before they serve it.
const REVALIDATE: HeaderValue = HeaderValue::from_static("public, no-cache");
/// How long caches may keep the response for a deleted document, which never exists again.
const GONE_POLICY: &str = "public, max-age=3600";

impl DocumentHeaders {
    /// Returns the headers of an archived document in Atom.
    pub(super) fn archived(version: &str) -> DocumentHeaders {
        DocumentHeaders {
            version: version.to_owned(),
            cache_policy: CachePolicy::Immutable,
            format: DocumentFormat::Atom,
            link: None,
            modified: None,
        }
    }

    /// Returns whether the document never changes.
    pub(super) fn is_archived(&self) -> bool {
        self.cache_policy == CachePolicy::Immutable
    }

    /// Returns the entity tag of the document in this encoding. Strong tags differ between
    /// encodings.
    fn etag(&self, coding: ContentCoding) -> String {
        match coding.name() {
            None => format!("\"{}\"", self.version),
            Some(name) => format!("\"{}-{name}\"", self.version),
        }
    }

    /// Returns the 304 response for a client that has the document; `None` if it does not.
    pub(super) fn not_modified(&self, request: &DocumentRequest<'_>) -> Option<Response> {
        let etag = self.etag(request.coding);
        let is_unchanged = is_unchanged(request.headers, &etag, self.modified);
        is_unchanged.then(|| self.with_headers(empty(StatusCode::NOT_MODIFIED), &etag))
    }

    /// Returns the response with the document, or with the requested part of it. Only archived
    /// documents are served in parts, because others may change between two requests.
    pub(super) fn document(
        &self,
        request: &DocumentRequest<'_>,
        coding: ContentCoding,
        body: Bytes,
    ) -> Response {
        let (media_type, etag) = (self.format.media_type(), self.etag(coding));
        let mut response = match self.requested_part(request, &etag, body.len()) {
            None => with_content_type(StatusCode::OK, media_type, body),
            Some(Part::Bytes(range)) => {
                let content_range =
                    format!("bytes {}-{}/{}", range.start, range.end - 1, body.len());
                let part = body.slice(range);
                let mut response = with_content_type(StatusCode::PARTIAL_CONTENT, media_type, part);
                set_header(&mut response, header::CONTENT_RANGE, &content_range);
                response
            }
            Some(Part::Beyond) => {
                let text = "The document has no such range.";
                let mut response = plain_text(StatusCode::RANGE_NOT_SATISFIABLE, text);
                set_header(
                    &mut response,
                    header::CONTENT_RANGE,
                    &format!("bytes */{}", body.len()),
                );
                return response;
            }
        };
        if let Some(name) = coding.name() {
            set_header(&mut response, header::CONTENT_ENCODING, name);
        }
        self.with_headers(response, &etag)
    }

    fn with_headers(&self, mut response: Response, etag: &str) -> Response {
        const VARY: HeaderValue = HeaderValue::from_static("Accept, Accept-Encoding");
        const BYTES: HeaderValue = HeaderValue::from_static("bytes");
        set_header(&mut response, header::ETAG, etag);
        let headers = response.headers_mut();
        headers.insert(header::VARY, VARY);
        let cache = match self.cache_policy {
            CachePolicy::Immutable => IMMUTABLE,
            CachePolicy::Brief => BRIEF,
            CachePolicy::Revalidate => REVALIDATE,
        };
        headers.insert(header::CACHE_CONTROL, cache);
        if self.is_archived() {
            headers.insert(header::ACCEPT_RANGES, BYTES);
        }
        if let Some(at) = self.modified {
            set_header(&mut response, header::LAST_MODIFIED, &httpdate::fmt_http_date(at.into()));
        }
        if let Some(link) = &self.link {
            set_header(&mut response, header::LINK, link);
        }
        sandboxed(response)
    }

    /// Returns the requested part; `None` for the whole document.
    fn requested_part(
        &self,
        request: &DocumentRequest<'_>,
        etag: &str,
        len: usize,
    ) -> Option<Part> {
        if !self.is_archived() || !request.takes_parts {
            return None;
        }
        // `If-Range` requires a strong comparison (RFC 9110 `#field.if-range`); a date never
        // matches an entity tag.
        let tag = request.header("if-range");
        if !tag.is_empty() && tag.trim() != etag {
            return None;
        }
        parse_range(request.header("range"), len)
    }
}

/// Excludes a response from shared caches.
pub(super) fn keep_private(response: &mut Response) {
    let cache = response.headers().get(header::CACHE_CONTROL);
    let cache = cache.and_then(|value| value.to_str().ok()).unwrap_or("public, no-cache");
    let cache = cache.replace("public", "private");
    set_header(response, header::CACHE_CONTROL, &cache);
    set_header(response, header::VARY, "Accept, Accept-Encoding, Authorization");
}

/// Returns the response for a deleted document.
pub(super) fn gone() -> Response {
    let text = "This archive document was deleted, because it was too old or there were too many.";
    let mut response = plain_text(StatusCode::GONE, text);
    set_header(&mut response, header::CACHE_CONTROL, GONE_POLICY);
    response
}

/// A part of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// A range of at least one byte.
    Bytes(Range<usize>),
    /// A range beyond the end.
    Beyond,
}

/// Parses `Range` (RFC 9110 `#field.range`). Anything but a single range of bytes requests the
/// whole document.
fn parse_range(range: &str, len: usize) -> Option<Part> {
    let (unit, range) = range.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = range.trim().split_once('-')?;
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<usize>().unwrap_or(usize::MAX))
    };
    let (start, end) = if first.is_empty() {
        (len.saturating_sub(number(last)?), if last == "0" { 0 } else { len })
    } else {
        let start = number(first)?;
        let last = if last.is_empty() { usize::MAX } else { number(last)? };
        if last < start {
            return None;
        }
        (start, last.saturating_add(1).min(len))
    };
    Some(if start < end { Part::Bytes(start..end) } else { Part::Beyond })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_of_bytes_is_parsed() {
        let bytes = |range: Range<usize>| Some(Part::Bytes(range));
        let cases = [
            ("bytes=0-4", bytes(0..5)),
            ("Bytes = 5-5", bytes(5..6)),
            ("bytes=5-", bytes(5..10)),
            ("bytes=5-99999999999999999999", bytes(5..10)),
            ("bytes=-3", bytes(7..10)),
            ("bytes=-30", bytes(0..10)),
            ("bytes=10-", Some(Part::Beyond)),
            ("bytes=-0", Some(Part::Beyond)),
            ("bytes=4-3", None),
            ("bytes=0-1,3-4", None),
            ("bytes=a-b", None),
            ("bytes=-", None),
            ("lines=1-2", None),
            ("", None),
        ];
        for (range, want) in cases {
            assert_eq!(parse_range(range, 10), want, "{range}");
        }
    }
}
