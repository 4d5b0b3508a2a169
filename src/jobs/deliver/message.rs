//! The request that brings a payload to a callback, in the words of its protocol.

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

/// The request.
pub(super) fn call(
    subscription: &Subscription,
    payload: &Payload,
    settings: &DeliverySettings,
) -> CallbackRequest {
    let (protocol, url) = (&subscription.protocol, subscription.callback.url());
    let mut headers = rsscloud::headers(protocol, &url);
    let body = match protocol {
        Protocol::WebSub => {
            put(&mut headers, CONTENT_TYPE, &payload.content_type);
            push_websub(&mut headers, subscription, payload, settings);
            payload.body.clone()
        }
        Protocol::HttpPost | Protocol::XmlRpc { .. } | Protocol::Soap { .. } => {
            rsscloud::changed(protocol, subscription.topic.as_str()).into()
        }
    };
    CallbackRequest { method: Method::POST, url, headers, body }
}

/// What WebSub asks for (`#content-distribution`) and what Superfeedr's clients read
/// (rows N-3 to N-8). The id is the same at every attempt to bring the same range
/// (rule D10).
fn push_websub(
    headers: &mut HeaderMap,
    subscription: &Subscription,
    payload: &Payload,
    settings: &DeliverySettings,
) {
    let topic = subscription.topic.as_str();
    let hub = hub_url(&settings.public_url, subscription.account.is_none());
    put(headers, LINK, &format!("<{hub}>; rel=\"hub\", <{topic}>; rel=\"self\""));
    put(headers, X_TOPIC, topic);
    put(headers, X_CALLBACK, subscription.callback.as_str());
    let what = match payload.status {
        StatusInclusion::Only(version) => format!("status-{version}"),
        StatusInclusion::None | StatusInclusion::WithEntries(_) => {
            let range = format!("{}-{}", payload.first, payload.last);
            put(headers, X_SEQ, &range);
            range
        }
    };
    let id = subscription.id;
    put(headers, WEBHOOK_ID, &format!("{}.{}.{what}", id.resource, id.number));
    if subscription.failures > 0 {
        put(headers, X_RETRIED, &subscription.failures.to_string());
    }
    if let Some(secret) = &subscription.secret {
        let signed = signature::sign(settings.signature, secret.expose(), &payload.body);
        put(headers, X_HUB_SIGNATURE, &signed);
    }
}

/// Sets a header. A topic or content type with bytes that no header can hold is left
/// out: the body still arrives.
fn put(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
        headers.insert(name, value);
    }
}
