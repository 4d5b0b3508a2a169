//! The credentials of a callback as headers of a request to it.

use http::{HeaderMap, HeaderName, HeaderValue};

use feedgate_core::callback_headers::CallbackHeaders;

/// Adds the headers that the owner of a callback chose. They are marked as sensitive, so that they are
/// neither recorded nor indexed by HTTP/2.
pub(crate) fn insert_callback_headers(headers: &mut HeaderMap, chosen: &CallbackHeaders) {
    for (name, value) in chosen.pairs() {
        let parsed = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value));
        if let (Ok(name), Ok(mut value)) = parsed {
            value.set_sensitive(true);
            headers.insert(name, value);
        }
    }
}
