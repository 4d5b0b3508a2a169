//! The decision of a publisher about a subscription to its topic (row P-5; WebSub
//! `#subscription-validation`).
//!
//! A publisher asks for it with `Link: <URL>; rel="validate"` in the responses of the topic. The
//! parameters of the subscriber's request are sent to that URL as a form: 204 allows the
//! subscription, 401 denies it with a reason for the subscriber, and anything else refuses it. What
//! the topic asks for is known once its first fetch has ended; a subscription that is stored before
//! is validated afterwards, and ends if it is denied.

use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use super::SubscriptionService;
use super::events;
use super::verify;
use crate::jobs::runner;
use crate::net::{CallbackRequest, FetchError, is_inner};
use crate::verification_limits::VerificationPermit;
use feedgate_core::intent::{Intent, IntentMode};
use feedgate_core::resource::ResourceKind;
use feedgate_core::store::StoreError;
use feedgate_core::subscription::SubscriptionRequest;
use feedgate_core::topic::Callback;
use feedgate_protocol::Protocol;

/// The maximum length in characters of the reason that is passed on to the subscriber.
const MAX_REASON_CHARS: usize = 300;

/// When a first fetch that takes longer than its subscriber waits has usually ended.
const FETCHED_AFTER: TimeDelta = TimeDelta::seconds(10);

/// The reason why a publisher has not allowed a subscription.
#[derive(Debug, thiserror::Error)]
pub enum NotValidated {
    /// The first fetch of the topic has not ended, so that the gateway does not know whether the
    /// publisher validates subscriptions.
    #[error("the topic has not been fetched yet")]
    NotFetched,
    /// The publisher denied the subscription; holds its reason, which may be empty.
    #[error("the publisher denied the subscription{}", reason_suffix(.0))]
    Denied(String),
    /// The publisher responded with neither 204 nor 401. Only accounts are told with what, because
    /// strangers would learn it of any server that a topic can name.
    #[error("the publisher did not allow the subscription{}", status_suffix(*.status, *.is_told))]
    Status {
        /// The status code.
        status: StatusCode,
        /// Whether the subscriber is told the status code.
        is_told: bool,
    },
    /// The publisher did not respond.
    #[error("the publisher did not allow the subscription: it could not be reached")]
    Unreachable(#[source] FetchError),
    /// The publisher's URL is at another origin than its topic, and is not requested.
    #[error(
        "the publisher did not allow the subscription: its URL for this is at another host or port \
         than the topic"
    )]
    ForeignOrigin,
    /// The publisher's URL cannot be requested.
    #[error("the publisher did not allow the subscription: its URL for this cannot be used")]
    BadUrl,
    /// The host of the publisher has too many requests of this kind.
    #[error("too many requests to the publisher are in progress or have failed")]
    RateLimited {
        /// After how long another attempt may succeed.
        retry_after: Duration,
    },
}

fn status_suffix(status: StatusCode, is_told: bool) -> String {
    if is_told { format!(": it responded with {status} instead of 204") } else { String::new() }
}

fn reason_suffix(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(" ({reason})") }
}

impl NotValidated {
    /// Returns a stable code for logs, listed in `docs/errors.md`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFetched => "topic_not_fetched",
            Self::Denied(_) => "denied_by_publisher",
            Self::Status { .. } | Self::Unreachable(_) | Self::ForeignOrigin | Self::BadUrl => {
                "not_validated"
            }
            Self::RateLimited { .. } => "rate_limited",
        }
    }

    /// Returns the reason for the subscriber.
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Denied(reason) if !reason.is_empty() => reason.clone(),
            other => other.to_string(),
        }
    }

    /// Returns whether a later attempt might succeed. A decision of the publisher is final.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::NotFetched | Self::Unreachable(_) | Self::RateLimited { .. } => true,
            Self::Status { status, .. } => {
                status.is_server_error() || *status == StatusCode::TOO_MANY_REQUESTS
            }
            Self::Denied(_) | Self::ForeignOrigin | Self::BadUrl => false,
        }
    }
}

/// Returns why a subscription is refused now. One to a topic that was not fetched in time is stored,
/// and validated later.
pub(super) fn refusal(validated: &Result<(), NotValidated>) -> Option<&NotValidated> {
    validated.as_ref().err().filter(|why| !matches!(why, NotValidated::NotFetched))
}

impl SubscriptionService {
    /// Obtains the publisher's decision about an intent, if the topic asks for one.
    pub(super) async fn validate(
        &self,
        intent: &Intent,
    ) -> Result<Result<(), NotValidated>, StoreError> {
        if intent.mode != IntentMode::Subscribe || intent.request.protocol != Protocol::WebSub {
            return Ok(Ok(()));
        }
        if self.track_of(&intent.request.topic).is_some() {
            return Ok(Ok(())); // its publisher is this gateway
        }
        let Some(resource) = self.store.find(intent.request.topic.as_str()).await? else {
            return Ok(Err(NotValidated::NotFetched));
        };
        if resource.kind == ResourceKind::Collection {
            return Ok(Ok(())); // so is that of a collection
        }
        match resource.polling.validator.as_str() {
            "" if resource.status.last_fetch.is_none() => Ok(Err(NotValidated::NotFetched)),
            "" => Ok(Ok(())),
            validator => {
                let decision = self.request_decision(validator, intent).await;
                if let Err(why) = &decision {
                    let event = events::not_validated(intent, why, runner::now());
                    self.event_log.record(event);
                }
                Ok(decision)
            }
        }
    }

