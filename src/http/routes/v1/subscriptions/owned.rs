//! The subscription of the account that a call names by its id.

use http::StatusCode;

use crate::http::kit::rejection::Rejection;
use crate::http::routes::v1::call::RestCall;
use feedgate_core::store::ListedSubscription;
use feedgate_core::subscription::SubscriptionId;

/// Returns the subscription with this id. One of another account is answered as one that does not exist
/// (S37).
pub(in crate::http::routes::v1) async fn find(
    call: &RestCall<'_>,
    id: &str,
) -> Result<ListedSubscription, Rejection> {
    let id = SubscriptionId::parse(id).ok_or_else(not_found)?;
    let found = call.gateway.store.listed(id).await.map_err(|err| Rejection::unavailable(&err))?;
    let is_own =
        |listed: &ListedSubscription| listed.subscription.account == Some(call.access.account);
    found.filter(is_own).ok_or_else(not_found)
}

/// Returns the rejection of a request that cannot be carried out while deliveries are paused.
pub(super) fn reject_paused() -> Rejection {
    let reason = "The subscription is paused. Please resume it first, with paused=false.";
    Rejection::new(StatusCode::CONFLICT, reason).with_code("paused")
}

/// Returns the rejection of a call that names no subscription of the account.
pub(super) fn not_found() -> Rejection {
    let reason = "There is no subscription with this id.";
    Rejection::new(StatusCode::NOT_FOUND, reason).with_code("no_subscription")
}
