//! For whom the body of a request is read, as far as that is known before it is read (rule S19).
//!
//! Who the client is, is in the headers and in the query. Credentials in the body are not known yet, so that
//! such a body takes the share of strangers.

use http::{Method, header};

use crate::document_budget::{BodyOwner, UNRESERVED_BODY_BYTES};
use crate::http::kit::auth::Credentials;
use crate::http::kit::params;
use crate::http::kit::request::Request;
use crate::http::kit::session_cookie;
use crate::http::state::Gateway;
use crate::jobs::runner;
use crate::net::network;
use feedgate_core::account::{SESSION_IDLE, SessionHash};

/// Returns for whom the body of a request is read.
pub(crate) async fn find(gateway: &Gateway, request: &Request) -> BodyOwner {
    let Some(client) = request.limited_as().map(network) else { return BodyOwner::Known };
    match may_be_long(request) && has_account(gateway, request).await {
        true => BodyOwner::Known,
        false => BodyOwner::Anonymous(client),
    }
}

/// Whether a request may have a body for which memory is reserved.
fn may_be_long(request: &Request) -> bool {
    let length = request.header(header::CONTENT_LENGTH.as_str()).parse::<usize>();
    matches!(request.method, Method::POST | Method::PUT)
        && length.map_or(true, |length| length > UNRESERVED_BODY_BYTES)
}

/// Whether a request has the credentials of an account or the cookie of a session. If the store fails, the
/// endpoint says so.
async fn has_account(gateway: &Gateway, request: &Request) -> bool {
    if let Ok(credentials) = Credentials::read(request, &params::read_query(request)) {
        return credentials.are_valid(gateway).await.unwrap_or(false);
    }
    let Some(cookie) = session_cookie::value(gateway, request) else { return false };
    let (session, now) = (SessionHash::from_cookie(cookie), runner::now());
    gateway.store.session(&session, SESSION_IDLE, now).await.is_ok_and(|access| access.is_some())
}
