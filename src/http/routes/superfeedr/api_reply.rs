//! The reply of one mode of the API, before it is rendered.

use http::StatusCode;
use serde_json::Value;
use warp::reply::Response;

/// The reply of one mode.
pub(super) enum ApiReply {
    /// A status code without a body.
    Empty(StatusCode),
    /// JSON, which is wrapped in a call for a script that requests JSONP.
    Json(Value),
    /// A complete response.
    Response(Response),
}
