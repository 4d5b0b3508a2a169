//! Whether a caller without an account may do what it requests.
//!
//! Each function that serves callers without an account calls [`check`] first, and not the endpoints
//! that lead to it: a ping arrives in seven ways, and none of them may forget the check. What is not
//! permitted to everybody is permitted to accounts, which send their login and a token as they do
//! elsewhere.

use http::{StatusCode, header};
use warp::reply::Response;

use crate::http::kit::anonymous_access::Permission;
use crate::http::kit::auth;
use crate::http::kit::params;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::reply::set_header;
use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use crate::net;
use crate::subscriptions::CallerNetworks;
use feedgate_core::topic::Topic;
use feedgate_protocol::form::Form;
use url::Url;

/// Rejects a caller without an account who does not have this permission. `form` may have the
/// credentials of an account.
pub(crate) async fn check(
    gateway: &Gateway,
    request: &Request,
    form: &Form,
    permission: Permission,
) -> Result<(), Rejection> {
    if gateway.settings.anonymous.allows(permission) {
        return Ok(());
    }
    if !auth::has_credentials(request, form) {
        return Err(permission.rejection());
    }
    let access = auth::authenticate(gateway, request, form).await?;
    auth::require(&access, permission.scope())
}

/// Rejects a caller without an account as [`check`] does. Only the query may have credentials.
pub(crate) async fn check_by_query(
    gateway: &Gateway,
    request: &Request,
    permission: Permission,
) -> Result<(), Rejection> {
    match gateway.settings.anonymous.allows(permission) {
        true => Ok(()),
        false => check(gateway, request, &params::read_query(request), permission).await,
    }
}

/// Rejects a caller who names an archive or a track of this gateway as a topic, and may not read it: what
/// is subscribed to is sent to the callback. `form` may have the credentials of an account.
pub(crate) async fn check_topics<'t>(
    gateway: &Gateway,
    request: &Request,
    form: &Form,
    topics: impl IntoIterator<Item = &'t Topic>,
) -> Result<(), Rejection> {
    if gateway.settings.anonymous.allows(Permission::Views) {
        return Ok(());
    }
    if !topics.into_iter().any(|topic| gateway.subscribe.is_own_log(topic)) {
        return Ok(());
    }
    if auth::has_credentials(request, form) {
        return check(gateway, request, form, Permission::Views).await;
    }
    let reason = "This gateway accepts subscriptions to its archives and tracks from accounts only: \
                  please authenticate with your login and a token, by HTTP Basic.";
    Err(Rejection::new(StatusCode::FORBIDDEN, reason).with_code("account_required"))
}

/// Returns which private addresses a caller may name who names `urls` as topics and callbacks.
/// Credentials are checked only if one of them is private.
pub(crate) async fn caller_networks(
    gateway: &Gateway,
    request: &Request,
    form: &Form,
    urls: &[Url],
) -> Result<CallerNetworks, Rejection> {
    let permission = Permission::InnerAddresses;
    if gateway.settings.anonymous.allows(permission) {
        return Ok(CallerNetworks::Inner);
    }
    let is_inner = urls.iter().any(net::is_inner);
    if is_inner && auth::has_credentials(request, form) {
        let access = auth::authenticate(gateway, request, form).await?;
        auth::require(&access, permission.scope())?;
        return Ok(CallerNetworks::Inner);
    }
    match request.is_local() {
        true => Ok(CallerNetworks::Local),
        false => Ok(CallerNetworks::Public),
    }
}

/// Keeps caches that serve several clients from storing a response that only accounts may read.
pub(crate) fn keep_private(gateway: &Gateway, mut response: Response) -> Response {
    if !gateway.settings.anonymous.allows(Permission::Views) {
        set_header(&mut response, header::CACHE_CONTROL, "private, no-cache");
    }
    response
}
