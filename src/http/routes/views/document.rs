//! A rendered view: stored compressed, with its entity tag. For clients that do not accept gzip
//! it is decompressed piece by piece while it is sent.

use std::io::{self, Cursor, Read, Write};
use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use futures_util::stream;
use http::{HeaderMap, Method, StatusCode, header};
use sha2::{Digest, Sha256};
use warp::reply::{Reply, Response};

use crate::byte_cache::ByteSize;
use crate::http::kit::conditional::{is_unchanged, takes_gzip};
use crate::http::kit::html;
use crate::http::kit::reply::{empty, sandboxed, set_header, with_content_type};
use crate::http::kit::request::Request;
use crate::http::kit::viewer_access::ViewerAccess;

/// How much is decompressed at a time.
const PIECE_BYTES: usize = 64 << 10;
/// The length up to which decompressing a document costs a client nothing: some 10 ms of processor time.
const FREE_BYTES: usize = 4 << 20;
/// Further bytes that count as a request each time they are decompressed.
const BYTES_PER_REQUEST: usize = 1 << 20;
/// Bytes of the hash in the entity tag.
const HASH_BYTES: usize = 12;

/// A rendered view.
#[derive(Debug)]
pub(super) struct ViewDocument {
    media_type: &'static str,
    compressed: Bytes,
    /// The uncompressed length.
    length: usize,
    hash_tag: String,
    modified: DateTime<Utc>,
    /// The URL of the next page.
    next: Option<String>,
    /// The security policy of a page; `None` forbids everything.
    policy: Option<String>,
}

impl ByteSize for ViewDocument {
    fn byte_size(&self) -> usize {
        self.compressed.len()
    }
}

impl ViewDocument {
    /// Returns the document with a link to the next page.
    pub(super) fn with_next_page(self, next: Option<String>) -> ViewDocument {
        ViewDocument { next, ..self }
    }

    /// Returns the document as a page with this security policy.
    pub(super) fn with_policy(self, policy: String) -> ViewDocument {
        ViewDocument { policy: Some(policy), ..self }
    }

    /// Returns the previous document if both have the same content, so that its time of
    /// modification stays.
    pub(super) fn or_unchanged(self, before: Option<Arc<ViewDocument>>) -> Arc<ViewDocument> {
        match before {
            Some(before) if before.hash_tag == self.hash_tag => before,
            _ => Arc::new(self),
        }
    }

    /// Returns how many requests it counts as that the document is decompressed for a client.
    pub(super) fn requests_to_decompress(&self, method: &Method, headers: &HeaderMap) -> usize {
        let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
        let is_decompressed = method != Method::HEAD
            && !takes_gzip(accepted.unwrap_or_default())
            && !is_unchanged(headers, &self.etag(), self.modified);
        let bytes = if is_decompressed { self.length } else { 0 };
        bytes.saturating_sub(FREE_BYTES).div_ceil(BYTES_PER_REQUEST)
    }

    /// Returns the entity tag, which is weak: the document may be sent compressed, and the tag ignores
    /// when it was rendered.
    fn etag(&self) -> String {
        format!("W/\"{}\"", self.hash_tag)
    }

    /// Returns the reply to a request for this document.
    pub(super) fn to_response(&self, request: &Request, access: ViewerAccess) -> Response {
        let etag = self.etag();
        let mut response = if is_unchanged(&request.headers, &etag, self.modified) {
            empty(StatusCode::NOT_MODIFIED)
        } else if takes_gzip(request.header("accept-encoding")) {
            let mut response =
                with_content_type(StatusCode::OK, self.media_type, self.compressed.clone());
            set_header(&mut response, header::CONTENT_ENCODING, "gzip");
            response
        } else {
            self.uncompressed()
        };
        set_header(&mut response, header::ETAG, &etag);
        let modified = httpdate::fmt_http_date(self.modified.into());
        set_header(&mut response, header::LAST_MODIFIED, &modified);
        let (cache, vary) = match access {
            ViewerAccess::Public => ("public, max-age=60", "Accept-Encoding"),
            // Other clients see less, and so do pages of other sites in the same browser.
            ViewerAccess::OperatorNetwork => ("private, max-age=60", "Accept-Encoding, Origin"),
        };
        set_header(&mut response, header::CACHE_CONTROL, cache);
        set_header(&mut response, header::VARY, vary);
        if let Some(next) = &self.next {
            set_header(&mut response, header::LINK, &format!("<{next}>; rel=\"next\""));
        }
        let mut response = sandboxed(response);
        if let Some(policy) = &self.policy {
            html::restrict(&mut response, policy);
        }
        response
    }

