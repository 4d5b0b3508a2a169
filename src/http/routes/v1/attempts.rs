//! `/v1/attempts`: the recorded attempts to deliver to a subscription, newest first.

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use super::attempt_view::{self, AttemptId};
use super::call::{RestCall, json_reply, to_response};
use super::paging::PageRequest;
use super::subscriptions::owned;
use crate::http::kit::auth;
use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::paths;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use feedgate_core::account::Scope;
use feedgate_core::attempt::DeliveryAttempt;
use feedgate_core::store::{AttemptRange, ListedSubscription, StoreError};

const ENDPOINT: Endpoint =
    Endpoint { name: "v1_attempts", methods: &["GET"], body_limit_bytes: 1_024 };

/// Returns the routes of attempts.
pub(super) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let all = paths::exact("v1/attempts");
    let one = paths::with_segment("v1/attempts/{}");
    ENDPOINT
        .route(gateway, all, |gateway, request| async move {
            to_response(&request, list(&gateway, &request).await)
        })
        .or(ENDPOINT.route_with_param(gateway, one, |gateway, request, id| async move {
            to_response(&request, show(&gateway, &request, &id).await)
        }))
        .unify()
        .boxed()
}

/// Returns a page of the attempts of the subscription that a call names.
async fn list(gateway: &Arc<Gateway>, request: &Request) -> Result<Response, Rejection> {
    let parameters = ["subscription", "limit", "cursor"];
    let call = RestCall::begin(gateway, request, Scope::List, &parameters).await?;
    let page = PageRequest::from_call(&call, "attempts")?;
    let before = page.parse_after(|text| text.parse().ok())?;
    let listed = named_subscription(&call).await?;
    let charge = call.admit_rows(page.limit)?;
    let range = AttemptRange { before, limit: page.limit };
    let found = gateway.store.attempts(listed.subscription.id, range).await;
    let found = found.map_err(|err| Rejection::unavailable(&err))?;
    charge.return_unread(found.len());
    let next = found.last().filter(|_| found.len() == page.limit).map(|last| last.id);
    let data = found.into_iter().map(|stored| attempt_view::attempt(&call, stored));
    Ok(page.to_reply(&call, data.collect(), next))
}

/// Returns the subscription that the parameter `subscription` names.
pub(super) async fn named_subscription(
    call: &RestCall<'_>,
) -> Result<ListedSubscription, Rejection> {
    let id = call.query.get("subscription").ok_or_else(|| {
        let reason = "subscription is missing: the id of the subscription.".to_owned();
        RestCall::reject_parameter("subscription", reason)
    })?;
    owned::find(call, id).await
}

async fn show(gateway: &Arc<Gateway>, request: &Request, id: &str) -> Result<Response, Rejection> {
    let call = RestCall::begin(gateway, request, Scope::List, &["payload"]).await?;
    let with_payload = match call.query.get("payload") {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => {
            let reason = "payload must be true or false.".to_owned();
            return Err(RestCall::reject_parameter("payload", reason));
        }
    };
    if with_payload {
        auth::require(&call.access, Scope::Retrieve)?; // the payload is the entries
    }
    let not_found = || {
        let reason = "There is no attempt with this id, or no longer.";
        Rejection::new(StatusCode::NOT_FOUND, reason).with_code("no_attempt")
    };
    let id = AttemptId::parse(id).ok_or_else(not_found)?;
    let listed = owned::find(&call, &id.subscription.to_string()).await;
    let listed = listed.map_err(|why| match why.status() {
        StatusCode::NOT_FOUND => not_found(),
        _ => why,
    })?;
    let found = gateway.store.attempt(id.subscription, id.number).await;
    let stored = found.map_err(|err| Rejection::unavailable(&err))?.ok_or_else(not_found)?;
    let payload = match with_payload {
        true => {
            call.admit_rows(stored.attempt.request.entries)?;
            payload(gateway, &listed, &stored.attempt).await
        }
        false => Ok(None),
    };
    let payload = payload.map_err(|err| Rejection::unavailable(&err))?;
    let mut displayed = attempt_view::attempt(&call, stored);
    if let Some(payload) = payload {
        displayed["payload"] = payload;
    }
    Ok(json_reply(StatusCode::OK, &displayed))
}

/// Returns the payload of an attempt, composed again; `None` if that is not possible.
async fn payload(
    gateway: &Gateway,
    listed: &ListedSubscription,
    attempt: &DeliveryAttempt,
) -> Result<Option<Value>, StoreError> {
    let composed = gateway.composer.payload_of(&listed.subscription, attempt).await?;
    Ok(composed.map(|composed| {
        serde_json::json!({
            "contentType": composed.content_type,
            "body": String::from_utf8_lossy(&composed.body),
        })
    }))
}