    /// Sends the parameters of a subscription to the publisher: to the origin of its topic only,
    /// because a publisher could name any host, and the parameters are whatever a subscriber chose.
    /// The limits are those of callbacks.
    async fn request_decision(&self, validator: &str, intent: &Intent) -> Result<(), NotValidated> {
        let SubscriptionRequest { account, topic, callback, registrant, .. } = &intent.request;
        let url = Callback::parse(validator).map_err(|_| NotValidated::BadUrl)?;
        if url.url().origin() != topic.fetch_url().origin() {
            return Err(NotValidated::ForeignOrigin);
        }
        // A private publisher is asked for those who may name a callback in a private network.
        let is_known = account.is_some() || is_inner(callback.url()) && !callback.is_null_device();
        let fetch = match is_known {
            true => self.fetch.clone(),
            false => self.fetch.for_anonymous(*registrant).public_callbacks_only(),
        };
        let permit = self.wait_for_permit(&url, intent.request.requester()).await;
        let permit = permit.map_err(|retry_after| NotValidated::RateLimited { retry_after })?;
        let mut headers = HeaderMap::new();
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(header::CONTENT_TYPE, form);
        let body = Bytes::from(intent.parameters.clone());
        let call = CallbackRequest { method: Method::POST, url: url.url().clone(), headers, body };
        let reply = fetch.call_signed(call).await;
        // A denial is an agreement to be asked.
        let is_answered = matches!(&reply, Ok(reply) if matches!(reply.status.as_u16(), 204 | 401));
        match &reply {
            Err(FetchError::GatewayBusy(_)) => permit.ends_unsent(),
            _ => permit.ends(is_answered),
        }
        let reply = reply.map_err(NotValidated::Unreachable)?;
        match reply.status {
            StatusCode::NO_CONTENT => Ok(()),
            StatusCode::UNAUTHORIZED => Err(NotValidated::Denied(reason(&reply.body))),
            status => Err(NotValidated::Status { status, is_told: account.is_some() }),
        }
    }

    /// Stores an intent for the decision of the publisher about a subscription that was stored
    /// before the topic was fetched.
    pub(super) async fn validate_later(
        &self,
        intent: &Intent,
        validated: &Result<(), NotValidated>,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        if !matches!(validated, Err(NotValidated::NotFetched)) {
            return Ok(());
        }
        let intent = Intent { is_verified: true, backfill: false, ..intent.clone() };
        self.store.enqueue_intent(&intent, now + FETCHED_AFTER).await.map(drop)
    }

    /// Notifies the subscriber that its request is denied, which nobody waits for. The subscriber has
    /// not confirmed anything, so that this counts as a failed verification of its host, charged to who
    /// requested the subscription.
    pub(super) fn send_denial(
        &self,
        intent: &Intent,
        why: &NotValidated,
        permit: VerificationPermit,
    ) {
        if intent.request.callback.is_null_device() {
            return;
        }
        let fetch = self.callback_client(&intent.request, &intent.request.callback);
        let (intent, reason) = (intent.clone(), why.reason());
        tokio::spawn(async move {
            verify::denied(&fetch, &intent, &reason).await;
            drop(permit);
        });
    }

    /// Notifies the callback of an intent that its request is denied.
    pub(super) async fn deny(&self, intent: &Intent, reason: &str) {
        let fetch = self.callback_client(&intent.request, &intent.request.callback);
        verify::denied(&fetch, intent, reason).await;
    }

    /// Ends a subscription that was stored before the publisher denied it.
    pub(super) async fn end_denied(&self, intent: &Intent) -> Result<bool, StoreError> {
        let request = &intent.request;
        let protocol = Some(request.protocol.as_str());
        let (topic, callback) = (&request.topic, &request.callback);
        self.store.unsubscribe(request.account, topic, callback, protocol).await
    }
}

/// Returns the publisher's reason as one line of text.
fn reason(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().filter(|c| !c.is_control()).take(MAX_REASON_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_short_line() {
        assert_eq!(reason(b" Only for\r\n\tmembers.\n"), "Only for members.");
        assert_eq!(reason(b"\xff\x00"), "\u{fffd}");
        assert_eq!(reason("ä".repeat(1_000).as_bytes()).chars().count(), MAX_REASON_CHARS);
        let denied = |reason: &str| NotValidated::Denied(reason.to_owned()).to_string();
        assert_eq!(denied(""), "the publisher denied the subscription");
        assert_eq!(denied("Pay first."), "the publisher denied the subscription (Pay first.)");
    }
}
