//! An attempt to deliver as the REST API shows it. What has no value is left out.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;

use super::call::RestCall;
use feedgate_core::account::Scope;
use feedgate_core::attempt::{DeliveryAttempt, HeaderLine, StoredAttempt};
use feedgate_core::subscription::SubscriptionId;

/// The id of an attempt: that of its subscription, a hyphen, and the number of the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AttemptId {
    pub(super) subscription: SubscriptionId,
    pub(super) number: i64,
}

impl AttemptId {
    /// Parses the text of an id.
    pub(super) fn parse(text: &str) -> Option<AttemptId> {
        let (subscription, number) = text.rsplit_once('-')?;
        let is_plain = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let number = number.parse().ok().filter(|_| is_plain)?;
        Some(AttemptId { subscription: SubscriptionId::parse(subscription)?, number })
    }
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.subscription, self.number)
    }
}

/// An attempt.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AttemptView<'a> {
    id: String,
    subscription: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    delivery: Option<&'a str>,
    at: DateTime<Utc>,
    took_ms: u64,
    verdict: &'static str,
    code: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_attempt_at: Option<DateTime<Utc>>,
    request: RequestView<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<ResponseView>,
}

/// What was sent.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RequestView<'a> {
    content: &'static str,
    first: i64,
    last: i64,
    entries: usize,
    bytes: usize,
    content_type: &'a str,
    headers: &'a [HeaderLine],
}

/// What came back.
#[derive(Serialize)]
struct ResponseView {
    status: u16,
    hidden: bool,
    headers: Vec<HeaderLine>,
    body: String,
}

/// Returns an attempt in JSON. Of a response from an address that is not public, only an administrator
/// sees more than the status (S13).
pub(super) fn attempt(call: &RestCall<'_>, stored: StoredAttempt) -> Value {
    let StoredAttempt { id, mut attempt } = stored;
    let response = attempt.response.take();
    let is_operator = call.access.scopes.allow(Scope::Admin);
    let request = &attempt.request;
    let displayed = AttemptView {
        id: AttemptId { subscription: attempt.subscription, number: id }.to_string(),
        subscription: attempt.subscription.to_string(),
        delivery: delivery_id(&attempt),
        at: attempt.at,
        took_ms: u64::try_from(attempt.took.as_millis()).unwrap_or(u64::MAX),
        verdict: attempt.verdict.as_str(),
        code: &attempt.code,
        error: Some(attempt.error.as_str()).filter(|error| !error.is_empty()),
        next_attempt_at: attempt.next_attempt_at,
        request: RequestView {
            content: request.content.as_str(),
            first: request.first.0,
            last: request.last.0,
            entries: request.entries,
            bytes: request.body_bytes,
            content_type: &request.content_type,
            headers: &request.headers,
        },
        response: response.map(|response| {
            let hidden = !response.is_public && !is_operator;
            let response = response.visible_to(is_operator);
            let body = String::from_utf8_lossy(&response.body).into_owned();
            ResponseView { status: response.status, hidden, headers: response.headers, body }
        }),
    };
    serde_json::to_value(displayed).expect("an attempt is a struct of plain values")
}

/// Returns the id of the delivery that an attempt was made for: its `webhook-id`, which is the same at
/// every attempt to deliver the same range.
pub(super) fn delivery_id(attempt: &DeliveryAttempt) -> Option<&str> {
    let headers = &attempt.request.headers;
    headers.iter().find(|line| line.name == "webhook-id").map(|line| line.value.as_str())
}
