//! The rssCloud endpoints and the hub under the names that the operator configures. XML-RPC and SOAP
//! calls are accepted at all of them.

use std::sync::Arc;

use http::StatusCode;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::path::FullPath;
use warp::reply::Response;

use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::reply::{plain_text, with_method_help};
use crate::http::kit::request::Request;
use crate::http::routes::rsscloud::aliases::AliasRole;
use crate::http::routes::{rpc, rsscloud, websub};
use crate::http::state::Gateway;

const ENDPOINT: Endpoint =
    Endpoint { name: "cloud_alias", methods: &["POST"], body_limit_bytes: 100 * 1024 };

/// The text for people who open such an address in a browser.
const HELP: &str =
    "This is a cloud: POST here what an rssCloud client sends, as a form, XML-RPC or SOAP.";

/// Returns the routes of this endpoint.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let aliases = gateway.settings.cloud_aliases.clone();
    let listed = warp::path::full().and_then(move |path: FullPath| {
        let role = aliases.path(path.as_str()).ok_or_else(warp::reject::not_found);
        std::future::ready(role)
    });
    let call_rules = Some(rpc::call_rules(gateway));
    let route = ENDPOINT.route_calls(gateway, listed.boxed(), call_rules, handle);
    route.map(|reply| with_method_help(reply, HELP)).boxed()
}

async fn handle(gateway: Arc<Gateway>, request: Request, role: AliasRole) -> Response {
    if request.body.trim_ascii_start().starts_with(b"<") {
        return rpc::handle(gateway, request).await;
    }
    match role {
        AliasRole::Register => rsscloud::handle_registration(gateway, request).await,
        AliasRole::Ping => rsscloud::handle_ping(gateway, request).await,
        AliasRole::Cancel => rsscloud::handle_cancellation(gateway, request).await,
        AliasRole::Hub => websub::handle(gateway, request).await,
        AliasRole::Call => plain_text(StatusCode::BAD_REQUEST, "This URL accepts calls only."),
    }
}
