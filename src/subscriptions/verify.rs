//! Verification requests to callbacks.
//!
//! Redirects are not followed here, because the response must come from the named callback
//! (`handler_verification` follows those of rssCloud handlers). Responses are read up to a limit and
//! never stored.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use url::Url;

use crate::jobs::runner::nonce;
use crate::net::{
    CallbackRequest, CallbackResponse, FetchError, HttpClient, insert_callback_headers,
};
use feedgate_core::callback_headers::CallbackHeaders;
use feedgate_core::event::AnswerExcerpt;
use feedgate_core::intent::{Intent, IntentMode};
use feedgate_core::schedule::FailureClass;
use feedgate_protocol::Protocol;
use feedgate_protocol::{rsscloud, soap, xmlrpc};

/// The reason why a callback is not verified.
#[derive(Debug, thiserror::Error)]
pub enum NotVerified {
    /// The callback was not contacted, because its host has too many verifications or failures.
    #[error("too many verifications on the host of the callback are in progress or have failed")]
    RateLimited {
        /// After how long another attempt may succeed.
        retry_after: Duration,
    },
    /// The callback did not respond.
    #[error("the callback could not be reached: {0}")]
    Unreachable(#[source] FetchError),
    /// The host does not exist, or its addresses are not public. Both are one reason, because their
    /// difference would let anybody learn which names exist in the network of this gateway (rule S13).
    /// Only the operator may see the source.
    #[error("the host of the callback does not exist or has no public address")]
    NoPublicAddress(#[source] FetchError),
    /// The response is not a success.
    #[error("the callback responded with {0} instead of 2xx")]
    Status(StatusCode, AnswerExcerpt),
    /// The response redirects, which is followed for rssCloud handlers only.
    #[error("the callback responded with {status} instead of 2xx")]
    Redirect {
        /// The status code.
        status: StatusCode,
        /// The address that it names, without the parameters of the verification.
        target: Box<Url>,
        /// The beginning of the response.
        excerpt: AnswerExcerpt,
    },
    /// A handler redirects too often, or to an address that cannot be a callback.
    #[error("the callback redirects too often, or to an address that cannot be used")]
    BadRedirect,
    /// The response does not contain the challenge.
    #[error("the response of the callback does not match the challenge")]
    Challenge(AnswerExcerpt),
    /// The called procedure returned a fault.
    #[error("the callback returned a fault: {0}")]
    Fault(String),
    /// The callback does not speak the protocol of its registration.
    #[error("the response of the callback is not valid {0}")]
    Protocol(&'static str),
}

impl NotVerified {
    /// Returns a stable code for logs and metrics, listed in `docs/errors.md`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::RateLimited { .. } => "rate_limited",
            Self::Unreachable(err) => err.code(),
            Self::NoPublicAddress(_) => "unreachable",
            Self::Status(..) | Self::Redirect { .. } => "callback_status",
            Self::BadRedirect => "bad_redirect",
            Self::Challenge(_) => "challenge_mismatch",
            Self::Fault(_) => "callback_fault",
            Self::Protocol(_) => "callback_protocol",
        }
    }

    /// Returns the beginning of the unexpected response.
    pub(super) fn excerpt(&self) -> Option<&AnswerExcerpt> {
        match self {
            Self::Status(_, excerpt)
            | Self::Redirect { excerpt, .. }
            | Self::Challenge(excerpt) => Some(excerpt),
            Self::RateLimited { .. }
            | Self::Unreachable(_)
            | Self::NoPublicAddress(_)
            | Self::BadRedirect
            | Self::Fault(_)
            | Self::Protocol(_) => None,
        }
    }

    /// Returns what only the operator may learn of the reason; empty if there is nothing.
    pub(super) fn private_detail(&self) -> String {
        match self {
            Self::NoPublicAddress(err) => err.to_string(),
            _ => String::new(),
        }
    }

    /// Returns after how long a verification may be repeated that was not sent, because this gateway was
    /// busy: that says nothing about the callback.
    pub(super) fn unsent_retry_in(&self) -> Option<Duration> {
        match self {
            Self::Unreachable(FetchError::GatewayBusy(busy)) => Some(busy.retry_in),
            _ => None,
        }
    }

    /// Returns whether the host of the callback may have received a request.
    pub(super) fn has_contacted(&self) -> bool {
        match self {
            _ if self.unsent_retry_in().is_some() => false,
            Self::RateLimited { .. } | Self::NoPublicAddress(_) => false,
            Self::Unreachable(err) => {
                let unsent = [FailureClass::NoName, FailureClass::Lookup, FailureClass::Forbidden];
                !unsent.contains(&err.class())
            }
            _ => true,
        }
    }

    /// Returns whether a later attempt might succeed. A refusal of the callback is final.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::RateLimited { .. } | Self::Unreachable(_) | Self::NoPublicAddress(_) => true,
            Self::Status(status, _) => {
                status.is_server_error() || *status == StatusCode::TOO_MANY_REQUESTS
            }
            Self::Redirect { .. }
            | Self::BadRedirect
            | Self::Challenge(_)
            | Self::Fault(_)
            | Self::Protocol(_) => false,
        }
    }
}

