//! Composing again what an attempt sent. Payloads are not stored: entries are in the log, so the
//! same numbers give the same entries, in a document whose title and status may have changed since.

use bytes::Bytes;

use super::{BodyKey, Composed, Composer};
use feedgate_core::attempt::{DeliveryAttempt, PayloadContent};
use feedgate_core::record::Seq;
use feedgate_core::store::StoreError;
use feedgate_core::subscription::{Format, Subscription};
use feedgate_protocol::rsscloud;

/// The body of an attempt, composed again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ComposedAgain {
    /// The value of `Content-Type`.
    pub(crate) content_type: String,
    /// The body.
    pub(crate) body: Bytes,
}

impl Composer {
    /// Returns what an attempt to deliver to `subscription` sent. `None` if it is no longer stored:
    /// of entries that the archive dropped, of a body that has changed since, and of a status; and
    /// if the subscription now receives other entries or another format.
    pub(crate) async fn payload_of(
        &self,
        subscription: &Subscription,
        attempt: &DeliveryAttempt,
    ) -> Result<Option<ComposedAgain>, StoreError> {
        let request = &attempt.request;
        if request.content == PayloadContent::Ping {
            let topic = subscription.topic.subscribed_as();
            return Ok(Some(ComposedAgain {
                content_type: request.content_type.clone(),
                body: rsscloud::changed(&subscription.protocol, topic).into(),
            }));
        }
        if request.content == PayloadContent::Status
            || (request.content == PayloadContent::Body
                && !self.has_body(subscription, attempt).await?)
        {
            return Ok(None);
        }
        let after = Seq(request.first.0 - 1);
        let key = BodyKey::of_entries(subscription, after, request.last);
        Ok(match self.render(&key).await? {
            Composed::Payload(payload)
                if payload.entries == request.entries
                    && payload.content_type == request.content_type =>
            {
                Some(ComposedAgain { content_type: payload.content_type, body: payload.body })
            }
            Composed::Payload(_) | Composed::NothingOwed { .. } | Composed::NothingStored => None,
        })
    }

    /// Returns whether the body that an attempt sent is still the newest one.
    async fn has_body(
        &self,
        subscription: &Subscription,
        attempt: &DeliveryAttempt,
    ) -> Result<bool, StoreError> {
        let resource = subscription.id.resource;
        let newest = match subscription.format {
            Format::Raw => self.store.body(resource).await?.map(|(version, _)| Seq(version)),
            Format::Atom | Format::Json | Format::Fitting => {
                self.store.get(resource).await?.map(|resource| resource.head)
            }
        };
        Ok(newest == Some(attempt.request.last))
    }
}
