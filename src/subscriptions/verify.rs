//! Asking a callback whether it wants what somebody asked for in its name.
//!
//! No redirect is followed: whoever answers must be who was named. What a callback
//! answers is read up to a limit and never kept.

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use url::Url;

use crate::jobs::runner::nonce;
use crate::net::{CallbackRequest, CallbackResponse, FetchError, HttpClient};
use feedgate_core::event::AnswerExcerpt;
use feedgate_core::intent::{Intent, IntentMode};
use feedgate_protocol::Protocol;
use feedgate_protocol::{rsscloud, soap, xmlrpc};

/// Why a callback is taken not to have agreed.
#[derive(Debug, thiserror::Error)]
pub enum NotVerified {
    /// No request was sent: too many verifications are in progress at its host, or failed there.
    #[error("too many verifications are in progress at its host, or failed there")]
    RateLimited,
    /// The callback could not be reached.
    #[error("it could not be reached: {0}")]
    Unreachable(#[source] FetchError),
    /// The status of the response is not 2xx.
    #[error("it answered {0} instead of 2xx")]
    Status(StatusCode, AnswerExcerpt),
    /// The body of the response is not the challenge.
    #[error("its answer is not exactly the challenge")]
    Challenge(AnswerExcerpt),
    /// The procedure that was called reported a fault.
    #[error("it answered with a fault: {0}")]
    Fault(String),
    /// The response is not valid in the protocol of the registration.
    #[error("its answer is no valid {0} answer")]
    Protocol(&'static str),
}

impl NotVerified {
    /// A word for logs and metrics, listed in `docs/errors.md`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::RateLimited => "rate_limited",
            Self::Unreachable(err) => err.code(),
            Self::Status(..) => "callback_status",
            Self::Challenge(_) => "challenge_mismatch",
            Self::Fault(_) => "callback_fault",
            Self::Protocol(_) => "callback_protocol",
        }
    }

    /// The beginning of a response that does not verify the intent.
    pub(super) fn excerpt(&self) -> Option<&AnswerExcerpt> {
        match self {
            Self::Status(_, excerpt) | Self::Challenge(excerpt) => Some(excerpt),
            Self::RateLimited | Self::Unreachable(_) | Self::Fault(_) | Self::Protocol(_) => None,
        }
    }

    /// Whether asking again later might help. A callback that says no is believed.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable(FetchError::Forbidden { .. }) => false,
            Self::RateLimited | Self::Unreachable(_) => true,
            Self::Status(status, _) => {
                status.is_server_error() || *status == StatusCode::TOO_MANY_REQUESTS
            }
            Self::Challenge(_) | Self::Fault(_) | Self::Protocol(_) => false,
        }
    }
}

/// WebSub `#hub-verifies-intent`: the callback must echo a challenge.
///
/// "The subscriber MUST confirm … by responding with an HTTP success (2xx) code with a
/// response body equal to the hub.challenge parameter"; one line end behind it is let
/// pass (rule D13).
pub(super) async fn intent(fetch: &HttpClient, intent: &Intent) -> Result<(), NotVerified> {
    let challenge = nonce();
    let request = &intent.request;
    let lease = request.lease.as_secs().to_string();
    let mut query = vec![("hub.mode", intent.mode.as_str()), ("hub.topic", request.topic.as_str())];
    if request.account.is_some() {
        query.push(("hub.callback", request.callback.as_str())); // as Superfeedr does (row S-15)
    }
    query.push(("hub.challenge", &challenge));
    if intent.mode == IntentMode::Subscribe {
        query.push(("hub.lease_seconds", &lease));
    }
    if let Some(token) = &intent.verify_token {
        query.push(("hub.verify_token", token));
    }
    let reply = get(fetch, request.callback.url(), &query).await?;
    let body = reply.body.strip_suffix(b"\n").unwrap_or(&reply.body);
    let body = body.strip_suffix(b"\r").unwrap_or(body);
    match body == challenge.as_bytes() {
        true => Ok(()),
        false => Err(NotVerified::Challenge(reply.excerpt())),
    }
}

/// WebSub `#subscription-validation`: tells the callback that nothing will come of it.
/// Whether it listens is its own affair.
pub(super) async fn denied(fetch: &HttpClient, intent: &Intent, reason: &str) {
    let topic = intent.request.topic.as_str();
    let query = [("hub.mode", "denied"), ("hub.topic", topic), ("hub.reason", reason)];
    if let Err(err) = get(fetch, intent.request.callback.url(), &query).await {
        tracing::debug!(code = err.code(), "a denial did not get through");
    }
}

