//! `hub.mode=attempts`: the recorded attempts to deliver to one subscription, newest first, which
//! Superfeedr does not have.

use chrono::{DateTime, Utc};
use http::StatusCode;
use serde_json::{Value, json};

use super::owned_subscription;
use super::params::{NumberRange, number};
use crate::http::kit::auth;
use crate::http::kit::rejection::Rejection;
use crate::http::state::Gateway;
use feedgate_core::account::{Access, Scope};
use feedgate_core::attempt::{DeliveryAttempt, RecordedResponse, StoredAttempt};
use feedgate_core::store::{AttemptRange, ListedSubscription, StoreError};
use feedgate_protocol::form::Form;

/// How many attempts are shown.
const COUNT: NumberRange = NumberRange { default: 20, max: 100 };

/// Returns the attempts to deliver to the subscription that the parameters name, or the one with the
/// number `id`.
pub(super) async fn attempts(
    gateway: &Gateway,
    form: &Form,
    access: &Access,
) -> Result<Value, Rejection> {
    let is_operator = access.scopes.allow(Scope::Admin);
    let (count, before) = (number(form, "count", COUNT)?, attempt_number(form, "before")?);
    let id = attempt_number(form, "id")?;
    check_combination(form, id)?;
    if form.is_set("payload") {
        auth::require(access, Scope::Retrieve)?; // the payload is the entries
    }
    let listed = owned_subscription::find(gateway, form, access).await?;
    if let Some(id) = id {
        return attempt(gateway, form, &listed, id, is_operator).await;
    }
    let range = AttemptRange { before, limit: count };
    let found = gateway.store.attempts(listed.subscription.id, range).await;
    let found = found.map_err(|err| Rejection::unavailable(&err))?;
    let next = found.last().filter(|_| found.len() == count).map(|last| last.id);
    let attempts: Vec<Value> =
        found.into_iter().map(|stored| describe(stored, is_operator)).collect();
    Ok(json!({ "attempts": attempts, "next": next }))
}

/// Returns the attempt with this number, and its payload if that is requested.
async fn attempt(
    gateway: &Gateway,
    form: &Form,
    listed: &ListedSubscription,
    id: i64,
    is_operator: bool,
) -> Result<Value, Rejection> {
    let found = gateway.store.attempt(listed.subscription.id, id).await;
    let stored = found.map_err(|err| Rejection::unavailable(&err))?.ok_or_else(|| {
        let reason = format!("There is no attempt {id} of this subscription, or no longer.");
        Rejection::new(StatusCode::NOT_FOUND, reason).with_code("no_attempt")
    })?;
    let payload = match form.is_set("payload") {
        true => {
            let payload = payload(gateway, listed, &stored.attempt).await;
            Some(payload.map_err(|err| Rejection::unavailable(&err))?)
        }
        false => None,
    };
    let mut attempt = describe(stored, is_operator);
    if let Some(payload) = payload {
        attempt["payload"] = payload;
    }
    Ok(attempt)
}

/// Rejects parameters that have no effect together.
fn check_combination(form: &Form, id: Option<i64>) -> Result<(), Rejection> {
    let unused: &[(&str, &str)] = match id {
        Some(_) => &[("count", "without id"), ("before", "without id")],
        None => &[("payload", "with id")],
    };
    match unused.iter().find(|(name, _)| form.get(name).is_some()) {
        Some((name, when)) => {
            Err(Rejection::unprocessable(format!("{name} has an effect {when} only.")))
        }
        None => Ok(()),
    }
}

/// Returns the number of an attempt that a parameter gives.
fn attempt_number(form: &Form, name: &str) -> Result<Option<i64>, Rejection> {
    let Some(text) = form.get(name) else { return Ok(None) };
    let number = text.parse::<i64>().ok().filter(|number| *number > 0);
    number.map(Some).ok_or_else(|| {
        Rejection::unprocessable(format!("{name} must be the number of an attempt, not {text}."))
    })
}

/// Returns the payload of an attempt, composed again; null if that is not possible.
async fn payload(
    gateway: &Gateway,
    listed: &ListedSubscription,
    attempt: &DeliveryAttempt,
) -> Result<Value, StoreError> {
    let composed = gateway.composer.payload_of(&listed.subscription, attempt).await?;
    Ok(composed.map_or(Value::Null, |composed| {
        json!({
            "contentType": composed.content_type,
            "body": String::from_utf8_lossy(&composed.body),
        })
    }))
}

fn describe(stored: StoredAttempt, is_operator: bool) -> Value {
    let StoredAttempt { id, attempt } = stored;
    let seconds = |at: DateTime<Utc>| at.timestamp();
    let request = attempt.request;
    json!({
        "id": id,
        "at": seconds(attempt.at),
        "tookMs": u64::try_from(attempt.took.as_millis()).unwrap_or(u64::MAX),
        "verdict": attempt.verdict.as_str(),
        "code": attempt.code,
        "error": Some(attempt.error).filter(|error| !error.is_empty()),
        "nextAttempt": attempt.next_attempt_at.map(seconds),
        "request": {
            "content": request.content.as_str(),
            "first": request.first.0,
            "last": request.last.0,
            "entries": request.entries,
            "bytes": request.body_bytes,
            "contentType": request.content_type,
            "headers": request.headers,
        },
        "response": attempt.response.map(|response| describe_response(response, is_operator)),
    })
}

fn describe_response(response: RecordedResponse, is_operator: bool) -> Value {
    let is_hidden = !response.is_public && !is_operator;
    let response = response.visible_to(is_operator);
    json!({
        "status": response.status,
        "hidden": is_hidden,
        "headers": response.headers,
        "body": String::from_utf8_lossy(&response.body),
    })
}
