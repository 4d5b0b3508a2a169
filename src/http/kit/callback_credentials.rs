//! The parameters with credentials: for a callback `callback_headers` and `callback_authorization`, for the
//! server of a feed `feed_headers` and `feed_authorization`.

use feedgate_core::callback_headers::{BadCallbackHeaders, CallbackHeaders};
use feedgate_protocol::form::Form;

/// The names of the parameters.
pub(crate) const PARAMETERS: [&str; 4] =
    ["callback_headers", "callback_authorization", "feed_headers", "feed_authorization"];

/// Returns the headers for the callback; `None` if neither parameter is given. Empty ones are none.
pub(crate) fn callback_credentials(
    form: &Form,
) -> Result<Option<CallbackHeaders>, BadCallbackHeaders> {
    credentials(form, "callback_headers", "callback_authorization")
}

/// Returns the headers for the server of a feed; `None` if neither parameter is given. Empty ones are none.
pub(crate) fn feed_credentials(form: &Form) -> Result<Option<CallbackHeaders>, BadCallbackHeaders> {
    credentials(form, "feed_headers", "feed_authorization")
}

fn credentials(
    form: &Form,
    headers: &str,
    authorization: &str,
) -> Result<Option<CallbackHeaders>, BadCallbackHeaders> {
    if !form.has(headers) && !form.has(authorization) {
        return Ok(None);
    }
    let [lines, authorization] =
        [headers, authorization].map(|name| form.get_verbatim(name).unwrap_or_default());
    CallbackHeaders::parse(lines, authorization).map(Some)
}
