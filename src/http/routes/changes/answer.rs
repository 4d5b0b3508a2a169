//! Responses with a document of changes: conditional, compressed on request, and page by page if
//! the document is too long to be cached.

use std::convert::Infallible;
use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{Method, StatusCode, header};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tracing::error;
use warp::reply::{Reply, Response};

use super::cache::{ChangesCache, RenderError, RequestedDocument};
use super::edition::{Edition, Pages};
use super::page;
use crate::http::kit::browser_view;
use crate::http::kit::conditional::{is_unchanged, takes_gzip};
use crate::http::kit::rejection::unavailable;
use crate::http::kit::reply::{empty, plain_text, sandboxed, set_header, with_content_type};
use crate::http::kit::request::Request;
use crate::http::kit::viewer_access::ViewerAccess;
use crate::http::state::Gateway;
use feedgate_core::ports::StoreError;

/// The number of pages buffered for a slow client.
const PAGES_AHEAD: usize = 2;

/// How long caches may keep a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caching {
    /// The document will change soon.
    Minute,
    /// The document never changes.
    Forever,
}

/// Returns the response to a request for a document.
pub(super) async fn reply(
    cache: &ChangesCache,
    gateway: &Gateway,
    request: &Request,
    requested: RequestedDocument,
    caching: Caching,
) -> Response {
    if browser_view::is_preferred(&request.headers, &request.query) {
        return page::reply(cache, gateway, request, requested).await;
    }
    let (edition, rendered) = match cache.find(&gateway.store, &requested).await {
        Ok(found) => found,
        Err(err) => return unavailable(&err),
    };
    if is_unchanged(&request.headers, &edition.etag(), edition.updated) {
        return described(empty(StatusCode::NOT_MODIFIED), &edition, caching);
    }
    let is_zipped = takes_gzip(request.header("accept-encoding"));
    if request.method == Method::HEAD {
        let text = rendered.and_then(|rendered| rendered.text.clone()).filter(|_| !is_zipped);
        let response =
            text.map_or_else(unmeasured, |text| with_content_type(StatusCode::OK, XML, text));
        return described(encoded(response, is_zipped), &edition, caching);
    }
    let rendered = match rendered {
        Some(rendered) => Ok(rendered),
        None => cache.get_or_render(&gateway.store, &requested).await,
    };
    let rendered = match rendered {
        Ok(rendered) => rendered,
        Err(RenderError::Busy) => return too_many(),
        Err(RenderError::Store(err)) => return unavailable(&err),
    };
    let edition = &rendered.edition;
    let response = match &rendered.text {
        Some(text) if is_zipped => match zipped(text.clone()).await {
            Some(zipped) => with_content_type(StatusCode::OK, XML, zipped),
            None => return empty(StatusCode::INTERNAL_SERVER_ERROR),
        },
        Some(text) => with_content_type(StatusCode::OK, XML, text.clone()),
        None => match Arc::clone(&cache.readers).try_acquire_owned() {
            Ok(place) => streamed(Pages::read(&gateway.store, edition.clone()), is_zipped, place),
            Err(_) => return too_many(),
        },
    };
    described(encoded(response, is_zipped), edition, caching)
}

/// Returns the response to HEAD for a document of unknown length.
fn unmeasured() -> Response {
    let nothing = futures_util::stream::empty::<Result<Bytes, Infallible>>();
    let mut response = warp::reply::stream(nothing).into_response();
    set_header(&mut response, header::CONTENT_TYPE, XML);
    response
}

fn encoded(mut response: Response, is_zipped: bool) -> Response {
    if is_zipped {
        set_header(&mut response, header::CONTENT_ENCODING, "gzip");
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

/// Returns the response if too many documents are being rendered, or too many long ones read.
fn too_many() -> Response {
    let reason = "Too many requests for this document are in progress, please try again later.";
    let mut response = plain_text(StatusCode::SERVICE_UNAVAILABLE, reason);
    set_header(&mut response, header::RETRY_AFTER, "10");
    response
}

/// Compresses a text on a blocking thread. Returns `None` if that fails.
async fn zipped(text: Bytes) -> Option<Bytes> {
    let zip = tokio::task::spawn_blocking(move || {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(&text).and_then(|()| gzip.finish())
    });
    zip.await.ok()?.ok().map(Bytes::from)
}

/// Streams a text while it is read from the store. The stream ends when the client disconnects. If
/// the store fails, the response is cut off, which the client can detect.
fn streamed(pages: Pages, is_zipped: bool, place: OwnedSemaphorePermit) -> Response {
    let (out, mut pieces) = mpsc::channel(PAGES_AHEAD);
    tokio::spawn(async move {
        read(pages, out, is_zipped).await;
        drop(place);
    });
    let pieces = futures_util::stream::poll_fn(move |cx| Receiver::poll_recv(&mut pieces, cx));
    let mut response = warp::reply::stream(pieces).into_response();
    set_header(&mut response, header::CONTENT_TYPE, XML);
    response
}

async fn read(mut pages: Pages, out: Sender<Result<Bytes, StoreError>>, is_zipped: bool) {
    let mut gzip = is_zipped.then(|| GzEncoder::new(Vec::new(), Compression::fast()));
    loop {
        let (piece, is_last) = match pages.next().await {
            Ok(Some(text)) => (pressed(gzip.as_mut(), text), false),
            Ok(None) => (gzip.take().and_then(|gzip| gzip.finish().ok()).unwrap_or_default(), true),
            Err(err) => {
                error!(error = &err as &dyn std::error::Error, "reading more changes failed");
                out.send(Err(err)).await.unwrap_or_default();
                return;
            }
        };
        let is_gone = !piece.is_empty() && out.send(Ok(piece.into())).await.is_err();
        if is_last || is_gone {
            return;
        }
    }
}

/// Adds `text` and returns the compressed bytes available so far.
fn pressed(gzip: Option<&mut GzEncoder<Vec<u8>>>, text: String) -> Vec<u8> {
    let Some(gzip) = gzip else { return text.into_bytes() };
    gzip.write_all(text.as_bytes()).expect("a vector takes all that is written");
    std::mem::take(gzip.get_mut())
}
