//! The URL of an alert address, as all endpoints check it.

use crate::http::kit::rejection::Rejection;
use crate::http::state::Gateway;
use feedgate_core::topic::Callback;

/// Returns the callback that a request names as `url`, to which alerts are to be sent. The same addresses are
/// refused as for the callbacks of subscriptions.
pub(crate) fn parse_alert_callback(gateway: &Gateway, text: &str) -> Result<Callback, Rejection> {
    let rejected = |reason: String, code| {
        let reason = format!("url cannot be used: {reason}.");
        Rejection::unprocessable(reason).with_code(code).with_field("url")
    };
    let callback =
        Callback::parse(text).map_err(|reason| rejected(reason.to_string(), "bad_callback"))?;
    if callback.is_null_device() {
        return Err(rejected("nothing is sent there".to_owned(), "null_device"));
    }
    let checked = gateway.subscribe.check_callback(&callback);
    checked.map_err(|refusal| rejected(refusal.to_string(), refusal.code()))?;
    Ok(callback)
}