/// Verifies an intent by a challenge that the callback must echo (WebSub `#hub-verifies-intent`).
///
/// "The subscriber MUST confirm … by responding with an HTTP success (2xx) code with a response
/// body equal to the hub.challenge parameter"; one trailing line end is tolerated (rule D13). `headers` are
/// the credentials for the callback.
pub(super) async fn intent(
    fetch: &HttpClient,
    intent: &Intent,
    headers: &CallbackHeaders,
) -> Result<(), NotVerified> {
    let challenge = nonce();
    let request = &intent.request;
    let lease = request.lease.as_secs().to_string();
    let mut query =
        vec![("hub.mode", intent.mode.as_str()), ("hub.topic", request.topic.subscribed_as())];
    if request.account.is_some() {
        query.push(("hub.callback", request.callback.as_str())); // sent by Superfeedr as well (row S-15)
    }
    query.push(("hub.challenge", &challenge));
    if intent.mode == IntentMode::Subscribe {
        query.push(("hub.lease_seconds", &lease));
    }
    if let Some(token) = &intent.verify_token {
        query.push(("hub.verify_token", token.as_str()));
    }
    let reply = get(fetch, request.callback.url().clone(), &query, Some(headers)).await?;
    let body = reply.body.strip_suffix(b"\n").unwrap_or(&reply.body);
    let body = body.strip_suffix(b"\r").unwrap_or(body);
    match body == challenge.as_bytes() {
        true => Ok(()),
        false => Err(NotVerified::Challenge(excerpt(&reply, Some(headers)))),
    }
}

/// Notifies the callback that its request is denied (WebSub `#subscription-validation`). The
/// response is ignored.
pub(super) async fn denied(fetch: &HttpClient, intent: &Intent, reason: &str) {
    let topic = intent.request.topic.subscribed_as();
    let query = [("hub.mode", "denied"), ("hub.topic", topic), ("hub.reason", reason)];
    let headers = intent.request.headers.as_ref();
    if let Err(err) = get(fetch, intent.request.callback.url().clone(), &query, headers).await {
        tracing::debug!(code = err.code(), "sending a denial to a callback failed");
    }
}

/// Verifies an rssCloud handler with `domain`: "the response body contains the challenge" (seed
/// 000). The response must be the challenge, or contain it as a separate word; one that merely
/// repeats the query is rejected.
pub(super) async fn challenged(
    fetch: &HttpClient,
    callback: Url,
    topic: &str,
) -> Result<(), NotVerified> {
    let challenge = nonce();
    let query = [("url", topic), ("challenge", &challenge)];
    let reply = get(fetch, callback, &query, None).await.map_err(|why| match why {
        NotVerified::Redirect { status, mut target, excerpt } => {
            remove_pairs(&mut target, &query);
            NotVerified::Redirect { status, target, excerpt }
        }
        other => other,
    })?;
    let body = String::from_utf8_lossy(&reply.body);
    let is_repeated_query = body.contains(&format!("challenge={challenge}"));
    match body.contains(&challenge) && !is_repeated_query {
        true => Ok(()),
        false => Err(NotVerified::Challenge(reply.excerpt())),
    }
}

/// Verifies the cancellation of an rssCloud subscription: the handler responds with the challenge,
/// or with 410, as handlers do that no longer exist.
pub(super) async fn cancelled(
    fetch: &HttpClient,
    callback: Url,
    topic: &str,
) -> Result<(), NotVerified> {
    let challenge = nonce();
    let query = [("url", topic), ("cancel", &challenge)];
    let reply = match get(fetch, callback, &query, None).await {
        Err(NotVerified::Status(StatusCode::GONE, _)) => return Ok(()),
        reply => reply?,
    };
    let body = String::from_utf8_lossy(&reply.body);
    match body.trim() == challenge {
        true => Ok(()),
        false => Err(NotVerified::Challenge(reply.excerpt())),
    }
}

/// Verifies an rssCloud handler without a challenge: "My server does a test call of the handler
/// before adding the subscription" (seed 000). If `strict`, the response must be in the protocol of
/// the handler: a web server that responds to every request with 200 has not agreed.
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
    let from = callback.clone();
    let call = CallbackRequest { method: Method::POST, url: callback, headers, body: body.into() };
    successful(fetch.call(call).await, &from, None)
}

