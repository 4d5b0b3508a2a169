//! `/` and `/hubbub`, Superfeedr's API: its clients have accounts, parameters may come in the query
//! or in any kind of body, and `hub.mode` names the action.
//!
//! The open hub at `/hub` (`websub`) differs where the two specifications contradict each other:
//! the API requires a token, and verifies callbacks only if the client requests it.

mod address;
mod api_reply;
mod attempts;
mod batch;
mod batch_report;
mod combined;
mod delivery_control;
mod entries_document;
mod entries_format;
mod entry_search;
mod entry_selection;
mod index_page;
mod known_parameters;
mod list;
mod owned_subscription;
mod params;
mod refusal;
mod retrieve;
mod search;
mod signing;
pub(crate) mod stream;
mod subscribe;
mod subscription_search;
mod unsubscribe_found;
mod wait;

use std::sync::Arc;

use http::{Method, StatusCode};
use serde_json::{Value, json};
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::http::kit::auth;
use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::jsonp;
use crate::http::kit::params::{BodyFormats, read};
use crate::http::kit::paths;
use crate::http::kit::rejected_request::RejectedRequest;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::reply::{empty, with_content_type};
use crate::http::kit::request::Request;
use crate::http::routes::console;
use crate::http::routes::discovered_feeds;
use crate::http::routes::websub::publish;
use crate::http::state::Gateway;
use feedgate_core::account::{Access, Scope};
use feedgate_core::intent::IntentMode;
use feedgate_protocol::form::Form;

use api_reply::ApiReply;
use batch::Batch;
use delivery_control::DeliveryControl;
use index_page::index_page;
pub(crate) use stream::StreamPosition;
use wait::Wait;

/// A topic and a callback have 2 kB each, percent-encoded three bytes to one, and publishers
/// name many topics in one request.
const ENDPOINT: Endpoint =
    Endpoint { name: "account", methods: &["GET", "POST"], body_limit_bytes: 1 << 20 };

/// Returns the routes of this endpoint.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let root = paths::any_of(vec!["", "hubbub"]);
    ENDPOINT.route(gateway, root, handle)
}

async fn handle(gateway: Arc<Gateway>, mut request: Request) -> Response {
    request.method = effective_method(&request);
    match Batch::from_body(&request) {
        Ok(None) => {}
        Ok(Some(batch)) => return batch.carry_out(&gateway, &request).await,
        Err(rejection) => return rejection.to_response_for(&request),
    }
    let form = match read(&request, BodyFormats::Any) {
        Ok(form) => form,
        Err(rejection) => return rejection.to_response_for(&request),
    };
    match Batch::from_form(&form) {
        Ok(None) => {}
        Ok(Some(batch)) => return batch.carry_out(&gateway, &request).await,
        Err(rejection) => return rejection.to_response_for(&request),
    }
    if form.is_empty() && matches!(request.method, Method::GET | Method::HEAD) {
        return match console::is_browser(&request) {
            true => console::front_page(&gateway, request).await,
            false => index_page(&gateway),
        };
    }
    let function = jsonp::function(&form);
    match (carry_out(&gateway, &request, &form).await, function) {
        (Ok(ApiReply::Empty(status)), _) => empty(status),
        (Ok(ApiReply::Json(value)), Some(function)) => jsonp::wrap(function, &value),
        (Ok(ApiReply::Json(value)), None) => {
            let content_type = "application/json; charset=utf-8";
            with_content_type(StatusCode::OK, content_type, value.to_string())
        }
        (Ok(ApiReply::Response(response)), _) => {
            discovered_feeds::with_notes_in_body(&request, response)
        }
        (Err(rejection), Some(function)) => jsonp::wrap_rejection(function, &rejection),
        (Err(rejection), None) => rejection.to_response_for(&request),
    }
}

/// Returns the method that counts: clients that can send only one method name the other in
/// `X-HTTP-Method-Override`.
fn effective_method(request: &Request) -> Method {
    match request.header("x-http-method-override") {
        "GET" => Method::GET,
        "POST" => Method::POST,
        _ => request.method.clone(),
    }
}

