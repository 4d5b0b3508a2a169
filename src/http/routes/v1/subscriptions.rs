//! `/v1/subscriptions`: the subscriptions of an account, their options, and their deliveries.

pub(super) mod actions;
pub(super) mod create;
mod end;
mod list;
mod options;
pub(super) mod owned;
mod reading_list;
mod update;
mod view;

use std::sync::Arc;

use http::{Method, StatusCode};
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use super::call::{RestCall, json_reply, to_response};
use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::paths;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use feedgate_core::account::Scope;

/// A topic and a callback have 2 kB each, in JSON up to six bytes to one.
const BODY_LIMIT_BYTES: usize = 64 << 10;

const ALL: Endpoint = Endpoint {
    name: "v1_subscriptions",
    methods: &["GET", "POST"],
    body_limit_bytes: BODY_LIMIT_BYTES,
};
const ONE: Endpoint = Endpoint {
    name: "v1_subscriptions",
    methods: &["GET", "PATCH", "DELETE"],
    body_limit_bytes: BODY_LIMIT_BYTES,
};
const READING_LIST: Endpoint =
    Endpoint { name: "v1_subscriptions", methods: &["GET"], body_limit_bytes: 1_024 };
const ACTION: Endpoint =
    Endpoint { name: "v1_subscriptions", methods: &["POST"], body_limit_bytes: BODY_LIMIT_BYTES };

/// Returns the routes of subscriptions.
pub(super) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let all = paths::exact("v1/subscriptions");
    let one = paths::with_segment("v1/subscriptions/{}");
    let retry = paths::with_segment("v1/subscriptions/{}/retry");
    let replay = paths::with_segment("v1/subscriptions/{}/replay");
    let test = paths::with_segment("v1/subscriptions/{}/test");
    let list = paths::with_segment("v1/subscriptions/{}/reading-list");
    ALL.route(gateway, all, handle_all)
        .or(ONE.route_with_param(gateway, one, handle_one))
        .unify()
        .or(ACTION.route_with_param(gateway, retry, actions::retry))
        .unify()
        .or(ACTION.route_with_param(gateway, replay, actions::replay))
        .unify()
        .or(ACTION.route_with_param(gateway, test, actions::test))
        .unify()
        .or(READING_LIST.route_with_param(gateway, list, |gateway, request, id| async move {
            to_response(&request, reading_list::feeds(&gateway, &request, &id).await)
        }))
        .unify()
        .boxed()
}

async fn handle_all(gateway: Arc<Gateway>, request: Request) -> Response {
    match request.method {
        Method::POST => create::create(gateway, request).await,
        _ => to_response(&request, list::list(&gateway, &request).await),
    }
}

async fn handle_one(gateway: Arc<Gateway>, request: Request, id: String) -> Response {
    let result = match request.method {
        Method::PATCH => update::update(&gateway, &request, &id).await,
        Method::DELETE => end::end(&gateway, &request, &id).await,
        _ => show(&gateway, &request, &id).await,
    };
    to_response(&request, result)
}

async fn show(gateway: &Arc<Gateway>, request: &Request, id: &str) -> Result<Response, Rejection> {
    let call = RestCall::begin(gateway, request, Scope::List, &[]).await?;
    let listed = owned::find(&call, id).await?;
    let mut displayed = view::subscription(&call, &listed);
    let feed = &listed.resource;
    let headers = gateway.store.feed_headers(feed.id, &feed.topic).await;
    if let Some(headers) = headers.map_err(|err| Rejection::unavailable(&err))? {
        displayed["feedHeaders"] = headers.fingerprints().collect();
    }
    if let Some(list) = reading_list::summary(gateway, &listed.subscription).await? {
        displayed["readingList"] = list;
    }
    Ok(json_reply(StatusCode::OK, &displayed))
}
