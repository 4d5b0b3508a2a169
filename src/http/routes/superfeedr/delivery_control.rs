//! Controlling the deliveries of one subscription: `hub.mode=pause`, `resume`, `retry` and `test`,
//! which Superfeedr does not have.

use http::StatusCode;
use serde_json::{Value, json};

use super::api_reply::ApiReply;
use super::owned_subscription;
use crate::http::kit::rejection::Rejection;
use crate::http::state::Gateway;
use crate::jobs::deliver::{TestOutcome, TestReport};
use crate::jobs::runner;
use feedgate_core::account::Access;
use feedgate_core::store::ListedSubscription;
use feedgate_core::subscription::SubscriptionId;
use feedgate_protocol::form::Form;

/// After how many seconds a client may repeat a test for which there was no room.
const BUSY_S: u64 = 5;

/// What is to be done with the deliveries of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeliveryControl {
    /// Send nothing until they are resumed.
    Pause,
    /// Send what was held back, and go on.
    Resume,
    /// Do not wait for the time of the next retry.
    Retry,
    /// Send a notification that reports nothing.
    Test,
}

impl DeliveryControl {
    /// Parses `hub.mode`.
    pub(super) fn from_mode(mode: &str) -> Option<DeliveryControl> {
        match mode {
            "pause" => Some(DeliveryControl::Pause),
            "resume" => Some(DeliveryControl::Resume),
            "retry" => Some(DeliveryControl::Retry),
            "test" => Some(DeliveryControl::Test),
            _ => None,
        }
    }
}

/// Controls the deliveries of the subscription that the parameters name.
pub(super) async fn carry_out(
    gateway: &Gateway,
    form: &Form,
    access: &Access,
    control: DeliveryControl,
) -> Result<ApiReply, Rejection> {
    let listed = owned_subscription::find(gateway, form, access).await?;
    let (id, now) = (listed.subscription.id, runner::now());
    let unavailable = |err| Rejection::unavailable(&err);
    match control {
        DeliveryControl::Pause => gateway.store.pause(id, now).await.map_err(unavailable)?,
        DeliveryControl::Resume => gateway.store.resume(id, now).await.map_err(unavailable)?,
        DeliveryControl::Retry => retry(gateway, &listed, id).await?,
        DeliveryControl::Test => return test(gateway, &listed).await.map(ApiReply::Json),
    }
    Ok(ApiReply::Empty(StatusCode::NO_CONTENT))
}

async fn retry(
    gateway: &Gateway,
    listed: &ListedSubscription,
    id: SubscriptionId,
) -> Result<(), Rejection> {
    if listed.delivery.paused_at.is_some() {
        return Err(owned_subscription::reject_paused());
    }
    let retried = gateway.store.retry_delivery(id, runner::now()).await;
    match retried.map_err(|err| Rejection::unavailable(&err))? {
        true => Ok(()),
        false => {
            let reason = "There is nothing to retry: the callback has received everything.";
            Err(Rejection::unprocessable(reason).with_code("nothing_to_retry"))
        }
    }
}

async fn test(gateway: &Gateway, listed: &ListedSubscription) -> Result<Value, Rejection> {
    if listed.subscription.callback.is_null_device() {
        let reason = "There is nothing to test: no notification is sent to this callback.";
        return Err(Rejection::unprocessable(reason).with_code("null_device"));
    }
    let sent = gateway.test_notifier.send(&listed.subscription).await;
    match sent.map_err(|err| Rejection::unavailable(&err))? {
        TestOutcome::Sent(report) => Ok(describe(&report)),
        TestOutcome::Busy => {
            Err(Rejection::overloaded("Too many tests are in progress, please try again.", BUSY_S))
        }
        TestOutcome::NothingStored => {
            let reason = "The subscription receives the topic unchanged, and the topic has not been \
                          fetched yet.";
            Err(Rejection::unprocessable(reason).with_code("nothing_stored"))
        }
    }
}

fn describe(report: &TestReport) -> Value {
    json!({
        "delivered": report.is_accepted,
        "code": report.code,
        "status": report.response.status,
        "excerpt": report.response.excerpt,
        "tookMs": u64::try_from(report.took.as_millis()).unwrap_or(u64::MAX),
        "webhookId": report.id,
    })
}
