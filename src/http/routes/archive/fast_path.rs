//! What is answered before a request is compared with the routes: archived documents that
//! are in the document cache in the encoding that is asked for.
//!
//! Nearly all that is asked of an archive is this, by a cache in front, and finding out
//! which door a request is for costs more than the answer. Whatever is special (a query,
//! a body, HEAD, a form that must be made first) goes the usual way.

use http::{Method, Request};
use hyper::body::Body;
use tokio::time::Instant;
use warp::reply::Response;

use super::DOOR;
use super::document_cache::DocumentKey;
use super::location::{self, Whose};
use super::reply::{Reader, Terms};
use crate::http::Gateway;
use crate::http::routes::archive::render::Order;

/// The reply to this request, if it can be given at once.
pub(crate) fn at_hand<B: Body>(gateway: &Gateway, request: &Request<B>) -> Option<Response> {
    let (uri, is_get) = (request.uri(), *request.method() == Method::GET);
    if !is_get || uri.query().is_some() || !request.body().is_end_stream() {
        return None;
    }
    let path = uri.path().strip_prefix('/').filter(|path| path.starts_with("feeds/"))?;
    let (Whose::Feed(id), Some(number)) = location::aim(path)? else { return None };
    let began = Instant::now();
    let order = Order::NewestFirst;
    let key = DocumentKey { id, is_collection: false, number: Some(number), order };
    let document = gateway.archive_documents.get_trusted(&key)?;
    let terms = Terms::of_archived(&document.state.mark);
    let reader = Reader::of(request.method(), request.headers());
    let mut response = match terms.not_modified(&reader) {
        Some(response) => response,
        None => terms.document(&reader, (reader.coding, document.encoded(reader.coding)?)),
    };
    DOOR.hand_out(gateway, &mut response, began);
    Some(response)
}
