//! Responses with a document of changes: conditional, and compressed on request.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use chrono::TimeDelta;
use futures_util::stream;
use http::{Method, StatusCode, header};
use warp::reply::{Reply, Response};

use super::cache::{ChangesBody, ChangesCache, RenderError, RequestedDocument};
use super::edition::Edition;
use super::page;
use crate::http::kit::browser_view;
use crate::http::kit::conditional::{is_unchanged, takes_gzip};
use crate::http::kit::rejection::unavailable;
use crate::http::kit::reply::{empty, plain_text, sandboxed, set_header};
use crate::http::kit::request::Request;
use crate::http::kit::viewer_access::ViewerAccess;
use crate::http::state::Gateway;

/// How long caches may keep a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caching {
    /// The document will change soon.
    Minute,
    /// The document never changes.
    Forever,
}

/// A document, or the newest part of it.
#[derive(Clone, Debug)]
pub(super) struct RequestedPart {
    /// The document.
    pub(super) document: RequestedDocument,
    /// The time that the part covers; `None` for the whole document.
    pub(super) span: Option<TimeDelta>,
}

impl RequestedPart {
    fn edition(&self, of_document: &Edition) -> Edition {
        self.span.map_or_else(|| of_document.clone(), |span| of_document.of_last(span))
    }
}

/// Returns the response to a request for a document, or for a part of it.
pub(super) async fn reply(
    cache: &Arc<ChangesCache>,
    gateway: &Gateway,
    request: &Request,
    requested: RequestedPart,
    caching: Caching,
) -> Response {
    let RequestedPart { document, span } = &requested;
    let (found, rendered) = match cache.find(&gateway.store, document).await {
        Ok(found) => found,
        Err(err) => return unavailable(&err),
    };
    let edition = requested.edition(&found);
    if browser_view::is_preferred(&request.headers, &request.query) {
        return page::reply(gateway, request, &edition).await;
    }
    if is_unchanged(&request.headers, &edition.etag(), edition.updated) {
        return described(empty(StatusCode::NOT_MODIFIED), &edition, caching);
    }
    let takes_gzip = takes_gzip(request.header("accept-encoding"));
    if request.method == Method::HEAD {
        let length = rendered.filter(|_| !takes_gzip).map(|rendered| rendered.length(*span));
        let mut response = streamed(Vec::new(), length);
        if takes_gzip {
            set_header(&mut response, header::CONTENT_ENCODING, "gzip");
        }
        return described(response, &edition, caching);
    }
    let rendered = match rendered {
        Some(rendered) => Ok(rendered),
        None => cache.get_or_render(&gateway.store, document).await,
    };
    let rendered = match rendered {
        Ok(rendered) => rendered,
        Err(RenderError::Busy) => return too_many(),
        Err(RenderError::Store(err)) => return unavailable(&err),
    };
    let ChangesBody { pieces, is_zipped } =
        cache.body(document, &rendered, *span, takes_gzip).await;
    let length = pieces.iter().map(Bytes::len).sum();
    let mut response = streamed(pieces, Some(length));
    if is_zipped {
        set_header(&mut response, header::CONTENT_ENCODING, "gzip");
    }
    described(response, &requested.edition(&rendered.edition), caching)
}

/// Returns the response with these pieces of a document, whose length is given if it is known.
fn streamed(pieces: Vec<Bytes>, length: Option<usize>) -> Response {
    let pieces = stream::iter(pieces.into_iter().map(Ok::<_, Infallible>));
    let mut response = warp::reply::stream(pieces).into_response();
    set_header(&mut response, header::CONTENT_TYPE, XML);
    if let Some(length) = length {
        set_header(&mut response, header::CONTENT_LENGTH, &length.to_string());
    }
    response
}

/// Adds the headers that describe an edition.
fn described(mut response: Response, edition: &Edition, caching: Caching) -> Response {
    set_header(&mut response, header::ETAG, &edition.etag());
    let modified = httpdate::fmt_http_date(edition.updated.into());
    set_header(&mut response, header::LAST_MODIFIED, &modified);
    let cache = match caching {
        Caching::Minute => "max-age=60",
        Caching::Forever => "max-age=31536000, immutable",
    };
    let (audience, vary) = match edition.access {
        ViewerAccess::Public => ("public", "Accept, Accept-Encoding"),
        // Other clients see less, and so do pages of other sites in the same browser.
        ViewerAccess::OperatorNetwork => ("private", "Accept, Accept-Encoding, Origin"),
    };
    let cache = &format!("{audience}, {cache}");
    set_header(&mut response, header::VARY, vary);
    set_header(&mut response, header::CACHE_CONTROL, cache);
    sandboxed(response)
}

const XML: &str = "text/xml; charset=utf-8";

/// Returns the response if too many documents are being rendered.
fn too_many() -> Response {
    let reason = "Too many requests for this document are in progress, please try again later.";
    let mut response = plain_text(StatusCode::SERVICE_UNAVAILABLE, reason);
    set_header(&mut response, header::RETRY_AFTER, "10");
    response
}
