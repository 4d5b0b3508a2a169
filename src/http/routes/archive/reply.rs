//! The reply that carries a document, or says that it is known, or a part of it.

use std::ops::Range;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use warp::reply::Response;

use crate::http::kit::conditional::is_unchanged;
use crate::http::kit::content_coding::Coding;
use crate::http::kit::exchange::{Asked, as_strangers_words, empty, plain, set, with_type};

/// Who asks for a document, as far as the reply depends on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    /// Only a GET may ask for a part (RFC 9110 `#field.range`).
    pub(super) takes_parts: bool,
    /// What it says of itself.
    pub(super) headers: &'a HeaderMap,
    /// The form it likes best.
    pub(super) coding: Coding,
}

impl<'a> Reader<'a> {
    /// The one that sends these headers.
    pub(super) fn of(method: &Method, headers: &'a HeaderMap) -> Reader<'a> {
        Reader { takes_parts: *method == Method::GET, headers, coding: Coding::best(headers) }
    }

    fn header(&self, name: &str) -> &'a str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

impl<'a> From<&'a Asked> for Reader<'a> {
    fn from(asked: &'a Asked) -> Reader<'a> {
        Reader::of(&asked.method, &asked.headers)
    }
}

/// What a reply says about a document besides its bytes.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    /// Tells its bytes from all others that were ever served at its address.
    pub(super) mark: String,
    /// How long it may be kept.
    pub(super) keep: Keep,
    /// `Link`, where there is one.
    pub(super) link: Option<String>,
    /// When it last changed, where that is known well enough to be asked by.
    pub(super) modified: Option<DateTime<Utc>>,
}

/// How long a document may be kept without asking again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// An archived document never changes.
    ForEver,
    /// The recent document, of which an older state is as good as having come earlier.
    ForAMoment,
    /// The newest document under its number. The next one leads back to it: who comes from
    /// there, and is handed what it held before it was full, misses the rest.
    AskFirst,
}

/// "Caching can be much more aggressive for archived documents than the recent document"
/// (seed 004).
const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
/// A cache that has one asks in the background, and is of use while we are not there.
const FOR_A_MOMENT: HeaderValue =
    HeaderValue::from_static("public, max-age=15, stale-while-revalidate=30, stale-if-error=86400");
/// It may be stored, but is shown to nobody before we said that it still holds.
const ASK_FIRST: HeaderValue = HeaderValue::from_static("public, no-cache");
/// What was dropped does not come back.
const GONE_FOR: &str = "public, max-age=3600";

impl Terms {
    /// Those of an archived document.
    pub(super) fn of_archived(mark: &str) -> Terms {
        Terms { mark: mark.to_owned(), keep: Keep::ForEver, link: None, modified: None }
    }

    /// Whether it will never change.
    pub(super) fn is_archived(&self) -> bool {
        self.keep == Keep::ForEver
    }

    /// The entity tag of the document in this form: strong, so each form has its own.
    fn etag(&self, coding: Coding) -> String {
        match coding.name() {
            None => format!("\"{}\"", self.mark),
            Some(name) => format!("\"{}-{name}\"", self.mark),
        }
    }

    /// The reply to who holds the document already; `None` if he does not.
    pub(super) fn not_modified(&self, reader: &Reader<'_>) -> Option<Response> {
        let etag = self.etag(reader.coding);
        let is_held = is_unchanged(reader.headers, &etag, self.modified);
        is_held.then(|| self.headed(empty(StatusCode::NOT_MODIFIED), &etag))
    }

