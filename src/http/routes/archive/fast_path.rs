//! The fast path: archived documents that are cached in the encoding that the client prefers are
//! served before the request is matched against the routes.
//!
//! Nearly all requests to an archive are of this kind, usually from a cache in front of it, and
//! matching the routes costs more than the response itself. All other requests (with a query or a
//! body, HEAD, of a browser, an encoding that is not cached yet) take the usual path.

use http::Method;
use hyper::body::Body;
use tokio::time::Instant;
use warp::reply::Response;

use super::ENDPOINT;
use super::document_cache::DocumentKey;
use super::location::{self, ArchiveOwner, DocumentName};
use super::reply::{DocumentHeaders, DocumentRequest};
use crate::http::kit::anonymous_access::Permission;
use crate::http::kit::browser_view;
use crate::http::kit::requested_format;
use crate::http::routes::archive::render::Order;
use crate::http::state::Gateway;
use feedgate_core::document_format::DocumentFormat;

/// Returns the response to this request, if it is ready.
pub(crate) fn reply<B: Body>(gateway: &Gateway, request: &http::Request<B>) -> Option<Response> {
    let (uri, is_get) = (request.uri(), *request.method() == Method::GET);
    if !gateway.settings.anonymous.allows(Permission::Views) {
        return None;
    }
    if !is_get || uri.query().is_some() || !request.body().is_end_stream() {
        return None;
    }
    if browser_view::is_preferred(request.headers(), "") {
        return None;
    }
    let path = uri.path().strip_prefix('/').filter(|path| path.starts_with("feeds/"))?;
    let (ArchiveOwner::Feed(id), DocumentName::Numbered(number)) = location::parse_path(path)?
    else {
        return None;
    };
    let started = Instant::now();
    let (order, format) = (Order::NewestFirst, DocumentFormat::Atom);
    if requested_format::accepted_format(request.headers()) != format {
        return None;
    }
    let (is_collection, is_private, number, filter) = (false, false, Some(number), None);
    let key = DocumentKey { id, is_collection, is_private, number, order, format, filter };
    let document = gateway.archive_documents.get_trusted(&key)?;
    let headers = DocumentHeaders::archived(&document.state.version);
    let reader = DocumentRequest::new(request.method(), request.headers());
    let mut response = match headers.not_modified(&reader) {
        Some(response) => response,
        None => headers.document(&reader, reader.coding, document.encoded(reader.coding)?),
    };
    ENDPOINT.finish(gateway, &mut response, started);
    Some(response)
}
