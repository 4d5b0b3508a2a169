//! The request that delivers a payload to a callback, in its protocol.

use chrono::{DateTime, Utc};
use http::header::{CONTENT_TYPE, LINK};
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use crate::net::{CallbackRequest, insert_callback_headers};
use feedgate_core::record::Seq;
use feedgate_core::subscription::{DueSubscription, Format, Subscription};
use feedgate_protocol::Protocol;
use feedgate_protocol::{rsscloud, signature, standard_webhooks};

use super::DeliverySettings;
use super::compose::{Payload, StatusInclusion};
use super::hub_url::hub_url;

const X_HUB_SIGNATURE: HeaderName = HeaderName::from_static("x-hub-signature");
const X_TOPIC: HeaderName = HeaderName::from_static("x-pubsubhubbub-topic");
const X_CALLBACK: HeaderName = HeaderName::from_static("x-pubsubhubbub-callback");
const X_RETRIED: HeaderName = HeaderName::from_static("x-superfeedr-retried");
const X_CREDITS: HeaderName = HeaderName::from_static("x-superfeedr-credits");
const X_EXPIRE: HeaderName = HeaderName::from_static("x-superfeedr-pubsubhubbub-expire");
const X_SEQ: HeaderName = HeaderName::from_static("x-feedgate-seq");
const X_REPLAY_OF: HeaderName = HeaderName::from_static("x-feedgate-replay-of");
const X_TEST: HeaderName = HeaderName::from_static("x-feedgate-test");
/// How many gateways the news of a notification has passed, this one included.
pub(crate) const X_HOPS: HeaderName = HeaderName::from_static("x-feedgate-hops");
pub(super) const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// What `X-Superfeedr-Credits` counts down from. Nothing is billed here: a billion notifications take
/// thirty years at one in a second.
const CREDITS: i64 = 1_000_000_000;

/// A payload on its way to a subscription.
pub(super) struct Message<'a> {
    subscription: &'a Subscription,
    payload: &'a Payload,
    cause: Cause,
    /// What `X-Superfeedr-Credits` shows; `None` for a subscription without an account.
    credits: Option<i64>,
    /// The number of gateways that the news has passed, this one included.
    hops: u32,
    /// The time of the attempt.
    at: DateTime<Utc>,
}

/// Why a message is sent.
#[derive(Clone, Copy, Debug)]
enum Cause {
    /// Something has changed.
    Change,
    /// The subscriber requested a replay.
    Replay {
        /// The number of the replay among all of the subscription.
        number: i64,
        /// The last number that was acknowledged before.
        upto: Seq,
    },
    /// The subscriber tests its callback.
    Test,
}

