//! A view as it is kept and sent: compressed, with what caches compare it by. For whoever
//! cannot read it so it is unpacked on its way, piece by piece.

use std::io::{self, Cursor, Read, Write};
use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use futures_util::stream;
use http::{StatusCode, header};
use sha2::{Digest, Sha256};
use warp::reply::{Reply, Response};

use super::Audience;
use crate::byte_cache::ByteSize;
use crate::http::kit::conditional::{is_unchanged, takes_gzip};
use crate::http::kit::html;
use crate::http::kit::reply::{empty, sandboxed, set_header, with_content_type};
use crate::http::kit::request::Request;

/// What is unpacked at once.
const PIECE_BYTES: usize = 64 << 10;
/// Bytes of the hash by which two documents are told apart.
const MARK_BYTES: usize = 12;

/// A document.
#[derive(Debug)]
pub(super) struct Document {
    media_type: &'static str,
    packed: Bytes,
    /// How long it is, unpacked.
    length: usize,
    mark: String,
    modified: DateTime<Utc>,
    /// Where the next page is.
    next: Option<String>,
    /// What may be done by it in a browser; `None`: nothing.
    policy: Option<String>,
}

impl ByteSize for Document {
    fn byte_size(&self) -> usize {
        self.packed.len()
    }
}

impl Document {
    /// The same with another page behind it.
    pub(super) fn followed_by(self, next: Option<String>) -> Document {
        Document { next, ..self }
    }

    /// The same, a page that may do in a browser what `policy` says.
    pub(super) fn allowed(self, policy: String) -> Document {
        Document { policy: Some(policy), ..self }
    }

    /// The document before this one if both say the same: nothing was modified then.
    pub(super) fn unless_as(self, before: Option<Arc<Document>>) -> Arc<Document> {
        match before {
            Some(before) if before.mark == self.mark => before,
            _ => Arc::new(self),
        }
    }

    /// Gives it to who asked.
    pub(super) fn give(&self, request: &Request, audience: Audience) -> Response {
        // Weak, because it may be sent compressed, and what says when it was made is left out.
        let etag = format!("W/\"{}\"", self.mark);
        let mut response = if is_unchanged(&request.headers, &etag, self.modified) {
            empty(StatusCode::NOT_MODIFIED)
        } else if takes_gzip(request.header("accept-encoding")) {
            let mut response =
                with_content_type(StatusCode::OK, self.media_type, self.packed.clone());
            set_header(&mut response, header::CONTENT_ENCODING, "gzip");
            response
        } else {
            self.unpacked()
        };
        set_header(&mut response, header::ETAG, &etag);
        let modified = httpdate::fmt_http_date(self.modified.into());
        set_header(&mut response, header::LAST_MODIFIED, &modified);
        let (cache, vary) = match audience {
            Audience::Everybody => ("public, max-age=60", "Accept-Encoding"),
            // Others are shown less, also pages of other sites in the same browser.
            Audience::Inside => ("private, max-age=60", "Accept-Encoding, Origin"),
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

    fn unpacked(&self) -> Response {
        let mut gzip = GzDecoder::new(Cursor::new(self.packed.clone()));
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

/// A document in the making.
pub(super) struct Press {
    gzip: GzEncoder<Vec<u8>>,
    hash: Sha256,
    length: usize,
}

impl Press {
    /// An empty one.
    pub(super) fn new() -> Press {
        let gzip = GzEncoder::new(Vec::new(), Compression::fast());
        Press { gzip, hash: Sha256::new(), length: 0 }
    }

    /// Appends a piece that tells when the document was made: another moment does not make
    /// another document.
    pub(super) fn push_moment(&mut self, text: &str) {
        self.gzip.write_all(text.as_bytes()).expect("a vector takes all that is written");
        self.length += text.len();
    }

    /// Appends a piece.
    pub(super) fn push(&mut self, text: &str) {
        self.hash.update(text);
        self.push_moment(text);
    }

    /// How many bytes it takes already.
    pub(super) fn bytes(&self) -> usize {
        self.gzip.get_ref().len()
    }

    /// The document.
    pub(super) fn finish(self, media_type: &'static str, modified: DateTime<Utc>) -> Document {
        let packed = self.gzip.finish().expect("a vector takes all that is written");
        let mark = hex::encode(&self.hash.finalize()[..MARK_BYTES]);
        let (packed, length) = (Bytes::from(packed), self.length);
        Document { media_type, packed, length, mark, modified, next: None, policy: None }
    }
}