    /// The reply with the document, or with the part of it that is asked for. Parts are cut
    /// from what is archived only: anything else may have changed in between.
    pub(super) fn document(
        &self,
        reader: &Reader<'_>,
        (coding, body): (Coding, Bytes),
    ) -> Response {
        let (media_type, etag) = ("application/atom+xml", self.etag(coding));
        let mut response = match self.part(reader, &etag, body.len()) {
            None => with_type(StatusCode::OK, media_type, body),
            Some(Part::Bytes(range)) => {
                let said = format!("bytes {}-{}/{}", range.start, range.end - 1, body.len());
                let part = body.slice(range);
                let mut response = with_type(StatusCode::PARTIAL_CONTENT, media_type, part);
                set(&mut response, header::CONTENT_RANGE, &said);
                response
            }
            Some(Part::Nothing) => {
                let text = "The document has no such part.";
                let mut response = plain(StatusCode::RANGE_NOT_SATISFIABLE, text);
                set(&mut response, header::CONTENT_RANGE, &format!("bytes */{}", body.len()));
                return response;
            }
        };
        if let Some(name) = coding.name() {
            set(&mut response, header::CONTENT_ENCODING, name);
        }
        self.headed(response, &etag)
    }

    fn headed(&self, mut response: Response, etag: &str) -> Response {
        const VARY: HeaderValue = HeaderValue::from_static("Accept-Encoding");
        const BYTES: HeaderValue = HeaderValue::from_static("bytes");
        set(&mut response, header::ETAG, etag);
        let headers = response.headers_mut();
        headers.insert(header::VARY, VARY);
        let cache = match self.keep {
            Keep::ForEver => FOR_EVER,
            Keep::ForAMoment => FOR_A_MOMENT,
            Keep::AskFirst => ASK_FIRST,
        };
        headers.insert(header::CACHE_CONTROL, cache);
        if self.is_archived() {
            headers.insert(header::ACCEPT_RANGES, BYTES);
        }
        if let Some(at) = self.modified {
            set(&mut response, header::LAST_MODIFIED, &httpdate::fmt_http_date(at.into()));
        }
        if let Some(link) = &self.link {
            set(&mut response, header::LINK, link);
        }
        as_strangers_words(response)
    }

    /// Which part is asked for; `None` for the whole document.
    fn part(&self, reader: &Reader<'_>, etag: &str, len: usize) -> Option<Part> {
        if !self.is_archived() || !reader.takes_parts {
            return None;
        }
        // Compared strongly (RFC 9110 `#field.if-range`); a date is none of ours.
        let held = reader.header("if-range");
        if !held.is_empty() && held.trim() != etag {
            return None;
        }
        part(reader.header("range"), len)
    }
}

/// Keeps a reply out of caches that others share.
pub(super) fn keep_private(response: &mut Response) {
    let cache = response.headers().get(header::CACHE_CONTROL);
    let cache = cache.and_then(|value| value.to_str().ok()).unwrap_or("public, no-cache");
    let cache = cache.replace("public", "private");
    set(response, header::CACHE_CONTROL, &cache);
    set(response, header::VARY, "Accept-Encoding, Authorization");
}

/// What a dropped document is answered with.
pub(super) fn gone() -> Response {
    let text = "This document of the archive is no longer kept: it was too old, or one too many.";
    let mut response = plain(StatusCode::GONE, text);
    set(&mut response, header::CACHE_CONTROL, GONE_FOR);
    response
}

/// A part of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// These bytes, at least one.
    Bytes(Range<usize>),
    /// It begins behind the end.
    Nothing,
}

/// Reads `Range` (RFC 9110 `#field.range`). What is no range, or is several, asks for the
/// whole document.
fn part(range: &str, len: usize) -> Option<Part> {
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
    Some(if start < end { Part::Bytes(start..end) } else { Part::Nothing })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_of_bytes_is_understood() {
        let bytes = |range: Range<usize>| Some(Part::Bytes(range));
        let cases = [
            ("bytes=0-4", bytes(0..5)),
            ("Bytes = 5-5", bytes(5..6)),
            ("bytes=5-", bytes(5..10)),
            ("bytes=5-99999999999999999999", bytes(5..10)),
            ("bytes=-3", bytes(7..10)),
            ("bytes=-30", bytes(0..10)),
            ("bytes=10-", Some(Part::Nothing)),
            ("bytes=-0", Some(Part::Nothing)),
            ("bytes=4-3", None),
            ("bytes=0-1,3-4", None),
            ("bytes=a-b", None),
            ("bytes=-", None),
            ("lines=1-2", None),
            ("", None),
        ];
        for (range, want) in cases {
            assert_eq!(part(range, 10), want, "{range}");
        }
    }
}
