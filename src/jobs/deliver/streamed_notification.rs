//! A notification that a client has read from the stream of an account, as the request that the gateway
//! would send to a callback: the same body, headers and signatures, made by the same code.

use bytes::Bytes;
use chrono::{DateTime, Utc};

use super::DeliverySettings;
use super::compose::{JSON, Payload, StatusInclusion};
use super::message::Message;
use crate::net::CallbackRequest;
use feedgate_core::account::AccountId;
use feedgate_core::document_format::DocumentFormat;
use feedgate_core::record::Seq;
use feedgate_core::resource::ResourceId;
use feedgate_core::signing::{Secret, SigningRequest};
use feedgate_core::subscription::{Format, Lease, SubscriptionId, SubscriptionRequest};
use feedgate_core::topic::{Callback, Topic};
use feedgate_protocol::Protocol;

/// A notification that was read from a stream.
#[derive(Clone, Debug)]
pub(crate) struct StreamedNotification {
    /// The topic.
    pub(crate) topic: Topic,
    /// The number of the resource.
    pub(crate) resource: ResourceId,
    /// The first record.
    pub(crate) first: Seq,
    /// The last record.
    pub(crate) last: Seq,
    /// The format of the body.
    pub(crate) format: Format,
    /// The body.
    pub(crate) body: Bytes,
}

/// A callback that notifications of a stream are passed on to.
#[derive(Clone, Debug)]
pub(crate) struct StreamCallback {
    /// The URL.
    pub(crate) callback: Callback,
    /// The secret that signs.
    pub(crate) secret: Secret,
    /// How many notifications it has acknowledged.
    pub(crate) acknowledged: i64,
}

impl StreamedNotification {
    /// Returns the request for the attempt after `failures` others, `at` this time, and its
    /// `webhook-id`, which is the same at every attempt.
    pub(crate) fn request(
        &self,
        to: &StreamCallback,
        failures: u32,
        settings: &DeliverySettings,
        at: DateTime<Utc>,
    ) -> (CallbackRequest, String) {
        let requested = SubscriptionRequest {
            account: Some(AccountId::NOBODY),
            format: self.format,
            signing: SigningRequest {
                secret: Some(to.secret.clone()),
                ..SigningRequest::default()
            },
            lease: Lease::ACCOUNT,
            ..SubscriptionRequest::new(self.topic.clone(), to.callback.clone(), Protocol::WebSub)
        };
        let id = SubscriptionId { resource: self.resource, number: 0 };
        let mut subscription = requested.begin(id, Seq(self.first.0 - 1), 0, at);
        subscription.failures = failures;
        let payload = Payload {
            content_type: if self.format == Format::Json {
                JSON
            } else {
                DocumentFormat::Atom.media_type()
            }
            .to_owned(),
            body: self.body.clone(),
            first: self.first,
            last: self.last,
            entries: 0,
            waiting_since: None,
            status: StatusInclusion::None,
            gap: None,
        };
        let message = Message::of_streamed(&subscription, &payload, to.acknowledged, at);
        (message.call(settings), message.id())
    }
}
