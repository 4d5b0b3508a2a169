//! `/v1/alerts`: where the alerts of an account are sent, and which.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use futures_util::FutureExt;
use http::{Method, StatusCode};
use serde::Serialize;
use serde_json::Value;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use super::call::{RestCall, json_reply, to_response};
use super::idempotency;
use super::json_body::{JsonBody, reject_field};
use super::subscriptions::actions::test_reply;
use crate::http::kit::alert_callback::parse_alert_callback;
use crate::http::kit::auth;
use crate::http::kit::endpoint::Endpoint;
use crate::http::kit::paths;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::reply::empty;
use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use crate::jobs::runner;
use feedgate_core::account::Scope;
use feedgate_core::alert::{AlertAddress, AlertAddressState, AlertKind};
use feedgate_core::signing::Secret;

const ADDRESS: Endpoint = Endpoint {
    name: "v1_alerts",
    methods: &["GET", "PUT", "DELETE"],
    // A URL has 2 kB, in JSON up to six bytes to one.
    body_limit_bytes: 32 << 10,
};
const TEST: Endpoint = Endpoint { name: "v1_alerts", methods: &["POST"], body_limit_bytes: 1_024 };

/// Returns the routes of alerts.
pub(super) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let address = paths::exact("v1/alerts");
    let test = paths::exact("v1/alerts/test");
    ADDRESS
        .route(gateway, address, |gateway, request| async move {
            let result = match request.method {
                Method::PUT => set(&gateway, &request).await,
                Method::DELETE => delete(&gateway, &request).await,
                _ => show(&gateway, &request).await,
            };
            to_response(&request, result)
        })
        .or(TEST.route(gateway, test, |gateway, request| async move {
            send_test(gateway, request).await
        }))
        .unify()
        .boxed()
}

/// An alert address. Its secret is shown as a fingerprint.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AlertAddressView<'a> {
    url: &'a str,
    kinds: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret_fingerprint: Option<String>,
    created_at: DateTime<Utc>,
    failures: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_attempt: Option<AlertAttemptView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_attempt_at: Option<DateTime<Utc>>,
}

/// The last attempt to send alerts.
#[derive(Serialize)]
struct AlertAttemptView<'a> {
    at: DateTime<Utc>,
    code: &'a str,
}

fn describe(state: &AlertAddressState) -> Value {
    let AlertAddress { callback, secret, kinds, .. } = &state.address;
    let last = state.last_attempt.as_ref();
    let displayed = AlertAddressView {
        url: callback.as_str(),
        kinds: kinds.iter().map(|kind| kind.as_str()).collect(),
        secret_fingerprint: secret.as_ref().map(Secret::fingerprint),
        created_at: state.created_at,
        failures: state.failures,
        last_attempt: last.map(|last| AlertAttemptView { at: last.at, code: &last.code }),
        next_attempt_at: (state.failures > 0).then_some(state.due_at),
    };
    serde_json::to_value(displayed).expect("an alert address is a struct of plain values")
}

async fn show(gateway: &Arc<Gateway>, request: &Request) -> Result<Response, Rejection> {
    let call = RestCall::begin(gateway, request, Scope::List, &[]).await?;
    Ok(json_reply(StatusCode::OK, &describe(&find(&call).await?)))
}

/// Returns the alert address of the account.
async fn find(call: &RestCall<'_>) -> Result<AlertAddressState, Rejection> {
    let found = call.gateway.store.alert_address(call.access.account).await;
    let found = found.map_err(|err| Rejection::unavailable(&err))?;
    let reason = "The account has no alert address.";
    found.ok_or_else(|| Rejection::new(StatusCode::NOT_FOUND, reason))
}

/// Sets the alert address. Without a secret in the body, the one before is kept; null removes it.
async fn set(gateway: &Arc<Gateway>, request: &Request) -> Result<Response, Rejection> {
    let call = RestCall::begin(gateway, request, Scope::Subscribe, &[]).await?;
    // Alerts tell what the list of subscriptions does.
    auth::require(&call.access, Scope::List)?;
    let body = JsonBody::read(request, &["url", "secret", "kinds"])?;
    let (store, account) = (&gateway.store, call.access.account);
    let callback = parse_alert_callback(gateway, body.required_text("url")?.trim())?;
    let kinds = kinds(&body)?;
    let secret = match body.has("secret") {
        true => body.secret("secret")?,
        false => {
            let held = store.alert_address(account).await;
            held.map_err(|err| Rejection::unavailable(&err))?.and_then(|held| held.address.secret)
        }
    };
    let address = AlertAddress { account, callback, secret, kinds };
    let stored = store.set_alert_address(&address, runner::now()).await;
    stored.map_err(|err| Rejection::unavailable(&err))?;
    Ok(json_reply(StatusCode::OK, &describe(&find(&call).await?)))
}

/// Returns the kinds that are wanted, in the order of all kinds; all of them unless the body says otherwise.
fn kinds(body: &JsonBody) -> Result<Vec<AlertKind>, Rejection> {
    let Some(words) = body.texts("kinds")? else { return Ok(AlertKind::ALL.to_vec()) };
    let is_known = |word: &&&str| AlertKind::from_word(word).is_some();
    if let Some(word) = words.iter().find(|word| !is_known(word)) {
        let word: String = word.chars().take(64).collect();
        let known: Vec<&str> = AlertKind::ALL.iter().map(|kind| kind.as_str()).collect();
        let reason = format!("kinds must be some of {}, not {word}.", known.join(", "));
        return Err(reject_field("kinds", reason));
    }
    let wanted = AlertKind::ALL.iter().copied().filter(|kind| words.contains(&kind.as_str()));
    let wanted: Vec<AlertKind> = wanted.collect();
    if wanted.is_empty() {
        let reason = "kinds must name at least one. DELETE ends all alerts.";
        return Err(reject_field("kinds", reason.to_owned()));
    }
    Ok(wanted)
}

async fn delete(gateway: &Arc<Gateway>, request: &Request) -> Result<Response, Rejection> {
    let call = RestCall::begin(gateway, request, Scope::Unsubscribe, &[]).await?;
    let deleted = gateway.store.delete_alert_address(call.access.account).await;
    match deleted.map_err(|err| Rejection::unavailable(&err))? {
        true => Ok(empty(StatusCode::NO_CONTENT)),
        false => {
            let reason = "The account has no alert address.";
            Err(Rejection::new(StatusCode::NOT_FOUND, reason))
        }
    }
}

/// Sends a message that reports nothing.
async fn send_test(gateway: Arc<Gateway>, request: Request) -> Response {
    idempotency::once(gateway, request, Scope::Subscribe, |call| send_test_once(call).boxed()).await
}

async fn send_test_once(call: &RestCall<'_>) -> Result<Response, Rejection> {
    JsonBody::read(call.request, &[])?;
    let state = find(call).await?;
    let notifier = &call.gateway.alert_notifier;
    test_reply(notifier.send_test(&state.address, &call.access.login).await)
}
