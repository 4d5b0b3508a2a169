//! The text at `/` without parameters: what this gateway is, and how to use it.

use http::StatusCode;
use warp::reply::Response;

use crate::http::kit::reply::with_content_type;
use crate::http::state::Gateway;

/// Returns the page, for people who open the address of the gateway in a browser.
pub(super) fn index_page(gateway: &Gateway) -> Response {
    let hub = gateway.public_url("hub");
    let text = format!(
        "feedgate: any feed in, one schema out, pushed to every subscriber.\n\
         \n\
         Subscribe a callback of yours to a feed (WebSub, open to all):\n\
         \n\
         curl {hub} -d hub.mode=subscribe \\\n\
         \x20    -d hub.topic=https://example.com/feed -d hub.callback=https://example.com/callback\n\
         \n\
         With an account, entries come as Atom or JSON with a status (Superfeedr's API):\n\
         \n\
         curl {} -u LOGIN:TOKEN -d hub.mode=subscribe -d format=json \\\n\
         \x20    -d hub.topic=https://example.com/feed -d hub.callback=https://example.com/callback\n\
         \n\
         The newest entries of a feed, for feed readers: {}\n\
         \n\
         Also here: rssCloud at {} and {},\n\
         pings at {}, recent changes at {}.\n\
         \n\
         Recent events, and why some failed: {}, as JSON: {}.\n\
         All calls, to read and to try: {}, as an OpenAPI document: {}.\n{}",
        gateway.public_url(""),
        gateway.public_url("feeds?topic=https://example.com/feed&count=100"),
        gateway.public_url("rsscloud/pleaseNotify"),
        gateway.public_url("rsscloud/ping"),
        gateway.public_url("RPC2"),
        gateway.public_url("changes.xml"),
        gateway.public_url("viewLog"),
        gateway.public_url("log.json"),
        gateway.public_url("docs"),
        gateway.public_url("openapi.json"),
        if gateway.shows_public_views() { views_section(gateway) } else { String::new() },
    );
    with_content_type(StatusCode::OK, "text/plain; charset=utf-8", text)
}

/// Returns the section that links to the public views.
fn views_section(gateway: &Gateway) -> String {
    format!(
        "Feeds: {}, subscriptions: {}.\nStatistics: {}, as JSON: {}.\n",
        gateway.public_url("feeds.opml"),
        gateway.public_url("subscriptions.json"),
        gateway.public_url("stats"),
        gateway.public_url("stats.json"),
    )
}