async fn carry_out(
    gateway: &Arc<Gateway>,
    request: &Request,
    form: &Form,
) -> Result<ApiReply, Rejection> {
    let mode = form.get("hub.mode").unwrap_or_default().to_ascii_lowercase();
    if mode == "publish" {
        publish::publish(gateway, request, form).await?;
        return Ok(ApiReply::Empty(StatusCode::NO_CONTENT)); // whatever topics are named (P-2)
    }
    known_parameters::check_mode(&mode, form)?;
    let access = auth::authenticate(gateway, request, form).await?;
    refuse_stored_login(request, &mode, form)?;
    check_parameters(gateway, &mode, form)?;
    match mode.as_str() {
        "subscribe" => {
            auth::require(&access, Scope::Subscribe)?;
            subscribe::carry_out(gateway, request, form, &access, IntentMode::Subscribe).await
        }
        "unsubscribe" => {
            auth::require(&access, Scope::Unsubscribe)?;
            if unsubscribe_found::is_search(form) {
                return unsubscribe_found::carry_out(gateway, form, &access).await;
            }
            subscribe::carry_out(gateway, request, form, &access, IntentMode::Unsubscribe).await
        }
        "list" => {
            auth::require(&access, Scope::List)?;
            list::list(gateway, form, &access).await
        }
        "attempts" => {
            auth::require(&access, Scope::List)?;
            attempts::attempts(gateway, form, &access).await.map(ApiReply::Json)
        }
        "retrieve" => {
            auth::require(&access, Scope::Retrieve)?;
            match Wait::from_request(request, form)? {
                Wait::Stream(framing) => stream::reply(gateway, request, form, &access, framing)
                    .await
                    .map(ApiReply::Response),
                wait => retrieve::retrieve(gateway, request, form, &access, wait).await,
            }
        }
        "search" => {
            auth::require(&access, Scope::Retrieve)?;
            entry_search::search(gateway, request, form, &access).await
        }
        "replay" => {
            auth::require(&access, Scope::Retrieve)?;
            subscribe::replay(gateway, form, &access).await
        }
        mode => match DeliveryControl::from_mode(mode) {
            Some(control) => {
                auth::require(&access, Scope::Subscribe)?;
                delivery_control::carry_out(gateway, form, &access, control).await
            }
            None => Ok(token_rights(form, &access)),
        },
    }
}

/// Rejects what a page could cause in a browser that has stored a login: a change by a link, and a
/// response as a script.
fn refuse_stored_login(request: &Request, mode: &str, form: &Form) -> Result<(), Rejection> {
    if !["list", "attempts", "retrieve", "search", "authenticate"].contains(&mode) {
        auth::require_no_link(request)?;
    }
    match jsonp::function(form) {
        Some(_) => auth::require_no_foreign_script(request),
        None => Ok(()),
    }
}

/// Rejects parameters that the mode does not have. The rejection of a subscription request is
/// recorded.
fn check_parameters(gateway: &Gateway, mode: &str, form: &Form) -> Result<(), Rejection> {
    let checked = known_parameters::check(mode, form);
    match IntentMode::from_word(mode) {
        Some(intent) => {
            RejectedRequest::hub(form, intent, "superfeedr").record_if_rejected(gateway, checked)
        }
        None => checked,
    }
}

/// Returns the reply to `hub.mode=authenticate`: the token is valid, and has these rights (A-14,
///
fn token_rights(form: &Form, access: &Access) -> ApiReply {
    if !form.is_set("rights") {
        return ApiReply::Empty(StatusCode::NO_CONTENT);
    }
    let rights = [Scope::Subscribe, Scope::Unsubscribe, Scope::List, Scope::Retrieve];
    let granted =
        rights.map(|right| (right.as_str().to_owned(), json!(access.scopes.allow(right))));
    ApiReply::Json(Value::Object(granted.into_iter().collect()))
}
