//! `/robots.txt`: what crawlers leave alone (RFC 9309). Each address of `/try` would have this gateway fetch
//! another one, and the console is for accounts.

use std::sync::Arc;

use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::fixed_document::FixedDocument;
use crate::http::kit::paths;
use crate::http::state::Gateway;

const ENDPOINT: Endpoint =
    Endpoint { name: "crawlers", methods: &["GET"], body_limit_bytes: 1_024 };
/// The beginnings of the addresses that crawlers leave alone, below that of the gateway.
const DISALLOWED: [&str; 3] = ["try?", "feed-health?", "console"];

/// Returns the route of this endpoint.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let root = gateway.settings.public_url.path().trim_end_matches('/');
    let lines = DISALLOWED.map(|path| format!("Disallow: {root}/{path}\n"));
    let text = format!("User-agent: *\n{}", lines.concat());
    let document = FixedDocument::new("text/plain; charset=utf-8", text);
    document.route(ENDPOINT, gateway, paths::exact("robots.txt"))
}
