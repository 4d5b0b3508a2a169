//! The one subscription of an account that a request is about.

use http::StatusCode;

use super::params::{callback, topic};
use super::refusal::reject_refusal;
use crate::http::kit::rejection::Rejection;
use crate::http::state::Gateway;
use feedgate_core::account::Access;
use feedgate_core::store::ListedSubscription;
use feedgate_protocol::form::Form;

/// Returns the subscription of the account that `hub.topic` and `hub.callback` name. The callback
/// may be missing if there is one only, as for an unsubscription (U-2).
pub(super) async fn find(
    gateway: &Gateway,
    form: &Form,
    access: &Access,
) -> Result<ListedSubscription, Rejection> {
    let topic = topic(form)?;
    let callback = match callback(form)? {
        Some(callback) => callback,
        None => {
            let only = gateway.subscribe.only_callback(access.account, &topic).await;
            only.map_err(reject_refusal)?
        }
    };
    let found = gateway.subscribe.find_held(access.account, &topic, &callback).await;
    found.map_err(|err| Rejection::unavailable(&err))?.ok_or_else(|| {
        let reason = "There is no subscription to this topic with this callback.";
        Rejection::new(StatusCode::NOT_FOUND, reason).with_code("no_subscription")
    })
}

/// Returns the rejection of a request that cannot be carried out while deliveries are paused.
pub(super) fn reject_paused() -> Rejection {
    let reason = "The subscription is paused. Please resume it first (hub.mode=resume).";
    Rejection::unprocessable(reason).with_code("paused")
}
