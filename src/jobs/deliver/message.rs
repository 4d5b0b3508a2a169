//! The request that delivers a payload to a callback, in its protocol.

use http::header::{CONTENT_TYPE, LINK};
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use crate::net::CallbackRequest;
use feedgate_core::subscription::Subscription;
use feedgate_protocol::Protocol;
use feedgate_protocol::{rsscloud, signature};

use super::DeliverySettings;
use super::compose::{Payload, StatusInclusion};
use super::hub_url::hub_url;

const X_HUB_SIGNATURE: HeaderName = HeaderName::from_static("x-hub-signature");
const X_TOPIC: HeaderName = HeaderName::from_static("x-pubsubhubbub-topic");
const X_CALLBACK: HeaderName = HeaderName::from_static("x-pubsubhubbub-callback");
const X_RETRIED: HeaderName = HeaderName::from_static("x-superfeedr-retried");
const X_SEQ: HeaderName = HeaderName::from_static("x-feedgate-seq");
const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");

/// Returns the request that delivers a payload.
pub(super) fn call(
    subscription: &Subscription,
    payload: &Payload,
    settings: &DeliverySettings,
) -> CallbackRequest {
    let (protocol, url) = (&subscription.protocol, subscription.callback.url());
    let mut headers = rsscloud::headers(protocol, &url);
    let body = match protocol {
        Protocol::WebSub => {
            insert_header(&mut headers, CONTENT_TYPE, &payload.content_type);
            push_websub(&mut headers, subscription, payload, settings);
            payload.body.clone()
        }
        Protocol::HttpPost | Protocol::XmlRpc { .. } | Protocol::Soap { .. } => {
            rsscloud::changed(protocol, subscription.topic.subscribed_as()).into()
        }
    };
    CallbackRequest { method: Method::POST, url, headers, body }
}

/// Returns a request with the headers that WebSub requires (`#content-distribution`) and
/// Superfeedr's clients read (N-3 to N-8). The webhook id is the same at every attempt to deliver
/// the same range (rule D10).
fn push_websub(
    headers: &mut HeaderMap,
    subscription: &Subscription,
    payload: &Payload,
    settings: &DeliverySettings,
) {
    let topic = subscription.topic.subscribed_as();
    let hub = hub_url(&settings.public_url, subscription.account.is_none());
    insert_header(headers, LINK, &format!("<{hub}>; rel=\"hub\", <{topic}>; rel=\"self\""));
    insert_header(headers, X_TOPIC, topic);
    insert_header(headers, X_CALLBACK, subscription.callback.as_str());
    let what = match payload.status {
        StatusInclusion::Only(version) => format!("status-{version}"),
        StatusInclusion::None | StatusInclusion::WithEntries(_) => {
            let range = format!("{}-{}", payload.first, payload.last);
            insert_header(headers, X_SEQ, &range);
            range
        }
    };
    let id = subscription.id;
    insert_header(headers, WEBHOOK_ID, &format!("{}.{}.{what}", id.resource, id.number));
    if subscription.failures > 0 {
        insert_header(headers, X_RETRIED, &subscription.failures.to_string());
    }
    if let Some(secret) = &subscription.secret {
        let signed = signature::sign(settings.signature, secret.expose(), &payload.body);
        insert_header(headers, X_HUB_SIGNATURE, &signed);
    }
}

/// Sets a header. A value with bytes that a header cannot contain is left out: the body still
/// arrives.
fn insert_header(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
        headers.insert(name, value);
    }
}
