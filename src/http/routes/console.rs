//! The console: pages on which people see and control what this gateway does for them. Somebody who
//! is signed in sees what belongs to the account, an administrator everything.
//!
//! Pages are served below `/console`; `/` itself shows the front page to browsers. Each page works
//! without scripts. A change is a POST with the token of the session (S38), and ends with a redirect,
//! so that reloading a page never repeats a change.

mod account_alerts;
mod account_tokens;
mod accounts;
mod add_feed;
mod attempts;
mod bulk_actions;
mod callback_host;
mod column_choice;
pub(crate) mod entry;
mod event;
pub(crate) mod feed;
pub(crate) mod feed_state;
mod feeds;
mod fetches;
mod front_page;
mod list_columns;
mod list_totals;
mod live;
mod live_charts;
mod live_nodes;
mod new_subscription;
pub(crate) mod opml;
mod overview;
mod paging;
mod receivers;
mod replay;
mod sign_in;
mod site_icon;
mod stored_document;
mod subscribed;
mod subscription;
mod subscription_action;
mod subscription_filter;
mod subscription_state;
mod subscription_table;
mod subscriptions;
mod traffic_charts;
mod visit;

use std::sync::Arc;

use http::{Method, StatusCode, header};
use percent_encoding::percent_decode_str;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::reply::{set_header, with_content_type};
use crate::http::kit::request::Request;
use crate::http::state::Gateway;

pub(crate) use front_page::{front_page, is_browser};
pub(crate) use visit::Session;

use visit::Visit;

/// The body limit is that of an imported list, with its form.
const ENDPOINT: Endpoint = Endpoint {
    name: "console",
    methods: &["GET", "POST"],
    body_limit_bytes: opml::MAX_IMPORT_BYTES + (64 << 10),
};

/// The script of the console's pages.
const SCRIPT: &str = include_str!("console/page.js");
/// The script of the page that shows what happens now.
const LIVE_SCRIPT: &str = include_str!("console/live.js");

/// Returns the routes of this endpoint.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let path = warp::path("console").and(warp::path::tail()).boxed();
    let routes = ENDPOINT.route_with_param(gateway, path, |gateway, request, tail| async move {
        let segments: Vec<String> = tail.as_str().split('/').map(str::to_owned).collect();
        respond(gateway, request, &segments).await
    });
    routes.map(without_cors).boxed()
}

/// Removes what lets pages of other sites read a response: the console is for its own pages.
fn without_cors(mut response: Response) -> Response {
    const CORS: [header::HeaderName; 5] = [
        header::ACCESS_CONTROL_ALLOW_ORIGIN,
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        header::ACCESS_CONTROL_ALLOW_METHODS,
        header::ACCESS_CONTROL_ALLOW_HEADERS,
        header::ACCESS_CONTROL_MAX_AGE,
    ];
    for name in CORS {
        response.headers_mut().remove(name);
    }
    response
}

async fn respond(gateway: Arc<Gateway>, request: Request, segments: &[String]) -> Response {
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    match segments[..] {
        ["page.js"] => return script(SCRIPT),
        ["live.js"] => return script(LIVE_SCRIPT),
        _ => {}
    }
    let visit = match Visit::begin(gateway, request).await {
        Ok(visit) => visit,
        Err(rejection) => return rejection.to_response(),
    };
    let response = match page(&visit, &segments).await {
        Ok(response) => response,
        Err(rejection) => visit.rejected(&rejection),
    };
    fresh(response)
}

/// Finds the page of a path, and carries out what a form asks it to.
async fn page(visit: &Visit, segments: &[&str]) -> Result<Response, Rejection> {
    let is_post = visit.request.method == Method::POST;
    if segments == ["sign-in"] && is_post {
        return sign_in::sign_in(visit).await;
    }
    if visit.session().is_none() {
        return Ok(sign_in::page(visit, StatusCode::OK, None));
    }
    if is_post {
        visit.check_form()?;
    }
    match (segments, is_post) {
        (["sign-in"], false) => Ok(visit.see_other("console")),
        (["sign-out"], true) => sign_in::sign_out(visit).await,
        ([""], false) => overview::page(visit).await,
        (["columns"], true) => column_choice::act(visit),
        (["feeds"], false) => feeds::page(visit).await,
        (["feeds", "add"], false) => add_feed::page(visit).await,
        (["feeds", "add"], true) => add_feed::act(visit).await,
        (["feeds", id, "entries", seq], false) => entry::page(visit, id, seq).await,
        (["feeds", id], false) => feed::page(visit, id).await,
        (["feeds", id], true) => feed::act(visit, id).await,
        (["icons", id], false) => site_icon::serve(visit, id).await,
        (["hosts", host], false) => {
            callback_host::page(visit, &percent_decode_str(host).decode_utf8_lossy()).await
        }
        (["events", id], false) => event::page(visit, id).await,
        (["live"], false) => live::page(visit).await,
        (["live", "charts"], false) => live::charts(visit).await,
        (["opml"], false) => Ok(opml::page(visit)),
        (["opml"], true) => opml::act(visit).await,
        (["opml", "imports", id], false) => opml::import_page(visit, id),
        (["opml", "feeds.opml"], false) => opml::export(visit).await,
        (["subscriptions"], false) => subscriptions::page(visit).await,
        (["subscriptions"], true) => bulk_actions::act(visit).await,
        (["subscriptions", id], false) => subscription::page(visit, id).await,
        (["subscriptions", id, "attempts", number], false) => {
            attempts::page(visit, &subscription::find(visit, id).await?, number).await
        }
        (["subscriptions", id], true) => subscription::act(visit, id).await,
        (["accounts"], false) => accounts::page(visit).await,
        (["accounts"], true) => accounts::create(visit).await,
        (["accounts", login], _) => {
            let login = percent_decode_str(login).decode_utf8_lossy();
            match is_post {
                true => accounts::act(visit, &login).await,
                false => accounts::account(visit, &login).await,
            }
        }
        _ => Err(Rejection::new(StatusCode::NOT_FOUND, "There is no such page.")),
    }
}

fn script(text: &'static str) -> Response {
    let mut response = with_content_type(StatusCode::OK, "text/javascript; charset=utf-8", text);
    // The script changes only with a new version.
    set_header(&mut response, header::CACHE_CONTROL, "public, max-age=300");
    response
}

/// Forbids caches to store a page, because it differs for each session. What is no page may say for how long a
/// browser may store it.
fn fresh(mut response: Response) -> Response {
    if !response.headers().contains_key(header::CACHE_CONTROL) {
        set_header(&mut response, header::CACHE_CONTROL, "private, no-store");
    }
    set_header(&mut response, header::VARY, "Cookie");
    response
}
