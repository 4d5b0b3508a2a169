//! A subscription as the REST API shows it. Secrets are shown as fingerprints, because a token for
//! listing is no reason to be able to sign. What has no value is left out.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;

use crate::http::routes::v1::call::RestCall;
use crate::http::routes::v1::feed_view;
use crate::jobs::runner;
use feedgate_core::query::EntryFilter;
use feedgate_core::signing::Secret;
use feedgate_core::store::ListedSubscription;
use feedgate_protocol::signature::SignatureMethod;

/// A subscription.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SubscriptionView<'s> {
    id: String,
    url: &'s str,
    callback: &'s str,
    state: &'static str,
    format: &'static str,
    updates: &'static str,
    statuses: &'static str,
    sanitize: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    filter: Option<&'s str>,
    digest: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret_fingerprint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_secret: Option<PreviousSecretView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<&'static str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    callback_headers: BTreeMap<&'s str, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    listed_by: Option<&'s str>,
    created_at: DateTime<Utc>,
    lease_until: DateTime<Utc>,
    delivery: DeliveryView<'s>,
    feed: Value,
}

/// The secret before the current one, while it is used.
#[derive(Serialize)]
struct PreviousSecretView {
    fingerprint: String,
    until: DateTime<Utc>,
}

/// How far a subscription has been delivered.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DeliveryView<'s> {
    cursor: i64,
    lag: i64,
    failures: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    failing_since: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paused_since: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_attempt: Option<LastAttemptView<'s>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_attempt_at: Option<DateTime<Utc>>,
}

/// The last attempt to deliver.
#[derive(Serialize)]
struct LastAttemptView<'s> {
    at: DateTime<Utc>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    excerpt: &'s str,
}

/// Returns a subscription in JSON.
pub(in crate::http::routes::v1) fn subscription(
    call: &RestCall<'_>,
    listed: &ListedSubscription,
) -> Value {
    let ListedSubscription { subscription, resource, delivery, .. } = listed;
    let now = runner::now();
    let signing = &subscription.signing;
    let previous = signing.previous.as_ref().filter(|previous| previous.until > now);
    let displayed = SubscriptionView {
        id: subscription.id.to_string(),
        url: subscription.topic.subscribed_as(),
        callback: subscription.callback.as_str(),
        state: delivery.state(subscription, now).as_str(),
        format: subscription.format.told(),
        updates: subscription.updates.as_str(),
        statuses: subscription.statuses.as_str(),
        sanitize: subscription.is_sanitized,
        filter: subscription.filter.as_ref().map(EntryFilter::as_str),
        digest: delivery.next_digest_at.is_some(),
        secret_fingerprint: signing.secret.as_ref().map(Secret::fingerprint),
        previous_secret: previous.map(|previous| PreviousSecretView {
            fingerprint: previous.secret.fingerprint(),
            until: previous.until,
        }),
        signature: signing.method.map(SignatureMethod::as_str),
        callback_headers: subscription.headers.fingerprints().collect(),
        listed_by: subscription.listed_by(),
        created_at: subscription.created_at,
        lease_until: subscription.lease_until,
        delivery: deliveries(listed, now),
        feed: feed_view::feed(call, resource),
    };
    serde_json::to_value(displayed).expect("a subscription is a struct of plain values")
}

fn deliveries(listed: &ListedSubscription, now: DateTime<Utc>) -> DeliveryView<'_> {
    let ListedSubscription { subscription, delivery, .. } = listed;
    DeliveryView {
        cursor: subscription.cursor.0,
        lag: delivery.lag(subscription),
        failures: subscription.failures,
        failing_since: subscription.failing_since,
        paused_since: delivery.paused_at,
        last_attempt: delivery.last_attempt.as_ref().map(|last| LastAttemptView {
            at: last.at,
            status: last.response.status,
            excerpt: &last.response.excerpt,
        }),
        next_attempt_at: delivery.next_attempt(now),
    }
}