    /// Returns the reply to a request for a document that was made for its client alone.
    pub(super) fn to_private_response(&self, request: &Request, access: ViewerAccess) -> Response {
        let mut response = self.to_response(request, access);
        set_header(&mut response, header::CACHE_CONTROL, "private, no-store");
        set_header(&mut response, header::VARY, "Accept-Encoding, Authorization, Origin");
        response
    }

    fn uncompressed(&self) -> Response {
        let mut gzip = GzDecoder::new(Cursor::new(self.compressed.clone()));
        let pieces = std::iter::from_fn(move || {
            let mut piece = vec![0; PIECE_BYTES];
            match gzip.read(&mut piece) {
                Ok(0) => None,
                Ok(read) => {
                    piece.truncate(read);
                    Some(Ok::<_, io::Error>(Bytes::from(piece)))
                }
                Err(err) => Some(Err(err)),
            }
        });
        let mut response = warp::reply::stream(stream::iter(pieces)).into_response();
        set_header(&mut response, header::CONTENT_TYPE, self.media_type);
        set_header(&mut response, header::CONTENT_LENGTH, &self.length.to_string());
        response
    }
}

/// Writes a document.
pub(super) struct DocumentWriter {
    gzip: GzEncoder<Vec<u8>>,
    hash: Sha256,
    length: usize,
}

impl DocumentWriter {
    /// Returns an empty document.
    pub(super) fn new() -> DocumentWriter {
        let gzip = GzEncoder::new(Vec::new(), Compression::fast());
        DocumentWriter { gzip, hash: Sha256::new(), length: 0 }
    }

    /// Appends a piece that does not count for the entity tag, such as the time of rendering.
    pub(super) fn push_unhashed(&mut self, text: &str) {
        self.gzip.write_all(text.as_bytes()).expect("a vector takes all that is written");
        self.length += text.len();
    }

    /// Appends a piece.
    pub(super) fn push(&mut self, text: &str) {
        self.hash.update(text);
        self.push_unhashed(text);
    }

    /// Returns how many bytes the document takes so far.
    pub(super) fn bytes(&self) -> usize {
        self.gzip.get_ref().len()
    }

    /// Returns the document.
    pub(super) fn finish(self, media_type: &'static str, modified: DateTime<Utc>) -> ViewDocument {
        let compressed = self.gzip.finish().expect("a vector takes all that is written");
        let hash_tag = hex::encode(&self.hash.finalize()[..HASH_BYTES]);
        let (compressed, length) = (Bytes::from(compressed), self.length);
        ViewDocument {
            media_type,
            compressed,
            length,
            hash_tag,
            modified,
            next: None,
            policy: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h11_decompressing_a_long_document_counts_as_so_many_requests() {
        let document = |mib: usize| {
            let mut writer = DocumentWriter::new();
            writer.push(&"<outline/>".repeat(mib * (1 << 20) / 10));
            writer.finish("text/xml", DateTime::UNIX_EPOCH)
        };
        #[rustfmt::skip]
        let cases = [
            (1,  Method::GET,  "",     0),
            (7,  Method::GET,  "",     3),
            (7,  Method::GET,  "gzip", 0),
            (7,  Method::HEAD, "",     0),
        ];
        for (mib, method, accepted, want) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, accepted.parse().unwrap());
            let requests = document(mib).requests_to_decompress(&method, &headers);
            assert_eq!(requests, want, "{mib} MiB, {method} {accepted}");
        }
    }
}
