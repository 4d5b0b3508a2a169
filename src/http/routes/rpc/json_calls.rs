//! Calls in JSON-RPC, which are rejected in JSON-RPC: a client that sends one cannot read a fault in
//! XML.

use http::StatusCode;
use serde_json::{Value, json};
use warp::reply::Response;

use crate::http::kit::rejected_request::RejectedRequest;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::reply::with_content_type;
use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use feedgate_core::event::EventKind;

const JSON: &str = "application/json; charset=utf-8";
/// The code of a request that is not valid (JSON-RPC 2.0, section 5.1).
const INVALID_REQUEST: i32 = -32_600;

/// Returns whether the body of a request is an object or an array in JSON.
pub(super) fn is_json(request: &Request) -> bool {
    matches!(request.body.trim_ascii_start().first(), Some(b'{' | b'['))
}

/// Rejects a call.
pub(super) fn reject(gateway: &Gateway, request: &Request) -> Response {
    let reason = "Calls in JSON are not supported: please send an XML-RPC call or a SOAP envelope. \
                  A form can be sent to /ping and /pleaseNotify, which answer in JSON if it is \
                  accepted.";
    let rejection = Rejection::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, reason);
    RejectedRequest::rsscloud(EventKind::Request, "").record(gateway, &rejection);
    let call: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let id = call.get("id").filter(|id| id.is_string() || id.is_number());
    let error = json!({ "code": INVALID_REQUEST, "message": reason });
    let body = json!({ "jsonrpc": "2.0", "id": id, "error": error });
    with_content_type(rejection.status(), JSON, body.to_string())
}
