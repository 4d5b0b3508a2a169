//! `/RPC2`: rssCloud and weblog pings over XML-RPC, and over SOAP for clients that send an
//! envelope.
//!
//! The faults are those of the deployed servers to the letter. A ping that could be taken is
//! never answered with a fault: WordPress would send it again.

mod calls;
mod descriptions;
mod json_calls;
mod procedure;
mod save_rss;
mod soap_calls;
mod xmlrpc_calls;

use std::sync::Arc;

use http::StatusCode;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::http::kit::body::{CallRules, UnreadBody};
use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::paths;
use crate::http::kit::rejected_request::RejectedRequest;
use crate::http::kit::reply::{with_content_type, with_method_help};
use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use feedgate_core::event::EventKind;
use feedgate_protocol::soap;
use feedgate_protocol::xmlrpc;

/// The longest call but one: `saveRss` may be longer (rule S20).
const ENDPOINT: Endpoint =
    Endpoint { name: "rpc", methods: &["POST"], body_limit_bytes: 64 * 1024 };
/// The text for people who open this address in a browser.
const HELP: &str = "POST an XML-RPC call or a SOAP envelope here: rssCloud.hello, \
    rssCloud.pleaseNotify, rssCloud.ping, rssCloud.saveRss, weblogUpdates.ping, \
    weblogUpdates.extendedPing, system.listMethods, system.methodHelp, system.methodSignature or \
    system.multicall.";
/// How many bytes from the beginning of a body its markup may begin.
const MARKUP_WITHIN_BYTES: usize = 64;

/// Returns the routes of this endpoint.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    // UserLand's SOAP clients go to the last one.
    let rpc = paths::any_of(vec!["RPC2", "rpc2", "rpc", "weblogUpdates"]);
    let (rpc, rules) = (rpc.map(|| ()).boxed(), Some(call_rules(gateway)));
    let route =
        ENDPOINT.route_calls(gateway, rpc, rules, |gateway, request, ()| handle(gateway, request));
    route.map(|reply| with_method_help(reply, HELP)).boxed()
}

/// Returns the rules for reading the bodies of calls, whatever is called.
pub(crate) fn call_rules(gateway: &Gateway) -> CallRules {
    let long_call_limit_bytes = save_rss::call_limit_bytes(gateway);
    CallRules { long_call_limit_bytes, is_long_call: save_rss::is_call, reject: reject_unread }
}

/// Returns the reply to a call that was not read to its end, in the protocol that it began in.
fn reject_unread(gateway: &Gateway, request: &Request, unread: &UnreadBody) -> Response {
    let UnreadBody { rejection, beginning } = unread;
    // A byte order mark may come first, and a character may have two bytes.
    let is_markup = beginning.iter().take(MARKUP_WITHIN_BYTES).any(|byte| *byte == b'<');
    if !is_markup && !beginning.is_empty() {
        return rejection.to_response();
    }
    RejectedRequest::rsscloud(EventKind::Request, "").record(gateway, rejection);
    if soap_calls::is_declared(request) || soap_calls::begins(beginning) {
        return soap_calls::fault(soap_calls::version(request, beginning), rejection);
    }
    with_content_type(StatusCode::OK, xmlrpc_calls::CONTENT_TYPE, xmlrpc_calls::fault(rejection))
}

/// Answers a call, in the protocol that it came in.
pub(crate) async fn handle(gateway: Arc<Gateway>, request: Request) -> Response {
    if json_calls::is_json(&request) {
        return json_calls::reject(&gateway, &request);
    }
    // A call that cannot be read at all is answered in the protocol that its headers name.
    let is_declared = soap_calls::is_declared(&request);
    if soap::is_envelope(&request.body)
        || (is_declared && xmlrpc::read_call(&request.body).is_err())
    {
        return soap_calls::handle(&gateway, &request).await;
    }
    let body = xmlrpc_calls::carry_out(&gateway, &request).await;
    with_content_type(StatusCode::OK, xmlrpc_calls::CONTENT_TYPE, body)
}
