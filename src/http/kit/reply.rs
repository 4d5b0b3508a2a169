//! The replies that all endpoints give, and the headers they set.

use bytes::Bytes;
use http::header::{self, HeaderName};
use http::{HeaderValue, StatusCode};
use hyper::body::Body;
use warp::reply::{Reply, Response};

/// A browser must not take for a page what is declared to be text.
const NO_SNIFFING: HeaderValue = HeaderValue::from_static("nosniff");

/// Returns a reply of one sentence. A 401 names the schemes of authentication (RFC 9110
/// `#section-11.6.1`).
pub(crate) fn plain_text(status: StatusCode, text: &str) -> Response {
    let mut response = with_content_type(status, "text/plain; charset=utf-8", format!("{text}\n"));
    if status == StatusCode::UNAUTHORIZED {
        const SCHEME: &str = "Basic realm=\"feedgate\", charset=\"UTF-8\"";
        set_header(&mut response, header::WWW_AUTHENTICATE, SCHEME);
        let bearer = HeaderValue::from_static("Bearer realm=\"feedgate\"");
        response.headers_mut().append(header::WWW_AUTHENTICATE, bearer);
    }
    response
}

/// Returns the response with `help` as its text if the method was not allowed: people open these
/// addresses in a browser.
pub(crate) fn with_method_help(reply: Response, help: &str) -> Response {
    if reply.status() != StatusCode::METHOD_NOT_ALLOWED {
        return reply;
    }
    let mut response = plain_text(StatusCode::METHOD_NOT_ALLOWED, help);
    for (name, value) in reply.headers() {
        if *name != header::CONTENT_LENGTH {
            response.headers_mut().insert(name, value.clone());
        }
    }
    response
}

/// Returns a reply without a body.
pub(crate) fn empty(status: StatusCode) -> Response {
    status.into_response()
}

/// Returns a reply with a body of this type.
pub(crate) fn with_content_type(
    status: StatusCode,
    content_type: &str,
    body: impl Into<Bytes>,
) -> Response {
    let mut response = Response::new(body.into().into());
    *response.status_mut() = status;
    set_header(&mut response, header::CONTENT_TYPE, content_type);
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, NO_SNIFFING);
    response
}

/// Sets a header, unless the value contains bytes that no header may have (rule S35).
pub(crate) fn set_header(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
        response.headers_mut().insert(name, value);
    }
}

/// Marks a reply that carries third-party content: a browser may show it, but nothing in it may run
/// (rule S24).
pub(crate) fn sandboxed(mut response: Response) -> Response {
    const RUN_NOTHING: HeaderValue = HeaderValue::from_static("default-src 'none'; sandbox");
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, NO_SNIFFING);
    headers.insert(header::CONTENT_SECURITY_POLICY, RUN_NOTHING);
    response
}

/// Returns the 404 response, for an unknown route or a missing resource.
pub(crate) fn not_found() -> Response {
    plain_text(StatusCode::NOT_FOUND, "There is nothing at this URL.")
}

/// Returns the response to HEAD: all headers, no body. The length of a document that has not
/// changed is unknown here, and `Content-Length` may hold nothing else (RFC 9110
/// `#field.content-length`).
pub(crate) fn without_body(response: Response) -> Response {
    let length = response.body().size_hint().exact();
    let (mut parts, _) = response.into_parts();
    if let Some(length) = length.filter(|_| parts.status != StatusCode::NOT_MODIFIED) {
        parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    Response::from_parts(parts, Bytes::new().into())
}
