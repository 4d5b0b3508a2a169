//! The parameters with credentials for a callback: `callback_headers` and `callback_authorization`.

use feedgate_core::callback_headers::{BadCallbackHeaders, CallbackHeaders};
use feedgate_protocol::form::Form;

/// The names of the parameters.
pub(crate) const PARAMETERS: [&str; 2] = ["callback_headers", "callback_authorization"];

/// Returns the headers for the callback; `None` if neither parameter is given. Empty ones are none.
pub(crate) fn callback_credentials(
    form: &Form,
) -> Result<Option<CallbackHeaders>, BadCallbackHeaders> {
    if !PARAMETERS.iter().any(|name| form.has(name)) {
        return Ok(None);
    }
    let [lines, authorization] = PARAMETERS.map(|name| form.get_verbatim(name).unwrap_or_default());
    CallbackHeaders::parse(lines, authorization).map(Some)
}
