//! The cookie of a session of the console.

use crate::http::kit::request::Request;
use crate::http::state::Gateway;

/// The name of the cookie without TLS.
pub(crate) const NAME_WITHOUT_TLS: &str = "feedgate_session";

/// Returns the name of the cookie. Over TLS, browsers accept the prefix `__Host-` only from the host itself
/// and for all of its paths, and `__Secure-` for a part of them (RFC 6265bis `#section-4.1.3`).
pub(crate) fn name(gateway: &Gateway) -> &'static str {
    let public_url = &gateway.settings.public_url;
    match (public_url.scheme(), public_url.path()) {
        ("https", "/") => "__Host-feedgate_session",
        ("https", _) => "__Secure-feedgate_session",
        _ => NAME_WITHOUT_TLS,
    }
}

/// Returns the value of the cookie that a request has.
pub(crate) fn value<'r>(gateway: &Gateway, request: &'r Request) -> Option<&'r str> {
    request.cookie(name(gateway))
}
