//! A document that stays the same until the program is replaced. It has an entity tag, and is compressed
//! once for each content coding, when a client first accepts it.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;
use tracing::error;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::http::kit::conditional::etag_matches;
use crate::http::kit::content_coding::ContentCoding;
use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::reply::{empty, set_header, with_content_type};
use crate::http::kit::request::Request;
use crate::http::state::Gateway;

/// How long caches may serve the document without revalidating it: an hour, because it changes only
/// with a new version of the program.
const CACHE_POLICY: HeaderValue = HeaderValue::from_static("public, max-age=3600");
/// The bytes of the digest in an entity tag. Two versions share them by chance once in 2^64.
const TAG_BYTES: usize = 8;

/// A document that stays the same.
#[derive(Debug)]
pub(crate) struct FixedDocument {
    media_type: &'static str,
    tag: String,
    plain: Bytes,
    gzip: OnceCell<Bytes>,
    brotli: OnceCell<Bytes>,
}

impl FixedDocument {
    /// Returns the document with this content.
    pub(crate) fn new(media_type: &'static str, content: impl Into<Bytes>) -> FixedDocument {
        let plain = content.into();
        let tag = hex::encode(&Sha256::digest(&plain)[..TAG_BYTES]);
        FixedDocument { media_type, tag, plain, gzip: OnceCell::new(), brotli: OnceCell::new() }
    }

    /// Returns the route at which the document is.
    pub(crate) fn route(
        self,
        endpoint: Endpoint,
        gateway: &Arc<Gateway>,
        path: BoxedFilter<()>,
    ) -> BoxedFilter<(Response,)> {
        let document = Arc::new(self);
        endpoint.route(gateway, path, move |_, request: Request| {
            let document = Arc::clone(&document);
            async move { document.reply(&request).await }
        })
    }

    /// Returns the response to a request: the document in the coding that the client prefers, or 304 if
    /// the client has it.
    pub(crate) async fn reply(&self, request: &Request) -> Response {
        let (coding, body) = self.encoded(ContentCoding::best(&request.headers)).await;
        let etag = match coding.name() {
            None => format!("\"{}\"", self.tag),
            Some(name) => format!("\"{}-{name}\"", self.tag),
        };
        let mut response = if etag_matches(&request.headers, &etag) {
            empty(StatusCode::NOT_MODIFIED)
        } else {
            let mut response = with_content_type(StatusCode::OK, self.media_type, body);
            if let Some(name) = coding.name() {
                set_header(&mut response, header::CONTENT_ENCODING, name);
            }
            response
        };
        set_header(&mut response, header::ETAG, &etag);
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, CACHE_POLICY);
        headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        response
    }

    /// Returns the content in this coding, or without one if compression fails.
    async fn encoded(&self, coding: ContentCoding) -> (ContentCoding, Bytes) {
        let cell = match coding {
            ContentCoding::Plain => return (coding, self.plain.clone()),
            ContentCoding::Gzip => &self.gzip,
            ContentCoding::Brotli => &self.brotli,
        };
        let encode = || async {
            let plain = self.plain.clone();
            let encoding = tokio::task::spawn_blocking(move || coding.encode(&plain));
            encoding.await.map_err(std::io::Error::other)?
        };
        match cell.get_or_try_init(encode).await {
            Ok(body) => (coding, body.clone()),
            Err(err) => {
                error!(
                    error = &err as &dyn std::error::Error,
                    "a document could not be compressed; it is sent uncompressed"
                );
                (ContentCoding::Plain, self.plain.clone())
            }
        }
    }
}
