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
use feedgate_core::subscription::SubscriptionRequest;

/// Changes what the body names. Options that it does not name stay.
pub(super) async fn update(
    gateway: &Arc<Gateway>,
    request: &Request,
    id: &str,
) -> Result<Response, Rejection> {
    let call = RestCall::begin(gateway, request, Scope::Subscribe, &[]).await?;
    let body = JsonBody::read(request, &[&["paused"], options::FIELDS.as_slice()].concat())?;
    let listed = owned::find(&call, id).await?;
    let is_paused = body.flag("paused")?;
    let unavailable = |err| Rejection::unavailable(&err);
    let (store, now, id) = (&gateway.store, runner::now(), listed.subscription.id);
    if options::FIELDS.iter().any(|name| body.has(name)) {
        let digest = listed.delivery.next_digest_at.is_some();
        // What is not named stays as it is stored, also what another request changes meanwhile.
        let (signing, headers) = (SigningRequest::default(), None);
        let kept = listed.subscription.to_request();
        let mut changed = SubscriptionRequest { digest, signing, headers, ..kept };
        options::apply(&body, &mut changed)?;
        store.subscribe(&changed, now).await.map_err(unavailable)?;
    }
    match is_paused {
        Some(true) => store.pause(id, now).await.map_err(unavailable)?,
        Some(false) => store.resume(id, now).await.map_err(unavailable)?,
        None => {}
    }
    let listed = owned::find(&call, &id.to_string()).await?;
    Ok(json_reply(StatusCode::OK, &view::subscription(&call, &listed)))
}