/// rssCloud with `domain`: "the response body contains the challenge" (seed 000). An
/// answer that is the challenge, or has it as a word of its own, agrees; one that
/// merely repeats the query does not.
pub(super) async fn challenged(
    fetch: &HttpClient,
    callback: Url,
    topic: &str,
) -> Result<(), NotVerified> {
    let challenge = nonce();
    let query = [("url", topic), ("challenge", &challenge)];
    let reply = get(fetch, callback, &query).await?;
    let body = String::from_utf8_lossy(&reply.body);
    let is_repeated_query = body.contains(&format!("challenge={challenge}"));
    match body.contains(&challenge) && !is_repeated_query {
        true => Ok(()),
        false => Err(NotVerified::Challenge(reply.excerpt())),
    }
}

/// An rssCloud handler agrees to be told no more by answering with the challenge, or
/// with 410, as handlers do that have gone.
pub(super) async fn cancelled(
    fetch: &HttpClient,
    callback: Url,
    topic: &str,
) -> Result<(), NotVerified> {
    let challenge = nonce();
    let query = [("url", topic), ("cancel", &challenge)];
    let reply = match get(fetch, callback, &query).await {
        Err(NotVerified::Status(StatusCode::GONE, _)) => return Ok(()),
        reply => reply?,
    };
    let body = String::from_utf8_lossy(&reply.body);
    match body.trim() == challenge {
        true => Ok(()),
        false => Err(NotVerified::Challenge(reply.excerpt())),
    }
}

/// rssCloud without a challenge: "My server does a test call of the handler before
/// adding the subscription" (seed 000). With `strict`, the handler must answer in its
/// protocol: a web server that answers anything with 200 does not agree to be called.
pub(super) async fn test_call(
    fetch: &HttpClient,
    protocol: &Protocol,
    callback: Url,
    topic: &str,
    strict: bool,
) -> Result<(), NotVerified> {
    let reply = post(fetch, protocol, callback, topic).await?;
    let (fault, name) = match protocol {
        Protocol::HttpPost | Protocol::WebSub => return Ok(()),
        Protocol::XmlRpc { .. } => {
            let read = xmlrpc::read_response(&reply.body).ok();
            (read.map(|answer| answer.err().map(|fault| fault.message)), "XML-RPC")
        }
        Protocol::Soap { .. } => (soap::read_response(&reply.body).ok().map(Result::err), "SOAP"),
    };
    match fault {
        Some(Some(fault)) => Err(NotVerified::Fault(fault)),
        None if strict => Err(NotVerified::Protocol(name)),
        Some(None) | None => Ok(()),
    }
}

async fn post(
    fetch: &HttpClient,
    protocol: &Protocol,
    callback: Url,
    topic: &str,
) -> Result<CallbackResponse, NotVerified> {
    let headers = rsscloud::headers(protocol, &callback);
    let body = rsscloud::changed(protocol, topic);
    let call = CallbackRequest { method: Method::POST, url: callback, headers, body: body.into() };
    successful(fetch.call(call).await)
}

/// GET with these parameters behind those that the callback has of its own (WebSub
/// `#subscriber-sends-subscription-request`: "appended … using the & character").
async fn get(
    fetch: &HttpClient,
    mut callback: Url,
    query: &[(&str, &str)],
) -> Result<CallbackResponse, NotVerified> {
    callback.query_pairs_mut().extend_pairs(query);
    callback.set_fragment(None);
    let headers = HeaderMap::new();
    let call = CallbackRequest { method: Method::GET, url: callback, headers, body: Bytes::new() };
    successful(fetch.call(call).await)
}

fn successful(
    answer: Result<CallbackResponse, FetchError>,
) -> Result<CallbackResponse, NotVerified> {
    let reply = answer.map_err(NotVerified::Unreachable)?;
    match reply.status.is_success() {
        true => Ok(reply),
        false => Err(NotVerified::Status(reply.status, reply.excerpt())),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_callback_that_says_no_is_believed_and_a_silent_one_asked_again() {
        let status = |code: u16| {
            NotVerified::Status(StatusCode::from_u16(code).unwrap(), AnswerExcerpt::default())
        };
        let timed_out = FetchError::TimedOut(Duration::from_secs(10));
        #[rustfmt::skip]
        let cases = [
            (status(404),                                  false),
            (status(410),                                  false),
            (status(302),                                  false),
            (status(429),                                  true),
            (status(503),                                  true),
            (NotVerified::Unreachable(timed_out),          true),
            (NotVerified::Challenge(AnswerExcerpt::default()),   false),
            (NotVerified::Fault("no".to_owned()),          false),
        ];
        for (why, want) in cases {
            assert_eq!(why.is_transient(), want, "{why}");
        }
    }

    #[test]
    fn challenges_are_random_and_long() {
        let (one, other) = (nonce(), nonce());
        assert_eq!(one.len(), 32);
        assert_ne!(one, other);
    }
}