/// Sends a GET with these parameters after those of the callback's own query (WebSub
/// `#subscriber-sends-subscription-request`: "appended … using the & character"), and with the credentials of
/// the callback. Redirects are not followed, so that no other server receives them.
async fn get(
    fetch: &HttpClient,
    mut callback: Url,
    query: &[(&str, &str)],
    chosen: Option<&CallbackHeaders>,
) -> Result<CallbackResponse, NotVerified> {
    callback.query_pairs_mut().extend_pairs(query);
    callback.set_fragment(None);
    let (mut headers, from) = (HeaderMap::new(), callback.clone());
    if let Some(chosen) = chosen {
        insert_callback_headers(&mut headers, chosen);
    }
    let call = CallbackRequest { method: Method::GET, url: callback, headers, body: Bytes::new() };
    successful(fetch.call(call).await, &from, chosen)
}

/// Returns the beginning of a response; nothing if the request had credentials, which the response may repeat.
fn excerpt(reply: &CallbackResponse, chosen: Option<&CallbackHeaders>) -> AnswerExcerpt {
    match chosen.is_some_and(|chosen| !chosen.is_empty()) {
        true => AnswerExcerpt::new(b"", reply.is_public),
        false => reply.excerpt(),
    }
}

/// Removes parameters that were added to the URL that redirected, if the target repeats them.
fn remove_pairs(url: &mut Url, added: &[(&str, &str)]) {
    let is_added =
        |name: &str, value: &str| added.iter().any(|(key, held)| *key == name && *held == value);
    let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    let own = pairs.iter().filter(|(name, value)| !is_added(name, value));
    let own: Vec<_> = own.collect();
    if own.len() == pairs.len() {
        return;
    }
    url.set_query(None);
    if !own.is_empty() {
        url.query_pairs_mut().extend_pairs(own);
    }
}

/// Returns the reason why a callback could not be reached.
fn unreachable(err: FetchError) -> NotVerified {
    match err {
        FetchError::Forbidden { .. }
        | FetchError::Unreachable { class: FailureClass::NoName, .. } => {
            NotVerified::NoPublicAddress(err)
        }
        err => NotVerified::Unreachable(err),
    }
}

fn successful(
    answer: Result<CallbackResponse, FetchError>,
    from: &Url,
    chosen: Option<&CallbackHeaders>,
) -> Result<CallbackResponse, NotVerified> {
    let reply = answer.map_err(unreachable)?;
    let (status, excerpt) = (reply.status, excerpt(&reply, chosen));
    match reply.redirect_target(from) {
        _ if status.is_success() => Ok(reply),
        Some(target) => Err(NotVerified::Redirect { status, target: Box::new(target), excerpt }),
        None => Err(NotVerified::Status(status, excerpt)),
    }
}

#[cfg(test)]
mod tests {
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
    fn h13_a_verification_that_was_not_sent_says_nothing_about_the_callback() {
        let busy = FetchError::GatewayBusy(crate::document_budget::GatewayBusy::for_now());
        let unsent = unreachable(busy);
        assert!(unsent.is_transient() && !unsent.has_contacted());
        assert!(unsent.unsent_retry_in().is_some());
        let refusal = crate::subscriptions::SubscriptionRefusal::from(unsent);
        assert_eq!(refusal.code(), "gateway_busy");
        let timed_out = unreachable(FetchError::TimedOut(Duration::from_secs(10)));
        assert!(timed_out.has_contacted() && timed_out.unsent_retry_in().is_none());
    }

    #[test]
    fn f24_the_target_of_a_redirect_loses_what_was_added_for_the_verification() {
        let added = [("url", "http://a.test/f"), ("challenge", "abc")];
        #[rustfmt::skip]
        let cases = [
            ("https://b.test/cb?url=http%3A%2F%2Fa.test%2Ff&challenge=abc", "https://b.test/cb"),
            ("https://b.test/cb?id=7&url=http://a.test/f&challenge=abc",    "https://b.test/cb?id=7"),
            ("https://b.test/cb/",                                          "https://b.test/cb/"),
            ("https://b.test/cb?challenge=of%20another&x",                  "https://b.test/cb?challenge=of%20another&x"),
        ];
        for (target, want) in cases {
            let mut url = Url::parse(target).unwrap();
            remove_pairs(&mut url, &added);
            assert_eq!(url.as_str(), want);
        }
    }

    #[test]
    fn t11_an_inner_name_and_a_missing_one_are_the_same_to_others() {
        let host = || "wiki.corp.test".to_owned();
        let detail = "dns: no such name".to_owned();
        let missing = FetchError::Unreachable { host: host(), detail, class: FailureClass::NoName };
        let missing = unreachable(missing);
        let inner = unreachable(FetchError::Forbidden { host: host() });
        assert_eq!(inner.to_string(), missing.to_string());
        assert_eq!(inner.code(), missing.code());
        assert_eq!(inner.is_transient(), missing.is_transient());
        assert_ne!(inner.private_detail(), missing.private_detail(), "the operator sees the cause");
    }

    #[test]
    fn challenges_are_random_and_long() {
        let (one, other) = (nonce(), nonce());
        assert_eq!(one.len(), 32);
        assert_ne!(one, other);
    }
}