impl<'a> Message<'a> {
    /// Returns the message of a delivery that is attempted `at` this time.
    pub(super) fn of_delivery(
        due: &'a DueSubscription,
        payload: &'a Payload,
        at: DateTime<Utc>,
    ) -> Message<'a> {
        let is_replay = payload.first <= due.told_before && !payload.is_status_only();
        let cause = match is_replay {
            true => Cause::Replay { number: due.replays, upto: due.told_before },
            false => Cause::Change,
        };
        let credits = due.subscription.account.map(|_| CREDITS - due.acknowledged - 1);
        let hops = due.hops + 1;
        Message { subscription: &due.subscription, payload, cause, credits, hops, at }
    }

    /// Returns the message of a test that is made `at` this time.
    pub(super) fn of_test(
        subscription: &'a Subscription,
        payload: &'a Payload,
        at: DateTime<Utc>,
    ) -> Message<'a> {
        Message { subscription, payload, cause: Cause::Test, credits: None, hops: 1, at }
    }

    /// Returns the message of a notification that a client of a stream passes on `at` this time, after
    /// so many others.
    pub(super) fn of_streamed(
        subscription: &'a Subscription,
        payload: &'a Payload,
        acknowledged: i64,
        at: DateTime<Utc>,
    ) -> Message<'a> {
        let (cause, credits) = (Cause::Change, Some(CREDITS - acknowledged - 1));
        Message { subscription, payload, cause, credits, hops: 1, at }
    }

    /// Returns the request that delivers the message.
    pub(super) fn call(&self, settings: &DeliverySettings) -> CallbackRequest {
        let Subscription { protocol, callback, topic, .. } = self.subscription;
        let url = callback.url();
        let mut headers = rsscloud::headers(protocol, url);
        insert_callback_headers(&mut headers, &self.subscription.headers);
        insert_header(&mut headers, X_HOPS, &self.hops.to_string());
        let body = match protocol {
            Protocol::WebSub => {
                insert_header(&mut headers, CONTENT_TYPE, &self.payload.content_type);
                self.push_websub(&mut headers, settings);
                self.push_signatures(&mut headers, settings);
                self.payload.body.clone()
            }
            Protocol::HttpPost | Protocol::XmlRpc { .. } | Protocol::Soap { .. } => {
                rsscloud::changed(protocol, topic.subscribed_as()).into()
            }
        };
        CallbackRequest { method: Method::POST, url: url.clone(), headers, body }
    }

    /// Adds the headers that WebSub requires (`#content-distribution`) and Superfeedr's clients read
    /// (N-3 to N-8), and the id and the time of Standard Webhooks.
    fn push_websub(&self, headers: &mut HeaderMap, settings: &DeliverySettings) {
        let topic = self.subscription.topic.subscribed_as();
        let hub = hub_url(&settings.public_url, self.subscription.account.is_none());
        insert_header(headers, LINK, &format!("<{hub}>; rel=\"hub\", <{topic}>; rel=\"self\""));
        insert_header(headers, X_TOPIC, topic);
        insert_header(headers, X_CALLBACK, self.subscription.callback.as_str());
        let Payload { first, last, .. } = self.payload;
        let is_test = matches!(self.cause, Cause::Test);
        if !self.payload.is_status_only() && !is_test {
            insert_header(headers, X_SEQ, &format!("{first}-{last}"));
        }
        match self.cause {
            Cause::Change => {}
            Cause::Replay { upto, .. } => {
                insert_header(headers, X_REPLAY_OF, &format!("{first}-{}", upto.min(*last)));
            }
            Cause::Test => insert_header(headers, X_TEST, "1"),
        }
        if self.subscription.failures > 0 && !is_test {
            insert_header(headers, X_RETRIED, &self.subscription.failures.to_string());
        }
        if let Some(credits) = self.credits {
            insert_header(headers, X_CREDITS, &credits.to_string());
            let lease_until = self.subscription.lease_until.timestamp();
            insert_header(headers, X_EXPIRE, &lease_until.to_string());
        }
        insert_header(headers, WEBHOOK_ID, &self.id());
        insert_header(headers, WEBHOOK_TIMESTAMP, &self.at.timestamp().to_string());
    }

    /// Adds the signatures of WebSub (`#authenticated-content-distribution`) and of Standard
    /// Webhooks. While a secret is being replaced, only the latter has room for both.
    fn push_signatures(&self, headers: &mut HeaderMap, settings: &DeliverySettings) {
        let (signing, body) = (&self.subscription.signing, &self.payload.body);
        let Some(secret) = &signing.secret else { return };
        let method = signing.method.unwrap_or(settings.signature);
        insert_header(headers, X_HUB_SIGNATURE, &signature::sign(method, secret.expose(), body));
        let (id, at) = (self.id(), self.at.timestamp());
        let keys = signing.secrets(self.at).map(|secret| secret.standard_key());
        let signatures: Vec<_> =
            keys.map(|key| standard_webhooks::sign(&key, &id, at, body)).collect();
        insert_header(headers, WEBHOOK_SIGNATURE, &signatures.join(" "));
    }

    /// Returns the id of the message, which is the same at every attempt to deliver the same range
    /// (rule D10). It has no full stop, which separates the parts of what is signed. Numbers of
    /// bodies are marked, because a subscription may change from records to bodies.
    pub(super) fn id(&self) -> String {
        let id = self.subscription.id;
        let of_subscription = format!("{}-{}", id.resource, id.number);
        let Payload { first, last, status, .. } = self.payload;
        let what = match (status, self.subscription.format) {
            (StatusInclusion::Only(version), _) => format!("status-{version}"),
            (_, Format::Raw) => format!("body-{first}-{last}"),
            (_, Format::Atom | Format::Json | Format::Fitting) => format!("{first}-{last}"),
        };
        match self.cause {
            Cause::Change => format!("{of_subscription}-{what}"),
            Cause::Replay { number, .. } => format!("{of_subscription}-{what}-replay-{number}"),
            Cause::Test => format!("{of_subscription}-test-{}", self.at.timestamp_micros()),
        }
    }
}

/// Sets a header. A value with bytes that a header cannot contain is left out: the body still
/// arrives.
fn insert_header(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
        headers.insert(name, value);
    }
}
