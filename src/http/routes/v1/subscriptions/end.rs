//! Ending a subscription.

use std::sync::Arc;

use http::StatusCode;
use warp::reply::Response;

use super::owned;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::reply::empty;
use crate::http::kit::request::Request;
use crate::http::routes::v1::call::RestCall;
use crate::http::routes::v1::refusal::reject_refusal;
use crate::http::state::Gateway;
use crate::jobs::runner;
use crate::subscriptions::{FirstFetchWait, RequestTerms, Verification};
use feedgate_core::account::Scope;
use feedgate_core::intent::{Intent, IntentMode};

/// Ends a subscription of the account, which vouches for it: no callback is verified.
pub(super) async fn end(
    gateway: &Arc<Gateway>,
    request: &Request,
    id: &str,
) -> Result<Response, Rejection> {
    let call = RestCall::begin(gateway, request, Scope::Unsubscribe, &[]).await?;
    let listed = owned::find(&call, id).await?;
    let intent = Intent::new(IntentMode::Unsubscribe, listed.subscription.to_request());
    let terms = RequestTerms::of_account(Verification::None, FirstFetchWait::Moment);
    let ended = gateway.subscribe.carry_out(&intent, terms, runner::now()).await;
    ended.map_err(reject_refusal)?;
    Ok(empty(StatusCode::NO_CONTENT))
}
