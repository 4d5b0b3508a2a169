//! Signing in to the console with a login and a token, and signing out.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::StatusCode;
use maud::html;
use warp::reply::Response;

use super::visit::{Visit, set_cookie};
use crate::http::kit::html::Width;
use crate::http::kit::rejection::Rejection;
use crate::jobs::runner;
use feedgate_core::account::{SessionHash, TokenHash};
use feedgate_core::store::StoreError;

/// Returns the form, with the reason why it was refused. Afterwards the browser returns to the page
/// that it requested.
pub(super) fn page(visit: &Visit, status: StatusCode, refused: Option<&str>) -> Response {
    let requested = visit.request.path.strip_prefix("/console/").unwrap_or_default();
    let next = match visit.value("next") {
        "" if requested != "sign-in" && requested != "sign-out" => requested,
        next => next,
    };
    let content = html! {
        @if let Some(reason) = refused { p role="alert" { (reason) } }
        form.stacked method="post" action=(visit.address("console/sign-in")) {
            input type="hidden" name="next" value=(next);
            label for="login" { "Login" }
            input id="login" name="login" autocomplete="username" required autofocus
                value=(visit.value("login"));
            label for="token" { "Token" }
            input id="token" name="token" type="password" autocomplete="current-password" required;
            button.primary type="submit" { "Sign in" }
        }
        h2 { "Where is my token?" }
        section.stacked {
            p { "The first start of a gateway stores the administrator's token in its data directory:" }
            pre tabindex="0" { code { "cat feedgate-data/admin-token" } }
            p { "Further tokens are made on the page Accounts of the console, or by a command:" }
            pre tabindex="0" { code { "feedgate token create --login NAME" } }
        }
    };
    visit.page_with(status, ("Sign in", "console", Width::Text), content)
}

/// Begins a session. Failed attempts count as requests of a client without an account (S39); a token
/// cannot be guessed, so accounts are never locked.
pub(super) async fn sign_in(visit: &Visit) -> Result<Response, Rejection> {
    if visit.request.is_cross_origin() {
        let reason = "Another site sent this form. Please sign in here.";
        return Err(Rejection::new(StatusCode::FORBIDDEN, reason).with_code("cross_site"));
    }
    visit.gateway.anonymous_rate_limit.admit(&visit.request, 1)?;
    let store = &visit.gateway.store;
    let unavailable = |err: &StoreError| Rejection::unavailable(err);
    let (login, token) = (visit.value("login"), visit.value("token"));
    // Files and commands show "LOGIN:TOKEN", which people copy as a whole.
    let bare = token.strip_prefix(login).and_then(|rest| rest.strip_prefix(':'));
    let token = TokenHash::from_token(bare.unwrap_or(token));
    match store.authenticate(login, &token, runner::now()).await {
        Ok(Some(_)) => {}
        Ok(None) => return Ok(refuse(visit, "The login or the token is wrong.")),
        Err(StoreError::AccountDeactivated(_)) => {
            return Ok(refuse(visit, "This account is deactivated, please contact the operator."));
        }
        Err(err) => return Err(unavailable(&err)),
    }
    let mut random = [0; 32];
    getrandom::fill(&mut random)
        .map_err(|err| Rejection::unavailable(&std::io::Error::other(err)))?;
    let cookie = URL_SAFE_NO_PAD.encode(random);
    let session = SessionHash::from_cookie(&cookie);
    let is_begun = store.begin_session(&session, &token, runner::now()).await;
    if !is_begun.map_err(|err| unavailable(&err))? {
        return Ok(refuse(visit, "The token was revoked."));
    }
    let next = visit.value("next");
    let is_page = next.chars().all(|c| c.is_ascii_alphanumeric() || "/-".contains(c));
    let path = match is_page && !next.is_empty() {
        true => format!("console/{}", next.trim_start_matches('/')),
        false => "console".to_owned(),
    };
    let mut response = visit.see_other(&path);
    set_cookie(&visit.gateway, &mut response, &cookie);
    Ok(response)
}

fn refuse(visit: &Visit, reason: &str) -> Response {
    page(visit, StatusCode::FORBIDDEN, Some(reason))
}

/// Ends the session.
pub(super) async fn sign_out(visit: &Visit) -> Result<Response, Rejection> {
    if let Some(session) = visit.session_hash() {
        let ended = visit.gateway.store.end_session(&session).await;
        ended.map_err(|err| Rejection::unavailable(&err))?;
    }
    let mut response = visit.see_other("");
    set_cookie(&visit.gateway, &mut response, "");
    Ok(response)
}
