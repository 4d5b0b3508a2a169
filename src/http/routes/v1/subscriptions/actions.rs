//! What can be done with the deliveries of a subscription: retry, replay and test.

use std::sync::Arc;

use futures_util::FutureExt;
use http::StatusCode;
use serde::Serialize;
use warp::reply::Response;

use super::{owned, view};
use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use crate::http::routes::v1::call::{RestCall, json_reply};
use crate::http::routes::v1::idempotency;
use crate::http::routes::v1::json_body::JsonBody;
use crate::http::state::Gateway;
use crate::jobs::deliver::{TestOutcome, TestReport};
use crate::jobs::runner;
use crate::subscriptions::{MAX_REPLAYED, replay_cursor};
use feedgate_core::account::Scope;

/// After how many seconds a client may repeat a test for which there was no room.
const BUSY_S: u64 = 5;

/// Delivers at once what waits for the time of its next retry.
pub(super) async fn retry(gateway: Arc<Gateway>, request: Request, id: String) -> Response {
    idempotency::once(gateway, request, Scope::Subscribe, move |call| {
        async move { retry_once(call, &id).await }.boxed()
    })
    .await
}

async fn retry_once(call: &RestCall<'_>, id: &str) -> Result<Response, Rejection> {
    JsonBody::read(call.request, &[])?;
    let listed = owned::find(call, id).await?;
    if listed.delivery.paused_at.is_some() {
        return Err(owned::reject_paused());
    }
    let retried = call.gateway.store.retry_delivery(listed.subscription.id, runner::now()).await;
    if !retried.map_err(|err| Rejection::unavailable(&err))? {
        let reason = "There is nothing to retry: the callback has received everything.";
        return Err(Rejection::new(StatusCode::CONFLICT, reason).with_code("nothing_to_retry"));
    }
    accepted(call, id).await
}

/// Sends the newest entries once more.
pub(super) async fn replay(gateway: Arc<Gateway>, request: Request, id: String) -> Response {
    idempotency::once(gateway, request, Scope::Retrieve, move |call| {
        async move { replay_once(call, &id).await }.boxed()
    })
    .await
}

async fn replay_once(call: &RestCall<'_>, id: &str) -> Result<Response, Rejection> {
    let body = JsonBody::read(call.request, &["count"])?;
    let count = body.number("count", 1..=MAX_REPLAYED.unsigned_abs())?.unwrap_or(1);
    let listed = owned::find(call, id).await?;
    if listed.delivery.paused_at.is_some() {
        return Err(owned::reject_paused());
    }
    let cursor = replay_cursor(&listed, count);
    let replayed = call.gateway.store.replay(listed.subscription.id, cursor, runner::now()).await;
    replayed.map_err(|err| Rejection::unavailable(&err))?;
    accepted(call, id).await
}

/// Returns the reply to what is done after the response: the subscription as it is now.
async fn accepted(call: &RestCall<'_>, id: &str) -> Result<Response, Rejection> {
    let listed = owned::find(call, id).await?;
    Ok(json_reply(StatusCode::ACCEPTED, &view::subscription(call, &listed)))
}

/// The result of a test.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TestView<'r> {
    delivered: bool,
    code: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    excerpt: &'r str,
    took_ms: u64,
    webhook_id: &'r str,
}

/// Sends a notification that reports nothing.
pub(super) async fn test(gateway: Arc<Gateway>, request: Request, id: String) -> Response {
    idempotency::once(gateway, request, Scope::Subscribe, move |call| {
        async move { test_once(call, &id).await }.boxed()
    })
    .await
}

async fn test_once(call: &RestCall<'_>, id: &str) -> Result<Response, Rejection> {
    JsonBody::read(call.request, &[])?;
    let listed = owned::find(call, id).await?;
    if listed.subscription.callback.is_null_device() {
        let reason = "There is nothing to test: no notification is sent to this callback.";
        return Err(Rejection::new(StatusCode::CONFLICT, reason).with_code("null_device"));
    }
    let sent = call.gateway.test_notifier.send(&listed.subscription).await;
    test_reply(sent.map_err(|err| Rejection::unavailable(&err))?)
}

/// Returns the reply to a test: what the callback responded.
pub(in crate::http::routes::v1) fn test_reply(outcome: TestOutcome) -> Result<Response, Rejection> {
    let conflict = |reason| Rejection::new(StatusCode::CONFLICT, reason);
    match outcome {
        TestOutcome::Sent(report) => Ok(json_reply(StatusCode::OK, &test_view(&report))),
        TestOutcome::Busy => {
            Err(Rejection::overloaded("Too many tests are in progress, please try again.", BUSY_S))
        }
        TestOutcome::NothingStored => {
            let reason = "The subscription receives the topic unchanged, and the topic has not been \
                          fetched yet.";
            Err(conflict(reason).with_code("nothing_stored"))
        }
    }
}

fn test_view(report: &TestReport) -> TestView<'_> {
    TestView {
        delivered: report.is_accepted,
        code: report.code,
        status: report.response.status,
        excerpt: &report.response.excerpt,
        took_ms: u64::try_from(report.took.as_millis()).unwrap_or(u64::MAX),
        webhook_id: &report.id,
    }
}
