//! The request that tells an account its alerts: JSON by `schemas/alert.schema.json`, with the headers and the
//! signatures of notifications.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde::Serialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::net::CallbackRequest;
use feedgate_core::alert::{
    Alert, AlertAddress, AlertAddressState, AlertKind, CallbackAlert, FeedAlert, OwedAlerts,
};
use feedgate_protocol::signature::SignatureMethod;
use feedgate_protocol::{signature, standard_webhooks};

/// The hash function of `X-Hub-Signature`.
const METHOD: SignatureMethod = SignatureMethod::Sha256;

/// What is sent.
pub(super) struct AlertMessage {
    /// The `webhook-id`.
    pub(super) id: String,
    body: Bytes,
    at: DateTime<Utc>,
}

/// The body of a request.
#[derive(Serialize)]
struct Body<'b> {
    #[serde(rename = "type")]
    kind: &'static str,
    timestamp: DateTime<Utc>,
    account: &'b str,
    counts: Map<String, Value>,
    omitted: u64,
    alerts: Vec<Value>,
}

impl AlertMessage {
    /// Returns the message with what is owed, for an attempt at `at`.
    pub(super) fn of_alerts(
        state: &AlertAddressState,
        login: &str,
        owed: &OwedAlerts,
        at: DateTime<Utc>,
    ) -> AlertMessage {
        let counts = owed.counts.iter();
        let body = Body {
            kind: "alerts",
            timestamp: at,
            account: login,
            counts: counts
                .map(|(kind, count)| (kind.as_str().to_owned(), (*count).into()))
                .collect(),
            omitted: owed.count().saturating_sub(owed.listed.len() as u64),
            alerts: owed.listed.iter().map(alert).collect(),
        };
        AlertMessage::new(id(state, owed), &body)
    }

    /// Returns a message that reports nothing, for a test at `at`.
    pub(super) fn of_test(login: &str, at: DateTime<Utc>) -> AlertMessage {
        let (counts, alerts) = (Map::new(), Vec::new());
        let body = Body { kind: "test", timestamp: at, account: login, counts, omitted: 0, alerts };
        AlertMessage::new(format!("alerts-test-{}", at.timestamp_micros()), &body)
    }

    fn new(id: String, body: &Body<'_>) -> AlertMessage {
        let text = serde_json::to_vec(body).expect("alerts are structs of plain values");
        AlertMessage { id, body: text.into(), at: body.timestamp }
    }

    /// Returns the request that delivers the message.
    pub(super) fn call(&self, address: &AlertAddress) -> CallbackRequest {
        let mut headers = HeaderMap::new();
        let mut insert = |name, value: &str| {
            // All values are visible ASCII.
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        };
        let at = self.at.timestamp();
        insert("content-type", "application/json");
        insert("webhook-id", &self.id);
        insert("webhook-timestamp", &at.to_string());
        if let Some(secret) = &address.secret {
            let key = secret.standard_key();
            insert("webhook-signature", &standard_webhooks::sign(&key, &self.id, at, &self.body));
            insert("x-hub-signature", &signature::sign(METHOD, secret.expose(), &self.body));
        }
        let (url, body) = (address.callback.url().clone(), self.body.clone());
        CallbackRequest { method: Method::POST, url, headers, body }
    }
}

/// Returns an id that is the same at every attempt to say the same, although times and numbers of failures
/// differ, and that no other message to the account has: the time until which feeds were told moves on with each
/// message that is accepted.
fn id(state: &AlertAddressState, owed: &OwedAlerts) -> String {
    let mut hash = Sha256::new();
    hash.update(state.address.account.0.to_be_bytes());
    hash.update(state.feeds_told_until.timestamp_micros().to_be_bytes());
    for (id, told) in &owed.told.subscriptions {
        [id.resource.0, id.number, *told].iter().for_each(|part| hash.update(part.to_be_bytes()));
    }
    for listed in &owed.listed {
        if let Alert::Feed(feed) = listed {
            hash.update(feed.kind.as_str());
            hash.update(feed.feed.0.to_be_bytes());
        }
    }
    for (kind, count) in &owed.counts {
        hash.update(kind.as_str());
        hash.update(count.to_be_bytes());
    }
    format!("alerts-{}", hex::encode(&hash.finalize()[..16]))
}

/// Returns an alert in JSON.
fn alert(alert: &Alert) -> Value {
    match alert {
        Alert::Callback(alert) => callback(alert),
        Alert::Feed(alert) => feed(alert),
        Alert::Quota { used, limit } => json!({
            "kind": AlertKind::QuotaNear.as_str(),
            "quota": "subscriptions",
            "used": used,
            "limit": limit,
        }),
    }
}

fn callback(alert: &CallbackAlert) -> Value {
    let mut written = json!({
        "kind": alert.kind.as_str(),
        "subscription": alert.subscription.to_string(),
        "url": alert.topic,
        "callback": alert.callback,
        "failures": alert.failures,
    });
    if let Some(since) = alert.failing_since {
        written["failingSince"] = json!(since);
    }
    if let Some(last) = &alert.last_attempt {
        written["lastAttempt"] = json!({ "at": last.at, "excerpt": last.response.excerpt });
        if let Some(status) = last.response.status {
            written["lastAttempt"]["status"] = status.into();
        }
    }
    written
}

fn feed(alert: &FeedAlert) -> Value {
    let mut written = json!({
        "kind": alert.kind.as_str(),
        "feed": alert.feed.to_string(),
        "url": alert.topic,
        "at": alert.at,
    });
    if alert.kind == AlertKind::FeedMoved {
        written["movedTo"] = alert.fetch_url.as_str().into();
    }
    written
}
