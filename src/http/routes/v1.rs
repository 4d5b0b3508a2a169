//! `/v1/…`, the REST API: JSON in and out, ids, and cursors for paging.
//!
//! It is a translation of the services that Superfeedr's API (`superfeedr`) stands on as well: what one
//! of them changes, the other shows. What holds in all calls:
//!
//! * They need an account: a token as Bearer, or a login and a token by HTTP Basic.
//! * What belongs to another account is answered as what does not exist (S37).
//! * Errors are problem documents (RFC 9457) that name the field or the parameter which is wrong.
//!   Unknown ones are rejected by name.
//! * A POST with an `Idempotency-Key` is carried out once.
//! * A list has a bounded page, and a cursor for the next one if there may be more.

mod alerts;
mod attempt_view;
mod attempts;
mod call;
mod deliveries;
mod entries;
mod entry_view;
mod feed_id;
mod feed_view;
mod feeds;
mod idempotency;
mod json_body;
mod paging;
mod refusal;
mod streams;
mod subscriptions;
mod tokens;
mod tracks;

use std::sync::Arc;

use http::StatusCode;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use crate::http::state::Gateway;

const UNKNOWN: Endpoint = Endpoint {
    name: "v1_unknown",
    methods: &["GET", "POST", "PUT", "PATCH", "DELETE"],
    body_limit_bytes: 1_024,
};

/// Returns the routes of all resources.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    subscriptions::routes(gateway)
        .or(feeds::routes(gateway))
        .unify()
        .or(entries::routes(gateway))
        .unify()
        .or(deliveries::routes(gateway))
        .unify()
        .or(attempts::routes(gateway))
        .unify()
        .or(tokens::routes(gateway))
        .unify()
        .or(tracks::routes(gateway))
        .unify()
        .or(alerts::routes(gateway))
        .unify()
        .or(streams::routes(gateway))
        .unify()
        .or(unknown(gateway))
        .unify()
        .boxed()
}

/// Returns the route of all other paths: errors are problem documents there, too.
fn unknown(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let first = "v1";
    let rest = warp::path(first).and(warp::path::tail()).map(|_| ()).boxed();
    UNKNOWN.route_with_param(gateway, rest, |_, request: Request, ()| async move {
        let reason = "There is nothing at this URL. GET /openapi.json describes all calls.";
        Rejection::new(StatusCode::NOT_FOUND, reason).to_response_for(&request)
    })
}
