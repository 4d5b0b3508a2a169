//! Changing a subscription: pausing, resuming, and its options.

use std::sync::Arc;

use http::StatusCode;
use warp::reply::Response;

use super::{options, owned, view};
use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use crate::http::routes::v1::call::{RestCall, json_reply};
use crate::http::routes::v1::json_body::JsonBody;
use crate::http::state::Gateway;
use crate::jobs::runner;
use feedgate_core::account::Scope;
use feedgate_core::signing::SigningRequest;
use feedgate_core::store::ListedSubscription;
use feedgate_core::subscription::SubscriptionRequest;

/// Changes what the body names. Options that it does not name stay.
pub(super) async fn update(
    gateway: &Arc<Gateway>,
    request: &Request,
    id: &str,
) -> Result<Response, Rejection> {
    let call = RestCall::begin(gateway, request, Scope::Subscribe, &[]).await?;
    let body = JsonBody::read(request, &[&["paused"], options::FIELDS.as_slice()].concat())?;
    let id = owned::find(&call, id).await?.subscription.id;
    let is_paused = body.flag("paused")?;
    let unavailable = |err| Rejection::unavailable(&err);
    let (store, now) = (&gateway.store, runner::now());
    if options::FIELDS.iter().any(|name| body.has(name)) {
        let change = move |listed: &ListedSubscription| changed_request(&body, listed);
        let changed = store.change_subscription(id, change, now).await.map_err(unavailable)?;
        if !changed? {
            return Err(owned::not_found());
        }
    }
    match is_paused {
        Some(true) => store.pause(id, now).await.map_err(unavailable)?,
        Some(false) => store.resume(id, now).await.map_err(unavailable)?,
        None => {}
    }
    let listed = owned::find(&call, &id.to_string()).await?;
    Ok(json_reply(StatusCode::OK, &view::subscription(&call, &listed)))
}

/// Returns the request that changes a subscription as the body says. What it does not name stays.
fn changed_request(
    body: &JsonBody,
    listed: &ListedSubscription,
) -> Result<SubscriptionRequest, Rejection> {
    let digest = listed.delivery.next_digest_at.is_some();
    let signing = SigningRequest::default();
    let kept = listed.subscription.to_request();
    let mut changed = SubscriptionRequest { digest, signing, ..kept };
    options::apply(body, &mut changed)?;
    Ok(changed)
}
